"""What a benchmark measures: its settings, the ways to read images that it compares, and which of them apply.

The ladder goes from the simplest way upwards, each case one step more than the one before. Beside it stand the codec
alone, which is the limit, and Stoker's own ways. ``make bench`` adds the steps of tf.data, ``make bench-rivals``
compares other libraries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

from stoker.config import available_cpus, check_range
from stoker.errors import ConfigError
from stoker.inspect.measuring import ReadSpec
from stoker.storage import location

if TYPE_CHECKING:
    from stoker.loader import Dataset

Group = Literal["limit", "ladder", "stoker"]
"""What a case is: the codec alone; a step of the ladder, without Stoker; one of Stoker's ways."""

Form = Literal["files", "plain", "raw", "restart", "own"]
"""What a case reads: a form of the prepared images, or ``own``: the user's data where they lie."""

SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
SEED = 17
RAW_SIDE = 256
"""Height and width of the tensors that raw records hold."""


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
    module: str = ""  # the module whose ``batches`` reads in this way; empty: `stoker.inspect.bench.reading`


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
