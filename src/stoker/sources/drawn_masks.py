"""Masks that are drawn from polygons, from COCO's run-length encoding (RLE), or from files in colours.

pycocotools turns polygons into runs of pixels. It checks nothing, and crashes on coordinates that are too large, so all
its input is checked here. RLE is decoded here, without it.

docs/reference/images.md says which lists have the class of each colour; Pascal VOC has colours of its own.
"""

from __future__ import annotations

import contextlib
import os
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from stoker.config import format_count, option
from stoker.errors import ConfigError, ImageError, SourceError
from stoker.fields import Mask
from stoker.recipe import Recipe, is_coloured, mask_colours
from stoker.sources.files import first_file, nonblank_lines, read_annotation, text_of
from stoker.storage import Location, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import ModuleType

    from numpy.typing import NDArray

LABEL_MAP, BACKGROUND = "labelmap.txt", b"background"

EXAMPLES = {LABEL_MAP: "cat:250,50,83::", "class_dict.csv": "cat,250,50,83", "label_colors.txt": "250 50 83 cat"}
"""Lists of classes and colours, and an example of a line of each."""

_MAX_PIXELS = 2**31 - 1  # pycocotools counts pixels in 32 bits
_MAX_COORDINATE = 2.0**27  # pycocotools counts fifths of pixels in signed 32 bits
_MAX_POLYGON_EDGE = 2**20  # pixels; pycocotools takes 80 bytes for each
_MAX_EDGES = 2**24  # pixels of all polygons of an image
_MIN_NUMBERS = 6  # of a polygon
_MAX_CLASSES = 2**16 - 1
_MAX_CHARACTERS = 7  # of a number of RLE: 35 bits
_FIRST_CHARACTER = 48
_NO_CHARACTER = re.compile("[^0-o]")
_MOST_COLOURS, _SHOWN_ELEMENTS = 2**16, 4
_VOC_CLASSES, _VOC_VOID = 21, (224, 224, 192, 255)


class DrawnMask(ABC):
    """A mask that is drawn when it is needed, in place of a file of class ids.

    Attributes:
        name: Its name in saved listings.
        kinds: All subclasses, by name.
    """

    name: ClassVar[str]
    kinds: ClassVar[dict[str, type[DrawnMask]]] = {}

    def __init_subclass__(cls) -> None:
        DrawnMask.kinds[cls.name] = cls

    @classmethod
    @abstractmethod
    def of_cell(cls, source: Any, value: Any, base: bytes) -> Self:
        """Return the mask of an image, given what all masks share, its own value, and the folder of the source."""

    @classmethod
    def digested(cls, source: Any) -> bytes:  # noqa: ARG003 - most sources are told apart by the values of images
        """Return the part of what all masks of a source share that its fingerprint depends on."""
        return cls.name.encode()

    @abstractmethod
    def draw(self, size: tuple[int, int]) -> NDArray[Any]:
        """Return the number of each pixel: uint8 or uint16 (H, W), 0 where no object is.

        Args:
            size: Width and height of the image: no memory is allocated for a mask of another size.
        """


