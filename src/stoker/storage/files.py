"""Files of this machine: read within bounds, and written so that no crash and no power cut leaves half a file."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import secrets
import shutil
import stat
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING

import numpy as np

from stoker.errors import DestinationError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from stoker.storage.backend import Data

TEMPORARY_MARK = ".tmp-"
"""The name of every unfinished file contains this, followed by something unique."""

_READ_BYTES = 2**20
_DIRECT_BYTES = 2**22  # of one write past the page cache: a multiple of the blocks of any disk
_MOST_HOLE_BYTES = 2**25  # the most bytes of a file that may be a hole: zeros that were never written
_UNFINISHED = ".stoker-unfinished"  # ends the hidden name of a folder that is not complete; see `folder_at_once`
_OF_THE_NAME = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EINVAL}
)
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EIO})


def temporary_name(name: str) -> str:
    """Return a name beside ``name`` that no other writer uses, and that `TEMPORARY_MARK` marks as unfinished."""
    return f"{name}{TEMPORARY_MARK}{os.getpid()}-{secrets.token_hex(4)}"


@contextmanager
def attach_filename(path: object) -> Iterator[None]:
    """Give errors of the system the name of a file, if the failed call only knew a descriptor or a temporary name.

    Errors of opening a file name it; those of reading, writing and closing do not.
    """
    try:
        yield
    except OSError as error:
        is_temporary = TEMPORARY_MARK in os.fsdecode(error.filename or "")
        if (error.filename is None or is_temporary) and not isinstance(error, StorageError):
            error.filename = path if isinstance(path, bytes) else str(path)
        raise


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file of this machine for reading; errors of the system have its name while it is open."""
    with attach_filename(path), os.fdopen(regular_descriptor(path), "rb") as file:
        yield file


def regular_descriptor(path: str | bytes | os.PathLike[str]) -> int:
    """Open a file of this machine for reading; return its descriptor, which the caller closes.

    A named pipe is not waited for, and a device is not read.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        with attach_filename(path):
            mode = os.fstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fsdecode(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is a pipe or a device, not a file", os.fsdecode(path))
    except BaseException:
        os.close(file)
        raise
    return file


def read_at_most(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the whole of a file of this machine that must not be larger than ``limit`` bytes.

    Raises:
        OSError: It is larger (``EFBIG``), is a pipe, a device or mostly a hole (``EINVAL``), or cannot be read.
    """
    file = regular_descriptor(path)
    try:
        with attach_filename(path):
            size = os.fstat(file).st_size
            if size <= limit:
                refuse_hole(file, 0, size)
            data = os.read(file, size + 1) if size <= limit else b""
            if len(data) == size <= limit:
                return data
            # It grows, or came in pieces, as from a network.
            parts, total = [data], len(data)
            while size <= limit and total <= limit and (part := os.read(file, _READ_BYTES)):
                parts.append(part)
                total += len(part)
            if max(size, total) <= limit:
                return b"".join(parts)
    finally:
        os.close(file)
    raise too_large(path, limit)


def refuse_hole(file: int, start: int, length: int) -> None:
    """Refuse (``EINVAL``) a range of a file if much of it was never written and reads as zeros.

    The position of the file is 0 afterwards.
    """
    if length <= _MOST_HOLE_BYTES:
        return
    end = min(start + length, os.fstat(file).st_size)
    at, missing = start, 0
    with suppress(OSError):  # from a file system that does not know holes, and after the last data
        while at < end and missing <= _MOST_HOLE_BYTES:
            hole = min(os.lseek(file, at, os.SEEK_HOLE), end)
            missing += end - hole  # unless data follow
            at = end if hole == end else min(os.lseek(file, hole, os.SEEK_DATA), end)
            missing -= end - at
    os.lseek(file, 0, os.SEEK_SET)
    if missing > _MOST_HOLE_BYTES:
        raise OSError(errno.EINVAL, f"has {length} bytes, most of which were never written (a hole of a sparse file)")


def too_large(path: object, limit: int) -> OSError:
    """Return the error of a file that has more bytes than a reader allows."""
    return OSError(errno.EFBIG, f"is larger than {limit} bytes", str(path))


def is_path_error(error: OSError) -> bool:
    """Return whether an error is about a path itself. Any other error means that the file system fails."""
    return error.errno in _OF_THE_NAME


