"""What a benchmark says: settings in, figures out."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stoker.config import check_range, check_seconds

if TYPE_CHECKING:
    from stoker.measure.machine import Machine
    from stoker.measure.task import Task, ViewName

Group = Literal["limit", "ladder", "stoker", "rival"]
"""What a row is: the codec alone; a rung of the ladder without Stoker; a way of Stoker's; another project's reader."""

GROUPS: tuple[Group, ...] = ("limit", "ladder", "stoker", "rival")


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """What to measure.

    Attributes:
        dataset: Whatever `stoker.open` understands: a folder of images, a file list, a dataset, TFRecords of other
            origin, or the URL of one.
        split: Its split; None: the only one, or ``train``.
        view: ``train``, ``eval`` or ``objects``; see `stoker.measure.task.Task`.
        batch_size: Images per batch.
        threads: Threads or worker processes of each contender; None: one per CPU.
        seconds: Time per contender and round.
        rounds: Turns each contender takes.
        cold: Whether a contender's files are dropped from the page cache before every measurement.
        images: The most images that are taken of the dataset; None: 1000, and fewer where they are large.
        only: Keys of the rungs to measure, see `stoker.measure.rungs`; empty: all but rivals.
        against: Keys of rivals, or ``all`` of them that are installed.
        keep: Folder for what is prepared, which is kept and used again; None: a temporary one.
    """

    dataset: str
    split: str | None = None
    view: ViewName = "train"
    batch_size: int = 64
    threads: int | None = None
    seconds: float = 1.0
    rounds: int = 3
    cold: bool = False
    images: int | None = None
    only: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    keep: str | None = None

    def __post_init__(self) -> None:
        check_range("rounds", self.rounds, 1, 1000)
        check_range("batch_size", self.batch_size, 1, 2**16)
        check_seconds("seconds", self.seconds, 0.1, 3600)
        if self.threads is not None:
            check_range("threads", self.threads, 1, 4096)
        if self.images is not None:
            check_range("images", self.images, 1, 2**31)


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One contender's figures.

    Attributes:
        name: The contender, for a person.
        group: What kind of contender it is.
        note: One sentence: what it does.
        images_per_second: One figure a round. With ``view="objects"`` these are crops, not files.
        images_per_cpu_second: The same per second of CPU time; empty where the system cannot tell.
        of_limit: Median over the rounds of its speed over the codec's in the same round; None where the codec alone
            was not measured.
        key: What ``--only`` calls it.
    """

    name: str
    group: Group
    note: str
    images_per_second: tuple[float, ...]
    images_per_cpu_second: tuple[float, ...]
    of_limit: float | None
    key: str

    @property
    def median(self) -> float:
        """Median images per second."""
        return statistics.median(self.images_per_second)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A contender that was not measured.

    Attributes:
        key: What ``--only`` calls it.
        name: The contender, for a person.
        group: What kind of contender it would have been.
        reason: Why, in one sentence; of a package that is missing, how it is installed.
        failed: Whether it was to be measured, and failed.
    """

    key: str
    name: str
    group: Group
    reason: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was made for the contenders to read.

    Attributes:
        images: Images that every contender reads.
        samples: What they make of them: crops where the view has one for each object, otherwise as many as images.
        encoded_bytes: Bytes of the images as JPEG files.
        decoded_bytes: Bytes of their pixels.
        written_bytes: Bytes that were written to the scratch folder; 0 where all was there already.
        seconds: How long it took.
        unreadable: Images that were left out, by all, because they cannot be read; the reason of each.
        converted: Images that were no JPEG files, and are read as JPEG: how many of each kind.
    """

    images: int
    samples: int
    encoded_bytes: int
    decoded_bytes: int
    written_bytes: int
    seconds: float
    unreadable: tuple[str, ...]
    converted: dict[str, int]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All figures, the settings, and the machine.

    Attributes:
        task: The work that was measured.
        images: Images in the split.
        seconds: Time per contender and round.
        rounds: Turns each contender took.
        machine: What it ran on.
        rows: Figures of each contender: the limit, the ladder from the bottom, Stoker, rivals.
        left_out: Contenders without figures, and why.
        prepared: The images that all of them read.
        still_cached: Of cold figures, the largest share of the files that was still in the page cache when a
            measurement began, 0..1; None for warm ones.
    """

    task: Task
    images: int
    seconds: float
    rounds: int
    machine: Machine
    rows: tuple[BenchRow, ...]
    left_out: tuple[LeftOut, ...]
    prepared: Prepared
    still_cached: float | None = None
