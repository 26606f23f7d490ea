"""The texts of YOLO's labels: a class and a box or a polygon on each line; and the masks that polygons are drawn to."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from stoker.errors import SourceError
from stoker.sources.coco_masks import CocoMask, DrawnMask
from stoker.sources.reading import read_annotation
from stoker.storage import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

BOX_NUMBERS = 4
"""The numbers of a line that is a box: its centre and its sides; all others are x and y of three points or more."""

_LEAST_POLYGON = 6
_MOST = 1.01  # what other programs round up to and still read


def read_labels(place: bytes, classes: int) -> Iterator[tuple[int, int, list[float]]]:
    """Yield the number of each line of a text, its class and its numbers, fractions of the image's sides.

    Args:
        place: The text, or its URL; without one there is nothing.
        classes: How many classes there are.

    Raises:
        SourceError: A line is damaged, or the file cannot be read.
        StorageError: Its store cannot be reached.
    """
    for number, line in enumerate((read_annotation(place) or b"").split(b"\n"), 1):
        if words := line.split():
            try:
                yield number, *_parse(words, classes)
            except ValueError as error:
                raise damaged_line(place, number, str(error)) from error


def damaged_line(place: bytes, number: int, problem: str) -> SourceError:
    """Return the error of a line."""
    where = os.fsdecode(place)
    return SourceError(f"damaged annotation: {where}, line {number}: {problem}", path=where)


def _parse(words: list[bytes], classes: int) -> tuple[int, list[float]]:
    numbers = [float(word) for word in words[1:]]
    if len(numbers) != BOX_NUMBERS and (len(numbers) < _LEAST_POLYGON or len(numbers) % 2):
        raise ValueError(f"{len(words)} words, not a class and 4 numbers, or 3 or more points")
    label = int(words[0])
    if not 0 <= label < classes:
        raise ValueError(f"there is no class {label}")
    if not all(math.isfinite(number) and 0 <= number <= _MOST for number in numbers):
        raise ValueError("a number is no fraction of the image's sides, from 0 to 1")
    return label, numbers


@dataclass(frozen=True, slots=True)
class YoloMask(DrawnMask):
    """The polygons of an image, of which `draw` makes a mask.

    Attributes:
        place: Their text, or its URL.
        classes: How many classes there are.
    """

    name: ClassVar[str] = "yolo"
    place: bytes
    classes: int

    @classmethod
    def of_cell(cls, source: Any, value: Any, base: bytes) -> Self:
        """Return it, given how many classes there are, and the path of the text."""
        return cls(join(base, os.fsencode(value)), int(source))

    def draw(self, size: tuple[int, int]) -> NDArray[Any]:
        """See `CocoMask.draw`; a number is the class and 1."""
        objects = []
        for number, label, numbers in read_labels(self.place, self.classes):
            if len(numbers) == BOX_NUMBERS:
                raise damaged_line(self.place, number, "a box, but masks are drawn of polygons")
            polygon = [value * size[at % 2] for at, value in enumerate(numbers)]
            objects.append((label + 1, number, f"line {number}", label, [polygon]))
        return CocoMask(os.fsdecode(self.place), *size, objects).draw(size)