def folder_has_gone(error: OSError) -> bool:
    """Return whether nothing is left of the folder of the file that an error names.

    Where a disk was mounted, an empty folder may be left.
    """
    if error.errno not in _NOT_THERE or not isinstance(error.filename, (str, bytes)):
        return False
    try:
        with os.scandir(os.path.dirname(os.fsencode(error.filename)) or b".") as entries:  # noqa: PTH120 - bytes
            return next(entries, None) is None
    except PermissionError:
        return False
    except OSError:
        return True


def write_file(path: Path, data: Data) -> None:
    """Write a file under a temporary name, bring it to the disk, and give it its name."""
    with _written(path, data) as temporary:
        temporary.replace(path)
    sync_directory(path.parent)


def create_file(path: Path, data: Data) -> bool:
    """Write a file unless it exists; return whether it was written. Of several writers, one succeeds."""
    with _written(path, data) as temporary:
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            return False
    sync_directory(path.parent)
    return True


@contextmanager
def _written(path: Path, data: Data) -> Iterator[Path]:
    """Write data under a temporary name beside ``path``, bring it to the disk, and remove it at the end."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        with attach_filename(path), temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def check_directory(directory: Path) -> None:
    """Refuse a directory that cannot be made because it, or one above it, is something else."""
    present = next((path for path in (directory, *directory.parents) if os.path.lexists(path)), directory)
    if present.is_dir() or not os.path.lexists(present):
        return
    problem = f"is {'a file' if present.is_file() else 'not a directory'}; give a directory"
    if present != directory:
        problem = f"cannot be made: {present} is not a directory"
    raise DestinationError(f"{directory} {problem}", path=str(directory))


def make_directory(directory: Path, within: Path | None = None) -> None:
    """Make a directory, and those above it that are missing; their names are on the disk when this returns.

    If the directory ``within``, such as that of a dataset, is gone, it is not created again.
    """
    if not directory.is_dir():
        if directory == within:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory))
        make_directory(directory.parent, within)
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Bring the names in a directory to the disk, so that a rename survives a power cut."""
    with attach_filename(directory):
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def lock_alone(descriptor: int, path: Path) -> bool:
    """Lock an open file or folder for this process alone; return whether ``path`` still names it.

    Another process may have removed or renamed it after it was opened and before it was locked.

    Raises:
        BlockingIOError: Another process has the lock.
    """
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def folder_at_once(directory: Path) -> Iterator[Path]:
    """Give a folder to write in; one rename makes it ``directory`` when the ``with`` block ends without an error.

    The process may be killed at any time: programs that read the directory find all of it or nothing. The folder lies
    beside it under a hidden name, and is locked; the next call empties a folder that a killed process has left. An
    empty directory is removed at the start, so that one that cannot be replaced is refused before anything is written.

    Raises:
        DestinationError: The directory is a file, holds something, cannot be replaced, or another process writes it.
    """
    directory = directory.resolve()
    _refuse_content(directory)
    folder = directory.with_name(f".{directory.name}{_UNFINISHED}")
    with _refusing_to_replace(directory):
        make_directory(folder)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            is_ours = lock_alone(lock, folder)
        except BlockingIOError:
            is_ours = False
        if not is_ours:
            raise DestinationError(f"another process writes {directory}; wait for it to end", path=str(directory))
        try:
            _remove_content(folder)
            if directory.exists():
                _replace_empty(directory, folder)
            yield folder
            sync_directory(folder)
            folder.rename(directory)
        except BaseException:
            with suppress(OSError):
                _remove_content(folder)
                if directory.exists():
                    folder.rmdir()
                else:
                    folder.rename(directory)
            raise
        sync_directory(directory.parent)
    finally:
        os.close(lock)


def _refuse_content(directory: Path) -> None:
    check_directory(directory)
    if not directory.exists():
        return
    where = str(directory)
    names = sorted(entry.name for entry in directory.iterdir())
    if names:
        raise DestinationError(f"{directory} holds {names[0]!r}; name a new or empty folder, or remove it", path=where)
    if directory.samefile("."):
        message = f"{directory} is the current folder, which cannot be replaced"
        raise DestinationError(f"{message}; name a new folder in it, such as {directory / 'new'}", path=where)


def _replace_empty(directory: Path, folder: Path) -> None:
    """Remove an empty directory, and give a folder its mode, its attributes and its owner."""
    with _refusing_to_replace(directory):
        shutil.copystat(directory, folder)
        with suppress(PermissionError):
            os.chown(folder, directory.stat().st_uid, directory.stat().st_gid)
        directory.rmdir()


