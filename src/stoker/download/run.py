"""A whole dataset: what is there is checked, the rest is fetched, and unpacked where builds read folders."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stoker.download.fetch import Client, check_space, fetch, hash_of
from stoker.download.unpack import is_unpacked, unpack
from stoker.errors import DestinationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from stoker.download.catalogue import RemoteDataset, RemoteFile
    from stoker.download.fetch import Account, Watcher

Outcome = Literal["there already", "fetched", "resumed"]


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """The result for one file."""

    path: Path
    outcome: Outcome  # whether it was there, and right, or was fetched, or only its rest was
    size_bytes: int
    fetched_bytes: int  # bytes that came over the network for it
    checksum: str  # ``ALGORITHM:DIGEST``, which its bytes were seen to have
    folder: Path | None  # what it was unpacked to; None if it is read as it is
    moved_aside: tuple[Path, ...]  # where the damaged file or folder is now that was in the way of it or of its folder


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
    place: str | None = None,
    account: Account | None = None,
    ask: Callable[[], Account] | None = None,
) -> DownloadReport:
    """Download a dataset; what an earlier run left is continued.

    Args:
        dataset: Which.
        directory: Where to; created if missing.
        watcher: Receives the progress, from the calling thread.
        place: URL with a slash at its end, of a mirror that has all files; None for the places of the dataset.
        account: For servers that want one.
        ask: Asks a person for the account, once, when a server wants it and ``account`` is None.

    Raises:
        DownloadError: A file cannot be had, its bytes are wrong, or it cannot be unpacked.
        DestinationError: The directory is a file, or another process downloads to it.
        ConfigError: ``ask`` could not ask a person.
        OSError: The disk is full, or will be; or the like. What was fetched stays, and the next run resumes.
        KeyboardInterrupt: The same.
    """
    started = time.monotonic()
    if directory.exists() and not directory.is_dir():
        raise DestinationError(f"{directory} is a file; give a directory", path=str(directory))
    places = dataset.places if place is None else (place,)
    client = Client(places, account, ask)
    done: list[FetchedFile] = []
    try:
        local_files = {file.name: _Found(directory / file.saved_as, file, watcher) for file in dataset.files}
        check_space(directory, sum(local_file.missing_bytes for local_file in local_files.values()))
        try:
            for file in dataset.files:
                _mark_missing(local_files, done)
                local_file, path = local_files[file.name], directory / file.saved_as
                outcome: Outcome = "there already"
                fetched = 0
                if not local_file.is_right:
                    fetched, resumed = fetch(file, path, places, client, watcher)
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


def _mark_missing(local_files: Mapping[str, _Found], done: Sequence[FetchedFile]) -> None:
    """Once a file is there, let the others show as unfinished: readers refuse such a folder."""
    for local_file in local_files.values() if done else ():
        local_file.mark_missing()


class _Found:
    """What an earlier run left of a file. One with wrong bytes is moved aside."""

    def __init__(self, path: Path, file: RemoteFile, watcher: Watcher) -> None:
        self._path = path
        self._part = path.with_name(path.name + ".part")
        self._file = file
        self._watcher = watcher
        self.moved_aside: list[Path] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        wrong = self._wrong() if path.exists() else None
        self.is_right = path.exists() and wrong is None
        if wrong is not None:
            self._move_aside(path, wrong)

    def mark_missing(self) -> None:
        """Make sure that a file shows as unfinished that is not there."""
        if not self._path.exists():
            self._part.touch()

    @property
    def missing_bytes(self) -> int:
        """Bytes that are still to be fetched, as far as the size is known."""
        partial_bytes = self._part.stat().st_size if self._part.is_file() else 0
        return 0 if self.is_right else max(0, (self._file.size_bytes or 0) - partial_bytes)

    def unpacked(self) -> Path | None:
        """Return the folder of an archive, made if it is missing or not whole; None if there is to be none."""
        unpacking = self._file.unpacking
        if unpacking is None:
            return None
        folder = self._path.with_name(unpacking.folder)
        if folder.exists() and not is_unpacked(self._path, unpacking):
            self._move_aside(folder, "files of the archive are missing from it, or have another size")
        if not folder.exists():
            unpack(self._path, unpacking, self._watcher)
        return folder

    def _wrong(self) -> str | None:
        path, file = self._path, self._file
        if not path.is_file():
            return "it is not a file"
        size = path.stat().st_size
        if file.size_bytes not in (None, size):
            return f"it has {size} bytes and should have {file.size_bytes}"
        hasher = hash_of(file)
        done = 0
        with path.open("rb", buffering=0) as opened:
            while data := opened.read(2**20):
                hasher.update(data)
                done += len(data)
                self._watcher.advanced(name=file.name, stage="checking", done=done, total=size)
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
