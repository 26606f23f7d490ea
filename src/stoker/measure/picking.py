"""Reading some of the user's images, whatever they lie in, as files that can be decoded."""

from __future__ import annotations

import io
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from PIL import Image

from stoker.config import available_cpus
from stoker.errors import StokerError
from stoker.measure.selection import Selection, choose_shards, some_of
from stoker.storage import is_remote

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


@dataclass(frozen=True, slots=True)
class Picked:
    """One image.

    Attributes:
        number: Its number in the split, or in the shards that were chosen.
        encoded: An image file.
        label: Its class; -1 where there is none.
        boxes: Its annotated objects.
        decoded_bytes: Bytes of its pixels; 0 if it does not say how large it is.
        was_raw: Whether it was pixels, of which a JPEG was made.
    """

    number: int
    encoded: bytes
    label: int
    boxes: list[Box]
    decoded_bytes: int
    was_raw: bool


@dataclass
class Picking:
    """The images that were read.

    Attributes:
        selection: How they are found again.
        unreadable: Why some could not be read.
        converted: Raw tensors that were made JPEG files.
    """

    selection: Selection
    unreadable: list[str] = field(default_factory=list)
    converted: Counter[str] = field(default_factory=Counter)


class Picker:
    """Reads some of the images of a split.

    Args:
        dataset: The split.
        path: Path or URL it was opened from.
        most: The most images; None: `MOST_IMAGES`, and fewer where they are large.
    """

    def __init__(self, dataset: Dataset, path: str, most: int | None) -> None:
        self._most, self._is_limited = most or MOST_IMAGES, most is None
        shards = choose_shards(dataset, self._most) if dataset.shards else ()
        self._part = Selection(path, dataset.split, shards).open() if shards else dataset
        self.picking = Picking(Selection(path, dataset.split, shards))

    @property
    def images(self) -> int:
        """The most that will be read."""
        return min(self._most, len(self._part))

    def images_read(self, progress: Progress) -> Iterator[Picked]:
        """Read them, in random order; what cannot be read is noted."""
        rows: list[int] = []
        encoded = decoded = 0
        for count, picked in enumerate(self._read(some_of(len(self._part), self._most)), 1):
            if isinstance(picked, str):
                self.picking.unreadable.append(picked)
                continue
            encoded, decoded = encoded + len(picked.encoded), decoded + picked.decoded_bytes
            rows.append(picked.number)
            self.picking.converted["raw"] += picked.was_raw
            progress(done=count, total=self.images, size_bytes=encoded, rejects=len(self.picking.unreadable))
            yield picked
            if self._is_enough(len(rows), encoded, decoded):
                break
        if not self.picking.selection.shards:
            self.picking.selection = Selection(self._part.path, self._part.split, rows=tuple(sorted(rows)))

    def _is_enough(self, images: int, encoded: int, decoded: int) -> bool:
        if not self._is_limited or images < _FEWEST_IMAGES:
            return False
        return encoded > _MOST_ENCODED_BYTES or decoded > _MOST_DECODED_BYTES

    def _read(self, numbers: list[int]) -> Iterator[Picked | str]:
        threads = _REMOTE_THREADS if is_remote(self.picking.selection.path) else available_cpus()
        todo = iter(numbers)
        with ThreadPoolExecutor(threads) as pool:
            # A part at a time: what is read lies in memory until it is written.
            while some := list(islice(todo, 2 * threads)):
                yield from pool.map(self._one, some)

    def _one(self, number: int) -> Picked | str:
        try:
            sample = self._part[number]
            is_raw = sample.schema.image_encoding == "raw"
            encoded = _as_jpeg(sample) if is_raw else sample.encoded
            return Picked(number, encoded, sample.label, sample.boxes, _decoded_bytes(encoded), is_raw)
        except (StokerError, OSError) as error:
            return f"image {number}: {error}"


def _as_jpeg(sample: Sample) -> bytes:
    made = io.BytesIO()
    Image.fromarray(sample.decode()).save(made, "JPEG", quality=_QUALITY)
    return made.getvalue()


def _decoded_bytes(encoded: bytes) -> int:
    try:
        with Image.open(io.BytesIO(encoded)) as image:
            return image.width * image.height * 3
    except (OSError, ValueError, Image.DecompressionBombError):  # whoever decodes it says what is wrong with it
        return 0
