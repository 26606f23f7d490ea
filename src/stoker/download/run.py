"""A whole dataset: what is there already is checked, the rest is fetched, and unpacked where builds read folders."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from stoker.download.account import Keyring
from stoker.download.fetch import Fetcher, check_space
from stoker.download.transport import Transport
from stoker.download.unpack import is_unpacked, unpack
from stoker.download.watcher import Timing
from stoker.errors import DestinationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stoker.download.account import Account
    from stoker.download.catalogue import RemoteDataset, RemoteFile
    from stoker.download.watcher import Watcher

_READ_BYTES = 2**20

Outcome = Literal["there already", "fetched", "resumed"]


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """What to download, and where from.

    Attributes:
        dataset: Which.
        directory: Where to; created if missing.
        place: URL with a slash at its end, of a mirror that has all files; None for the places of the dataset.
        with_optional: Whether the optional files are wanted too.
        account: For servers that want one; None if there is none, or if ``ask`` is to be asked.
        ask: Asks a person for the account, once, when a server wants it.
        timing: How patiently.
    """

    dataset: RemoteDataset
    directory: Path
    place: str | None = None
    with_optional: bool = False
    account: Account | None = None
    ask: Callable[[], Account] | None = None
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """What became of one file.

    Attributes:
        path: Where it is.
        outcome: Whether it was there, and right, or was fetched, or only its rest was.
        size_bytes: Its size.
        fetched_bytes: Bytes that came over the network for it.
        checksum: ``ALGORITHM:DIGEST``, which its bytes were seen to have.
        folder: What it was unpacked to; None if it is read as it is.
        moved_aside: Where the damaged file or folder is now that was in the way of it or of its folder.
    """

    path: Path
    outcome: Outcome
    size_bytes: int
    fetched_bytes: int
    checksum: str
    folder: Path | None
    moved_aside: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class DownloadReport:
    """What a download did.

    Attributes:
        files: In the order of the catalogue.
        source: What to build from.
        seconds: How long it took.
    """

    files: tuple[FetchedFile, ...]
    source: Path
    seconds: float

    @property
    def fetched_bytes(self) -> int:
        """Bytes that came over the network."""
        return sum(file.fetched_bytes for file in self.files)


def download(request: DownloadRequest, watcher: Watcher) -> DownloadReport:
    """Download a dataset; what an earlier run left is continued.

    Args:
        request: What, where to, where from.
        watcher: Told of the progress, from the calling thread.

    Raises:
        DownloadError: A file cannot be had, its bytes are wrong, or it cannot be unpacked.
        DestinationError: The directory is a file, or another process downloads to it.
        ConfigError: ``request.ask`` had nobody to ask.
        OSError: The disk is full, or will be; or the like. What came stays, and the next run goes on from there.
        KeyboardInterrupt: The same.
    """
    started = time.monotonic()
    if request.directory.exists() and not request.directory.is_dir():
        raise DestinationError(f"{request.directory} is a file; name a directory", path=str(request.directory))
    try:
        files = tuple(_Job(request, watcher).run())
    except (OSError, KeyboardInterrupt) as error:
        error.add_note("run the same command to go on from here")
        raise
    return DownloadReport(files, request.directory / request.dataset.source, time.monotonic() - started)


class _Job:
    """One download."""

    def __init__(self, request: DownloadRequest, watcher: Watcher) -> None:
        self._request = request
        self._watcher = watcher
        self._places = (request.place,) if request.place is not None else request.dataset.places
        keyring = Keyring(self._places, request.account, request.ask)
        self._transport = Transport(keyring, request.timing.stall_seconds)
        self._moved: dict[str, list[Path]] = {}

    def run(self) -> list[FetchedFile]:
        wanted = [file for file in self._request.dataset.files if self._request.with_optional or not file.optional]
        for file in wanted:
            self._path(file).parent.mkdir(parents=True, exist_ok=True)
        there = {file.name for file in wanted if self._is_there(file)}
        missing = [file for file in wanted if file.name not in there]
        check_space(self._request.directory, sum(self._missing_bytes(file) for file in missing))
        return [self._get(file) if file in missing else self._done(file, "there already", 0) for file in wanted]

    def _path(self, file: RemoteFile) -> Path:
        return self._request.directory / file.saved_as

    def _missing_bytes(self, file: RemoteFile) -> int:
        part = self._path(file).with_name(self._path(file).name + ".part")
        kept = part.stat().st_size if part.is_file() else 0
        return max(0, (file.size_bytes or 0) - kept)

    def _is_there(self, file: RemoteFile) -> bool:
        """Whether a file is there with the right bytes; one with wrong bytes is moved aside."""
        path = self._path(file)
        if not path.exists():
            return False
        wrong = self._wrong(file, path)
        if wrong is not None:
            self._move_aside(file, path, wrong)
        return wrong is None

    def _wrong(self, file: RemoteFile, path: Path) -> str | None:
        if not path.is_file():
            return "it is not a file"
        size = path.stat().st_size
        if file.size_bytes not in (None, size):
            return f"it has {size} bytes and should have {file.size_bytes}"
        made = hashlib.new(file.checksum.algorithm, usedforsecurity=False)
        with path.open("rb", buffering=0) as opened:
            done = 0
            while data := opened.read(_READ_BYTES):
                made.update(data)
                done += len(data)
                self._watcher.advanced(name=file.name, stage="checking", done=done, total=size)
        if made.hexdigest() == file.checksum.digest:
            return None
        return f"its {file.checksum.algorithm.upper()} is {made.hexdigest()} and should be {file.checksum.digest}"

    def _move_aside(self, file: RemoteFile, path: Path, why: str) -> None:
        count = 1
        while (aside := path.with_name(f"{path.name}.damaged{'' if count == 1 else f'-{count}'}")).exists():
            count += 1
        path.rename(aside)
        self._moved.setdefault(file.name, []).append(aside)
        self._watcher.told(f"{path} is damaged: {why}; it is now {aside.name}")

    def _get(self, file: RemoteFile) -> FetchedFile:
        timing = self._request.timing
        fetcher = Fetcher(file, self._path(file), self._places, self._transport, timing, self._watcher)
        fetcher.run()
        return self._done(file, "resumed" if fetcher.kept_bytes else "fetched", fetcher.fetched_bytes)

    def _done(self, file: RemoteFile, outcome: Outcome, fetched_bytes: int) -> FetchedFile:
        path = self._path(file)
        folder = None
        if file.unpacking is not None:
            folder = path.with_name(file.unpacking.folder)
            if folder.exists() and not is_unpacked(path, file.unpacking):
                self._move_aside(file, folder, "files of the archive are missing from it, or have another size")
            if not folder.exists():
                unpack(path, file.unpacking, self._watcher)
        return FetchedFile(
            path=path,
            outcome=outcome,
            size_bytes=path.stat().st_size,
            fetched_bytes=fetched_bytes,
            checksum=f"{file.checksum.algorithm}:{file.checksum.digest}",
            folder=folder,
            moved_aside=tuple(self._moved.get(file.name, ())),
        )
