"""Images per second of the usual ways to read them (the speed ladder), of Stoker, and of the codec alone.

The ladder starts with the simplest way, and each case goes one step further than the case before. ``make bench`` adds
the steps of tf.data, ``make bench-rivals`` compares other libraries.

What is timed: reading, decoding, cropping, resizing and batching of images, nothing else. Cases take turns on the same
images; medians and spreads are reported. Each case runs in a process of its own, is warmed up first, and is measured
for the same time in every round. Files come from the page cache after the warm-up, or, with ``cold``, from the disk:
they are dropped from the page cache before every measurement, which is then one pass over them at most.

The images are some of the user's, converted in a temporary folder to every form that a case needs:

::

    images.pickle           which images these are, where they lie in the user's own data, and what to measure
    files/                  loose image files, as ``stoker build`` stores them; the other forms are built of them
    plain/ restart/         TFRecord shards, as ``stoker build`` makes them; with restart markers
    raw/                    the same as tensors of 256 x 256 pixels
"""

from __future__ import annotations

import functools
import importlib
import io
import itertools
import json
import os
import pickle
import platform
import random
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from PIL import Image

from stoker import _native
from stoker.builder import BuildOptions, build_source, open_source
from stoker.config import available_cpus, check_range, check_seconds, format_size
from stoker.errors import ConfigError, DestinationError, SourceError, StokerError
from stoker.image import encode
from stoker.inspect.info import ranked
from stoker.inspect.measuring import (
    Meter,
    Program,
    ProgramFailed,
    ReadSpec,
    decode_endlessly,
    drop_from_page_cache,
    endless,
    files_of,
    in_turns,
    loader_alone,
    median_ratio,
    require_cold,
)
from stoker.loader import Dataset, ImageFiles, MemoryCache, ShardRecords, loader_settings, open_dataset, open_main_split
from stoker.order import random_sample
from stoker.recipe import PngEncode, Recipe, convert, is_animated, own_mode, sniff
from stoker.sources import list_source
from stoker.storage import location, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from stoker.types import Progress

    OnTurn = Callable[[str, float], None]
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
_SERVE = "import sys; from stoker.inspect.bench import serve; serve(*sys.argv[1:])"
_MOST_OF_CODEC = 4096  # images that the codec alone keeps in memory: too many for the processor's caches
_IMAGES_A_RUN = 512  # of the codec alone: each run starts its threads again, so it is long compared with that
_CACHE_BUDGET = 2**40  # whether there is enough memory was checked before

Group = Literal["limit", "ladder", "stoker"]
"""The kind of a case: the codec alone; a step of the ladder, without Stoker; a way to read with Stoker."""

Form = Literal["files", "plain", "raw", "restart", "own"]
"""What a case reads: a form of the prepared images, or ``own``: the user's data where they lie."""


