"""The images and the values of items that are rows of Parquet files."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stoker.errors import SourceError
from stoker.fields import ImageField, from_json
from stoker.sources.columns import new_column
from stoker.sources.field_values import FILLED
from stoker.sources.items import ItemTableBuilder
from stoker.sources.reading import MAX_FILE_BYTES, read_file
from stoker.sources.unpacked import Columns, Unpacked, unpack
from stoker.storage import from_uri, join

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from stoker.sources.items import Item, ItemTable
    from stoker.types import Field, Progress


_NO_SUCH_FILE = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


class ParquetRows:
    """The images and the values of items that are rows of Parquet files; see `stoker.sources.field_values.ItemValues`.

    The column ``archive`` of an item is its file, ``row`` its row. Safe in any thread; it can be pickled.

    Args:
        places: Absolute paths or URLs of the files.
        digests: What stands for the length and the footer of each.
        columns: What is used of them.
        fields: What that is beside the images, by name.
    """

    def __init__(
        self, places: tuple[bytes, ...], digests: tuple[bytes, ...], columns: Columns, fields: Mapping[str, Field]
    ) -> None:
        self.fields = dict(fields)
        self._places, self._digests, self._columns = places, digests, columns
        self._locks = [threading.Lock() for _ in places]
        self._files: dict[int, Unpacked | SourceError] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetRows, (self._places, self._digests, self._columns, self.fields)

    def image(self, item: Item) -> bytes:
        """Return the bytes of an image.

        Raises:
            SourceError: The row has none, or the file is damaged.
            ConfigError: There is no space to unpack it.
            OSError: A file cannot be read.
        """
        data, path = self._file(item.columns["archive"]).image(item.columns["row"])
        if data is not None:
            if len(data) > MAX_FILE_BYTES:
                raise SourceError(
                    f"the image has {len(data):,} bytes, more than the {MAX_FILE_BYTES:,} that a record holds"
                )
            return data
        where = f"row {item.columns['row']:,} of {self._name(item)}: column {self._columns.image!r}"
        if not path:
            raise SourceError(f"{where} is null")
        try:
            return read_file(self._beside(item, path))
        except (*_NO_SUCH_FILE, ValueError) as error:
            problem = getattr(error, "strerror", None) or error
            raise SourceError(
                f"{where} has no bytes, and the file of its path {path!r} cannot be read: {problem}"
            ) from error

    def read(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of one item; None for what is missing, but an empty text, and not a number of a `Float`.

        Raises:
            SourceError: They are damaged.
            OSError: The file cannot be read.
        """
        wanted = [name for name in self.fields if names is None or name in names]
        file = self._file(item.columns["archive"]) if wanted else None
        return {
            name: self._value(item, name, file.value(item.columns["row"], name)) for name in wanted if file is not None
        }

    def _value(self, item: Item, name: str, value: Any) -> Any:
        if value is None:
            return FILLED.get(type(self.fields[name]))
        if not isinstance(self.fields[name], ImageField) or not isinstance(value, dict):
            return value
        if value["bytes"] is not None or not value["path"]:
            return value["bytes"]
        return os.fsdecode(self._beside(item, value["path"]))

    def _name(self, item: Item) -> str:
        return os.fsdecode(self._places[item.columns["archive"]])

    def _beside(self, item: Item, path: str) -> bytes:
        return join(self._places[item.columns["archive"]].rpartition(b"/")[0], os.fsencode(path))

    def to_json(self) -> dict[str, Any]:
        """Return everything but the places, as JSON has it."""
        return {
            "image": self._columns.image,
            "has_paths": self._columns.has_paths,
            "columns": list(self._columns.others),
            "fields": [field.to_json() for field in self.fields.values()],
            "digests": [digest.hex() for digest in self._digests],
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any], places: tuple[bytes, ...]) -> ParquetRows:
        """Return what `to_json` has written.

        Raises:
            ConfigError: A field is not one.
            KeyError, TypeError, ValueError: It is damaged.
        """
        names = tuple(map(str, said["columns"]))
        fields = dict(zip(names, map(from_json, said["fields"]), strict=True))
        digests = tuple(bytes.fromhex(digest) for digest in said["digests"])
        if len(digests) != len(places) or len(fields) < len(names):
            raise ValueError("files or fields that are not there")
        return cls(places, digests, Columns(str(said["image"]), bool(said["has_paths"]), names), fields)

    def digest(self, table: ItemTable) -> bytes:  # noqa: ARG002 - the footers stand for all rows
        """Return 32 bytes that change with the length and the footer of any file."""
        digest = hashlib.sha256(repr([(name, field.to_json()) for name, field in self.fields.items()]).encode())
        for one in self._digests:
            digest.update(one)
        return digest.digest()

    def located(self, table: ItemTable, progress: Progress | None = None) -> tuple[ItemTable, tuple[bytes, ...]]:
        """Unpack the files of some items, and return where their images are now.

        Args:
            table: The items.
            progress: Called after every few rows.

        Returns:
            The items, with the slices of the files that hold their images, and these files. An image whose row has no
            bytes is the file that its path names.

        Raises:
            SourceError: A file is damaged.
            ConfigError: There is no space to unpack one.
            OSError: One cannot be read.
        """
        archives, row_of = (cast("NDArray[np.int64]", table.columns[name]) for name in ("archive", "row"))
        offsets, sizes = new_column(len(table), np.int64), new_column(len(table), np.int64)
        places = [b""] * len(self._places)
        done = 0
        for number in np.unique(archives).tolist():

            def advanced(rows: int, before: int = done) -> None:
                if progress is not None:
                    progress(done=before + rows, total=len(table), size_bytes=0, rejects=0)

            file = self._file(number, advanced)
            places[number] = os.fsencode(file.path)
            rows = np.flatnonzero(archives == number)
            starts, lengths = file.slices()
            offsets[rows], sizes[rows] = starts[row_of[rows]], lengths[row_of[rows]]
            done += len(rows)
        found = dataclasses.replace(table, sizes=sizes, columns={"archive": archives, "offset": offsets})
        has_all = int(offsets.min()) >= 0
        return found if has_all else self._with_files(table, found), tuple(places)

    def _with_files(self, table: ItemTable, found: ItemTable) -> ItemTable:
        """Return where images are, those without bytes too: the files of their paths.

        Raises:
            SourceError: They lie in a store.
        """
        builder = ItemTableBuilder()
        for item, slice_ in zip(table, found, strict=True):
            offset = slice_.columns["offset"]
            own = dataclasses.replace(slice_, columns={"archive": item.columns["archive"], "offset": max(0, offset)})
            path = self._file(item.columns["archive"]).image(item.columns["row"])[1] if offset < 0 else None
            if path:
                place = from_uri(self._beside(item, path))
                if not place.is_local:
                    message = f"the images of {self._name(item)} are files beside it in a store"
                    raise SourceError(f"{message}, which only a build reads; run stoker build", path=str(place))
                size = place.size() if place.is_file() else 0
                columns = {"archive": -1, "offset": 0}
                own = dataclasses.replace(own, path=place.to_uri(), size_bytes=size, columns=columns)
            builder.add(own)
        return builder.finish()

    def _file(self, number: int, advanced: Callable[[int], None] | None = None) -> Unpacked:
        """Return a file unpacked, which is done once."""
        found = self._files.get(number)
        if found is None:
            with self._locks[number]:
                found = self._files.get(number)
                if found is None:
                    try:
                        found = unpack(from_uri(self._places[number]), self._columns, advanced)
                    except SourceError as error:
                        found = error
                    self._files[number] = found
        if isinstance(found, SourceError):
            raise type(found)(str(found), path=found.path)
        return found
