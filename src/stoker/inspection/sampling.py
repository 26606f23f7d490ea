"""Random samples of a dataset: what their headers say, and small pictures of some."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import StokerError
from stoker.feed.thumbnails import boxes_of, data_uri, sample_thumbnail
from stoker.recipe import dimensions, sniff
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.feed import Dataset, Sample
    from stoker.types import Progress

_AT_ONCE_REMOTE = 16
_THUMBNAIL = 280  # pixels: sharp where a page shows it at half that size on a dense screen
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Seen:
    """A sample that was looked at.

    Attributes:
        split: Its split.
        key: Its number there.
        label: Its class; -1 for none.
        width: Pixels a row; 0 where it is unreadable.
        height: Rows.
        size_bytes: Of its image.
        kind: What it is, such as ``JPEG 4:2:0``.
        source: Name of the image it was made from; empty where unknown.
        problem: Why it is unreadable; empty where it is not.
        is_file: Whether ``source`` is the path of a file.
    """

    split: str
    key: int
    label: int = -1
    width: int = 0
    height: int = 0
    size_bytes: int = 0
    kind: str = ""
    source: str = ""
    problem: str = ""
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What the headers of samples say.

    Attributes:
        seen: All samples that were looked at, in a random order.
        whole: Whether these are all there are.
    """

    seen: tuple[Seen, ...]
    whole: bool

    @property
    def readable(self) -> tuple[Seen, ...]:
        """Those without a problem."""
        return tuple(one for one in self.seen if not one.problem)

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one number of each readable sample: ``width``, ``height`` or ``size_bytes``."""
        return np.array([getattr(one, name) for one in self.readable], np.float64)

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """What the images are, the most frequent first."""
        return Counter(one.kind for one in self.readable).most_common()


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small picture of a sample.

    Attributes:
        uri: The picture, as a ``data:`` URI; empty where there is none.
        width: Its pixels a row.
        height: Its rows.
        title: What it shows, in a few words.
        details: More about it, a line each.
        problem: Why there is no picture.
    """

    uri: str
    width: int
    height: int
    title: str
    details: tuple[str, ...]
    problem: str = ""


def spread(opened: Mapping[str, Dataset], most: int, seed: int) -> list[tuple[str, int]]:
    """Return (split, number) of random samples of all splits: all of them, in a random order, where they are few."""
    names, sizes = list(opened), [len(one) for one in opened.values()]
    total = sum(sizes)
    drawn = _native.permute(0, min(most, total), total, seed, 0).astype(np.int64) if total else np.empty(0, np.int64)
    ends = np.array(list(accumulate(sizes)), np.int64)
    which = np.searchsorted(ends, drawn, side="right")
    starts = ends - np.array(sizes, np.int64)
    return [(names[part], int(number - starts[part])) for part, number in zip(which, drawn, strict=True)]


def measure(
    opened: Mapping[str, Dataset], places: Sequence[tuple[str, int]], progress: Progress | None = None
) -> Measured:
    """Look at samples, several at a time; those that cannot be read have a problem."""
    remote = any(one.remote is not None for one in opened.values())
    seen: list[Seen] = []
    read = bad = 0
    with stoppable_pool(_AT_ONCE_REMOTE if remote else available_cpus(), "stoker-look") as pool:
        for first in range(0, len(places), _BATCH):
            seen += pool.map(lambda place: _look(opened[place[0]], place[1]), places[first : first + _BATCH])
            read += sum(one.size_bytes for one in seen[first:])
            bad += sum(bool(one.problem) for one in seen[first:])
            if progress is not None:
                progress(done=len(seen), total=len(places), size_bytes=read, rejects=bad)
    return Measured(tuple(seen), whole=len(places) == sum(map(len, opened.values())))


def _look(dataset: Dataset, key: int) -> Seen:
    split = dataset.split
    try:
        sample = dataset[key]
        width, height, kind = _header(sample)
    except (StokerError, OSError) as error:
        where, record, offset = dataset.records.where(key)
        place = f"{where}, record {record} at byte {offset}" if dataset.shards else where
        return Seen(split, key, source=place, problem=str(error), is_file=not dataset.shards)
    return Seen(split, key, sample.label, width, height, len(sample.encoded), kind, sample.source)


def _header(sample: Sample) -> tuple[int, int, str]:
    """Return width, height and kind of an image, as its header says.

    Raises:
        StokerError: It has none that can be read, or a JPEG is cut short.
    """
    if sample.schema.image_encoding == "raw":
        height, width = sample.decode().shape[:2]
        return width, height, "raw pixels"
    kind = sniff(sample.encoded)
    if kind != "jpeg":
        return *dimensions(sample.encoded, kind), kind.upper()
    info = _native.check_jpeg(sample.encoded)
    words = ["progressive"] * info.progressive + ["with restart markers"] * bool(info.restart_interval)
    color = {"grey": "grey", "ycbcr": info.subsampling}.get(info.color, info.color.upper())
    return info.width, info.height, ", ".join([f"JPEG {color}", *words])


def draw_strip(opened: Mapping[str, Dataset], shown: Sequence[Seen]) -> tuple[Thumbnail, ...]:
    """Return small pictures of samples; one that cannot be decoded says why."""
    return tuple(_thumbnail(opened[one.split], one) for one in shown)


def _thumbnail(dataset: Dataset, one: Seen) -> Thumbnail:
    title = class_title(dataset, one.label)
    place, extent = f"{one.split} #{one.key}", f"{one.width} \N{MULTIPLICATION SIGN} {one.height}"
    try:
        sample = dataset[one.key]
        picture = sample_thumbnail(sample, _THUMBNAIL)
        boxes = len(list(boxes_of(sample)))
    except (StokerError, OSError) as error:
        return Thumbnail("", 0, 0, title, (place, extent), str(error))
    extent += f" · {boxes} box{'es' * (boxes > 1)}" * bool(boxes)
    return Thumbnail(data_uri(picture), *picture.size, title, (place, extent))


def class_title(dataset: Dataset, label: int) -> str:
    """Return what a class is called: its first words, else its name, else its number."""
    if not 0 <= label < len(dataset.classes):
        return f"label {label}" if label >= 0 else "no label"
    known = dataset.classes[label]
    return known.text.split(",")[0].strip() or known.name
