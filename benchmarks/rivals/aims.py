"""What Stoker is to be ahead of, and by how much: each aim is one ratio of one line, per second or per CPU second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.rivals.environments import BEFORE, OURS
from benchmarks.rivals.figures import Per, Spread, by_speed, find, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.rivals.contest import Row

BEST = "the best rival on the same bytes"


@dataclass(frozen=True, slots=True)
class Aim:
    """One ratio.

    Attributes:
        line: The line.
        form: Stoker's form on it.
        against: Key of a row, or `BEST`.
        times: The ratio to reach.
        per: Of images per second, or per second of CPU time.
    """

    line: str
    form: str
    against: str
    times: float
    per: Per = "seconds"


AIMS = (
    Aim("train", "original", BEST, 1.25),
    Aim("train", "original-fast", BEST, 1.35),
    Aim("train", "restart", BEST, 1.6),
    Aim("train", "restart-fast", BEST, 1.75),
    Aim("train", "rebuilt500", "ffcv:500_raw", 1.35),
    Aim("train", "rebuilt500", "ffcv:500_50_90", 2.0),
    Aim("train", "rebuilt500-fast", "ffcv:500_raw", 1.45),
    Aim("train", "raw500", "ffcv:500_raw", 1.2),
    Aim("eval", "original", BEST, 1.1),
    Aim("eval", "original-fast", BEST, 1.3),
    Aim("eval", "restart", BEST, 1.35),
    Aim("eval", "restart-fast", BEST, 1.6),
    Aim("raw", "raw64", "ffcv:raw64", 1.2),
    Aim("raw", "raw64", "dali:tfrecord", 4.0),
    Aim("raw", "raw64", "tf_data:tuned", 8.0),
    Aim("keep", "exact", "webdataset:tar", 1.1),
    Aim("keep", "exact", "tf_data:plain", 1.6),
    Aim("small", "exact", BEST, 1.3),
    Aim("small", "fast", BEST, 1.6),
    Aim("scan", "scan", "stoker:copy", 0.7),
    Aim("png", "files", "pytorch:pillow", 2.0, "cpu_seconds"),
    Aim("png", "files", BEST, 1.0, "cpu_seconds"),
    Aim("webp", "files", "pytorch:pillow", 1.4, "cpu_seconds"),
    Aim("webp", "files", BEST, 1.0, "cpu_seconds"),
    Aim("progressive", "files", "pytorch:simplejpeg", 1.6, "cpu_seconds"),
    *(
        Aim(line, form, against, times, "cpu_seconds")
        for line in ("camera", "dense", "camera-progressive", "dense-progressive")
        for form, against, times in (
            ("files", "pytorch:simplejpeg", 1.4),
            ("files-fast", "pytorch:simplejpeg", 3.5),
            ("files-fast", BEST, 1.0),
        )
    ),
    Aim("thumbnails", "files", "torchvision:imagefolder", 3.0, "cpu_seconds"),
    Aim("thumbnails", "files", "torchvision:imagefolder-workers", 3.0, "cpu_seconds"),
)
OF_LIMIT, OF_LIMIT_FAST = 0.97, 0.95
MOST_MEMORY_MB = 300.0


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of an aim.

    Attributes:
        line: The line.
        ours: Title of Stoker's row.
        against: Title of the other.
        aim: The ratio to reach.
        wall: Ratio of images per second.
        cpu: Ratio of images per CPU second.
        per: Which of them counts.
    """

    line: str
    ours: str
    against: str
    aim: float
    wall: Spread
    cpu: Spread
    per: Per

    @property
    def is_met(self) -> bool:
        """Whether the median reaches it."""
        return (self.wall if self.per == "seconds" else self.cpu).median >= self.aim


def best_rival(rows: Sequence[Row], per: Per = "seconds") -> Row | None:
    """The fastest that reads, or writes, what all others do, and is not Stoker."""
    rivals = (row for row in by_speed(rows, per) if row.entry.rival not in (OURS, BEFORE))
    others = (row for row in rivals if row.turns and not row.entry.stores)
    return next(others, None)


def reached(lines: dict[str, list[Row]]) -> list[Reached]:
    """Every aim of which both sides were measured."""
    pairs: list[tuple[str, Row | None, Row | None, float, Per]] = []
    for aim in AIMS:
        rows = lines.get(aim.line, [])
        other = best_rival(rows, aim.per) if aim.against == BEST else find(rows, aim.against)
        pairs.append((aim.line, find(rows, f"{OURS}:{aim.form}"), other, aim.times, aim.per))
    for line, rows in lines.items():
        for row in rows:
            if row.entry.limit is not None:
                share = OF_LIMIT_FAST if row.entry.form.endswith("-fast") else OF_LIMIT
                pairs.append((line, row, find(rows, row.entry.limit), share, "seconds"))
    return [
        Reached(line, ours.entry.title, other.entry.title, times, wall, cpu, per)
        for line, ours, other, times, per in pairs
        if ours is not None
        and other is not None
        and (wall := ratio(ours, other)) is not None
        and (cpu := ratio(ours, other, "cpu_seconds")) is not None
    ]


def most_memory(lines: dict[str, list[Row]]) -> tuple[str, float] | None:
    """Which of Stoker's readers needed most memory, in MB; the codec alone holds all images and does not count."""
    readers = [
        (row.entry.title, row.peak_mb)
        for rows in lines.values()
        for row in rows
        if row.turns and row.entry.rival == OURS and row.entry.program == "read" and "-codec" not in row.entry.form
    ]
    return max(readers, key=lambda reader: reader[1], default=None)
