"""The ways to read images that a benchmark compares, which of them apply, and the work that all of them do.

The ladder goes from the simplest way upwards, each case one step more than the one before, as the tutorials that Stoker
started from teach it. Beside it stand the codec alone, which is the limit, and Stoker's own ways. Other libraries are
compared by ``make bench-rivals``.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from stoker.errors import ConfigError
from stoker.storage import location
from stoker.transforms import CenterCrop, ObjectCrops, RandomResizedCrop

if TYPE_CHECKING:
    from collections.abc import Sequence

Group = Literal["limit", "ladder", "stoker"]
"""What a case is: the codec alone; a step of the ladder, without Stoker; one of Stoker's ways."""

Needs = Literal["files", "plain", "gzip", "raw", "restart", "own"]
"""What a case reads: a form of the prepared images, or ``own``: the user's data where they lie."""

TransformName = Literal["train", "eval", "objects"]
SIDE = 224
RESIZE = 256
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
SEED = 17
RAW_SIDE = 256
"""Height and width of the tensors that raw records hold."""


@dataclass(frozen=True, slots=True)
class Task:
    """What all cases do: the same images, the same transform, the same batch.

    Attributes:
        dataset: Path or URL of what the user wants measured.
        split: Its split.
        transform: ``train``: random order, random crop resized to 224 with flips. ``eval``: in order, shorter side 256,
            centre 224. ``objects``: random order, each annotated object cut out and resized to 224. All are bilinear,
            uint8.
        batch_size: Images per batch.
        threads: Threads of each case.
        cold: Whether a case's files are dropped from the page cache before every measurement.
        data: Folder with the images in all the forms that cases read; see `stoker.inspect.bench.images`.
    """

    dataset: str
    split: str
    transform: TransformName
    batch_size: int
    threads: int
    cold: bool = False
    data: str = ""

    def __post_init__(self) -> None:
        if self.transform not in get_args(TransformName):
            raise ConfigError(
                f"transform is {self.transform!r}; it must be one of {', '.join(get_args(TransformName))}"
            )

    @property
    def stoker_transform(self) -> RandomResizedCrop | CenterCrop | ObjectCrops:
        """The same for Stoker."""
        if self.transform == "train":
            return RandomResizedCrop(SIDE, SCALE, RATIO, hflip=0.5)
        return CenterCrop(SIDE, RESIZE) if self.transform == "eval" else ObjectCrops(SIDE)

    @property
    def is_shuffled(self) -> bool:
        """Whether every epoch has an order of its own."""
        return self.transform != "eval"

    def place(self, name: str) -> Path:
        """Return where something that was prepared lies."""
        return Path(self.data, name)


@dataclass(frozen=True, slots=True)
class Case:
    """One way to read.

    Attributes:
        key: What ``--only`` calls it.
        name: What a table calls it.
        group: What kind of case it is.
        note: One sentence: what it does.
        module: Its module in `stoker.inspect.bench`.
        form: Which of the ways of this module.
        needs: What it reads.
        fills: Whether its warm-up reads every image once, because it keeps what it has read.
        holds: Whether decoded images are then in memory, so that nothing is read any more.
        bucket: Whether it is for data in a bucket only.
        boxes: Whether it can make an image of each annotated object.
    """

    key: str
    name: str
    group: Group
    note: str
    module: str
    form: str = ""
    needs: Needs = "files"
    fills: bool = False
    holds: bool = False
    bucket: bool = False
    boxes: bool = True

    @property
    def missing(self) -> str:
        """How the package that is missing is installed; empty if all are there."""
        if self.module != "read_tensorflow":
            return ""
        found = importlib.util.find_spec("tensorflow")
        is_there = found is not None and found.origin is not None  # a folder of that name has no origin
        return "" if is_there else "not installed: pip install 'stoker[tensorflow]'"


def _python(form: str, name: str, note: str, **settings: Any) -> Case:
    key = form if form.startswith("bucket") else f"python-{form}"
    return Case(key, f"Python + Pillow: {name}", "ladder", note, "read_pillow", form, **settings)


def _bucket(form: str, name: str, note: str) -> Case:
    return _python(f"bucket-{form}", f"{name}, from the bucket", note, needs="own", bucket=True, boxes=False)


def _tf(key: str, name: str, note: str, needs: Needs = "files", **settings: Any) -> Case:
    return Case(key, f"tf.data: {name}", "ladder", note, "read_tensorflow", key, needs, **settings)


def _stoker(form: str, name: str, note: str, needs: Needs, **settings: Any) -> Case:
    key = f"stoker-{form}" if form else "stoker"
    return Case(key, f"Stoker: {name}", "stoker", note, "read_stoker", form, needs, **settings)


