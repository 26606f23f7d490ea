"""What cases read: some of the user's images in every form that a case needs, made in a temporary folder.

::

    images.json       which images these are, here and in the user's own data
    files/            loose JPEG files, in class folders; all else is built of them
    boxes.csv         their annotated objects
    plain/            TFRecord shards, as ``stoker build`` makes them
    gzip/ restart/    the same compressed, and with restart markers
    raw/              the same as tensors of 256 x 256 pixels
"""

from __future__ import annotations

import io
import json
import shutil
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from stoker import _native
from stoker.builder import BuildSettings, ShardSettings, SourceSettings, build
from stoker.config import available_cpus, format_size
from stoker.errors import ConfigError, DestinationError, SourceError, StokerError
from stoker.format import ImagenetSchema, TinySchema
from stoker.inspect.bench.cases import RAW_SIDE, SEED
from stoker.loader import FILE_SCHEMA, Dataset, ImageFiles, open_dataset
from stoker.recipe import RawEncode, Recipe, convert, parse_resize
from stoker.sources import SourceOptions, list_source
from stoker.storage import location, place_at, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from stoker.inspect.bench.cases import Case, Needs, Task
    from stoker.loader import Sample
    from stoker.sources import SourceTree
    from stoker.types import Box, Progress

    Phase = Callable[[str], AbstractContextManager[Progress]]
    Corners = tuple[float, float, float, float]

_MOST_IMAGES = 1000
_MOST_ENCODED_BYTES = 200_000_000
_MOST_DECODED_BYTES = 1_500_000_000
_FEWEST_IMAGES = 64
_REMOTE_THREADS = 32
_RAW_QUALITY = 90
_SHARDS = 8
_LIST, _BOXES = "images.json", "boxes.csv"


@dataclass(frozen=True, slots=True)
class ImageList:
    """The images that all cases read, and where they lie in the user's data.

    Attributes:
        path: Path or URL of the user's data.
        split: The split.
        shards: Numbers of the user's shards that hold them; empty where the samples are image files.
        rows: Numbers of the user's image files.
        names: The images as JPEG files, below ``files``.
        corners: Annotated objects of each as (ymin, xmin, ymax, xmax) in fractions of the image; one that is the whole
            image where there are none.
    """

    path: str
    split: str
    shards: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    corners: tuple[tuple[Corners, ...], ...] = ()

    @classmethod
    def read(cls, task: Task) -> ImageList:
        """Return what `prepare` has written."""
        found = json.loads(task.place(_LIST).read_text(encoding="utf-8"))
        corners = tuple(tuple((a, b, c, d) for a, b, c, d in image) for image in found.pop("corners"))
        path, split = found.pop("path"), found.pop("split")
        return cls(path, split, **{name: tuple(values) for name, values in found.items()}, corners=corners)

    @property
    def objects(self) -> int:
        """How many annotated objects there are; an image without any counts as one."""
        return sum(map(len, self.corners))

    def files(self, task: Task) -> list[str]:
        """Return the paths of the JPEG files."""
        return [str(task.place("files") / name) for name in self.names]

    def open_own(self) -> Dataset:
        """Open these images in the user's data; of shards, all images of each."""
        if self.shards:
            whole = open_dataset(self.path, self.split)
            chosen = tuple(whole.shards[number] for number in self.shards)
            return Dataset(path=whole.path, split=self.split, schema=whole.schema, shards=chosen, classes=whole.classes)
        files = ImageFiles(self._tree(), self.split)
        return Dataset(path=self.path, split=self.split, schema=FILE_SCHEMA, files=files)

    def own_files(self) -> list[Path]:
        """Return the files of this machine that hold these images in the user's data."""
        if self.shards:
            return [shard.path for shard in self.open_own().shards if isinstance(shard.path, Path)]
        tree = self._tree()
        places = {place_at(tree.locate(item)) for item in tree.table.take(tree.splits[self.split])}
        return sorted(place for place in places if isinstance(place, Path))

    def _tree(self) -> SourceTree:
        tree = list_source(self.path)
        return replace(tree, splits={self.split: tree.splits[self.split][np.asarray(self.rows, np.int64)]})


def files_read_by(case: Case, task: Task) -> list[Path]:
    """Return the files of this machine that a case reads."""
    if case.needs == "own":
        return ImageList.read(task).own_files()
    folders = (task.place(case.needs), task.place(case.key))  # the second: what a case writes for itself
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]


