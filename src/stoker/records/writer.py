"""Writing one shard: nothing appears under its final name before all of it is on the disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from stoker import _native
from stoker.records.files import sync_directory, temporary_name
from stoker.records.index import INDEX_SUFFIX, format_index

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

_MAX_BUFFERS = 512  # of one writev; POSIX promises 16, Linux and macOS allow 1024


@dataclass(frozen=True, slots=True)
class ShardFile:
    """A shard that is complete on the disk.

    Attributes:
        name: File name.
        records: How many records it holds.
        size_bytes: Its length.
        crc32c: Of all its bytes.
    """

    name: str
    records: int
    size_bytes: int
    crc32c: int


class ShardWriter:
    """Writes a TFRecord shard and the index beside it.

    The bytes go to ``NAME.tmp-...``. `commit` brings them to the disk, writes ``NAME.idx`` in full, and only then
    renames the shard, so a shard under its final name is complete and has its index. Leaving the ``with`` block
    without `commit` removes what was written. For one thread at a time.

    Args:
        directory: Directory of the dataset; must exist.
        name: Final file name of the shard.

    Raises:
        OSError: From any method: the disk is full, or the like.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._path = directory / name
        self._temporary = directory / temporary_name(name)
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
            self._write(frames[start : start + _MAX_BUFFERS])

    def _write(self, frames: Sequence[bytes]) -> None:
        assert self._file is not None, "the shard is already committed or aborted"
        sizes = [len(frame) for frame in frames]
        written = os.writev(self._file, frames)
        if written < sum(sizes):
            self._write_rest(b"".join(frames), written)
        for frame in frames:
            self._crc32c = _native.crc32c(frame, self._crc32c)
        self._sizes += sizes
        self._size_bytes += sum(sizes)

    def _write_rest(self, data: bytes, written: int) -> None:
        """Finish a write that the system cut short; a full disk raises here."""
        assert self._file is not None
        view = memoryview(data)
        while written < len(data):
            written += os.write(self._file, view[written:])

    def commit(self) -> ShardFile:
        """Bring the shard and its index to the disk and give both their final names."""
        assert self._file is not None, "the shard is already committed or aborted"
        os.fsync(self._file)
        self._close()
        index = self._path.with_name(self._path.name + INDEX_SUFFIX)
        temporary_index = index.with_name(temporary_name(index.name))
        try:
            with temporary_index.open("xb") as file:
                file.write(format_index(np.asarray(self._sizes, np.uint64)))
                file.flush()
                os.fsync(file.fileno())
            temporary_index.replace(index)
            self._temporary.replace(self._path)
        finally:
            temporary_index.unlink(missing_ok=True)
            self._temporary.unlink(missing_ok=True)
        sync_directory(self._path.parent)
        return ShardFile(self._path.name, len(self._sizes), self._size_bytes, self._crc32c)

    def abort(self) -> None:
        """Remove what was written, unless it is committed."""
        if self._file is not None:
            self._close()
            self._temporary.unlink(missing_ok=True)

    def _close(self) -> None:
        assert self._file is not None
        file, self._file = self._file, None
        os.close(file)