LIMIT = Case(
    "codec",
    "codec alone (the limit)",
    "limit",
    "JPEGs in memory, decoded and resized by Stoker's codec on all threads, with nothing around it",
    "read_stoker",
    "codec",
    "plain",
    boxes=False,
)
CASES: tuple[Case, ...] = (
    LIMIT,
    _bucket("serial", "one image at a time", "each image is fetched from the bucket, then decoded, in one thread"),
    _bucket("parallel", "threads", "the same with 8 threads for each CPU, most of which wait for the bucket"),
    _python("serial", "one file at a time", "open, decode, crop and resize in one thread; then make the batch"),
    _python("parallel", "threads", "the images of a batch in a pool of threads; then wait for the consumer"),
    _python("prefetch", "threads, two batches ahead", "the pool works on the next two batches meanwhile"),
    _python("cache", "decoded images kept in memory", "the same without reading and decoding", fills=True, holds=True),
    _tf("serial", "one file at a time", "map without parallelism: read_file, decode_jpeg, crop and resize; batch"),
    _tf("parallel", "parallel map", "the same with num_parallel_calls"),
    _tf("prefetch", "parallel map, prefetch", "the same with batches made ahead of the consumer"),
    _tf(
        "cache-memory",
        "decoded images cached in memory",
        "cache() of decoded images, before crops",
        fills=True,
        holds=True,
    ),
    _tf("cache-file", "decoded images cached in a file", "cache(file) of decoded images, before crops", fills=True),
    _tf("tfrecord", "TFRecord shards, one after the other", "TFRecordDataset, parallel map, prefetch", "plain"),
    _tf("tfrecord-gzip", "TFRecord shards, GZIP", "the same of shards that are compressed as a whole", "gzip"),
    _tf("interleave", "TFRecord shards, interleaved", "several shards read at a time, by parallel interleave", "plain"),
    _tf("raw", "TFRecord of raw tensors", "decode_raw of 256 x 256 pixels, resized beforehand; no JPEG", "raw"),
    _stoker(
        "own",
        "your data as they are",
        "stoker.Loader on what you named, where it lies; of a bucket, every byte comes from the store",
        "own",
    ),
    _stoker(
        "node-cache",
        "your bucket behind a node cache",
        "the same; all of it was fetched and lies on disk before the first turn",
        "own",
        fills=True,
        bucket=True,
    ),
    _stoker("files", "loose files", "stoker.Loader on JPEG files, without any build", "files"),
    _stoker("gzip", "GZIP shards", "shards that are compressed as a whole", "gzip"),
    _stoker("", "shards, exact pixels", "TFRecord shards; the pixels of libjpeg and Pillow", "plain"),
    _stoker("fast", "shards, fast decode", "the same with decode='fast': JPEGs decoded at a smaller scale", "plain"),
    _stoker(
        "restart",
        "shards with restart markers, exact pixels",
        "recipe restart: crops decode only themselves",
        "restart",
    ),
    _stoker(
        "cache", "decoded images in a memory cache", "MemoryCache(keep='decoded')", "plain", fills=True, holds=True
    ),
    _stoker("raw", "raw tensors", "shards of 256 x 256 pixels, resized beforehand; no JPEG", "raw"),
)


def find_case(key: str) -> Case:
    """Return the case of a key."""
    return next(case for case in CASES if case.key == key)


def chosen_cases(only: Sequence[str]) -> tuple[Case, ...]:
    """Return what is to be measured, in the order of the ladder: all cases, or those of some keys.

    Raises:
        ConfigError: There is no such key; the message lists those there are.
    """
    known = [case.key for case in CASES]
    unknown = [key for key in only if key not in known]
    if unknown:
        raise ConfigError(f"--only knows no {', '.join(map(repr, unknown))}; it knows {', '.join(known)}")
    return tuple(case for case in CASES if not only or case.key in only)


OwnForm = Literal["files", "plain", "compressed", "raw"]
"""In which form the user's data are."""


def objection(case: Case, task: Task, own: OwnForm, *, has_boxes: bool) -> str:
    """Return why a case does not apply to what the user named; empty if it does.

    Args:
        case: The case.
        task: What is to be measured.
        own: In which form the user's data are.
        has_boxes: Whether they can have annotated objects.
    """
    is_here = location(task.dataset).is_local
    crops_objects = task.transform == "objects"
    is_inflated = case.key == "stoker-gzip" or (case.needs == "own" and own == "compressed")
    inflates = "inflates compressed shards when it opens them, so nothing is read from the disk that could be cold"
    same = "the same as stoker-own, which reads your files where they lie"
    reasons = (
        (case.bucket and is_here, "for data in a bucket, and yours are on this machine"),
        (case.key == "stoker-files" and own == "files" and is_here, same),
        (crops_objects and (not case.boxes or case.needs == "raw"), "makes no images of annotated objects"),
        (crops_objects and case.needs == "own" and not has_boxes, "your data have no annotated objects"),
        (task.cold and case.holds, "keeps decoded images in memory, so nothing is read that could be cold"),
        (task.cold and case.key == "stoker-node-cache", "cold means without a cache of what was fetched"),
        (task.cold and is_inflated, inflates),
    )
    return case.missing or next((reason for applies, reason in reasons if applies), "")
