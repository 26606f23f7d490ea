"""Archives to folders: no name and no byte is trusted, and the folder appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING

from stoker.download.fetch import DownloadError, check_space
from stoker.errors import SourceError
from stoker.format import sync_directory
from stoker.sources import FileWindow, tar_members
from stoker.storage import temporary_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stoker.download.catalogue import Unpacking
    from stoker.download.fetch import Watcher

_CHUNK_BYTES = 2**20
_MAX_MEMBERS = 2_000_000
_MAX_NAME_BYTES = 1024
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (SourceError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True)
class _Member:
    """A file in an archive."""

    name: str
    size_bytes: int
    parts: Callable[[], Iterator[bytes]]


def unpack(archive: Path, unpacking: Unpacking, watcher: Watcher) -> None:
    """Make a folder of an archive, beside it. There must not be one of that name yet.

    The archive is a zip file whose members are stored or deflated, or a tar file that is not compressed.

    Raises:
        DownloadError: It is damaged, too large, or would write elsewhere. Nothing is left of it.
    """
    folder = archive.with_name(unpacking.folder)
    temporary = archive.with_name(temporary_name(f".{unpacking.folder}"))
    try:
        with _opened(archive, unpacking) as members:
            total = sum(member.size_bytes for member in members)
            check_space(archive.parent, total)
            temporary.mkdir()
            _write(members, temporary, total, lambda done: _tell(watcher, archive, done, total))
        unpacked = temporary / unpacking.folder if unpacking.is_inside else temporary
        if not unpacked.is_dir():
            raise _refusal(archive, f"it has no folder {unpacking.folder}")
        unpacked.rename(folder)
        sync_directory(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def is_unpacked(archive: Path, unpacking: Unpacking) -> bool:
    """Whether the folder of an archive has all its files, by name and size. What else is in it does not matter."""
    folder = archive.with_name(unpacking.folder)
    prefix = unpacking.folder + "/" if unpacking.is_inside else ""
    with _opened(archive, unpacking) as members:
        return all(
            _has(folder / member.name.removeprefix(prefix), member.size_bytes)
            for member in members
            if member.name.startswith(prefix)
        )


def _has(path: Path, size_bytes: int) -> bool:
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size_bytes


@contextmanager
def _opened(archive: Path, unpacking: Unpacking) -> Iterator[list[_Member]]:
    """Open an archive, check its names and sizes, and turn whatever is wrong with it into one kind of error."""
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as opened:
                members = list(_zip_members(opened))
                _check(archive, members, unpacking)
                yield members
        else:
            with archive.open("rb") as file:
                members = list(_tar_members(archive, file))
                _check(archive, members, unpacking)
                yield members
    except _DAMAGE as error:
        raise _refusal(archive, f"it is damaged ({error})") from error


def _zip_members(archive: zipfile.ZipFile) -> Iterator[_Member]:
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise ValueError(f"{info.filename!r} is neither a file nor a folder")
        if info.compress_type not in _COMPRESSIONS:  # whose decompressors have more errors than `_DAMAGE`
            raise ValueError(f"{info.filename!r} is neither stored nor deflated: method {info.compress_type}")
        if info.header_offset < 0:
            raise ValueError(f"{info.filename!r} is said to begin {-info.header_offset} bytes before the archive")
        if not info.filename.endswith("/"):  # not is_dir(), which fails of a name without a letter
            yield _Member(info.filename, info.file_size, partial(_zip_parts, archive, info))


def _zip_parts(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as source:
        while data := source.read(_CHUNK_BYTES):
            yield data


def _tar_members(path: Path, file: IO[bytes]) -> Iterator[_Member]:
    for info in tar_members(FileWindow(file, 0, path.stat().st_size, path.name)):
        if info.isreg() and not info.issparse():
            name, size = info.name.removeprefix("./"), info.size
            yield _Member(name, size, partial(_tar_parts, file, info.offset_data, size))
        elif not info.isdir():
            raise ValueError(f"{info.name!r} is neither a file nor a folder")


def _tar_parts(file: IO[bytes], start: int, size: int) -> Iterator[bytes]:
    file.seek(start)
    while size > 0 and (data := file.read(min(size, _CHUNK_BYTES))):
        size -= len(data)
        yield data


def _check(archive: Path, members: list[_Member], unpacking: Unpacking) -> None:
    if len(members) > _MAX_MEMBERS:
        raise _refusal(archive, f"it has {len(members)} files; at most {_MAX_MEMBERS} are allowed")
    if sum(member.size_bytes for member in members) > unpacking.max_bytes:
        raise _refusal(archive, f"its files have more than {unpacking.max_bytes} bytes together")
    names = [member.name for member in members]
    if len(set(names)) != len(names):
        raise _refusal(archive, "it has two files with the same name")
    if not _folders(names).isdisjoint(names):
        raise _refusal(archive, "it has a file and a folder with the same name")
    for name in names:
        parts = name.split("/")
        is_plain = all(part not in ("", ".", "..") for part in parts) and "\\" not in name and name.isprintable()
        if not is_plain or len(os.fsencode(name)) > _MAX_NAME_BYTES:
            raise _refusal(archive, f"it has a file {name[:100]!r}, which would be written elsewhere")


def _folders(names: list[str]) -> set[str]:
    folders: set[str] = set()
    for name in names:
        folder = name
        while (folder := folder.rpartition("/")[0]) and folder not in folders:
            folders.add(folder)
    return folders


def _write(members: list[_Member], directory: Path, total: int, tell: Callable[[int], None]) -> None:
    done = 0
    for member in members:
        path = directory / member.name
        path.parent.mkdir(parents=True, exist_ok=True)
        end = done + member.size_bytes
        with path.open("xb") as file:
            for data in member.parts():
                done += len(data)
                file.write(data)
                tell(done)
        if done != end:  # neither library gives more bytes of a file than were announced; zipfile may give less
            raise ValueError(f"{member.name!r} has less than {member.size_bytes} bytes")
    assert done == total


def _tell(watcher: Watcher, archive: Path, done: int, total: int) -> None:
    watcher.advanced(name=archive.name, stage="unpacking", done=done, total=total)


def _refusal(archive: Path, why: str) -> DownloadError:
    return DownloadError(f"{archive.name}: {why}; it is not unpacked", path=str(archive))