def samples_read_by(case: Case, task: Task) -> int:
    """Return how many samples a case reads in one pass: more than were prepared where it opens the user's shards."""
    images = ImageList.read(task)
    if case.needs != "own":
        return images.objects if task.transform == "objects" else len(images.names)
    own = images.open_own()
    return int(np.maximum(own.object_counts, 1).sum()) if task.transform == "objects" else len(own)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was made for the cases to read.

    Attributes:
        images: Images that every case reads.
        samples: What they make of them: crops where the transform has one for each object, otherwise as many as images.
        encoded_bytes: Bytes of the images as JPEG files.
        decoded_bytes: Bytes of their pixels.
        written_bytes: Bytes that were written to the temporary folder.
        seconds: How long it took.
        unreadable: Why images were left out, for all cases: a reason for each.
        converted: How many images were not JPEG files, and are read as JPEG, by kind.
    """

    images: int
    samples: int
    encoded_bytes: int
    decoded_bytes: int
    written_bytes: int
    seconds: float
    unreadable: tuple[str, ...]
    converted: dict[str, int]


def prepare(
    dataset: Dataset, task: Task, most: int | None, forms: frozenset[Needs], phase: Phase, *, caches_file: bool = False
) -> Prepared:
    """Make some of a dataset's images in every form that is needed.

    Args:
        dataset: The user's split.
        task: Names the user's data, the empty folder to fill, and the threads of the builds.
        most: The most images; None: 1000, and fewer where they are large.
        forms: Forms that cases need.
        phase: Opens a progress display for what a verb says.
        caches_file: Whether space for a file with the decoded images is needed, too.

    Raises:
        ConfigError: No image can be read.
        DestinationError: The temporary folder has too little space.
        OSError: It cannot be written.
    """
    started, data = time.monotonic(), Path(task.data)
    with phase("reading images") as progress:
        prepared = _write_files(dataset, task, most, progress)
    built = forms & {"gzip", "plain", "raw", "restart"}
    needed = len(built - {"raw"}) * prepared.encoded_bytes + (prepared.decoded_bytes if caches_file else 0)
    needed += prepared.images * RAW_SIDE**2 * 3 if "raw" in built else 0
    free = shutil.disk_usage(data).free
    if needed > free:
        message = f"the benchmark needs {format_size(needed)} more in {data}, where {format_size(free)} are free"
        raise DestinationError(
            f"{message}; take fewer --images, or name a folder with more space with TMPDIR", path=str(data)
        )
    for form in sorted(built):
        with phase(f"building {form} shards") as progress:
            _build(data, form, min(_SHARDS, prepared.images), task.threads, progress)
    written = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    return replace(prepared, written_bytes=written, seconds=time.monotonic() - started)


def _write_files(dataset: Dataset, task: Task, most: int | None, progress: Progress) -> Prepared:
    """Choose images that Pillow and Stoker can decode, and write them as JPEG files with a list of them."""
    limit = most or _MOST_IMAGES
    shards = _fewest_shards(dataset, limit) if dataset.shards else ()
    part = ImageList(task.dataset, dataset.split, shards).open_own() if shards else dataset
    chosen: list[_Chosen] = []
    names: list[str] = []
    unreadable: list[str] = []
    converted = Counter[str]()
    encoded = decoded = 0
    total = min(limit, len(part))
    numbers = [int(number) for number in _native.permute(0, total, len(part), SEED, 0)] if total else []
    for count, found in enumerate(_choose(part, numbers), 1):
        progress(done=count, total=total, size_bytes=encoded, rejects=len(unreadable))
        if isinstance(found, str):
            unreadable.append(found)
            continue
        names.append(_write_file(Path(task.data), found))
        chosen.append(replace(found, encoded=b""))
        encoded, decoded = encoded + len(found.encoded), decoded + found.decoded_bytes
        converted.update([found.converted] if found.converted else [])
        is_large = encoded > _MOST_ENCODED_BYTES or decoded > _MOST_DECODED_BYTES
        if most is None and len(names) >= _FEWEST_IMAGES and is_large:
            break
    if not names:
        why = f": {unreadable[0]}" if unreadable else ", which is empty"
        raise ConfigError(f"no image can be read of split {dataset.split} of {task.dataset}{why}")
    rows = () if shards else tuple(sorted(one.number for one in chosen))
    corners = tuple(
        tuple((b.ymin, b.xmin, b.ymax, b.xmax) for b in one.boxes) or ((0.0, 0.0, 1.0, 1.0),) for one in chosen
    )
    images = ImageList(task.dataset, dataset.split, shards, rows, tuple(names), corners)
    task.place(_LIST).write_text(json.dumps(asdict(images)), encoding="utf-8")
    lines = [
        f"{name.rpartition('/')[2]},{box.xmin!r},{box.ymin!r},{box.xmax!r},{box.ymax!r}\n"
        for name, one in zip(names, chosen, strict=True)
        for box in one.boxes
    ]
    task.place(_BOXES).write_text("".join(lines), encoding="ascii")
    return Prepared(len(names), images.objects, encoded, decoded, 0, 0.0, tuple(unreadable), dict(converted))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One image: its number in the split, or in the shards that were chosen; its JPEG file; what it was if not one."""

    number: int
    encoded: bytes
    label: int
    boxes: list[Box]
    decoded_bytes: int
    converted: str | None


