"""Reading some of the user's images, whatever they lie in, as files that can be decoded."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from PIL import Image

from stoker.config import available_cpus
from stoker.errors import StokerError
from stoker.measure.selection import Selection, choose_shards, some_of
from stoker.recipe import Recipe, convert
from stoker.storage import is_remote, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.feed import Dataset, Sample
    from stoker.types import Box, Progress

MOST_IMAGES = 1000
_MOST_ENCODED_BYTES = 200_000_000
_MOST_DECODED_BYTES = 1_500_000_000
_FEWEST_IMAGES = 64
_REMOTE_THREADS = 32
_QUALITY = 90
"""Of raw pixels that are made JPEG files."""


_CHECKED, _RESTART = Recipe(check="decode"), Recipe(restart=True)


@dataclass(frozen=True, slots=True)
class Picked:
    """One image.

    Attributes:
        number: Its number in the split, or in the shards that were chosen.
        encoded: A JPEG file that every reader can decode.
        label: Its class; -1 where there is none.
        boxes: Its annotated objects.
        decoded_bytes: Bytes of its pixels.
        converted: What it was if not such a file.
    """

    number: int
    encoded: bytes
    label: int
    boxes: list[Box]
    decoded_bytes: int
    converted: str | None


class Picker:
    """Reads some of the images of a split, and takes those that can be decoded, by Pillow as well as by Stoker.

    Args:
        dataset: The split.
        path: Path or URL it was opened from.
        most: The most images; None: `MOST_IMAGES`, and fewer where they are large.

    Attributes:
        selection: How those that were taken are found again.
        unreadable: Why others were not.
        converted: How many of each kind were made JPEG files.
    """

    def __init__(self, dataset: Dataset, path: str, most: int | None) -> None:
        self._most, self._is_limited = most or MOST_IMAGES, most is None
        shards = choose_shards(dataset, self._most) if dataset.shards else ()
        self.selection = Selection(path, dataset.split, shards)
        self.unreadable: list[str] = []
        self.converted: Counter[str] = Counter()
        self._part = self.selection.open() if shards else dataset

    def images_read(self, progress: Progress) -> Iterator[Picked]:
        """Read them, in random order; what cannot be read is noted."""
        rows: list[int] = []
        total = min(self._most, len(self._part))
        encoded = decoded = 0
        for count, picked in enumerate(self._read(some_of(len(self._part), total)), 1):
            progress(done=count, total=total, size_bytes=encoded, rejects=len(self.unreadable))
            if isinstance(picked, str):
                self.unreadable.append(picked)
                continue
            encoded, decoded = encoded + len(picked.encoded), decoded + picked.decoded_bytes
            rows.append(picked.number)
            if picked.converted is not None:
                self.converted[picked.converted] += 1
            yield picked
            if self._is_enough(len(rows), encoded, decoded):
                break
        if not self.selection.shards:
            self.selection = replace(self.selection, rows=tuple(sorted(rows)))

    def _is_enough(self, images: int, encoded: int, decoded: int) -> bool:
        if not self._is_limited or images < _FEWEST_IMAGES:
            return False
        return encoded > _MOST_ENCODED_BYTES or decoded > _MOST_DECODED_BYTES

    def _read(self, numbers: list[int]) -> Iterator[Picked | str]:
        threads = _REMOTE_THREADS if is_remote(self.selection.path) else available_cpus()
        todo = iter(numbers)
        with stoppable_pool(threads, "stoker-pick") as pool:
            # A part at a time: what is read lies in memory until it is written.
            while some := list(islice(todo, 2 * threads)):
                yield from pool.map(self._one, some)

    def _one(self, number: int) -> Picked | str:
        where = f"image {number}"
        try:
            sample = self._part[number]
            where = f"image {number} ({sample.source})" if sample.source else where
            is_raw = sample.schema.image_encoding == "raw"
            stored = convert(_as_jpeg(sample) if is_raw else sample.encoded, _CHECKED)
            convert(stored.data, _RESTART)  # whether that can be done, too, which reads it differently
            with Image.open(io.BytesIO(stored.data)) as image:
                image.load()
            boxes = sample.boxes
        # SyntaxError and ValueError: of Pillow, about damaged files.
        except (StokerError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            return f"{where}: {error}"
        converted = "raw tensor" if is_raw else stored.converted
        size = stored.width * stored.height * 3
        return Picked(number, stored.data, sample.label, boxes, size, converted)


def _as_jpeg(sample: Sample) -> bytes:
    made = io.BytesIO()
    Image.fromarray(sample.decode()).save(made, "JPEG", quality=_QUALITY)
    return made.getvalue()