@dataclass(frozen=True, slots=True)
class BenchSpec(ReadSpec):
    """What to measure. All cases use the same images, transform and batch size.

    ``seconds`` is the time of a case in a round. With ``cold``, files leave the page cache before every measurement.
    """

    threads: int = field(default_factory=available_cpus)
    rounds: int = 3  # turns of each case
    images: int | None = None  # the most that are taken of the dataset; None: 1000, or fewer if they are large
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
    """One way to read images."""

    key: str  # what ``--only`` calls it
    name: str  # what a table calls it
    note: str  # one sentence: what it does
    needs: Form = "files"  # the form of the images that it reads
    keeps: Literal["", "memory", "file"] = ""  # where it keeps decoded images, all of which its warm-up reads
    group: Group = "ladder"  # what kind of case it is
    module: str = ""  # the module whose ``batches`` runs the case; empty: this module


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
class Machine:
    """The machine on which the figures were measured."""

    processor: str  # name of the CPU
    cpus: int  # CPUs this process may use
    memory_bytes: int  # physical memory; 0 if unknown
    system: str  # operating system and its version
    python: str
    kernels: str  # level of the core's kernels: "portable", "sse42", "avx2", "avx512" or "neon"


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One case's figures."""

    key: str  # what ``--only`` calls it
    name: str  # name of the case for people
    group: Group  # what kind of case it is
    note: str  # one sentence: what it does
    images_per_second: tuple[float, ...]  # one figure a round
    images_per_cpu_second: tuple[float, ...]  # the same per second of CPU time
    of_limit: float | None  # median ratio to the codec's speed in the same round; None without it

    @property
    def median(self) -> float:
        """Median images per second."""
        return statistics.median(self.images_per_second)

    @property
    def median_per_cpu(self) -> float:
        """Median images per second of CPU time."""
        return statistics.median(self.images_per_cpu_second)


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All figures, the settings, and the machine."""

    spec: BenchSpec  # what was measured, with the split and the threads that were used
    machine: Machine  # what it ran on
    images: int  # images in the split
    images_read: int  # images that every case reads
    encoded_bytes: int  # bytes of these images as files
    decoded_bytes: int  # bytes of their pixels
    formats: Mapping[str, int]  # how many of these files have which format
    own_formats: Mapping[str, int]  # the same for the user's data, by `stoker.Sample.format`
    unreadable: Sequence[str]  # why images were left out, for all cases: a reason for each
    rows: tuple[BenchRow, ...]  # figures of each case: the limit, the ladder from the bottom, Stoker
    left_out: dict[str, str]  # why other cases do not apply, by key
    failed: dict[str, str]  # the last line that each failed case printed, by key
    still_cached: float | None = None  # with ``cold``: the largest share of files still in the page cache

    @property
    def page_cache(self) -> str:
        """Whether files were in the page cache, as text."""
        if self.still_cached is None:
            return "warm"
        return f"cold (files dropped before each turn; at most {self.still_cached:.1%} of them left in memory)"


def run_bench(
    spec: BenchSpec,
    phase: Phase | None = None,
    on_turn: OnTurn = lambda *_: None,
    cases: Sequence[Case] | None = None,
) -> BenchReport:
    """Measure every way to read the user's images that applies and is installed, or only ``cases``.

    ``phase`` is called with the name of a phase, of what it counts, and of failures; it returns a context manager that
    yields a function for the progress. ``on_turn`` is called after each turn with the key of its case and its images
    per second.
    """
    phase = phase or (lambda *_: nullcontext(lambda **_: None))
    dataset = open_main_split(str(location(spec.dataset).normalized()), spec.split, spec.keys, source=spec.source)
    cases = spec.chosen if cases is None else cases
    left_out = {case.key: reason for case in cases if (reason := objection(case, spec, dataset))}
    cases = [case for case in cases if case.key not in left_out]
    machine = describe_machine()
    with tempfile.TemporaryDirectory(prefix="stoker-bench-", ignore_cleanup_errors=True) as folder:
        images = prepare(dataset, spec, folder, frozenset(case.needs for case in cases), phase)
        if 0 < machine.memory_bytes < 2 * images.decoded_bytes:
            size = format_size(images.decoded_bytes)
            why = f"the decoded images take {size}, more than half of this machine's memory; take fewer --images"
            left_out |= {case.key: why for case in cases if case.keeps == "memory"}
            cases = [case for case in cases if case.key not in left_out]
        if spec.cold:
            require_cold(sorted({path for case in cases for path in images.files_read_by(case)}))
        answers, failed = _measure(cases, images, phase, on_turn)
    cached = [answer["still_cached"] for turns in answers.values() for answer in turns if spec.cold]
    return BenchReport(
        spec=images.spec,
        machine=machine,
        images=len(dataset),
        images_read=len(images.numbers),
        encoded_bytes=images.encoded_bytes,
        decoded_bytes=images.decoded_bytes,
        formats=images.formats,
        own_formats=images.own_formats,
        unreadable=images.unreadable,
        rows=tuple(_rows(cases, answers)),
        left_out=left_out,
        failed=failed,
        still_cached=max(cached, default=0.0) if spec.cold else None,
    )


def describe_machine() -> Machine:
    """Return what this process runs on."""
    is_known = "SC_PHYS_PAGES" in os.sysconf_names
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return Machine(
        processor=models[0] if models else platform.processor() or platform.machine(),
        cpus=available_cpus(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if is_known else 0,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        kernels=_native.kernel_level(),
    )


def _measure(
    cases: Sequence[Case], images: BenchImages, phase: Phase, on_turn: OnTurn
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """Run all cases in turns; return the answers of each, one a round, and why other cases failed."""
    failed: dict[str, str] = {}
    with ExitStack() as stack:
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        words = [sys.executable, "-P", "-c", _SERVE]
        started: list[Program] = []
        with phase("starting", "cases", "failed") as progress:
            for number, case in enumerate(cases):
                progress(done=number, total=len(cases), size_bytes=0, rejects=len(failed))
                for starting in cases[len(started) : number + available_cpus()]:
                    log = tempfile.TemporaryFile()  # noqa: SIM115 - the program closes it
                    command = [*words, json.dumps(asdict(starting)), images.folder]
                    started.append(stack.enter_context(Program(command, log, variables)))
                try:
                    started[number].wait_until_ready()
                except ProgramFailed as failure:
                    failed[case.key] = str(failure)
                progress(done=number + 1, total=len(cases), size_bytes=0, rejects=len(failed))
        programs = {case.key: program for case, program in zip(cases, started, strict=True) if case.key not in failed}
        turns = itertools.count(1)
        with phase("measuring", "turns", "failed") as progress:

            def turn(key: str, seconds: float) -> dict[str, Any]:
                answer = programs[key].take_turn(seconds)
                on_turn(key, answer["images"] / max(answer["seconds"], 1e-9))
                progress(done=next(turns), total=images.spec.rounds * len(programs), size_bytes=0, rejects=len(failed))
                return answer

            answers = in_turns(
                {key: partial(turn, key) for key in programs},
                images.spec.rounds,
                images.spec.seconds,
                failed=lambda key, why: failed.update({key: str(why)}),
            )
    return answers, failed


def _rows(cases: Sequence[Case], answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[BenchRow]:
    def rates(key: str, per: str) -> tuple[float, ...]:
        return tuple(answer["images"] / max(answer[per], 1e-9) for answer in answers.get(key, []))

    limits = rates(LIMIT.key, "seconds")
    for case in cases:
        if case.key in answers:
            speeds = rates(case.key, "seconds")
            yield BenchRow(
                key=case.key,
                name=case.name,
                group=case.group,
                note=case.note,
                images_per_second=speeds,
                images_per_cpu_second=rates(case.key, "cpu_seconds"),
                of_limit=median_ratio(speeds, limits) if limits else None,
            )


# The images that all cases read.


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
    own_formats: Mapping[str, int]  # the same for the user's data, by `stoker.Sample.format`
    unreadable: Sequence[str]  # why other images were left out, for all cases: a reason for each

    @staticmethod
    def read(folder: str) -> BenchImages:
        """Return what `prepare` has written."""
        images: BenchImages = pickle.loads(Path(folder, _IMAGES).read_bytes())  # noqa: S301 - of this benchmark
        return images

    def write(self) -> None:
        """Write what `read` returns in another process."""
        self.path_of(_IMAGES).write_bytes(pickle.dumps(self))

    @property
    def split(self) -> str:
        """The split of the user's data."""
        assert self.spec.split is not None, "prepare() chooses one"
        return self.spec.split

    def path_of(self, name: str) -> Path:
        """Return the path of a file or folder that was prepared."""
        return Path(self.folder, name)

    def files(self) -> list[str]:
        """Return the paths of the image files."""
        return [str(_image_file(self.folder, number)) for number in self.numbers]

    def open_own(self) -> Dataset:
        """Open these images in the user's data; of shards that hold them, open all images."""
        if self.shards:
            return _with_shards(open_dataset(self.spec.dataset, self.split, keys=self.spec.keys), self.shards)
        source = list_source(self.spec.dataset, self.spec.source)
        rows = source.rows_as_listed(self.split)[np.asarray(self.numbers, np.int64)]
        reader = ImageFiles(replace(source, splits={self.split: rows}), self.split)
        return Dataset(path=self.spec.dataset, split=self.split, reader=reader)

    def files_read_by(self, case: Case) -> list[Path]:
        """Return the files of this machine that a case reads."""
        if case.needs != "own":
            folders = (self.path_of(case.needs), self.path_of(case.key))  # the second: what a case writes for itself
            return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
        own = self.open_own()
        return files_of(own) if own.remote is None else []

    def read_by(self, case: Case) -> int:
        """Return the number of images in one pass of a case: more than were chosen if it opens the user's shards."""
        return len(self.open_own() if case.needs == "own" else self.numbers)