@dataclass(frozen=True, slots=True)
class CocoMask(DrawnMask):
    """The objects of one image in a COCO file, from which `draw` makes a mask."""

    name: ClassVar[str] = "coco"
    where: str  # the file
    width: Any  # of the image in pixels, as the file has it: any value of JSON
    height: Any  # the same
    # a list for each annotation: its number in the mask, or 0 if its category is unknown; its number in the file; its
    # ``id``, ``category_id`` and ``segmentation``, which may be any values of JSON
    objects: Sequence[Any]

    @classmethod
    def of_cell(cls, source: Any, value: Any, base: bytes) -> Self:  # noqa: ARG003 - as all `DrawnMask`
        """Return the mask, given the files, and its width, its height, its objects and the number of its file."""
        width, height, objects, *number = value
        return cls(str(source[number[0]] if number else source), width, height, objects)

    @classmethod
    def digested(cls, source: Any) -> bytes:  # noqa: ARG003 - as all `DrawnMask`
        return b""

    def draw(self, size: tuple[int, int]) -> NDArray[Any]:
        """See `DrawnMask.draw`.

        Where objects overlap, the one with fewer pixels counts; if they have equally many, the later one in the file.
        """
        width, height = size
        if type(self.width) is not int or type(self.height) is not int or (self.width, self.height) != size:
            problem = f"the width of the image is {shown(self.width)}, its height {shown(self.height)}"
            raise SourceError(f"{self.where}: {problem}, but it has {width}x{height} pixels", path=self.where)
        if width * height > _MAX_PIXELS:
            raise SourceError(f"{width}x{height} pixels are more than a mask can have, {_MAX_PIXELS}")
        shapes = self._shapes()
        highest = max((number for _, number, _ in shapes), default=0)
        flat = np.zeros(width * height, np.uint8 if highest < 2**8 else np.uint16)  # column by column
        for _, number, ends in sorted(shapes, key=lambda shape: -shape[0]):
            for start, end in zip(ends[::2].tolist(), ends[1::2].tolist(), strict=False):
                flat[start:end] = number
        return np.ascontiguousarray(flat.reshape(width, height).T)

    def _shapes(self) -> list[tuple[int, int, NDArray[np.int64]]]:
        """Return the size in pixels of each object, its number, and where its runs of pixels begin and end, in turn."""
        shapes = []
        edges = 0.0
        for number, position, id_, category, segmentation in self.objects:
            where = f"{self.where}: annotations[{position}] with the id {shown(id_)}"
            if not number:
                raise SourceError(f"{where}: category_id is {shown(category)}, which no category has", path=self.where)
            try:
                if isinstance(segmentation, list):
                    polygons = _polygons(segmentation)
                    edges += _checked_length(polygons)
                    if edges > _MAX_EDGES:
                        raise ValueError(f"the polygons of its image are longer than {_MAX_EDGES} pixels together")
                    drawn = _pycocotools_mask().frPyObjects(polygons, self.height, self.width)
                    lengths = _numbers(_pycocotools_mask().merge(drawn)["counts"])
                else:
                    lengths = self._lengths_of_rle(segmentation)
            except ValueError as error:
                raise SourceError(f"{where}: segmentation: {error}", path=self.where) from error
            shapes.append((int(lengths[1::2].sum()), number, lengths.cumsum()))
        return shapes

    def _lengths_of_rle(self, rle: object) -> NDArray[np.int64]:
        """Return the lengths of the runs of RLE; ``ValueError`` if it does not fit the image."""
        if not isinstance(rle, dict) or not {"size", "counts"} <= rle.keys():
            raise ValueError(f"it is {shown(rle)}, neither a list of polygons nor size and counts")
        size, counts = rle["size"], rle["counts"]
        if size != [self.height, self.width] or any(type(side) is not int for side in size):
            raise ValueError(f"size is {shown(size)}, but the image has the height {self.height}, width {self.width}")
        if isinstance(counts, str):
            if wrong := _NO_CHARACTER.search(counts):
                raise ValueError(f"counts have the character {wrong[0]!r} at {wrong.start()}")
            numbers = _numbers(counts.encode())
        elif isinstance(counts, list) and all(type(count) is int and 0 <= count <= _MAX_PIXELS for count in counts):
            numbers = np.array(counts, np.int64)
        else:
            raise ValueError(f"counts are {shown(counts)}, neither a text nor a list of whole numbers of pixels")
        pixels = self.width * self.height
        if numbers.size and not 0 <= numbers.min() <= numbers.max() <= pixels:
            raise ValueError(f"a count is {numbers.min() if numbers.min() < 0 else numbers.max()}, of {pixels} pixels")
        if numbers.sum() != pixels:
            raise ValueError(f"counts add up to {numbers.sum()}, but the image has {pixels} pixels")
        return numbers


def _pycocotools_mask() -> ModuleType:
    try:
        from pycocotools import mask  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigError(f"no module {error.name!r}; run pip install 'stoker[coco]'") from error
    return mask  # type: ignore[no-any-return]


def drawn_mask(path: Location, classes: int, what: str) -> Mask:
    """Return the field of drawn masks, whose values are 0 and a number for each class."""
    _pycocotools_mask()
    if classes > _MAX_CLASSES:
        message = f"{path} has {classes} {what}; masks have {_MAX_CLASSES} at most"
        raise ConfigError(f"{message}; omit {option('masks')}")
    return Mask(8 if classes < 2**8 else 16)


