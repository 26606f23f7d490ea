"""The images and the values of items that are rows of Parquet files."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from stoker.errors import SourceError
from stoker.fields import from_json
from stoker.progress import progress_of_call
from stoker.sources.columns import new_column
from stoker.sources.items import ItemTableBuilder
from stoker.sources.reader import ArchiveReader, Extents, numbers_in, to_bytes, to_text
from stoker.sources.reading import MAX_FILE_BYTES, read_file
from stoker.sources.unpacked import Columns, Unpacked, unpack
from stoker.storage import from_uri, join

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from stoker.sources.items import Item, ItemTable
    from stoker.types import Field


_NO_SUCH_FILE = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


class ParquetReader(ArchiveReader):
    """Reads rows of Parquet files: the column ``archive`` of an item is its file, ``row`` its row.

    Args:
        base: As of `ArchiveReader`.
        archives: The same.
        digests: What stands for the length and the footer of each.
        columns: What is used of them.
        fields: What that is beside the images, by name.
    """

    name = "parquet"

    def __init__(
        self,
        base: bytes,
        archives: tuple[bytes, ...],
        digests: tuple[bytes, ...],
        columns: Columns,
        fields: Mapping[str, Field],
    ) -> None:
        super().__init__(base, archives, dict(fields))
        self._digests, self._columns = digests, columns
        self._locks = [threading.Lock() for _ in archives]
        self._files: dict[int, Unpacked | SourceError] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetReader, (self.base, self.archives, self._digests, self._columns, self.fields)

    def image(self, item: Item) -> bytes:
        data, path = self._file(item.columns["archive"]).image(item.columns["row"])
        if data is not None:
            if len(data) > MAX_FILE_BYTES:
                raise SourceError(
                    f"the image has {len(data):,} bytes, more than the {MAX_FILE_BYTES:,} that a record holds"
                )
            return data
        where = f"row {item.columns['row']:,} of {os.fsdecode(self.locate(item))}: column {self._columns.image!r}"
        if not path:
            raise SourceError(f"{where} is null")
        try:
            return read_file(self._beside(item, path))
        except (*_NO_SUCH_FILE, ValueError) as error:
            problem = getattr(error, "strerror", None) or error
            raise SourceError(
                f"{where} has no bytes, and the file of its path {path!r} cannot be read: {problem}"
            ) from error

    def values(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of a row: `Field.missing` for those that are missing. See `IndexedReader.values`."""
        wanted = [name for name in self.fields if names is None or name in names]
        file = self._file(item.columns["archive"]) if wanted else None
        return {
            name: self._value(item, name, file.value(item.columns["row"], name)) for name in wanted if file is not None
        }

    def _value(self, item: Item, name: str, value: Any) -> Any:
        if value is None:
            return self.fields[name].missing
        if not self.fields[name].is_image or not isinstance(value, dict):
            return value
        if value["bytes"] is not None or not value["path"]:
            return value["bytes"]
        return os.fsdecode(self._beside(item, value["path"]))

    def _beside(self, item: Item, path: str) -> bytes:
        return join(self.locate(item).rpartition(b"/")[0], os.fsencode(path))

    def to_json(self) -> dict[str, Any]:
        return {
            "base": to_text(self.base),
            "archives": list(map(to_text, self.archives)),
            "image": self._columns.image,
            "has_paths": self._columns.has_paths,
            "columns": list(self._columns.others),
            "fields": [field.to_json() for field in self.fields.values()],
            "digests": [digest.hex() for digest in self._digests],
        }

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable) -> Self:
        names = tuple(map(str, described["columns"]))
        fields = dict(zip(names, map(from_json, described["fields"]), strict=True))
        archives = tuple(map(to_bytes, described["archives"]))
        digests = tuple(bytes.fromhex(digest) for digest in described["digests"])
        if len(digests) != len(archives) or len(fields) < len(names):
            raise ValueError("files or fields that are not there")
        numbers_in(table, "archive", len(archives))
        numbers_in(table, "row")
        columns = Columns(str(described["image"]), bool(described["has_paths"]), names)
        return cls(to_bytes(described["base"]), archives, digests, columns, fields)

    def digest(self, table: ItemTable) -> bytes:  # noqa: ARG002 - the footers stand for all rows
        digest = hashlib.sha256(repr([(name, field.to_json()) for name, field in self.fields.items()]).encode())
        for file_digest in self._digests:
            digest.update(file_digest)
        return digest.digest()

    def extents(self, table: ItemTable) -> Extents:
        """Unpack the files of some items, and return where their images are then. See `IndexedReader.extents`.

        An image whose row has no bytes is the file that its path names.
        """
        archives, row_of = (cast("NDArray[np.int64]", table.columns[name]) for name in ("archive", "row"))
        offsets, sizes = new_column(len(table), np.int64), new_column(len(table), np.int64)
        places = [b""] * len(self.archives)
        done = 0
        with progress_of_call("unpacking", None) as progress:
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
        slices = dataclasses.replace(table, sizes=sizes, columns={"archive": archives, "offset": offsets})
        has_all = int(offsets.min()) >= 0
        return Extents(self.base, slices if has_all else self._with_files(table, slices), tuple(places))

    def _with_files(self, table: ItemTable, slices: ItemTable) -> ItemTable:
        """Return the slices of images; of images without bytes, the files that their paths name."""
        builder = ItemTableBuilder()
        for item, slice_ in zip(table, slices, strict=True):
            offset = slice_.columns["offset"]
            own = dataclasses.replace(slice_, columns={"archive": item.columns["archive"], "offset": max(0, offset)})
            path = self._file(item.columns["archive"]).image(item.columns["row"])[1] if offset < 0 else None
            if path:
                place = from_uri(self._beside(item, path))
                if not place.is_local:
                    message = f"the images of {os.fsdecode(self.locate(item))} are files beside it in a store"
                    raise SourceError(f"{message}, which only a build reads; run stoker build", path=str(place))
                size = place.size() if place.is_file() else 0
                columns = {"archive": -1, "offset": 0}
                own = dataclasses.replace(own, path=place.to_uri(), size_bytes=size, columns=columns)
            builder.add(own)
        return builder.finish()

    def _file(self, number: int, advanced: Callable[[int], None] | None = None) -> Unpacked:
        """Return a file unpacked, which is done once."""
        unpacked = self._files.get(number)
        if unpacked is None:
            with self._locks[number]:
                unpacked = self._files.get(number)
                if unpacked is None:
                    try:
                        unpacked = unpack(from_uri(self.archives[number]), self._columns, advanced)
                    except SourceError as error:
                        unpacked = error
                    self._files[number] = unpacked
        if isinstance(unpacked, SourceError):
            raise type(unpacked)(str(unpacked), path=unpacked.path)
        return unpacked
