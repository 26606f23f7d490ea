"""The ways to read images that a benchmark compares, and what they read.

That is some of the user's images in every form that a case needs, made in a temporary folder:

::

    images.pickle           which images these are, where they lie in the user's own data, and what to measure
    files/                  loose image files, as ``stoker build`` stores them; all else is built of them
    plain/ restart/         TFRecord shards, as ``stoker build`` makes them; with restart markers
    raw/                    the same as tensors of 256 x 256 pixels
"""

from __future__ import annotations

import io
import pickle
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from PIL import Image

from stoker import _native
from stoker.builder import BuildSettings, ShardSettings, SourceSettings, build_tree, open_source
from stoker.config import available_cpus, check_range, format_size
from stoker.errors import ConfigError, DestinationError, SourceError, StokerError
from stoker.format import ImagenetSchema, TinySchema
from stoker.inspect.info import ranked
from stoker.inspect.measuring import ReadSpec
from stoker.loader import Dataset, ImageFiles, ShardRecords, open_dataset
from stoker.recipe import PngEncode, RawEncode, Recipe, convert, parse_resize, sniff
from stoker.sources import list_source
from stoker.storage import from_uri, location, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from stoker.sources import Source
    from stoker.types import Progress

    Phase = Callable[[str, str, str], AbstractContextManager[Progress]]

SEED = 17
RAW_SIDE = 256
"""Height and width of the tensors that raw records hold."""

_MOST_IMAGES = 1000
_MOST_ENCODED_BYTES = 200_000_000
_MOST_DECODED_BYTES = 1_500_000_000
_FEWEST_IMAGES = 64
_REMOTE_THREADS = 32
_SHARDS = 8
_IMAGES = "images.pickle"

Group = Literal["limit", "ladder", "stoker"]
"""What a case is: the codec alone; a step of the ladder, without Stoker; one of Stoker's ways."""

Form = Literal["files", "plain", "raw", "restart", "own"]
"""What a case reads: a form of the prepared images, or ``own``: the user's data where they lie."""


@dataclass(frozen=True, slots=True)
class BenchSpec(ReadSpec):
    """What to measure, and what all cases do: the same images, the same transform, the same batch.

    ``seconds`` are those of a case and round; with ``cold`` its files leave the page cache before every measurement.
    """

    threads: int = field(default_factory=available_cpus)
    rounds: int = 3  # turns of each case
    images: int | None = None  # the most that are taken of the dataset; None: 1000, and fewer where they are large
    only: tuple[str, ...] = ()  # keys of `CASES`; empty: all

    def __post_init__(self) -> None:
        ReadSpec.__post_init__(self)
        check_range("--rounds", self.rounds, 1, 1000)
        if self.images is not None:
            check_range("--images", self.images, 1, 2**31)
        known = [case.key for case in CASES]
        unknown = [key for key in self.only if key not in known]
        if unknown:
            raise ConfigError(
                f"--only names {', '.join(map(repr, unknown))}, which is not a case; the cases are {', '.join(known)}"
            )

    @property
    def chosen(self) -> list[Case]:
        """The cases to measure, if they apply, in the order of the ladder."""
        return [case for case in CASES if not self.only or case.key in self.only]


@dataclass(frozen=True, slots=True)
class Case:
    """One way to read."""

    key: str  # what ``--only`` calls it
    name: str  # what a table calls it
    note: str  # one sentence: what it does
    needs: Form = "files"  # what it reads
    # where it keeps decoded images after its warm-up, which therefore reads every image once
    keeps: Literal["", "memory", "file"] = ""
    group: Group = "ladder"  # what kind of case it is
    module: str = ""  # the module whose ``batches`` reads in this way; empty: `stoker.inspect.bench_reading`


_stoker = partial(Case, group="stoker")
_raw = "shards of 256 x 256 pixels, resized beforehand; nothing to decode"
_codec = "image files in memory, decoded and resized by Stoker's codec on all threads, with nothing around it"
_own = "stoker.Loader on what you named, where it lies; of a bucket, every byte comes from the store"
_fast = "the same with decode='fast': JPEGs decoded at a smaller scale"
LIMIT = _stoker("codec", "codec alone (the limit)", _codec, "plain", group="limit")
CASES: tuple[Case, ...] = (
    LIMIT,
    Case("python-serial", "Python + Pillow: one file at a time", "open, decode, crop and resize in one thread"),
    Case("python-parallel", "Python + Pillow: threads", "the images of a batch in a pool of threads"),
    Case("python-cache", "Python + Pillow: decoded images in memory", "no reading or decoding", keeps="memory"),
    _stoker("stoker-own", "Stoker: your data as they are", _own, "own"),
    _stoker("stoker-files", "Stoker: loose files", "stoker.Loader on image files, without any build"),
    _stoker("stoker", "Stoker: shards, exact pixels", "TFRecord shards; the pixels that Pillow gives", "plain"),
    _stoker("stoker-fast", "Stoker: shards, fast decode", _fast, "plain"),
    _stoker("stoker-restart", "Stoker: shards with restart markers", "crops decode only themselves", "restart"),
    _stoker("stoker-cache", "Stoker: decoded images in memory", "MemoryCache(keep='decoded')", "plain", keeps="memory"),
    _stoker("stoker-raw", "Stoker: raw tensors", _raw, "raw"),
)


