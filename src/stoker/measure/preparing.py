"""What contenders read: some of the user's images in every form that a rung needs, made once in a scratch folder.

::

    stoker-bench.json what was made of what, so that a folder that is kept is used again
    own.json          where these images lie at the user's
    files/ files.json loose JPEG files, in class folders; all else is built of them
    boxes.csv         their annotated objects
    plain/            TFRecord shards, as ``stoker build`` makes them
    gzip/ restart/    the same compressed, and with restart markers
    raw/              the same as tensors of 256 x 256 pixels
    made-by-KEY/      what a contender makes for itself: file caches, and the forms of rivals
"""

from __future__ import annotations

import errno
import json
import shutil
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from stoker.build import BuildSettings, ShardSettings, SourceSettings, build
from stoker.config import format_size
from stoker.errors import ConfigError, DestinationError, SourceError
from stoker.measure.figures import Prepared
from stoker.measure.picking import Picker
from stoker.measure.task import RAW_SIDE, LooseFiles
from stoker.recipe import RawEncode, Recipe, parse_resize
from stoker.records.files import write_atomically
from stoker.schema import ImagenetSchema, TinySchema
from stoker.sources import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from stoker.feed import Dataset
    from stoker.measure.picking import Picked
    from stoker.measure.rungs import Needs
    from stoker.types import Box, Progress

    Phase = Callable[[str], AbstractContextManager[Progress]]

