"""The journal of an unfinished build: its settings, and which shards are complete, so that another run can resume it.

On a disk it is the file ``build.journal``, which is also the lock of the build. Its first line is a JSON object with
the settings; every other line describes a shard that has its final name. Each line ends in a checksum of itself and of
the settings; everything after the last intact line is discarded.

A store can neither append to an object nor lock it, and the parts of a build write at the same time. In both cases the
journal is a folder, which is removed after the manifest is written::

    .stoker-build/settings.json           the first line; created only if it is missing, so that one build decides it
    .stoker-build/shards/NAME.json        for each finished shard, its line

Two builds with the same settings write the same bytes and may run at once; one with other settings is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, ClassVar

from stoker import _native
from stoker.config import option
from stoker.errors import DestinationError
from stoker.forks import process_number
from stoker.format.directory import BUILD_FOLDER, JOURNAL_NAME, has_journal_folder
from stoker.format.manifest import FormatCounts, Shard
from stoker.storage import attach_filename, lock_alone, stoppable_pool, sync_directory, write_all
from stoker.strict_json import parse_json
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from stoker.storage import Location


JOURNAL_FORMAT = "stoker-journal"
JOURNAL_VERSION = 3
"""Raised whenever the same settings would give other bytes, so that no resumed build mixes both."""

_READ_BYTES = 2**20
_MAX_LINE_BYTES = 2**28  # longer lines are not those of a journal, and are not read into memory
_READ_AT_ONCE = 32
_SETTINGS_NAME = "settings.json"
_SHARDS_NAME = "shards"
_SUFFIX = ".json"
_CHECKSUM = re.compile(rb', "checksum": "([0-9a-f]{8})"}\n\Z')
# What is raised while a line is parsed that is damaged, or was written by another program.
_DAMAGED = (AttributeError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class ItemReject:
    """An item that did not become a record; ``label`` is its class index."""

    key: str
    label: int
    reason: str


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A shard that is complete in the destination, with the items that were rejected.

    ``labels`` counts records by class index, if their classes were known only when they were read. ``digest`` is a hash
    of the values that the shard was made of, if nothing else tells whether they have changed. ``boxes`` counts boxes
    with classes of their own by these classes, from 0.
    """

    file: Shard
    split: str
    rejects: tuple[ItemReject, ...]
    converted: Mapping[str, int]
    annotation_errors: tuple[str, ...]
    formats: FormatCounts = field(default_factory=dict)
    labels: Mapping[int, int] = field(default_factory=dict)
    digest: str = ""
    boxes: Mapping[int, int] = field(default_factory=dict)


