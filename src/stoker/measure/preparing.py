"""What contenders read: some of the user's images in every form that a rung needs, made once in a scratch folder.

::

    stoker-bench.json what was made of what, so that a folder that is kept is used again
    own.json          where these images lie at the user's
    files/ files.json loose JPEG files, in class folders
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
from stoker.errors import ConfigError, DestinationError
from stoker.feed import open_dataset
from stoker.measure.figures import Prepared
from stoker.measure.picking import Picker
from stoker.measure.task import RAW_SIDE, LooseFiles
from stoker.recipe import RawEncode, Recipe, parse_resize
from stoker.schema import ImagenetSchema, TinySchema
from stoker.sources import SourceOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from stoker.build import BuildReport
    from stoker.feed import Dataset
    from stoker.measure.picking import Picked
    from stoker.measure.rungs import Needs
    from stoker.types import Progress

    Phase = Callable[[str], AbstractContextManager[Progress]]

_NOTE = "stoker-bench.json"
_PICKED, _BOXES = "picked", "boxes.csv"
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
        """Return about how many bytes are still to be written, when files and plain shards are there."""
        copies = len(self.forms & {"gzip", "restart"}) * prepared.encoded_bytes
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
        prepared = _take_images(dataset, wanted, data, phase)
        _require_room(wanted.room_bytes(prepared), data)
        _write_note(data, made_of, prepared)
    for form in sorted(wanted.forms & {"gzip", "raw", "restart"}):
        _build(data, form, wanted.threads, phase)
    written = max(0, _bytes_below(data) - before)
    return replace(prepared, seconds=time.monotonic() - started, written_bytes=written)


def _require_room(needed: int, data: Path) -> None:
    free = shutil.disk_usage(data).free
    if needed > free:
        message = f"the benchmark needs {format_size(needed)} more in {data}, where {format_size(free)} are free"
        raise DestinationError(f"{message}; {_ADVICE}", path=str(data))


def _write_note(data: Path, made_of: dict[str, object], prepared: Prepared | None) -> None:
    document = {"made_of": made_of, "prepared": prepared and asdict(prepared)}
    (data / _NOTE).write_text(json.dumps(document, indent=1), encoding="utf-8")


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
    document = json.loads(note.read_text(encoding="utf-8"))
    if document["made_of"] != made_of:
        message = f"{data} was made of {document['made_of']}, not of {made_of}"
        raise DestinationError(f"{message}; remove it, or name another folder with --keep", path=str(data))
    found = document["prepared"]
    if found is None:  # the run was interrupted
        for path in data.iterdir():
            if path != note:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return None
    return Prepared(**{**found, "unreadable": tuple(found["unreadable"])})


def _take_images(dataset: Dataset, wanted: Wanted, data: Path, phase: Phase) -> Prepared:
    """Copy images, build shards of those that can be decoded, and make loose files of the records."""
    picker = Picker(dataset, wanted.path, wanted.most)
    with phase("reading images") as progress:
        _write_picked(data, picker.images_read(progress))
    report = _build(data, "plain", wanted.threads, phase)
    picking = picker.picking
    picking.selection.write(data)
    reasons = (*picking.unreadable, *(f"{reject.key}: {reject.reason}" for reject in report.rejects))
    if report.manifest.records == 0:
        why = f": {reasons[0]}" if reasons else ""
        raise ConfigError(f"no image of split {dataset.split} of {wanted.path} can be read{why}")
    shutil.rmtree(data / _PICKED)
    samples, encoded, decoded = _write_files(data)
    converted = {kind: count for kind, count in {**picking.converted, **report.manifest.converted}.items() if count}
    return Prepared(report.manifest.records, samples, encoded, decoded, 0, 0.0, reasons, converted)


def _write_picked(data: Path, images: Iterable[Picked]) -> None:
    data.joinpath(_PICKED).mkdir()
    with (data / _BOXES).open("w", encoding="ascii") as table:
        for image in images:
            name = f"{image.number:012d}.jpg"
            place = data / _PICKED / _class_folder(image.label) / name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(image.encoded)
            table.writelines(f"{name},{b.xmin!r},{b.ymin!r},{b.xmax!r},{b.ymax!r}\n" for b in image.boxes)


def _class_folder(label: int) -> str:
    return "none" if label < 0 else f"{label:06d}"


def _build(data: Path, form: Needs, threads: int, phase: Phase) -> BuildReport:
    """Build one form; ``plain`` of what was picked, others of the loose files, of which each can be decoded."""
    is_first, boxes = form == "plain", data / _BOXES
    has_boxes = form != "raw" and boxes.stat().st_size > 0
    source = str(data / (_PICKED if is_first else "files"))
    settings = BuildSettings(
        source=SourceSettings(source, SourceOptions(boxes=str(boxes) if has_boxes else None)),
        recipe=_recipe(form),
        schema=TinySchema() if form == "raw" else ImagenetSchema(),
        shards=ShardSettings(train=_SHARDS, compression="gzip" if form == "gzip" else "none"),
        threads=threads,
        max_rejects=2**62 if is_first else 0,
        accept_size=True,
    )
    with phase(f"building {form} shards") as progress:
        return build(settings, data / form, progress)


def _recipe(form: Needs) -> Recipe:
    if form == "raw":
        return Recipe(resize=parse_resize(f"square:{RAW_SIDE}"), encode=RawEncode())
    return Recipe(check="decode" if form == "plain" else "header", restart=form == "restart")


def _write_files(data: Path) -> tuple[int, int, int]:
    """Make a loose file of every record; return samples, encoded and decoded bytes."""
    records = open_dataset(data / "plain", "train")
    names, labels, boxes, encoded, decoded = [], [], [], 0, 0
    for number in range(len(records)):
        sample = records[number]
        names.append(f"{_class_folder(sample.label)}/{sample.source}")  # the name by which its boxes are found
        place = data / "files" / names[-1]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(sample.encoded)
        labels.append(sample.label)
        boxes.append(sample.boxes)
        encoded += len(sample.encoded)
        decoded += sum(
            3 * int(sample.features["image/height"][1][0]) * int(w) for w in sample.features["image/width"][1]
        )
    LooseFiles.write(data, names, labels, boxes)
    return LooseFiles.read(data).samples, encoded, decoded


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
