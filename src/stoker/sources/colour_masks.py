"""Masks in colours, and the lists beside them that say which class each colour is.

``labelmap.txt`` of CVAT and Datumaro counts the background as 0 and the other classes from 1 on, in the order of its
lines; ``class_dict.csv`` and CamVid's ``label_colors.txt`` count their lines from 0. Pascal VOC has colours of its own.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from stoker.errors import ImageError, SourceError
from stoker.fields import Mask
from stoker.recipe import Recipe, is_coloured, mask_colours
from stoker.sources.drawn_masks import DrawnMask
from stoker.sources.reading import nonblank_lines, read_annotation
from stoker.storage import Location, join

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray


LABEL_MAP, BACKGROUND = "labelmap.txt", b"background"

EXAMPLES = {LABEL_MAP: "cat:250,50,83::", "class_dict.csv": "cat,250,50,83", "label_colors.txt": "250 50 83 cat"}
"""Lists of classes and colours, and what a line of each is."""
_MOST = 2**16
_VOC_CLASSES, _VOC_VOID = 21, (224, 224, 192, 255)


@dataclass(frozen=True, slots=True)
class Colours:
    """Which number in a mask each colour is."""

    where: str  # what says so
    rows: Sequence[Sequence[int]]  # red, green, blue and the number of each

    @property
    def mask(self) -> Mask:
        """The field of these masks."""
        return Mask(8 if max(number for *_, number in self.rows) < 2**8 else 16)

    @property
    def drawn(self) -> tuple[str, Any]:
        """How `Cells` have them drawn."""
        return ColouredMask.name, [self.where, self.rows]


def are_coloured(masks: Iterable[Location]) -> bool:
    """Return whether the first mask that can be read has colours."""
    for mask in masks:
        with contextlib.suppress(ImageError, SourceError):
            return is_coloured(read_annotation(mask.to_uri()) or b"", Recipe().check_pixels)
    return False


def read_label_map(folders: Iterable[Location]) -> list[bytes] | None:
    """Return the classes that CVAT's ``labelmap.txt`` names, without the background; None where no folder has one."""
    place = _first_list(folders, (LABEL_MAP,))
    if place is None:
        return None
    names = [name for _, _, name, _ in _class_lines(place) if name != BACKGROUND]
    if len({*names}) < len(names):
        raise SourceError(f"{place} names a class twice; mend it", path=str(place))
    return names


def _first_list(folders: Iterable[Location], names: Collection[str]) -> Location | None:
    places = (folder / name for folder in folders for name in names)
    return next((place for place in places if place.is_file()), None)


def _class_lines(place: Location) -> Iterator[tuple[int, bytes, bytes, tuple[int, ...]]]:
    """Yield the number and the text of each line but comments, and what `_parsed` returns of it."""
    for number, line in nonblank_lines(place):
        if not line.startswith(b"#"):
            yield number, line, *_parsed(place.name, line.strip())


def read_colours(folders: Iterable[Location]) -> Colours | None:
    """Return what the first list in some folders says; None without one."""
    place = _first_list(folders, EXAMPLES)
    if place is None:
        return None
    example = EXAMPLES[place.name]
    classes: dict[tuple[int, ...], bytes] = {}
    for number, line, name, colour in _class_lines(place):
        if not colour and number == 1 and place.suffix == ".csv":
            continue
        if not colour or colour in classes:
            problem = f"has the colour of {os.fsdecode(classes[colour])!r}" if colour in classes else "has no colour"
            message = f"{place}, line {number}: {os.fsdecode(line[:200])!r} {problem}; write lines such as {example!r}"
            raise SourceError(message, path=str(place))
        classes[colour] = name
    if classes and place.name == LABEL_MAP:
        background = next((colour for colour, name in classes.items() if name == BACKGROUND), (0, 0, 0))
        classes = {background: BACKGROUND, **classes}
    if not 0 < len(classes) <= _MOST:
        message = f"{place} names {len(classes):,} classes, not 1 to {_MOST:,}; write lines such as {example!r}"
        raise SourceError(message, path=str(place))
    return Colours(str(place), [(*colour, number) for number, colour in enumerate(classes)])


def _parsed(kind: str, line: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Return the class and the colour of a line; no colour where it has none."""
    if kind == LABEL_MAP:
        name, _, rest = line.partition(b":")
        words = rest.partition(b":")[0].split(b",")
    elif EXAMPLES[kind].startswith("cat"):
        name, *words = line.split(b",")
    else:
        *words, name = [*line.split(maxsplit=3), b"", b"", b"", b""][:4]
    numbers = [int(word) for each in words if (word := each.strip()).isdigit() and len(word) < 4]
    is_colour = name and len(words) == len(numbers) == 3 and max(numbers) < 256
    return name.strip(), tuple(numbers) if is_colour else ()


def voc_colours() -> Colours:
    """Return the colours of Pascal VOC's own classes, and of its void."""
    rows = [
        (*(sum((number >> 3 * bit + channel & 1) << 7 - bit for bit in range(8)) for channel in range(3)), number)
        for number in range(_VOC_CLASSES)
    ]
    return Colours(f"Pascal VOC's own, and there is no {LABEL_MAP}", [*rows, _VOC_VOID])


@dataclass(frozen=True, slots=True)
class ColouredMask(DrawnMask):
    """A file whose colours are classes, of which `draw` makes a mask."""

    name: ClassVar[str] = "colours"
    place: bytes  # the file, or its URL
    colours: Colours  # which number each colour is

    @classmethod
    def of_cell(cls, source: Any, value: Any, base: bytes) -> Self:
        """Return it, given what `Colours` have, and the path of the file."""
        return cls(join(base, os.fsencode(value)), Colours(*source))

    @classmethod
    def digested(cls, source: Any) -> bytes:
        """Return the colours and their numbers."""
        return repr([tuple(row) for row in source[1]]).encode()

    def draw(self, size: tuple[int, int]) -> NDArray[Any]:
        """See `DrawnMask.draw`; of a palette or of grey pixels the colours count, too."""
        where = os.fsdecode(self.place)

        def check_size(width: int, height: int) -> None:
            if (width, height) != size:
                message = f"{where} has {width}x{height} pixels, but its image {size[0]}x{size[1]}"
                raise SourceError(f"{message}; they must be equally large", path=where)

        data = read_annotation(self.place)
        if data is None:
            raise SourceError(f"{where}: No such file or directory", path=where)
        pixels = mask_colours(data, check_size).astype(np.uint32)
        codes = pixels[:, :, 0] << 16 | pixels[:, :, 1] << 8 | pixels[:, :, 2]
        known, numbers = np.array(sorted((r << 16 | g << 8 | b, number) for r, g, b, number in self.colours.rows)).T
        places = np.searchsorted(known, codes).clip(max=len(known) - 1)
        wrong = np.flatnonzero(known[places] != codes)
        if len(wrong):
            y, x = divmod(int(wrong[0]), pixels.shape[1])
            message = f"{where} has the colour {','.join(map(str, pixels[y, x]))} at x={x}, y={y}"
            raise SourceError(f"{message}, which is none of {self.colours.where}", path=where)
        ids: NDArray[Any] = numbers[places].astype(f"uint{self.colours.mask.bits}")
        return ids
