"""``build.journal``: the journal of a build on this machine. Also its lock.

The first line is a JSON object with the settings of the build, every other line one for a shard that is on the disk
under its final name. A line counts once it ends in a newline; what follows the last good line is thrown away.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from typing import TYPE_CHECKING, Any, Self

from stoker.build.journal_entries import (
    LONGEST_LINE_BYTES,
    format_result,
    format_settings,
    parse_settings,
    read_results,
)
from stoker.errors import DestinationError
from stoker.records.files import sync_directory
from stoker.records.layout import JOURNAL_NAME
from stoker.storage.named import naming

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from stoker.build.job import ShardResult


class JournalFile:
    """The journal of one destination, locked as long as this object is open; see `stoker.build.journal.Journal`.

    The lock is the operating system's, on the open file: it ends with the process, also with ``kill -9``.

    Args:
        directory: Destination; must exist.

    Raises:
        DestinationError: Another build has the lock.
        OSError: The file cannot be opened.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / JOURNAL_NAME
        self._file = self._open_locked()
        self.settings: dict[str, Any] | None = None
        """Settings of the build that was begun here; None if none was."""
        self.results: list[ShardResult] = []
        """Shards that it has finished."""
        try:
            with naming(self._path):
                self._read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self, settings: dict[str, Any]) -> None:
        """Start the journal of a new build."""
        with naming(self._path):
            os.ftruncate(self._file, 0)
            self._write_line(format_settings(settings))
        sync_directory(self._directory)
        self.settings = settings

    def append(self, result: ShardResult) -> None:
        """Note that a shard is complete; it is on the disk when this returns.

        Raises:
            OSError: The disk is full, or the like.
        """
        with naming(self._path):
            self._write_line(format_result(result))
        self.results.append(result)

    def close(self) -> None:
        """Give the lock back. Idempotent."""
        if self._file >= 0:
            file, self._file = self._file, -1
            with contextlib.suppress(OSError):  # every line was brought to the disk, or that was an error
                os.close(file)

    def remove(self) -> None:
        """Delete the journal, at the end of a build, while the lock is still held."""
        self._path.unlink()
        sync_directory(self._directory)

    def _open_locked(self) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
            try:
                self._refuse_other_files(file)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                where = str(self._directory)
                message = f"another build is writing to {where}; wait for it to end, or stop it"
                raise DestinationError(message, path=where) from None
            except BaseException:
                os.close(file)
                raise
            # The other build may have finished, and deleted the file, between our open and our lock.
            if self._path.exists() and self._path.stat().st_ino == os.fstat(file).st_ino:
                return file
            os.close(file)

    def _refuse_other_files(self, file: int) -> None:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            message = f"{self._path} is a pipe or a device, not the journal of a build; delete it"
            raise DestinationError(message, path=str(self._path))

    def _write_line(self, line: bytes) -> None:
        written = 0
        while written < len(line):
            written += os.write(self._file, line[written:])
        os.fsync(self._file)

    def _read(self) -> None:
        with os.fdopen(os.dup(self._file), "rb") as file:
            header = file.readline(LONGEST_LINE_BYTES)
            good = len(header)
            if not header.endswith(b"\n"):
                return
            self.settings = self._settings(header)
            for result, length in read_results(file):
                self.results.append(result)
                good += length
        os.ftruncate(self._file, good)

    def _settings(self, header: bytes) -> dict[str, Any]:
        settings = parse_settings(header)
        if isinstance(settings, str):
            message = f"{self._path} {settings}; delete {self._directory} or build somewhere else"
            raise DestinationError(message, path=str(self._path))
        return settings