def prepare(dataset: Dataset, spec: BenchSpec, folder: str, forms: frozenset[Form], phase: Phase) -> BenchImages:
    """Make some of a dataset's images in every form that cases need, in an empty folder."""
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
    """Choose images that Pillow and Stoker can decode, write them as files, and return what was chosen."""
    limit = spec.images or _MOST_IMAGES
    shards = _fewest_shards(dataset, limit)
    part = _with_shards(dataset, shards) if shards else dataset
    _image_file(folder, 0).parent.mkdir(parents=True)
    numbers = random_sample(limit, len(part), SEED).tolist()
    total = len(numbers)
    images: list[_Image] = []
    unreadable: list[str] = []
    encoded = decoded = 0
    threads = available_cpus() if location(dataset.path).is_local else _REMOTE_THREADS
    with stoppable_pool(threads, "stoker-bench") as pool:
        for start in range(0, total, 2 * threads):
            is_large = encoded > _MOST_ENCODED_BYTES or decoded > _MOST_DECODED_BYTES
            if spec.images is None and is_large and len(images) >= _FEWEST_IMAGES:
                break
            results = list(pool.map(partial(_write_file, part, folder), numbers[start : start + 2 * threads]))
            images += [result for result in results if isinstance(result, _Image)]
            unreadable += [result for result in results if isinstance(result, str)]
            encoded = sum(image.encoded_bytes for image in images)
            decoded = sum(image.decoded_bytes for image in images)
            progress(done=start + len(results), total=total, size_bytes=encoded, rejects=len(unreadable))
    if not images:
        why = f": {unreadable[0]}" if unreadable else ", which is empty"
        raise ConfigError(f"no image can be read of split {dataset.split} of {dataset.path}{why}")
    chosen = sorted(image.number for image in images)
    formats = ranked(Counter(image.format for image in images))
    own_formats = ranked(Counter(image.own_format for image in images))
    return BenchImages(folder, spec, shards, chosen, encoded, decoded, formats, own_formats, unreadable)


