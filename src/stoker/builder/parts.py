"""Builds in parts: which shards a part makes, and how the parts share one listing of the source.

Their files lie in the journal folder of the dataset, beside those of `stoker.format.journal`::

    .stoker-build/listing                  the source as it was listed, and how long its records will be
    .stoker-build/lister.json              which part is listing it, rewritten as long as that part lives
    .stoker-build/parts/3-of-64.json       that a part has begun; only messages depend on it

What is listed and built does not depend on these files: without them, a part lists the source itself and makes the same
shards.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any

from stoker.builder.estimate import ListedSource, sampled
from stoker.builder.plan import RecordSize, open_source, recipe_record
from stoker.config import format_some, option, refuse_contradicting
from stoker.errors import ConfigError, DestinationError
from stoker.format import BUILD_FOLDER, MANIFEST_NAME, ItemReject
from stoker.sources import read_listing, write_listing
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stoker.builder.settings import BuildSettings
    from stoker.storage import Location
    from stoker.types import Progress

_log = logging.getLogger(__name__)

MAX_PARTS = 1_000_000
_FORM = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
_PART_FILE = re.compile(r"([0-9]{1,9})-of-([0-9]{1,9})\.json")
_LISTING_NAME = "listing"
_LISTER_NAME = "lister.json"
_PARTS_NAME = "parts"
_SHOWN_PARTS = 8

_SIGN_SECONDS = 2.0  # between signs of life of the part that lists
_LOOK_SECONDS = 1.0  # between looks of those that wait for it
_DEAD_SECONDS = 20.0  # without a sign of life


@dataclass(frozen=True, slots=True)
class Part:
    """One of the parts that a build is divided into."""

    number: int  # which, from 0
    count: int  # how many there are; 0 of `NO_PART`

    def __str__(self) -> str:
        return f"part {self.number} of {self.count}"

    def has(self, shard: int) -> bool:
        """Return whether it makes a shard, given its number among all shards of the dataset, from 0."""
        return self.count > 0 and shard % self.count == self.number


NO_PART = Part(0, 0)
"""Makes no shard; it only finishes the dataset."""


def parse_part(text: str, environment: Mapping[str, str] = os.environ) -> Part:
    """Return what ``--part`` means: ``3/64``, or ``auto`` for what Slurm or Kubernetes says in the environment.

    Raises:
        ConfigError: It is neither, its number is not below the count, or the environment does not say.
    """
    if not isinstance(text, str):
        raise ConfigError(f"{option('part')} is {text!r}; it must be a text such as 3/64, or auto")
    if text == "auto":
        return _part_of_array(environment)
    match = _FORM.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{option('part')} {text} is not understood; write 3/64 for number 3 of 64 parts (0 to 63), or auto"
        )
    return _checked(int(match[1]), int(match[2]), f"{option('part')} {text}")


def _checked(number: int, count: int, what: str) -> Part:
    if not 1 <= count <= MAX_PARTS:
        raise ConfigError(f"{what} has {count} parts; there may be 1 to {MAX_PARTS:,}")
    if number >= count:
        raise ConfigError(f"{what}: there is no part {number}; {count} parts are numbered 0 to {count - 1}")
    return Part(number, count)


def _part_of_array(environment: Mapping[str, str]) -> Part:
    if "SLURM_ARRAY_TASK_ID" in environment:
        names = ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX")
        task, count, first, last = (_number(environment, name) for name in names)
        if not first <= task <= last or last - first != count - 1:
            array = f"a Slurm array of {count} tasks from {first} to {last}"
            message = f"{option('part')} auto: task {task} of {array} is not one in a row"
            raise ConfigError(
                f"{message}; use --array=0-{count - 1}, or give the part, such as {option('part')} {task}/64"
            )
        return _checked(task - first, count, f"{option('part')} auto")
    if "JOB_COMPLETION_INDEX" in environment:
        number, count = (_number(environment, name) for name in ("JOB_COMPLETION_INDEX", "STOKER_PARTS"))
        return _checked(number, count, f"{option('part')} auto")
    message = f"{option('part')} auto finds neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX in the environment"
    raise ConfigError(f"{message}; start it in a Slurm array or an indexed job of Kubernetes, or give it as 3/64")


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment.get(name, "")
    if re.fullmatch("[0-9]{1,9}", text):
        return int(text)
    problem = f"is {text[:40]!r}" if text else "is not set"
    advice = (
        "set it to the number of completions of the job"
        if name == "STOKER_PARTS"
        else f"give {option('part')} 3/64 instead"
    )
    raise ConfigError(f"{option('part')} auto: {name} {problem}; {advice}")


def chosen_part(text: str | None, *, finish: bool, engine: bool, overwrite: bool) -> Part | None:
    """Return the part that ``--part`` and ``--finish`` mean, or None; the flags say which options are given.

    Raises:
        ConfigError: The part is not understood, or options contradict each other.
    """
    if text is None and not finish:
        return None
    refuse_contradicting({"part": text, "finish": finish, "engine": engine, "overwrite": overwrite})
    return NO_PART if text is None else parse_part(text)


def list_once(settings: BuildSettings, destination: Location, progress: Progress | None = None) -> ListedSource:
    """List a source, or read the listing of another part of the same build, and wait for it if it is being made.

    Nothing is written if the dataset is finished.
    """
    if (destination / MANIFEST_NAME).lexists():
        return _list(settings, destination, progress)
    folder = destination / BUILD_FOLDER
    folder.make_directory()
    wanted, lister = json.loads(json.dumps(_listed_for(settings))), _Lister(folder)
    while True:
        listing = read_listing(folder / _LISTING_NAME)
        if listing is not None and listing[0].get("for", wanted) != wanted:
            return _list(settings, destination, progress)
        size = None if listing is None else _size_in(listing[0])
        if listing is not None and size is not None:
            dropped = {int(row): ItemReject(*values) for row, values in listing[0].get("dropped", {}).items()}
            return ListedSource(listing[1], size, {}, dropped)
        if lister.begin():
            with lister.signs_of_life():
                listed = _list(settings, destination, progress)
                left_out = {str(row): astuple(reject) for row, reject in listed.dropped.items()}
                about = {"for": wanted, **asdict(listed.size), "dropped": left_out}
                write_listing(folder / _LISTING_NAME, listed.source, about)
                return listed
        lister.wait()


def _list(settings: BuildSettings, destination: Location, progress: Progress | None) -> ListedSource:
    return sampled(open_source(settings, progress, destination), settings, progress)


def _size_in(about: Mapping[str, Any]) -> RecordSize | None:
    try:
        per_record = about["per_record"]
        return RecordSize(float(about["per_source_byte"]), None if per_record is None else float(per_record))
    except (KeyError, TypeError, ValueError):
        return None


def _listed_for(settings: BuildSettings) -> dict[str, Any]:
    """Return the settings on which a listing depends; a listing for other settings is not used."""
    options = settings.options
    assert settings.root is not None, "parts are built of files"
    return {
        "root": str(location(settings.root).absolute()),
        "options": asdict(settings.source.absolute()),
        "held_out": settings.held_out and settings.held_out[0],  # the split that has the boxes of train
        "crop_objects": options.crop_objects,
        **({"drop_duplicates": options.drop_duplicates} if options.drop_duplicates else {}),
        "recipe": recipe_record(settings),
        "preset": settings.schema.info(0).preset,
    }


class _Lister:
    """Lets one part list while the others wait, unless it dies.

    The part that lists rewrites a file every few seconds. The others check whether the file changes, by their own
    clocks, because the clocks of machines differ.
    """

    def __init__(self, folder: Location) -> None:
        self._file = folder / _LISTER_NAME
        self._id = secrets.token_hex(8)
        self._last = b""
        self._changed = time.monotonic()

    def begin(self) -> bool:
        """Return whether this part is to list, because no part does, or the part that did is dead."""
        if self._file.create(self._sign(0)):
            return True
        try:
            sign = self._file.read_bytes()
        except FileNotFoundError:  # that part has just given up; the next call decides
            return False
        if sign != self._last:
            if not self._last:
                _log.info("waiting for another part to list the source")
            self._last, self._changed = sign, time.monotonic()
        if time.monotonic() - self._changed < _DEAD_SECONDS:
            return False
        _log.info("the part that listed the source has died; listing it here")
        self._file.write_atomically(self._sign(0))
        return True

    def wait(self) -> None:
        time.sleep(_LOOK_SECONDS)

    @contextmanager
    def signs_of_life(self) -> Iterator[None]:
        """Rewrite the file during the ``with`` block, then remove it, so that another part lists after a failure."""
        ended = threading.Event()

        def rewrite() -> None:
            number = 0
            while not ended.wait(_SIGN_SECONDS):
                number += 1
                with suppress(OSError):  # then another part lists too, which does no harm
                    self._file.write_atomically(self._sign(number))

        thread = threading.Thread(target=rewrite, name="stoker-lister", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _sign(self, number: int) -> bytes:
        return json.dumps({"lister": self._id, "sign": number}).encode()


def note_part(destination: Location, part: Part) -> None:
    """Note that a part has begun, so that `missing_error` knows the number of parts."""
    if part != NO_PART:
        folder = destination / BUILD_FOLDER / _PARTS_NAME
        folder.make_directory(within=destination / BUILD_FOLDER)
        (folder / f"{part.number}-of-{part.count}.json").write_atomically(json.dumps(asdict(part)).encode())


def _parts_lacking(destination: Location, shards: Sequence[int]) -> dict[Part, list[int]]:
    """Return the parts that make some shards, given by number, with their shards; empty if no part is known.

    If parts of several divisions have begun, the division of which most have begun counts.
    """
    folder = destination / BUILD_FOLDER / _PARTS_NAME
    names = [os.fsdecode(child.name) for child in folder.children()] if folder.is_dir() else []
    counts = [int(match[2]) for match in map(_PART_FILE.fullmatch, names) if match is not None]
    if not any(counts):
        return {}
    count = max(sorted(set(counts), reverse=True), key=counts.count)
    lacking: dict[Part, list[int]] = {}
    for shard in shards:
        lacking.setdefault(Part(shard % count, count), []).append(shard)
    return dict(sorted(lacking.items(), key=lambda item: item[0].number))


def missing_error(destination: Location, names: Sequence[str], missing: Sequence[int]) -> DestinationError:
    """Return an error that says which parts lack which shards, given all names and the numbers of missing shards."""
    lacking = _parts_lacking(destination, missing).items()
    phrases = [f"{part} lacks {format_some(shards, 1, names.__getitem__)}" for part, shards in lacking]
    which = format_some(phrases, _SHOWN_PARTS) or format_some(missing, 1, names.__getitem__)
    message = f"{len(missing):,} of {len(names):,} shards are missing in {destination}: {which}"
    return DestinationError(f"{message}; run those parts again", path=str(destination))
