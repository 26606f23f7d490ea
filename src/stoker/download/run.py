"""Downloads a whole dataset: checks the files that exist, fetches the rest, and unpacks them where builds read folders.

No name and no byte of an archive is trusted. Its folder appears complete or not at all.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
import zipfile
import zlib
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import IO, TYPE_CHECKING, Literal

from stoker.download.fetch import Client, DownloadError, check_space, fetch, hash_of_content
from stoker.errors import SourceError
from stoker.sources import FileWindow, tar_members
from stoker.storage import check_directory, sync_directory, temporary_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from stoker.download.catalogue import RemoteDataset, RemoteFile, Unpacking
    from stoker.download.fetch import Account, Watcher


Outcome = Literal["there already", "fetched", "resumed"]


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """The result for one file."""

    path: Path
    outcome: Outcome  # whether it existed intact, was fetched, or was resumed from a part
    size_bytes: int
    fetched_bytes: int  # bytes that came over the network for it
    checksum: str  # ``ALGORITHM:DIGEST``, which its bytes were verified to have
    folder: Path | None  # folder it was unpacked to; None if builds read the file as it is
    moved_aside: tuple[Path, ...]  # new paths of damaged files and folders that had its name or that of its folder


@dataclass(frozen=True, slots=True)
class DownloadReport:
    """What a download did."""

    files: tuple[FetchedFile, ...]  # in the order of the catalogue
    source: Path  # what to build from
    seconds: float

    @property
    def fetched_bytes(self) -> int:
        """Bytes that came over the network."""
        return sum(file.fetched_bytes for file in self.files)


def download(
    dataset: RemoteDataset,
    directory: Path,
    watcher: Watcher,
    *,
    base_url: str | None = None,
    account: Account | None = None,
    ask: Callable[[], Account] | None = None,
) -> DownloadReport:
    """Download a dataset, and resume what an earlier run left, also after an error of the disk or Ctrl-C.

    ``base_url`` is the URL, with a slash at its end, of a mirror with all files; by default the URLs of the dataset are
    tried. ``ask`` asks the user for the account, once, when a server requires one and ``account`` is None. The watcher
    is called in the calling thread.

    Raises:
        DownloadError: A file cannot be fetched, its bytes are wrong, or it cannot be unpacked.
        DestinationError: The directory is a file, or another process downloads to it.
        ConfigError: ``ask`` could not ask the user.
        OSError: The disk is full or too small for the rest, or the system reports another error.
    """
    started = time.monotonic()
    check_directory(directory)
    base_urls = dataset.base_urls if base_url is None else (base_url,)
    client = Client(base_urls, account, ask)
    done: list[FetchedFile] = []
    try:
        local_files = {file.name: _LocalFile(directory / file.saved_as, file, watcher) for file in dataset.files}
        check_space(directory, sum(local_file.missing_bytes for local_file in local_files.values()))
        try:
            for file in dataset.files:
                _mark_missing(local_files, done)
                local_file, path = local_files[file.name], directory / file.saved_as
                outcome: Outcome = "there already"
                fetched = 0
                if not local_file.is_intact:
                    fetched, resumed = fetch(file, path, base_urls, client, watcher)
                    outcome = "resumed" if resumed else "fetched"
                folder = local_file.unpacked()
                size, moved = path.stat().st_size, tuple(local_file.moved_aside)
                done.append(FetchedFile(path, outcome, size, fetched, file.checksum, folder, moved))
        finally:
            _mark_missing(local_files, done)
    except (OSError, KeyboardInterrupt) as error:
        error.add_note("run the same command to resume")
        raise
    return DownloadReport(tuple(done), directory / dataset.source, time.monotonic() - started)


def _mark_missing(local_files: Mapping[str, _LocalFile], done: Sequence[FetchedFile]) -> None:
    """Once a file is complete, mark the missing ones with ``.part`` files: readers refuse such a folder."""
    for local_file in local_files.values() if done else ():
        if not local_file.path.exists():
            local_file.part.touch()


class _LocalFile:
    """A file as an earlier run left it. A file with wrong bytes is moved aside."""

    def __init__(self, path: Path, file: RemoteFile, watcher: Watcher) -> None:
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self._file = file
        self._watcher = watcher
        self.moved_aside: list[Path] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        damage = self._damage() if path.exists() else None
        self.is_intact = path.exists() and damage is None
        if damage is not None:
            self._move_aside(path, damage)

    @property
    def missing_bytes(self) -> int:
        partial_bytes = self.part.stat().st_size if self.part.is_file() else 0
        return 0 if self.is_intact else max(0, (self._file.size_bytes or 0) - partial_bytes)

    def unpacked(self) -> Path | None:
        """Return the folder of an archive, unpacked if missing or incomplete; None if it is not to be unpacked."""
        unpacking = self._file.unpacking
        if unpacking is None:
            return None
        folder = self.path.with_name(unpacking.folder)
        if folder.exists() and not is_unpacked(self.path, unpacking):
            self._move_aside(folder, "files of the archive are missing from it, or have another size")
        if not folder.exists():
            unpack(self.path, unpacking, self._watcher)
        return folder

    def _damage(self) -> str | None:
        path, file = self.path, self._file
        if not path.is_file():
            return "it is not a file"
        size = path.stat().st_size
        if file.size_bytes not in (None, size):
            return f"it has {size} bytes and should have {file.size_bytes}"
        with path.open("rb", buffering=0) as opened:
            hasher, _ = hash_of_content(file, opened, self._watcher)
        algorithm, _, digest = file.checksum.partition(":")
        if hasher.hexdigest() == digest:
            return None
        return f"its {algorithm.upper()} is {hasher.hexdigest()} and should be {digest}"

    def _move_aside(self, path: Path, why: str) -> None:
        count = 1
        while (aside := path.with_name(f"{path.name}.damaged{'' if count == 1 else f'-{count}'}")).exists():
            count += 1
        path.rename(aside)
        self.moved_aside.append(aside)
        self._watcher.note(f"{path} is damaged: {why}; it is now {aside.name}")


_CHUNK_BYTES = 2**20
_MAX_MEMBERS = 2_000_000
_MAX_NAME_BYTES = 1024
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (SourceError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    size_bytes: int
    opened: Callable[[], AbstractContextManager[IO[bytes]]]


def unpack(archive: Path, unpacking: Unpacking, watcher: Watcher) -> None:
    """Unpack an archive into its folder beside it, which must not exist yet.

    The archive is a zip file whose members are stored or deflated, or a tar file that is not compressed.
    """
    folder = archive.with_name(unpacking.folder)
    temporary = archive.with_name(temporary_name(f".{unpacking.folder}"))
    try:
        with _opened(archive, unpacking) as members:
            if not members:
                raise _refusal(archive, f"it has no folder {unpacking.folder}")
            check_space(archive.parent, sum(member.size_bytes for member in members))
            temporary.mkdir()
            _write(members, temporary, partial(watcher.advanced, name=archive.name, stage="unpacking"))
        temporary.rename(folder)
        sync_directory(folder.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def is_unpacked(archive: Path, unpacking: Unpacking) -> bool:
    """Return whether the folder of an archive has all its files, by name and size; other files do not matter."""
    folder = archive.with_name(unpacking.folder)
    with _opened(archive, unpacking) as members:
        return all(_has(folder / member.name, member.size_bytes) for member in members)


def _has(path: Path, size_bytes: int) -> bool:
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size_bytes


@contextmanager
def _opened(archive: Path, unpacking: Unpacking) -> Iterator[list[_Member]]:
    """Open an archive, check it, and yield the files of its folder; anything wrong is a `DownloadError`."""
    prefix = unpacking.folder + "/" if unpacking.is_inside else ""
    try:
        with zipfile.ZipFile(archive) if archive.suffix == ".zip" else archive.open("rb") as opened:
            members = list(
                _zip_members(opened) if isinstance(opened, zipfile.ZipFile) else _tar_members(archive, opened)
            )
            _check(archive, members, unpacking)
            inside = (member for member in members if member.name.startswith(prefix))
            yield [replace(member, name=member.name.removeprefix(prefix)) for member in inside]
    except _DAMAGE as error:
        raise _refusal(archive, f"it is damaged ({error})") from error


def _zip_members(archive: zipfile.ZipFile) -> Iterator[_Member]:
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise ValueError(f"{info.filename!r} is neither a file nor a folder")
        if info.compress_type not in _COMPRESSIONS:  # other decompressors raise more than `_DAMAGE`
            raise ValueError(f"{info.filename!r} is neither stored nor deflated: method {info.compress_type}")
        if info.header_offset < 0:
            raise ValueError(f"{info.filename!r} is said to begin {-info.header_offset} bytes before the archive")
        if not info.filename.endswith("/"):  # not is_dir(), which fails on an empty name
            yield _Member(info.filename, info.file_size, partial(archive.open, info))


def _tar_members(path: Path, file: IO[bytes]) -> Iterator[_Member]:
    for info in tar_members(FileWindow(file, 0, path.stat().st_size, path.name)):
        if info.isreg() and not info.issparse():
            name, size = info.name.removeprefix("./"), info.size
            yield _Member(name, size, partial(_at, file, info.offset_data))
        elif not info.isdir():
            raise ValueError(f"{info.name!r} is neither a file nor a folder")


def _at(file: IO[bytes], start: int) -> AbstractContextManager[IO[bytes]]:
    file.seek(start)
    return nullcontext(file)


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


def _write(members: list[_Member], directory: Path, advanced: Callable[..., None]) -> None:
    done, total = 0, sum(member.size_bytes for member in members)
    for member in members:
        path = directory / member.name
        path.parent.mkdir(parents=True, exist_ok=True)
        end = done + member.size_bytes
        with path.open("xb") as file, member.opened() as source:
            while data := source.read(min(_CHUNK_BYTES, end - done)):
                done += len(data)
                file.write(data)
                advanced(done=done, total=total)
        if done != end:  # neither library reads more bytes of a file than announced; zipfile may read fewer
            raise ValueError(f"{member.name!r} has less than {member.size_bytes} bytes")


def _refusal(archive: Path, why: str) -> DownloadError:
    return DownloadError(f"{archive.name}: {why}; it is not unpacked", path=str(archive))