def is_drawn(segmentation: object) -> bool:
    """Return whether an annotation has something to draw, or something damaged; pycocotools fails without."""
    return bool(_polygons(segmentation)) if isinstance(segmentation, list) else segmentation is not None


def _polygons(segmentation: list[Any]) -> list[Any]:
    """Return the elements without points and lines, for which pycocotools draws no pixel."""
    return [each for each in segmentation if not isinstance(each, list) or len(each) >= _MIN_NUMBERS]


def is_side(value: object) -> bool:
    """Return whether a value can be the width or the height of an image."""
    return type(value) is int and 0 < value < 2**31


def shown(value: object) -> str:
    """Return a value of JSON for a message, cut short."""
    if isinstance(value, dict) or (isinstance(value, list) and len(value) > _SHOWN_ELEMENTS):
        return f"{type(value).__name__} of {format_count(len(value), 'element')}"
    return "missing" if value is None else repr(value)[:60]


def _checked_length(polygons: list[Any]) -> float:
    """Return the total length of the edges of polygons in pixels; ``ValueError`` if one is not a polygon."""
    if not polygons:
        raise ValueError("it has no polygon")
    total = 0.0
    for number, polygon in enumerate(polygons):
        if not isinstance(polygon, list) or len(polygon) % 2:
            message = f"polygon {number} is {shown(polygon)}"
            raise ValueError(f"{message}, not x and y of three points or more")
        if not set(map(type, polygon)) <= {int, float}:
            wrong = next(coordinate for coordinate in polygon if type(coordinate) not in (int, float))
            raise ValueError(f"polygon {number} has {shown(wrong)} among its coordinates")
        far = [coordinate for coordinate in polygon if not -_MAX_COORDINATE < coordinate < _MAX_COORDINATE]
        if far:
            raise ValueError(f"polygon {number} has the coordinate {shown(far[0])}, too far outside the image")
        points = np.array(polygon, np.float64).reshape(-1, 2)
        length = float(np.abs(points - np.roll(points, -1, axis=0)).max(axis=1).sum())
        if length > _MAX_POLYGON_EDGE:
            raise ValueError(f"polygon {number} is longer than {_MAX_POLYGON_EDGE} pixels")
        total += length
    return total


def _numbers(characters: bytes) -> NDArray[np.int64]:
    """Return the numbers of compressed RLE: each is in groups of 5 bits, the last of which has its sign.

    From the fourth on they are differences to the number before the last.
    """
    codes = np.frombuffer(characters, np.uint8).astype(np.int64) - _FIRST_CHARACTER
    ends = np.flatnonzero((codes & 0x20) == 0)
    if not len(codes):
        return codes
    if not len(ends) or ends[-1] != len(codes) - 1:
        raise ValueError("counts end within a number")
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if lengths.max() > _MAX_CHARACTERS:
        raise ValueError(f"counts have a number of {lengths.max()} characters")
    shifts = 5 * (np.arange(len(codes)) - np.repeat(starts, lengths))
    numbers = np.add.reduceat((codes & 0x1F) << shifts, starts)
    numbers -= np.where(codes[ends] & 0x10, np.int64(1) << (5 * lengths), 0)
    numbers[1::2] = numbers[1::2].cumsum()
    numbers[2::2] = numbers[2::2].cumsum()
    return numbers


@dataclass(frozen=True, slots=True)
class Colours:
    """The number in a mask that each colour stands for."""

    where: str  # where they come from, for messages
    rows: Sequence[Sequence[int]]  # red, green, blue and the number of each

    @property
    def mask(self) -> Mask:
        """The field of these masks."""
        return Mask(8 if max(number for *_, number in self.rows) < 2**8 else 16)

    @property
    def drawn(self) -> tuple[str, Any]:
        """The value of ``drawn`` in `Cells` for these masks."""
        return ColouredMask.name, [self.where, self.rows]


def are_coloured(masks: Iterable[Location]) -> bool:
    """Return whether the first mask that can be read has colours."""
    for mask in masks:
        with contextlib.suppress(ImageError, SourceError):
            return is_coloured(read_annotation(mask.to_uri()) or b"", Recipe().check_pixels)
    return False


