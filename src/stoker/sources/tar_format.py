"""The members of a tar, read header by header; nothing is unpacked, and nothing in a tar is trusted.

`tarfile` parses the headers (ustar, GNU long names, PAX). It reads from a `FileWindow`, which limits how much a header
can make it read. `MemberReader` reads images that are members.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Self, cast

from stoker.errors import SourceError
from stoker.sources.files import read_slice
from stoker.sources.items import Item, ItemTable, chunks
from stoker.sources.reader import ArchiveReader, Extents, numbers_in
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from stoker.storage import Location


TAR_DAMAGE = (
    tarfile.TarError,
    ValueError,
    OverflowError,
    IndexError,
    RecursionError,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
)
"""Errors of `tarfile` and `gzip` on damaged input."""

_GZIP_MAGIC = b"\x1f\x8b"
_MAX_HEADER_BYTES, _MAX_VALUE_BYTES = 2**20, 2**24


class FileWindow:
    """The bytes that a tar is read from: a file, a part of one such as a tar in a tar, or a decompressed stream.

    Args:
        file: The file, open for reading; the caller closes it.
        start: Where the part begins.
        size: Its length; the caller has made sure that it lies in the file. None: it ends with the stream.
        where: Its name in messages.
    """

    def __init__(self, file: IO[bytes], start: int, size: int | None, where: str) -> None:
        self.start = self._position = start
        self.size, self.where = size, where
        self.budget = 0  # bytes that may still be read for one header
        self.last = b""  # the bytes that were read last
        self._file = file

    def read(self, size: int) -> bytes:
        """Return the next bytes; fewer only at the end."""
        if not 0 <= size <= self.budget:
            raise ValueError(f"a header of {size} bytes")
        self.budget -= size
        self._file.seek(self._position)
        left = size if self.size is None else max(0, self.start + self.size - self._position)
        self.last = self._file.read(min(size, left))
        self._position += len(self.last)
        return self.last

    def seek(self, position: int) -> None:
        """Move to a position; in a stream only forwards, as each way back would decompress it anew."""
        if position < (self.tell() if self.size is None else 0):
            raise ValueError("an offset leads back")
        self._position = self.start + position

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._position - self.start

    def inner(self, member: tarfile.TarInfo) -> FileWindow:
        """Return a window of the bytes of a member."""
        return FileWindow(self._file, self.start + member.offset_data, member.size, f"{self.where}/{member.name}")

    def finish(self) -> None:
        """Read what follows the tar in a stream, so that its checksum is checked."""
        try:
            while self._file.read(2**16):
                pass
        except TAR_DAMAGE as error:
            raise damaged(self, self.tell(), str(error)) from error


def is_compressed(path: Location) -> bool:
    """Return whether a file is compressed with gzip."""
    return path.read_head(2) == _GZIP_MAGIC


def may_be_tar(path: Location) -> bool:
    """Return whether a file may be a tar: by its name, by newer kinds of headers, or as it is compressed with gzip."""
    head = path.read_head(tarfile.BLOCKSIZE)
    return path.suffix.lower() == ".tar" or head[257:262] == b"ustar" or head.startswith(_GZIP_MAGIC)


@contextmanager
def open_stream(path: Location) -> Iterator[IO[bytes]]:
    """Open a tar that may be compressed with gzip, recognised by its content."""
    with path.reader() as file:
        if not is_compressed(path):
            yield file
            return
        with gzip.open(file, "rb") as content:
            yield cast("IO[bytes]", content)


def damaged(source: FileWindow, offset: int, problem: str, what: str = "damaged") -> SourceError:
    """Return the error of a tar that is wrong at a byte, or ends there too early."""
    message = f"{source.where} is {what} at byte {offset}: {problem}; fetch or make it again"
    return SourceError(message, path=source.where, offset=offset)


def tar_members(source: FileWindow) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar in order, directories and links too.

    Names are as the tar has them: it is not safe to join them to a path. Sizes are checked against the end of a tar
    whose size is known.

    Raises:
        SourceError: It is damaged or cut short; the message says where.
        OSError: It cannot be read.
    """
    source.budget = _MAX_HEADER_BYTES
    try:
        tar = tarfile.TarFile(fileobj=source, mode="r", encoding="utf-8", errors="surrogateescape")  # type: ignore[arg-type]
    except TAR_DAMAGE as error:
        raise SourceError(f"{source.where} is not a tar: {error}", path=source.where, offset=0) from error
    end = 0
    while (member := _next(tar, source)) is not None:
        if member.size < 0 or member.offset_data < end:
            raise damaged(source, end, f"the size of {member.name!r} is {member.size}")
        end = member.offset_data + member.size
        if source.size is not None and end > source.size:
            problem = f"{member.name!r} would end at byte {end}, the tar ends at byte {source.size}"
            raise damaged(source, member.offset, problem, "cut short")
        yield member
    if source.last.count(0) == tarfile.BLOCKSIZE:
        return
    if len(source.last) < tarfile.BLOCKSIZE:
        raise damaged(source, tar.offset, "the blocks of zeros that end a tar are missing", "cut short")
    raise damaged(source, tar.offset, "this is not a header")