def _image_file(folder: str, number: int) -> Path:
    # A class folder, as the builder expects; readers go by the first bytes of a file, not by its name.
    return Path(folder, "files", "class", f"{number:012d}.jpg")


def _fewest_shards(dataset: Dataset, images: int) -> list[int]:
    """Return the numbers of the fewest shards that hold a number of images, spread evenly over the dataset."""
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
    number: int
    encoded_bytes: int
    decoded_bytes: int
    format: str
    own_format: str  # in the user's data


def _write_file(dataset: Dataset, folder: str, number: int) -> _Image | str:
    """Write an image as ``stoker build`` stores it; or return why it cannot be decoded."""
    where = f"image {number}"
    try:
        sample = dataset[number]
        where = f"image {number} ({sample.source})" if sample.source else where
        encoded = encode(sample.decode()) if sample.schema.image_encoding == "raw" else sample.encoded
        stored = convert(encoded, Recipe(check="decode", encode=None if _all_decode(encoded) else PngEncode()))
        convert(stored.data, Recipe(restart=True))  # reads the file differently, and must succeed too
        with Image.open(io.BytesIO(stored.data)) as image:
            image.load()
    # SyntaxError and ValueError: of Pillow, about damaged files.
    except (StokerError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        return f"{where}: {error}"
    _image_file(folder, number).write_bytes(stored.data)
    return _Image(number, len(stored.data), stored.width * stored.height * 3, sniff(stored.data), sample.format)


def _all_decode(data: bytes) -> bool:
    """Return whether TensorFlow, too, decodes an image to RGB, which it cannot for a WebP with frames or alpha."""
    return sniff(data) != "webp" or (own_mode(data, "webp") == "RGB" and not is_animated(data, "webp"))


def _build(images: BenchImages, form: Form, threads: int, progress: Progress) -> None:
    is_raw = form == "raw"
    settings = BuildOptions(
        preset="tiny-imagenet" if is_raw else None,
        resize=f"square:{RAW_SIDE}" if is_raw else None,
        recipe="restart" if form == "restart" else None,
        shards=min(_SHARDS, len(images.numbers)),
        threads=threads,
        allow_huge=True,
    ).settings(str(images.path_of("files")))
    report = build_source(open_source(settings), settings, images.path_of(form), progress)
    if report.rejects:  # every file could be decoded when it was written, so it has changed since
        raise SourceError(f"{images.path_of('files') / report.rejects[0].key}: {report.rejects[0].reason}")


# The loader that a configuration file describes: one figure, and nothing to compare it with.


@dataclass(frozen=True, slots=True)
class LoaderSpeed:
    """How fast batches come with the settings of a configuration file."""

    dataset: str
    split: str  # the split that was read
    images_per_second: float  # median over the rounds; images that leave the loader, so each cut-out object counts
    lowest: float  # the slowest round
    highest: float  # the fastest round
    batch_size: int
    shape: tuple[int, ...]  # height, width and channels of an image
    threads: int  # threads that read and decode
    prefetch: int | None  # batches made ahead of the consumer; None: as many as a loader makes by default


def measure_configured(
    path: str | os.PathLike[str],
    split: str | None = None,
    *,
    batch_size: int | None = None,
    threads: int | None = None,
    seconds: float = 1.0,
    rounds: int = 3,
) -> LoaderSpeed:
    """Time the loader that an ``ilsvrc.json`` describes; see `stoker.loader_settings`.

    ``batch_size`` and ``threads`` replace those of the file. A warm-up as long as a round, at most a second, comes
    first. Images that cannot be decoded are replaced by others.
    """
    check_seconds(seconds)
    check_range("--rounds", rounds, 1, 1000)
    settings = loader_settings(path)
    settings |= {} if batch_size is None else {"batch_size": batch_size}
    settings |= {} if threads is None else {"threads": threads}
    dataset = open_main_split(path, split)
    with loader_alone(dataset, **settings) as loader:
        batches = endless(loader)
        shape = next(batches).images.shape[1:]
        meter = Meter(map(len, batches))
        meter.warm_up(seconds)
        speeds = [meter.rate(seconds) for _ in range(rounds)]
        used = loader.stats().threads
    return LoaderSpeed(
        dataset=str(path),
        split=dataset.split,
        images_per_second=statistics.median(speeds),
        lowest=min(speeds),
        highest=max(speeds),
        batch_size=settings["batch_size"],
        shape=shape,
        threads=used,
        prefetch=settings.get("prefetch"),
    )


# One case, in a process of its own: cases share no threads, imports or memory, and are not started again each round.


def batches(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Yield the number of images in each batch of a case, without end."""
    if case.module:
        other: Iterator[int] = importlib.import_module(case.module).batches(spec, images, case)
        return other
    if case.key == LIMIT.key:
        return _codec_alone(spec, images)
    return _with_stoker(spec, images, case) if case.group == "stoker" else _with_pillow(spec, images, case)


def turn(meter: Meter, seconds: float, images: int, cold: list[Path] | None) -> dict[str, Any]:
    """Take one turn; a cold turn is at most one pass over the images, because a second pass would not be cold."""
    meter.lead_in(seconds)
    if cold is None:
        return meter.measure(seconds)
    # Here and not in the process that hands out the turns: the line above has just read some of the files.
    still_cached = drop_from_page_cache(cold)
    return {**meter.measure(seconds, images), "still_cached": still_cached}


def serve(case_json: str, folder: str) -> None:
    """Serve one case until standard input ends: warm up, then take turns; see `stoker.inspect.measuring`."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print must not look like an answer
    case, images = Case(**json.loads(case_json)), BenchImages.read(folder)
    spec = images.spec
    meter = Meter(batches(spec, images, case))
    count = images.read_by(case)
    meter.warm_up(spec.seconds, count if case.keeps else 0)
    cold = images.files_read_by(case) if spec.cold else None
    answers.write("{}\n")
    for line in sys.stdin:
        answers.write(json.dumps(turn(meter, float(line), count, cold)) + "\n")
    os._exit(0)  # a normal exit would wait for threads of libraries, for some of them forever


# Pillow.


def _with_pillow(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Decode, crop, resize, as a user's own code would: one file at a time, in threads, and cached."""
    opened = functools.cache(_decode) if case.keeps else _decode
    transform = spec.crop.native()

    def prepared(numbered: tuple[int, str]) -> NDArray[np.uint8]:
        number, path = numbered
        image = opened(path)
        crop, size, window, is_mirrored, _ = transform.plan(*image.size, SEED, 0, number)
        pixels = np.asarray(image.crop(crop).resize(size, Image.Resampling.BILINEAR).crop(window))
        return pixels[:, ::-1] if is_mirrored else pixels

    order = enumerate(_endless_order(images.files(), shuffled=spec.is_shuffled))
    with ThreadPoolExecutor(spec.threads) as pool:
        apply = map if case.key == "python-serial" else pool.map
        while True:
            np.stack(list(apply(prepared, islice(order, spec.batch_size))))
            yield spec.batch_size


def _decode(path: str) -> Image.Image:
    with Image.open(path) as image:
        return image.convert("RGB")


def _endless_order(paths: list[str], *, shuffled: bool) -> Iterator[str]:
    generator = random.Random(SEED)  # noqa: S311 - an order is not a secret
    while True:
        if shuffled:
            generator.shuffle(paths)
        yield from paths


# Stoker.


def _with_stoker(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Load a form of the images, or the user's data where they lie, with `stoker.Loader`."""
    is_own = case.needs == "own"
    settings = {
        "batch_size": spec.batch_size,
        "transform": spec.crop,
        "decode": "fast" if case.key == "stoker-fast" else "exact",
        "shuffle": spec.is_shuffled,
        "seed": SEED,
        "threads": spec.threads,
        "tail": "wrap",
        "cache": MemoryCache(_CACHE_BUDGET, keep="decoded") if case.keeps else None,
        # Only the user's own data may hold images that cannot be decoded.
        "on_bad": "substitute" if is_own else "raise",
    }
    dataset = images.open_own() if is_own else open_dataset(images.path_of(case.needs), "train")
    with loader_alone(dataset, **settings) as loader:
        yield from map(len, endless(loader))


def _codec_alone(spec: BenchSpec, images: BenchImages) -> Iterator[int]:
    """Decode and resize the regions that the loader decodes, from memory, in the loader's order."""
    dataset = open_dataset(images.path_of("plain"), "train")
    encoded = [dataset[i].encoded for i in range(min(len(dataset), _MOST_OF_CODEC))]
    return decode_endlessly(encoded, spec.crop, spec.threads, _IMAGES_A_RUN, seed=SEED if spec.is_shuffled else None)