class Journal(AbstractContextManager["Journal"], ABC):
    """The journal of one destination; for one thread at a time."""

    has_lock: ClassVar[bool]  # whether an open journal keeps other builds from writing to the destination
    settings: dict[str, Any] | None = None  # of the build that has begun here; None if none has
    results: list[ShardResult]  # the shards that are complete

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let other builds write to the destination. Idempotent."""

    @abstractmethod
    def begin(self, settings: dict[str, Any]) -> None:
        """Start the journal of a new build.

        Afterwards `Journal.settings` may differ from these, if another build has begun at the same time.
        """

    def append(self, result: ShardResult) -> None:
        """Record that a shard is complete; the record is durable when this returns."""
        assert self.settings is not None, "no build has begun"
        self._write(result.file.name, format_result(result, self.settings))
        self.results.append(result)

    @abstractmethod
    def _write(self, shard: str, line: bytes) -> None:
        """Write the line of a shard."""

    @abstractmethod
    def remove(self) -> None:
        """Delete the journal, at the end of a build."""


def open_journal(destination: Location, *, in_parts: bool = False) -> Journal:
    """Open the journal of a destination; a missing directory on this machine is made.

    With ``in_parts`` other processes build parts of it at the same time. A build that has begun in parts is resumed
    with the journal of parts in any case.

    Raises:
        DestinationError: Another build holds the lock, the file is not a journal, or ``in_parts`` is set for a build
            that has not begun in parts.
    """
    if destination.is_local and (destination / JOURNAL_NAME).lexists() and in_parts:
        message = f"{destination} holds an unfinished build that was begun without {option('part')}"
        message += f"; finish it without {option('part')}, overwrite it, or use another directory"
        raise DestinationError(message, path=str(destination))
    if in_parts or has_journal_folder(destination):
        return JournalFolder(destination)
    destination.make_directory()
    return JournalFile(destination.local_path())


def read_journal(destination: Location) -> tuple[Mapping[str, Any], Sequence[ShardResult]]:
    """Return the settings of an unfinished build, and its complete shards; damaged entries are skipped."""
    if has_journal_folder(destination):
        try:
            journal = JournalFolder(destination)
        except DestinationError:  # the folder is not a journal that can be read
            return {}, []
        return journal.settings or {}, journal.results
    with (destination / JOURNAL_NAME).reader() as file:
        settings = parse_settings(_read_line(file))
        if isinstance(settings, str):
            return {}, []
        return settings, [result for result, _ in read_results(file, settings)]


def read_journal_head(destination: Location) -> bytes:
    """Return the first line or file of the journal of an unfinished build; equal for builds with equal settings.

    Raises:
        FileNotFoundError: No build is under way.
    """
    if has_journal_folder(destination):
        return (destination / BUILD_FOLDER / _SETTINGS_NAME).read_bytes()
    with (destination / JOURNAL_NAME).reader() as file:
        return _read_line(file)


class JournalFile(Journal):
    """The journal of one destination, locked as long as this object is open; see `Journal`.

    The operating system holds the lock on the open file: it ends with the process, also after ``kill -9``.
    """

    has_lock = True

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / JOURNAL_NAME
        self._process = process_number()
        self._file = self._open_locked()
        self.results = []
        try:
            with attach_filename(self._path):
                self._read()
        except BaseException:
            self.close()
            raise

    def begin(self, settings: dict[str, Any]) -> None:
        """Start the journal of a new build."""
        with attach_filename(self._path):
            os.ftruncate(self._file, 0)
            self._append(format_settings(settings))
        sync_directory(self._directory)
        self.settings = settings

    def close(self) -> None:
        """Release the lock. Idempotent."""
        if self._file >= 0:
            file, self._file = self._file, -1
            with contextlib.suppress(OSError):  # every line is on the disk, or its write was an error
                if self._process == process_number():
                    fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked meanwhile keeps the file open
            with contextlib.suppress(OSError):
                os.close(file)

    def remove(self) -> None:
        """Delete the journal, at the end of a build, while the lock is still held."""
        self._path.unlink()
        sync_directory(self._directory)

    def _open_locked(self) -> int:
        while True:
            try:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
            except PermissionError as error:
                error.filename = str(self._directory)  # it is the directory that cannot be written
                raise
            try:
                with attach_filename(self._path):
                    self._refuse_other_files(file)
                    if lock_alone(file, self._path):
                        return file
            except BlockingIOError:
                os.close(file)
                where = str(self._directory)
                message = f"another build is writing to {where}; wait until it ends, or stop it"
                raise DestinationError(message, path=where) from None
            except BaseException:
                os.close(file)
                raise
            os.close(file)  # the journal of another build, which has finished and deleted it

    def _refuse_other_files(self, file: int) -> None:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            message = f"{self._path} is a pipe or a device, not the journal of a build; delete it"
            raise DestinationError(message, path=str(self._path))

    def _write(self, shard: str, line: bytes) -> None:  # noqa: ARG002 - all shards have one file
        with attach_filename(self._path):
            self._append(line)

    def _append(self, line: bytes) -> None:
        write_all(self._file, [line])
        os.fsync(self._file)

    def _read(self) -> None:
        with os.fdopen(os.dup(self._file), "rb") as file:
            header = _read_line(file)
            good = len(header)
            if not header.endswith(b"\n"):
                return
            self.settings = _own_settings(header, self._path)
            for result, length in read_results(file, self.settings):
                self.results.append(result)
                good += length
        os.ftruncate(self._file, good)


class JournalFolder(Journal):
    """The journal of one destination in a store, or of a build in parts; see `Journal`.

    Any number of processes may use it at the same time: each shard has a file of its own.
    """

    has_lock = False

    def __init__(self, destination: Location) -> None:
        self._folder = destination / BUILD_FOLDER
        self._begun = self._folder / _SETTINGS_NAME
        self.settings = self._read_settings()
        self.results = self._read_results() if self.settings is not None else []

    def begin(self, settings: dict[str, Any]) -> None:
        """Write the settings, unless another build has just written its own, which then apply."""
        (self._folder / _SHARDS_NAME).make_directory()
        created = self._begun.create(format_settings(settings))
        self.settings = settings if created else self._read_settings()

    def remove(self) -> None:
        """Delete the folder."""
        self._folder.remove_folder()

    def _write(self, shard: str, line: bytes) -> None:
        entry = self._folder / _SHARDS_NAME / f"{shard}{_SUFFIX}"
        entry.parent.make_directory(within=self._folder)
        entry.write_atomically(line)

    def _read_settings(self) -> dict[str, Any] | None:
        try:
            return _own_settings(self._begun.read_bytes(), self._begun)
        except FileNotFoundError:
            return None

    def _read_results(self) -> list[ShardResult]:
        folder = self._folder / _SHARDS_NAME
        if folder.is_local and not folder.is_dir():  # a store has no folder without files
            return []
        names = [os.fsdecode(name) for name, _ in folder.files_below() if name.endswith(_SUFFIX.encode())]
        with stoppable_pool(_READ_AT_ONCE, "stoker-journal") as pool:
            return [result for result in pool.map(self._read_result, names) if result is not None]

    def _read_result(self, name: str) -> ShardResult | None:
        """Return the shard of an entry, or None if the entry is damaged, of other settings, or removed by now."""
        try:
            line = (self._folder / _SHARDS_NAME / name).read_bytes()
        except FileNotFoundError:
            return None
        assert self.settings is not None, "no build has begun"
        result = parse_result(line, self.settings)
        return result if result is not None and f"{result.file.name}{_SUFFIX}" == name else None


def _own_settings(line: bytes, path: Path | Location) -> dict[str, Any]:
    settings = parse_settings(line)
    if isinstance(settings, str):
        folder = path.parent.parent if path.name == _SETTINGS_NAME else path.parent
        message = f"{path} {settings}; delete {folder} or build somewhere else"
        raise DestinationError(message, path=str(path))
    return settings


def format_settings(settings: Mapping[str, Any]) -> bytes:
    """Return the line that a journal begins with."""
    content = {"format": JOURNAL_FORMAT, "version": JOURNAL_VERSION, "settings": settings}
    return with_checksum(json.dumps(content).encode())


def parse_settings(line: bytes) -> dict[str, Any] | str:
    """Return the settings in the first line of a journal, or what is wrong with it."""
    try:
        content = parse_json(line)
        if content["format"] != JOURNAL_FORMAT:
            return "is not a Stoker journal"
        if content["version"] != JOURNAL_VERSION:
            return f"has version {content['version']}, but this Stoker resumes only version {JOURNAL_VERSION}"
        return dict(content["settings"]) if _has_checksum(line) else "is damaged: the checksum of its settings is wrong"
    except _DAMAGED:
        return "is not a Stoker journal, or damaged"


def format_result(result: ShardResult, settings: Mapping[str, Any]) -> bytes:
    """Return the line of a shard that is complete, in the journal of a build with these settings."""
    file = result.file
    entry = {
        "shard": file.name,
        "split": result.split,
        "records": file.records,
        "bytes": file.size_bytes,
        "crc32c": f"{file.crc32c:08x}",
        "rejects": [[reject.key, reject.label, reject.reason] for reject in result.rejects],
        "converted": dict(result.converted),
        "annotation_errors": list(result.annotation_errors),
        "formats": result.formats,
        **({"labels": {str(label): count for label, count in result.labels.items()}} if result.labels else {}),
        **({"digest": result.digest} if result.digest else {}),
        **({"boxes": {str(label): count for label, count in result.boxes.items()}} if result.boxes else {}),
    }
    return with_checksum(json.dumps(entry).encode(), settings)


def parse_result(line: bytes, settings: Mapping[str, Any]) -> ShardResult | None:
    """Return the shard of one line, or None if the line is damaged or not of a build with these settings."""
    if not _has_checksum(line, settings):
        return None
    try:
        entry = parse_json(line)
        return ShardResult(
            Shard(str(entry["shard"]), int(entry["records"]), int(entry["bytes"]), int(entry["crc32c"], 16)),
            str(entry["split"]),
            tuple(ItemReject(str(key), int(label), str(reason)) for key, label, reason in entry["rejects"]),
            {str(kind): int(count) for kind, count in entry["converted"].items()},
            tuple(map(str, entry["annotation_errors"])),
            {
                str(name): {str(origin): int(count) for origin, count in counts.items()}
                for name, counts in entry["formats"].items()
            },
            {_label(label): int(count) for label, count in entry.get("labels", {}).items()},
            str(entry.get("digest", "")),
            {_label(label): int(count) for label, count in entry.get("boxes", {}).items()},
        )
    except _DAMAGED:
        return None


def _label(text: str) -> int:
    label = int(text)
    if not -1 <= label < MAX_CLASSES:
        raise ValueError(text)
    return label


def _read_line(file: IO[bytes]) -> bytes:
    """Return the next line, or its start if the file ends first or a zero byte follows, as in blocks never written."""
    parts: list[bytes] = []
    while part := file.readline(_READ_BYTES):
        parts.append(part)
        if part.endswith(b"\n") or b"\0" in part or len(parts) * _READ_BYTES >= _MAX_LINE_BYTES:
            break
    return b"".join(parts)


def read_results(file: IO[bytes], settings: Mapping[str, Any]) -> Iterator[tuple[ShardResult, int]]:
    """Yield the shards of the further lines, each with the length of its line, up to a line that is damaged or cut."""
    while (result := parse_result(line := _read_line(file), settings)) is not None:
        yield result, len(line)


def with_checksum(text: bytes, settings: Mapping[str, Any] | None = None) -> bytes:
    """Return a JSON object as a line whose last field is the CRC-32C of what precedes it.

    This covers the line up to that field; for a shard also the first line of the journal, with ``settings``.
    """
    text = text.removesuffix(b"}")
    return text + b', "checksum": "%08x"}\n' % _native.crc32c(text, _start(settings))


def _has_checksum(line: bytes, settings: Mapping[str, Any] | None = None) -> bool:
    match = _CHECKSUM.search(line, max(0, len(line) - 64))
    return match is not None and int(match[1], 16) == _native.crc32c(line[: match.start()], _start(settings))


def _start(settings: Mapping[str, Any] | None) -> int:
    return 0 if settings is None else _native.crc32c(format_settings(settings))