def objection(case: Case, spec: BenchSpec, dataset: Dataset) -> str:
    """Return why a case does not apply to what the user named; empty if it does."""
    if case.key == "stoker-files" and not dataset.shards and location(dataset.path).is_local:
        return "the same as stoker-own, which reads your files where they lie"
    if spec.cold and case.keeps == "memory":
        return "keeps decoded images in memory, so nothing is read that could be cold"
    if spec.cold and case.needs == "own" and any(shard.inflated is not None for shard in dataset.shards):
        return "inflates compressed shards when it opens them, so nothing is read from the disk that could be cold"
    return ""


@dataclass(frozen=True, slots=True)
class BenchImages:
    """The images that all cases read, and where they lie in the user's data."""

    folder: str  # the temporary folder that holds them in every form
    spec: BenchSpec  # what is measured, with the path or URL of the user's data and the split that was chosen
    shards: Sequence[int]  # numbers of the user's shards that hold them; empty where the samples are image files
    numbers: Sequence[int]  # their numbers in the split, or in these shards, ascending
    encoded_bytes: int  # their bytes as files
    decoded_bytes: int  # bytes of their pixels
    formats: Mapping[str, int]  # how many of these files have which format
    own_formats: Mapping[str, int]  # the same of the user's data, as `stoker.Sample.format` says
    unreadable: Sequence[str]  # why other images were left out, for all cases: a reason for each

    @staticmethod
    def read(folder: str) -> BenchImages:
        """Return what `prepare` has written."""
        images: BenchImages = pickle.loads(Path(folder, _IMAGES).read_bytes())  # noqa: S301 - of this benchmark
        return images

    def write(self) -> None:
        """Write what `read` returns in another process."""
        self.place(_IMAGES).write_bytes(pickle.dumps(self))

    @property
    def split(self) -> str:
        """The split of the user's data."""
        assert self.spec.split is not None, "prepare() chooses one"
        return self.spec.split

    def place(self, name: str) -> Path:
        """Return where something that was prepared lies."""
        return Path(self.folder, name)

    def files(self) -> list[str]:
        """Return the paths of the image files."""
        return [str(_image_file(self.folder, number)) for number in self.numbers]

    def open_own(self) -> Dataset:
        """Open these images in the user's data; of shards, all images of each."""
        if self.shards:
            return _with_shards(open_dataset(self.spec.dataset, self.split, keys=self.spec.keys), self.shards)
        return Dataset(path=self.spec.dataset, split=self.split, reader=ImageFiles(self._tree(), self.split))

    def files_read_by(self, case: Case) -> list[Path]:
        """Return the files of this machine that a case reads."""
        if case.needs != "own":
            folders = (self.place(case.needs), self.place(case.key))  # the second: what a case writes for itself
            return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
        if self.shards:
            return [shard.path for shard in self.open_own().shards if isinstance(shard.path, Path)]
        tree = self._tree()
        places = {from_uri(tree.stored.locate(item)) for item in tree.table.take(tree.splits[self.split])}
        return sorted(place for place in places if isinstance(place, Path))

    def read_by(self, case: Case) -> int:
        """Return how many a case reads in one pass: more than were chosen where it opens the user's shards."""
        return len(self.open_own() if case.needs == "own" else self.numbers)

    def _tree(self) -> Source:
        tree = list_source(self.spec.dataset, self.spec.source)
        return replace(tree, splits={self.split: tree.rows_as_listed(self.split)[np.asarray(self.numbers, np.int64)]})


def prepare(dataset: Dataset, spec: BenchSpec, folder: str, forms: frozenset[Form], phase: Phase) -> BenchImages:
    """Make some of a dataset's images in every form that cases need, in an empty folder.

    ``spec`` says how many at most, and the threads of the builds.
    """
    with phase("reading images", "images", "unreadable") as progress:
        images = _write_files(dataset, replace(spec, dataset=dataset.path, split=dataset.split), folder, progress)
    images.write()
    built = sorted(forms - {"files", "own"})
    sizes = [len(images.numbers) * RAW_SIDE**2 * 3 if form == "raw" else images.encoded_bytes for form in built]
    needed, free = sum(sizes), shutil.disk_usage(folder).free
    if needed > free:
        message = f"the benchmark needs {format_size(needed)} more in {folder}, where {format_size(free)} are free"
        raise DestinationError(
            f"{message}; take fewer --images, or name a folder with more space with TMPDIR", path=folder
        )
    for form in built:
        with phase(f"building {form} shards", "images", "rejected") as progress:
            _build(images, form, spec.threads, progress)
    return images


