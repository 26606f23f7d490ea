"""The file that a download grows in: ``NAME.part``, and ``NAME.part.json`` with what the server said of it.

Everything in it is hashed as it is written. It gets its real name when it is whole, right, and on the disk; whatever
ends the process before that leaves it to be continued. It is locked while somebody works on it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
from typing import TYPE_CHECKING, Any

from stoker.errors import DestinationError
from stoker.format import sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stoker.download.catalogue import Checksum

_READ_BYTES = 2**20
_MAX_NOTES_BYTES = 2**16
_MARK_KEYS = ("url", "etag", "last_modified")


class PartFile:
    """A download that is not finished.

    Args:
        target: What it is called in the end.
        checksum: What it has to hash to.
        hashed: Told, while what an earlier run left is hashed, how many of its bytes are.

    Raises:
        DestinationError: Another process works on it.
        OSError: It cannot be opened or read.
    """

    def __init__(self, target: Path, checksum: Checksum, hashed: Callable[[int, int], None]) -> None:
        self.path = target.with_name(target.name + ".part")
        self.size = 0
        self._target = target
        self._checksum = checksum
        self._marks_path = target.with_name(target.name + ".part.json")
        self._file = io.FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+")
        try:
            self._lock()
            self._marks = self._read_marks()
            self._hash = self._hash_kept(hashed)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> PartFile:
        return self

    def __exit__(self, *exception: object) -> None:
        """Leave it to be continued; an empty one is removed."""
        if self._file.closed:
            return
        if self.size == 0:
            self._remove()
        self._file.close()

    def validator(self, url: str) -> str | None:
        """Return what tells whether the file at a URL is still the one that was begun, for ``If-Range``."""
        if self._marks.get("url") != url:
            return None
        etag = self._marks.get("etag")
        # A weak tag promises the same meaning, not the same bytes.
        return etag if etag is not None and not etag.startswith("W/") else self._marks.get("last_modified")

    def etag(self, url: str) -> str | None:
        """Return the tag that the server gave the file at a URL when it was begun."""
        return self._marks.get("etag") if self._marks.get("url") == url else None

    def mark(self, url: str, etag: str | None, last_modified: str | None) -> None:
        """Note what the server says of the file. The URL must be fit to be shown."""
        marks = {"url": url, "etag": etag, "last_modified": last_modified}
        self._marks = {key: value for key, value in marks.items() if value is not None}
        self._marks_path.write_text(json.dumps(self._marks), encoding="utf-8")

    def write(self, data: bytes) -> None:
        """Append.

        Raises:
            OSError: The disk is full, or the like. Names the file; what is in it stays usable.
        """
        left = memoryview(data)
        try:
            while left:
                count = self._file.write(left)  # may be less than all of it, when the disk is nearly full
                self._hash.update(left[:count])
                self.size += count
                left = left[count:]
        except OSError as error:
            error.filename = str(self.path)
            raise

    def clear(self) -> None:
        """Start again from nothing."""
        self._file.seek(0)
        self._file.truncate()
        self._hash = self._new_hash()
        self.size = 0
        self._marks = {}
        self._marks_path.unlink(missing_ok=True)

    def digest(self) -> str:
        """Return the checksum of what is in it."""
        return self._hash.hexdigest()

    def publish(self) -> None:
        """Bring it to the disk and give it its name."""
        os.fsync(self._file.fileno())
        self.path.replace(self._target)
        self._marks_path.unlink(missing_ok=True)
        self._file.close()
        sync_directory(self._target.parent)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The other one may have finished, and renamed the file, between our opening it and our locking it.
            is_ours = os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except FileNotFoundError:
            is_ours = False
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            is_ours = False
        if not is_ours:
            message = f"{self.path} is being written by another process; wait for it, or download to another directory"
            raise DestinationError(message, path=str(self.path))

    def _read_marks(self) -> dict[str, str]:
        try:
            with self._marks_path.open("rb") as file:
                content: Any = json.loads(file.read(_MAX_NOTES_BYTES))
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        found = content if isinstance(content, dict) else {}
        # They go into headers: what a header cannot hold is not ours.
        return {key: found[key] for key in _MARK_KEYS if isinstance(found.get(key), str) and found[key].isprintable()}

    def _hash_kept(self, hashed: Callable[[int, int], None]) -> hashlib._Hash:
        made = self._new_hash()
        total = os.fstat(self._file.fileno()).st_size
        while data := self._file.read(_READ_BYTES):
            made.update(data)
            self.size += len(data)
            hashed(self.size, total)
        return made

    def _new_hash(self) -> hashlib._Hash:
        return hashlib.new(self._checksum.algorithm, usedforsecurity=False)

    def _remove(self) -> None:
        self.path.unlink(missing_ok=True)
        self._marks_path.unlink(missing_ok=True)
