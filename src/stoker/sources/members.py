"""Images that are members of tars, with values that are members of their own: how they are listed, and how read."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any, Self, cast

from stoker.errors import SourceError
from stoker.fields import from_json
from stoker.sources.columns import GrowingColumn, chunks
from stoker.sources.reader import ArchiveReader, Extents, numbers_in, to_bytes, to_text
from stoker.sources.reading import read_slice
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from stoker.sources.columns import Column
    from stoker.sources.items import Item, ItemTable

_MAX_VALUE_BYTES = 2**24


class MemberPlaces:
    """Where the images of a source begin in its tars."""

    def __init__(self) -> None:
        self._archives = GrowingColumn("i")
        self._offsets = GrowingColumn("q")

    def __len__(self) -> int:
        return len(self._archives)

    def add(self, archive: int, offset: int) -> None:
        """Append one, given the number of its tar."""
        self._archives.append(archive)
        self._offsets.append(offset)

    def columns(self) -> dict[str, Column]:
        """Return them as columns of the source; nothing can be added afterwards."""
        return {"archive": self._archives.finish(), "offset": self._offsets.finish()}


class MemberReader(ArchiveReader):
    """Reads members of tars. The columns of an item say where its bytes are: in ``archive``, from ``offset`` on.

    The column ``slices`` has where the value of each field begins in ``archive``, and its length; -1 for a value that
    is not there.

    See `ArchiveReader`.
    """

    name = "members"

    def image(self, item: Item) -> bytes:
        """Return the bytes of a member. See `StoredReader.image`."""
        return read_slice(self.locate(item), item.columns["offset"], item.size_bytes)

    def values(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values that members hold. See `IndexedReader.values`."""
        values: dict[str, Any] = {}
        slices = item.columns["slices"] if self.fields else ()
        for name, start, size in zip(self.fields, slices[::2], slices[1::2], strict=True):
            if names is None or name in names:
                values[name] = None if start < 0 else self._value(item, name, start, size)
        return values

    def _value(self, item: Item, name: str, start: int, size: int) -> Any:
        place = os.fsdecode(self.locate(item))
        where = f"the {name} of {item.key} in {place}"
        is_file = self.fields[name].is_image
        if size > _MAX_VALUE_BYTES and not is_file:
            raise SourceError(f"{where} has {size} bytes, more than {_MAX_VALUE_BYTES}", path=place, offset=start)
        data = read_slice(self.locate(item), start, size)
        if is_file:
            return data
        try:
            return data.decode() if self.fields[name].form().kind == "text" else parse_json(data)
        except (RecursionError, ValueError) as error:
            problem = f"it is not UTF-8 at byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
            raise SourceError(f"{where} is damaged: {problem}", path=place, offset=start) from error

    def digest(self, table: ItemTable) -> bytes:
        """Return bytes that change with any field, and with the length of any value."""
        if not self.fields:
            return b""
        digest = hashlib.sha256(repr([(name, field.to_json()) for name, field in self.fields.items()]).encode())
        slices = cast("NDArray[np.int64]", table.columns["slices"])
        rows = table.image_rows()
        for first, end in chunks(len(rows)):
            digest.update(slices[rows[first:end], 1::2].astype("<i8").tobytes())
        return digest.digest()

    def extents(self, table: ItemTable) -> Extents:
        """Return the slices of the tars."""
        return Extents(self.base, table, self.archives, is_local=self.latency == "disk")

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        fields = [[name, field.to_json()] for name, field in self.fields.items()]
        return {"base": to_text(self.base), "archives": list(map(to_text, self.archives)), "fields": fields}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable) -> Self:
        """Return what `to_json` has described. See `StoredReader.from_json`."""
        fields = {str(name): from_json(field) for name, field in described["fields"]}
        archives = tuple(map(to_bytes, described["archives"]))
        numbers_in(table, "archive", len(archives))
        numbers_in(table, "offset")
        if fields:
            numbers_in(table, "slices", shape=(2 * len(fields),))
        return cls(to_bytes(described["base"]), archives, fields)