def read_member(source: FileWindow, member: tarfile.TarInfo, limit: int) -> bytes:
    """Return the bytes of the member that `tar_members` has just yielded."""
    if member.size > limit:
        problem = f"{member.name!r} has {member.size} bytes, more than {limit}"
        raise SourceError(f"{source.where}: {problem}", path=source.where, offset=member.offset)
    source.budget = member.size
    try:
        data = source.read(member.size)
    except TAR_DAMAGE as error:
        raise damaged(source, member.offset, str(error)) from error
    if len(data) < member.size:
        raise damaged(source, member.offset, f"{member.name!r} is not whole", "cut short")
    return data


def _next(tar: tarfile.TarFile, source: FileWindow) -> tarfile.TarInfo | None:
    source.budget = _MAX_HEADER_BYTES
    try:
        member = tar.next()
    except TAR_DAMAGE as error:
        raise damaged(source, tar.offset, str(error)) from error
    cast("Any", tar).members.clear()  # it would store all of them
    return member


class MemberReader(ArchiveReader):
    """Reads members of tars. The columns of an item say where its bytes are: in ``archive``, from ``offset`` on.

    The column ``slices`` has the offset of the value of each field in ``archive``, and its length; -1 for a missing
    value.

    See `ArchiveReader`.
    """

    name = "members"

    def image(self, item: Item) -> bytes:
        return read_slice(self.locate(item), item.columns["offset"], item.size_bytes)

    def values(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        values: dict[str, Any] = {}
        slices = item.columns["slices"] if self.fields else ()
        for name, start, size in zip(self.fields, slices[::2], slices[1::2], strict=True):
            if names is None or name in names:
                values[name] = None if start < 0 else self._value(item, name, start, size)
        return values

    def _value(self, item: Item, name: str, start: int, size: int) -> Any:
        path = os.fsdecode(self.locate(item))
        where = f"the {name} of {item.key} in {path}"
        is_file = self.fields[name].is_image
        if size > _MAX_VALUE_BYTES and not is_file:
            raise SourceError(f"{where} has {size} bytes, more than {_MAX_VALUE_BYTES}", path=path, offset=start)
        data = read_slice(self.locate(item), start, size)
        if is_file:
            return data
        try:
            return data.decode() if self.fields[name].form().kind == "text" else parse_json(data)
        except (RecursionError, ValueError) as error:
            problem = f"it is not UTF-8 at byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
            raise SourceError(f"{where} is damaged: {problem}", path=path, offset=start) from error

    def digest(self, table: ItemTable) -> bytes:
        if not self.fields:
            return b""
        digest = hashlib.sha256(repr([(name, field.to_json()) for name, field in self.fields.items()]).encode())
        slices = cast("NDArray[np.int64]", table.columns["slices"])
        rows = table.image_rows()
        for first, end in chunks(len(rows)):
            digest.update(slices[rows[first:end], 1::2].astype("<i8").tobytes())
        return digest.digest()

    def extents(self, table: ItemTable) -> Extents:
        return Extents(self.base, table, self.archives, is_local=self.latency == "disk")

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable) -> Self:
        base, archives, fields = cls.parts_of(described, table)
        numbers_in(table, "offset")
        if fields:
            numbers_in(table, "slices", shape=(2 * len(fields),))
        return cls(base, archives, fields)