def read_mask_classes(folders: Iterable[Location]) -> list[bytes] | None:
    """Return the classes that CVAT's ``labelmap.txt`` names, without the background; None where no folder has one."""
    path = first_file(folders, (LABEL_MAP,))
    if path is None:
        return None
    names = [name for _, _, name, _ in _class_lines(path) if name != BACKGROUND]
    if len({*names}) < len(names):
        raise SourceError(f"{path} names a class twice; mend it", path=str(path))
    return names


def _class_lines(path: Location) -> Iterator[tuple[int, bytes, bytes, tuple[int, ...]]]:
    for number, line in nonblank_lines(path):
        if not line.startswith(b"#"):
            text_of(path, number, line)
            yield number, line, *_parsed(path.name, line.strip())


def read_colours(folders: Iterable[Location]) -> Colours | None:
    """Return the colours in the first list of some folders; None without a list."""
    path = first_file(folders, EXAMPLES)
    if path is None:
        return None
    example = EXAMPLES[path.name]
    classes: dict[tuple[int, ...], bytes] = {}
    for number, line, name, colour in _class_lines(path):
        if not colour and number == 1 and path.suffix == ".csv":
            continue
        if not colour or colour in classes:
            problem = f"has the colour of {os.fsdecode(classes[colour])!r}" if colour in classes else "has no colour"
            message = f"{path}, line {number}: {os.fsdecode(line[:200])!r} {problem}; write lines such as {example!r}"
            raise SourceError(message, path=str(path))
        classes[colour] = name
    if classes and path.name == LABEL_MAP:
        background = next((colour for colour, name in classes.items() if name == BACKGROUND), (0, 0, 0))
        classes = {background: BACKGROUND, **classes}
    if not 0 < len(classes) <= _MOST_COLOURS:
        message = f"{path} names {len(classes):,} classes, not 1 to {_MOST_COLOURS:,}; write lines such as {example!r}"
        raise SourceError(message, path=str(path))
    return Colours(str(path), [(*colour, number) for number, colour in enumerate(classes)])


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
    """Return the colours of Pascal VOC's own classes, and of its void pixels."""
    rows = [
        (*(sum((number >> 3 * bit + channel & 1) << 7 - bit for bit in range(8)) for channel in range(3)), number)
        for number in range(_VOC_CLASSES)
    ]
    return Colours(f"Pascal VOC's own, and there is no {LABEL_MAP}", [*rows, _VOC_VOID])


@dataclass(frozen=True, slots=True)
class ColouredMask(DrawnMask):
    """A file whose colours are classes, from which `draw` makes a mask."""

    name: ClassVar[str] = "colours"
    uri: bytes  # the file, or its URL
    colours: Colours  # which number each colour is

    @classmethod
    def of_cell(cls, source: Any, value: Any, base: bytes) -> Self:
        """Return the mask, given the contents of `Colours` and the path of the file."""
        return cls(join(base, os.fsencode(value)), Colours(*source))

    @classmethod
    def digested(cls, source: Any) -> bytes:
        """Return the colours and their numbers."""
        return repr([tuple(row) for row in source[1]]).encode()

    def draw(self, size: tuple[int, int]) -> NDArray[Any]:
        """See `DrawnMask.draw`; palettes and grey pixels are read as colours, too."""
        where = os.fsdecode(self.uri)

        def check_size(width: int, height: int) -> None:
            if (width, height) != size:
                message = f"{where} has {width}x{height} pixels, but its image {size[0]}x{size[1]}"
                raise SourceError(f"{message}; they must be equally large", path=where)

        data = read_annotation(self.uri)
        if data is None:
            raise SourceError(f"{where}: No such file or directory", path=where)
        pixels = mask_colours(data, check_size).astype(np.uint32)
        codes = pixels[:, :, 0] << 16 | pixels[:, :, 1] << 8 | pixels[:, :, 2]
        known, numbers = np.array(sorted((r << 16 | g << 8 | b, number) for r, g, b, number in self.colours.rows)).T
        rows = np.searchsorted(known, codes).clip(max=len(known) - 1)
        wrong = np.flatnonzero(known[rows] != codes)
        if len(wrong):
            y, x = divmod(int(wrong[0]), pixels.shape[1])
            message = f"{where} has the colour {','.join(map(str, pixels[y, x]))} at x={x}, y={y}"
            raise SourceError(f"{message}, which is none of {self.colours.where}", path=where)
        ids: NDArray[Any] = numbers[rows].astype(f"uint{self.colours.mask.bits}")
        return ids