def _write_files(dataset: Dataset, spec: BenchSpec, folder: str, progress: Progress) -> BenchImages:
    """Choose images that Pillow and Stoker can decode, and write them as files with a list of them."""
    limit = spec.images or _MOST_IMAGES
    shards = _fewest_shards(dataset, limit)
    part = _with_shards(dataset, shards) if shards else dataset
    _image_file(folder, 0).parent.mkdir(parents=True)
    total = min(limit, len(part))
    numbers = [int(number) for number in _native.permute(0, total, len(part), SEED, 0)] if total else []
    chosen: list[int] = []
    unreadable: list[str] = []
    formats: Counter[str] = Counter()
    own_formats: Counter[str] = Counter()
    encoded = decoded = 0
    threads = available_cpus() if location(dataset.path).is_local else _REMOTE_THREADS
    with stoppable_pool(threads, "stoker-bench") as pool:
        for start in range(0, total, 2 * threads):  # a part at a time: what is read stays in memory until written
            is_large = encoded > _MOST_ENCODED_BYTES or decoded > _MOST_DECODED_BYTES
            if spec.images is None and is_large and len(chosen) >= _FEWEST_IMAGES:
                break
            some = numbers[start : start + 2 * threads]
            for number, result in zip(some, pool.map(partial(_read, part), some), strict=True):
                if isinstance(result, str):
                    unreadable.append(result)
                    continue
                _image_file(folder, number).write_bytes(result.data)
                chosen.append(number)
                formats[sniff(result.data)] += 1
                own_formats[result.source] += 1
                encoded, decoded = encoded + len(result.data), decoded + result.decoded_bytes
            progress(done=start + len(some), total=total, size_bytes=encoded, rejects=len(unreadable))
    if not chosen:
        why = f": {unreadable[0]}" if unreadable else ", which is empty"
        raise ConfigError(f"no image can be read of split {dataset.split} of {dataset.path}{why}")
    counts = ranked(formats), ranked(own_formats)
    return BenchImages(folder, spec, shards, sorted(chosen), encoded, decoded, *counts, unreadable)


def _image_file(folder: str, number: int) -> Path:
    # A class folder, as the builder expects; whatever the name says, all readers go by what a file begins with.
    return Path(folder, "files", "class", f"{number:012d}.jpg")


def _fewest_shards(dataset: Dataset, images: int) -> list[int]:
    """Return the numbers of as few shards as hold so many images, spread evenly over the dataset."""
    total = len(dataset.shards)
    for count in range(1, total + 1):
        numbers = [number * total // count for number in range(count)]
        if sum(dataset.shards[number].records for number in numbers) >= images:
            return numbers
    return list(range(total))


def _with_shards(whole: Dataset, numbers: Sequence[int]) -> Dataset:
    records = ShardRecords(tuple(whole.shards[number] for number in numbers), whole.schema)
    return Dataset(path=whole.path, split=whole.split, reader=records, classes=whole.classes)


class _Image(NamedTuple):
    """An image as a file that all cases read, the bytes of its pixels, and its format in the user's data."""

    data: bytes
    decoded_bytes: int
    source: str


def _read(dataset: Dataset, number: int) -> _Image | str:
    """Return an image as ``stoker build`` stores it; or why it cannot be decoded."""
    where = f"image {number}"
    try:
        sample = dataset[number]
        where = f"image {number} ({sample.source})" if sample.source else where
        encoded = sample.encoded
        if sample.schema.image_encoding == "raw":
            jpeg = io.BytesIO()
            Image.fromarray(sample.decode()).save(jpeg, "JPEG", quality=90)
            encoded = jpeg.getvalue()
        stored = convert(encoded, Recipe(check="decode", encode=None if _is_for_all(encoded) else PngEncode()))
        convert(stored.data, Recipe(restart=True))  # reads the file differently, and must succeed too
        with Image.open(io.BytesIO(stored.data)) as image:
            image.load()
    # SyntaxError and ValueError: of Pillow, about damaged files.
    except (StokerError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return f"{where}: {error}"
    return _Image(stored.data, stored.width * stored.height * 3, sample.format)


def _is_for_all(data: bytes) -> bool:
    """Return whether TensorFlow, too, reads an image to RGB: not a WebP of several frames or with alpha."""
    if sniff(data) != "webp":
        return True
    with Image.open(io.BytesIO(data)) as image:
        return image.mode == "RGB" and not getattr(image, "is_animated", False)


def _build(images: BenchImages, form: Form, threads: int, progress: Progress) -> None:
    raw = Recipe(resize=parse_resize(f"square:{RAW_SIDE}"), encode=RawEncode())
    shards = min(_SHARDS, len(images.numbers))
    settings = BuildSettings(
        source=SourceSettings(str(images.place("files"))),
        recipe=raw if form == "raw" else Recipe(restart=form == "restart"),
        schema=TinySchema() if form == "raw" else ImagenetSchema(),
        shards=ShardSettings(train=shards),
        threads=threads,
        accept_size=True,
    )
    report = build_tree(open_source(settings.source), settings, images.place(form), progress)
    if report.rejects:  # every file could be decoded when it was written, so it has changed since
        raise SourceError(f"{images.place('files') / report.rejects[0].key}: {report.rejects[0].reason}")
