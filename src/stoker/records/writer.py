"""Writing one shard: nothing appears under its final name before all of it is on the disk."""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from stoker import _native
from stoker.records.files import sync_directory, write_atomically
from stoker.records.index import format_index, new_index_path
from stoker.storage.temporary import temporary_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from stoker.types import Compression

_LEVEL = 6
_WINDOW_BITS = {"gzip": 31, "zlib": 15}  # zlib's own way of saying which header it writes; GZIP's then holds no time
_MAX_BUFFERS = 512  # of one writev; POSIX promises 16, Linux and macOS allow 1024


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A shard that is complete on the disk.

    Attributes:
        name: Name, relative to the dataset's directory.
        records: How many records it holds.
        size_bytes: Its length, compressed where it is.
        crc32c: Of all these bytes.
    """

    name: str
    records: int
    size_bytes: int
    crc32c: int


class ShardWriter:
    """Writes a TFRecord shard and its index.

    The bytes go to ``NAME.tmp-...``. `commit` brings them to the disk, writes the index in full, and only then
    renames the shard, so a shard under its final name is complete and has its index. Leaving the ``with`` block
    without `commit` removes what was written. For one thread at a time.

    A compressed shard is one GZIP or ZLIB stream, as TensorFlow's readers expect it; it has no index, because nothing
    in it can be reached without inflating what precedes it.

    Args:
        directory: Directory of the dataset; must exist.
        name: Final name of the shard, relative to ``directory``.
        compression: What is done to the bytes.

    Raises:
        OSError: From any method: the disk is full, or the like.
    """

    def __init__(self, directory: Path, name: str, compression: Compression = "none") -> None:
        self._name = name
        self._path = directory / name
        self._path.parent.mkdir(exist_ok=True)
        self._temporary = directory / temporary_name(name)
        self._index = new_index_path(directory, name) if compression == "none" else None
        self._deflate = (
            zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS[compression]) if self._index is None else None
        )
        self._file: int | None = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        self._sizes: list[int] = []
        self._size_bytes = 0
        self._crc32c = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def append(self, payload: bytes) -> None:
        """Write one record."""
        self.append_frames([_native.frame_record(payload)])

    def append_frames(self, frames: Sequence[bytes]) -> None:
        """Write records that `stoker._native.frame_record` has already framed, in order."""
        for start in range(0, len(frames), _MAX_BUFFERS):
            self._write(list(frames[start : start + _MAX_BUFFERS]))

    def _write(self, frames: list[bytes]) -> None:
        self._sizes += [len(frame) for frame in frames]
        self._write_bytes(frames if self._deflate is None else [self._deflate.compress(frame) for frame in frames])

    def _write_bytes(self, parts: list[bytes]) -> None:
        assert self._file is not None, "the shard is already committed or aborted"
        size = sum(map(len, parts))
        written = os.writev(self._file, parts)
        if written < size:
            self._write_rest(b"".join(parts), written)
        self._crc32c = _native.crc32c_of_parts(parts, self._crc32c)
        self._size_bytes += size

    def _write_rest(self, data: bytes, written: int) -> None:
        """Finish a write that the system cut short; a full disk raises here."""
        assert self._file is not None
        view = memoryview(data)
        while written < len(data):
            written += os.write(self._file, view[written:])

    def commit(self) -> ShardFile:
        """Bring the shard and its index to the disk and give both their final names."""
        assert self._file is not None, "the shard is already committed or aborted"
        if self._deflate is not None:
            self._write_bytes([self._deflate.flush()])
        os.fsync(self._file)
        self._close()
        try:
            if self._index is not None:
                self._index.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(self._index, format_index(np.asarray(self._sizes, np.uint64)))
            self._temporary.replace(self._path)
        finally:
            self._temporary.unlink(missing_ok=True)
        sync_directory(self._path.parent)
        return ShardFile(self._name, len(self._sizes), self._size_bytes, self._crc32c)

    def abort(self) -> None:
        """Remove what was written, unless it is committed."""
        if self._file is not None:
            self._close()
            self._temporary.unlink(missing_ok=True)

    def _close(self) -> None:
        assert self._file is not None
        file, self._file = self._file, None
        os.close(file)