_NOTE = "stoker-bench.json"
_BOXES = "boxes.csv"
_SHARDS = 8
_ADVICE = "take fewer --images, or name a folder with room with --keep, or with TMPDIR"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be there.

    Attributes:
        path: Path or URL of the user's data.
        most: The most images; None: as many as `stoker.measure.picking` finds sensible.
        forms: Forms that rungs need.
        threads: Of the builds.
        caches_file: Whether room for the decoded images is wanted, too.
    """

    path: str
    most: int | None
    forms: frozenset[Needs]
    threads: int
    caches_file: bool

    def room_bytes(self, prepared: Prepared) -> int:
        """Return about how many bytes are still to be written, when the loose files are there."""
        copies = len(self.forms & {"gzip", "plain", "restart"}) * prepared.encoded_bytes
        raw = prepared.images * RAW_SIDE * RAW_SIDE * 3 if "raw" in self.forms else 0
        return copies + raw + (prepared.decoded_bytes if self.caches_file else 0)


def prepare(dataset: Dataset, wanted: Wanted, data: Path, phase: Phase) -> Prepared:
    """Make what is wanted and not there yet.

    Args:
        dataset: The user's split.
        wanted: What to make.
        data: An empty folder, or one that was prepared before.
        phase: Opens a progress display for what a verb says.

    Raises:
        ConfigError: No image can be read.
        DestinationError: The folder holds something else, or what was made of other images.
        OSError: It cannot be written; a full disk, too.
    """
    try:
        return _prepare(dataset, wanted, data, phase)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(error.errno, f"{error.strerror}; {_ADVICE}", str(data)) from error


def _prepare(dataset: Dataset, wanted: Wanted, data: Path, phase: Phase) -> Prepared:
    started = time.monotonic()
    made_of: dict[str, object] = {"dataset": dataset.identity, "path": wanted.path, "images": wanted.most}
    data.mkdir(parents=True, exist_ok=True)
    prepared = _found(data, made_of)
    before = _bytes_below(data)
    if prepared is None:
        prepared = _write_files(dataset, wanted, data, phase)
        _require_room(wanted.room_bytes(prepared), data)
        _write_note(data, made_of, prepared)
    for form in sorted(wanted.forms & {"gzip", "plain", "raw", "restart"}):
        _build(data, form, min(_SHARDS, prepared.images), wanted.threads, phase)
    written = max(0, _bytes_below(data) - before)
    return replace(prepared, seconds=time.monotonic() - started, written_bytes=written)


def _require_room(needed: int, data: Path) -> None:
    free = shutil.disk_usage(data).free
    if needed > free:
        message = f"the benchmark needs {format_size(needed)} more in {data}, where {format_size(free)} are free"
        raise DestinationError(f"{message}; {_ADVICE}", path=str(data))


def _write_note(data: Path, made_of: dict[str, object], prepared: Prepared | None) -> None:
    document = {"made_of": made_of, "prepared": prepared and asdict(prepared)}
    write_atomically(data / _NOTE, json.dumps(document, indent=1).encode())


def _read_note(note: Path) -> tuple[Prepared | None, object]:
    """Return what was made of what; None for the first while that is not finished."""
    try:
        document = json.loads(note.read_text(encoding="utf-8"))
        made, made_of = document["prepared"], document["made_of"]
        return made and Prepared(**{**made, "unreadable": tuple(made["unreadable"])}), made_of
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        message = f"{note} is damaged ({error})"
        advice = f"remove {note.parent}, or name another folder with --keep"
        raise DestinationError(f"{message}; {advice}", path=str(note)) from error


def _found(data: Path, made_of: dict[str, object]) -> Prepared | None:
    """What an earlier run has left."""
    note = data / _NOTE
    if not note.is_file():
        others = sorted(path.name for path in data.iterdir())
        if others:
            message = f"{data} holds {others[0]!r}, which stoker bench has not made"
            raise DestinationError(f"{message}; name a new or empty folder with --keep", path=str(data))
        _write_note(data, made_of, None)
        return None
    found, source = _read_note(note)
    if source != made_of:
        message = f"{data} was made of {source}, not of {made_of}"
        raise DestinationError(f"{message}; remove it, or name another folder with --keep", path=str(data))
    if found is None:  # the run was interrupted
        for path in data.iterdir():
            if path != note:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return None
    return found


def _write_files(dataset: Dataset, wanted: Wanted, data: Path, phase: Phase) -> Prepared:
    """Make loose files of some images, and a list of them."""
    picker = Picker(dataset, wanted.path, wanted.most)
    names, labels, boxes, encoded, decoded = [], [], [], 0, 0
    with phase("reading images") as progress:
        for image in picker.images_read(progress):
            names.append(_write_file(data, image))
            labels.append(image.label)
            boxes.append(image.boxes)
            encoded, decoded = encoded + len(image.encoded), decoded + image.decoded_bytes
    unreadable = tuple(picker.unreadable)
    if not names:
        why = f": {unreadable[0]}" if unreadable else ", which is empty"
        raise ConfigError(f"no image can be read of split {dataset.split} of {wanted.path}{why}")
    LooseFiles.write(data, names, labels, boxes)
    _write_boxes(data, names, boxes)
    picker.selection.write(data)
    samples = LooseFiles.read(data).samples
    return Prepared(len(names), samples, encoded, decoded, 0, 0.0, unreadable, dict(picker.converted))


def _write_file(data: Path, image: Picked) -> str:
    folder = "none" if image.label < 0 else f"{image.label:06d}"
    name = f"{folder}/{image.number:012d}.jpg"
    place = data / "files" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(image.encoded)
    return name


def _write_boxes(data: Path, names: list[str], boxes: list[list[Box]]) -> None:
    with (data / _BOXES).open("w", encoding="ascii") as table:
        for name, found in zip(names, boxes, strict=True):
            base = name.rpartition("/")[2]
            table.writelines(f"{base},{b.xmin!r},{b.ymin!r},{b.xmax!r},{b.ymax!r}\n" for b in found)


def _build(data: Path, form: Needs, shards: int, threads: int, phase: Phase) -> None:
    boxes = data / _BOXES
    has_boxes = form != "raw" and boxes.stat().st_size > 0
    settings = BuildSettings(
        source=SourceSettings(str(data / "files"), SourceOptions(boxes=str(boxes) if has_boxes else None)),
        recipe=_recipe(form),
        schema=TinySchema() if form == "raw" else ImagenetSchema(),
        shards=ShardSettings(train=shards, compression="gzip" if form == "gzip" else "none"),
        threads=threads,
        accept_size=True,
    )
    with phase(f"building {form} shards") as progress:
        report = build(settings, data / form, progress)
    if report.rejects:  # what was picked can be decoded, so these files have changed since
        raise SourceError(f"{data / 'files' / report.rejects[0].key}: {report.rejects[0].reason}")


def _recipe(form: Needs) -> Recipe:
    if form == "raw":
        return Recipe(resize=parse_resize(f"square:{RAW_SIDE}"), encode=RawEncode())
    return Recipe(restart=form == "restart")


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