def _fewest_shards(dataset: Dataset, images: int) -> tuple[int, ...]:
    """Return the numbers of as few shards as hold so many images, spread evenly over the dataset."""
    total = len(dataset.shards)
    for count in range(1, total + 1):
        numbers = [number * total // count for number in range(count)]
        if sum(dataset.shards[number].records for number in numbers) >= images:
            return tuple(numbers)
    return tuple(range(total))


def _choose(dataset: Dataset, numbers: list[int]) -> Iterator[_Chosen | str]:
    """Yield each image, or why it cannot be decoded."""
    threads = available_cpus() if location(dataset.path).is_local else _REMOTE_THREADS
    rest = iter(numbers)
    with stoppable_pool(threads, "stoker-bench") as pool:
        # A part at a time: what is read stays in memory until it is written.
        while some := list(islice(rest, 2 * threads)):
            yield from pool.map(lambda number: _choose_one(dataset, number), some)


def _choose_one(dataset: Dataset, number: int) -> _Chosen | str:
    where = f"image {number}"
    try:
        sample = dataset[number]
        where = f"image {number} ({sample.source})" if sample.source else where
        is_raw = sample.schema.image_encoding == "raw"
        stored = convert(_as_jpeg(sample) if is_raw else sample.encoded, Recipe(check="decode"))
        convert(stored.data, Recipe(restart=True))  # reads the file differently, and must succeed too
        with Image.open(io.BytesIO(stored.data)) as image:
            image.load()
        boxes = sample.boxes
    # SyntaxError and ValueError: of Pillow, about damaged files.
    except (StokerError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return f"{where}: {error}"
    converted = "raw tensor" if is_raw else stored.converted
    return _Chosen(number, stored.data, sample.label, boxes, stored.width * stored.height * 3, converted)


def _as_jpeg(sample: Sample) -> bytes:
    made = io.BytesIO()
    Image.fromarray(sample.decode()).save(made, "JPEG", quality=_RAW_QUALITY)
    return made.getvalue()


def _write_file(data: Path, image: _Chosen) -> str:
    folder = "none" if image.label < 0 else f"{image.label:06d}"
    name = f"{folder}/{image.number:012d}.jpg"
    place = data / "files" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(image.encoded)
    return name


def _build(data: Path, form: Needs, shards: int, threads: int, progress: Progress) -> None:
    boxes = data / _BOXES
    recipe = Recipe(restart=form == "restart")
    if form == "raw":
        recipe = Recipe(resize=parse_resize(f"square:{RAW_SIDE}"), encode=RawEncode())
    has_boxes = form != "raw" and boxes.stat().st_size > 0
    settings = BuildSettings(
        source=SourceSettings(str(data / "files"), SourceOptions(boxes=str(boxes) if has_boxes else None)),
        recipe=recipe,
        schema=TinySchema() if form == "raw" else ImagenetSchema(),
        shards=ShardSettings(train=shards, compression="gzip" if form == "gzip" else "none"),
        threads=threads,
        accept_size=True,
    )
    report = build(settings, data / form, progress)
    if report.rejects:  # every file could be decoded when it was written, so it has changed since
        raise SourceError(f"{data / 'files' / report.rejects[0].key}: {report.rejects[0].reason}")