@contextmanager
def _refusing_to_replace(directory: Path) -> Iterator[None]:
    """Say what to do if an empty directory is a mount point, or may be written but not removed."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EBUSY, errno.EPERM, errno.EROFS) or not directory.exists():
            raise
        message = f"{directory} cannot be replaced ({error.strerror})"
        message += f"; name a new folder in it, such as {directory / 'new'}"
        raise DestinationError(message, path=str(directory)) from error


def _remove_content(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


class LocalStaging:
    """An unfinished file beside its final name; see `stoker.storage.Location.stage`. For one thread at a time."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._path = directory / name
        make_directory(self._path.parent, within=directory)
        self._temporary = directory / temporary_name(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with attach_filename(self._path):
            self._file: int | None = os.open(self._temporary, flags, 0o666)
        self._appending = _DirectAppending(self._file)

    def write(self, parts: Sequence[Data]) -> None:
        """Append bytes."""
        assert self._file is not None, "the file is already published or discarded"
        with attach_filename(self._path):
            self._appending.write(parts)

    def publish(self, companion: tuple[str, bytes] | None = None) -> None:
        """Bring the file to the disk under its final name; nothing is left of an attempt that fails.

        Args:
            companion: A small file to publish before it, such as its index: its name, relative to the folder in which
                the file was begun, and its content.
        """
        assert self._file is not None, "the file is already published or discarded"
        with attach_filename(self._path):
            self._appending.finish()
            os.fsync(self._file)
            self._close()
        try:
            if companion is not None:
                path = self._directory / companion[0]
                make_directory(path.parent, within=self._directory)
                write_file(path, companion[1])
            self._temporary.replace(self._path)
        finally:
            self._temporary.unlink(missing_ok=True)
        sync_directory(self._path.parent)

    def discard(self) -> None:
        """Remove what was written, unless it is published. Idempotent."""
        if self._file is not None:
            self._close()
            self._temporary.unlink(missing_ok=True)

    def _close(self) -> None:
        assert self._file is not None
        file, self._file = self._file, None
        os.close(file)


class _DirectAppending:
    """Appends to a file past the page cache, if its file system can do that; small files go through the cache.

    Copying the data into the page cache takes most of the time of a build that keeps the bytes of images, and evicts
    what other programs read. The caller closes the file.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        memory = np.empty(_DIRECT_BYTES + mmap.PAGESIZE, np.uint8)
        begin = -memory.ctypes.data % mmap.PAGESIZE  # direct writes need aligned memory
        self._buffer = memory[begin : begin + _DIRECT_BYTES]
        self._held = 0
        self._is_direct: bool | None = None  # None: not tried yet

    def write(self, parts: Sequence[Data]) -> None:
        """Append bytes; what is less than a whole write waits in the buffer."""
        if self._is_direct is False:
            write_all(self._file, parts)
            return
        for part in parts:
            at = 0
            while at < len(part):
                count = min(len(part) - at, _DIRECT_BYTES - self._held)
                # NumPy copies without the GIL.
                self._buffer[self._held : self._held + count] = np.frombuffer(part, np.uint8, count, at)
                self._held += count
                at += count
                if self._held == _DIRECT_BYTES:
                    self._write_buffer()

    def finish(self) -> None:
        self._set_direct(wanted=False)
        write_all(self._file, [self._buffer[: self._held].data])
        self._buffer, self._held = np.empty(0, np.uint8), 0  # several files may wait for their fsync

    def _write_buffer(self) -> None:
        if self._is_direct is None:
            self._is_direct = self._set_direct(wanted=True)
        written = 0
        if self._is_direct:
            try:
                written = os.write(self._file, self._buffer.data)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
        if written < _DIRECT_BYTES:  # the file system needs other lengths or offsets, or cut the write short
            self._is_direct = False
            self._set_direct(wanted=False)
            write_all(self._file, [self._buffer[written:].data])
        self._held = 0

    def _set_direct(self, *, wanted: bool) -> bool:
        """Turn direct writing on or off; return whether it is on."""
        direct = getattr(os, "O_DIRECT", 0)  # macOS has none
        flags = fcntl.fcntl(self._file, fcntl.F_GETFL)
        with suppress(OSError):
            fcntl.fcntl(self._file, fcntl.F_SETFL, flags | direct if wanted else flags & ~direct)
            return wanted and bool(direct)
        return False


def write_all(file: int, parts: Sequence[Data]) -> None:
    """Append all bytes of some parts to an open file."""
    written = os.writev(file, parts)
    if written == sum(map(len, parts)):
        return
    view = memoryview(b"".join(parts))  # the system has cut the write short; a full disk raises now
    while written < len(view):
        written += os.write(file, view[written:])
