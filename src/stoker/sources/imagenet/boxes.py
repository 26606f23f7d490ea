"""Formats of bounding boxes, each of which is a `stoker.sources.Annotations` in the end.

- XML of PASCAL VOC's format in a folder (`BoxFolder`) or where the images lie (`MappedBoxes`), read image by image
- XML in a tar (`read_box_tar`), the CSV that the ImageNet build scripts make (`read_box_csv`), and Tiny ImageNet's
  lists (`read_tiny_boxes`), read once and put into the table of the images by a `BoxTable`
"""

from __future__ import annotations

import io
import math
import os
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from stoker.config import format_some
from stoker.errors import SourceError
from stoker.sources.columns import chunks
from stoker.sources.reader import to_bytes, to_text
from stoker.sources.reading import in_order, nonblank_lines, numbered_lines, read_annotation
from stoker.sources.table_boxes import BOX
from stoker.sources.tar_format import ForwardBytes, open_stream, read_member, tar_members
from stoker.sources.walking import divide_suffix
from stoker.storage import Location, join, split_bucket
from stoker.types import Box, Progress

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.sources.items import Item, ItemTable


MAX_XML_BYTES = 2**22
"""Longest annotation that is read."""

TINY_LIST, TINY_BOXES = "val_annotations.txt", "_boxes.txt"
"""The classes and the boxes of Tiny ImageNet's validation images."""

_TINY_SIDE = 64
_MAX_KEY_BYTES = 255
"""Longest name a file can have; the keys are stored at the length of the longest."""

_MAX_BOXES = 2**24
_MAX_NAMES = 2**16
_MAX_DAMAGED = 2**18
_PROGRESS_MEMBERS = 1024
_SHOWN_LINES = 5


def image_stem(path: bytes) -> bytes:
    """Return the name of a file without its folders and its ending, which is what its annotation is called."""
    return divide_suffix(os.path.basename(path))[0]  # noqa: PTH119 - pathlib has no bytes paths


@dataclass(frozen=True, slots=True)
class BoxFolder:
    """Where the annotations of one split lie.

    Attributes:
        path: Folder of the XML files: an absolute path or a URL.
        per_class: Whether they lie in a folder for each class below ``path``, or directly in it.
        class_names: The whole label set.
        suffix: How the name of each file ends; Stanford Dogs' have no ending.
    """

    path: bytes
    per_class: bool
    class_names: frozenset[bytes]
    suffix: bytes = b".xml"
    name: ClassVar[str] = "folder"
    has_labels: ClassVar[bool] = False

    @property
    def where(self) -> str:
        return os.fsdecode(self.path)

    def read(self, item: Item, class_name: bytes) -> list[Box]:
        return read_boxes(self.locate(class_name, item.path), class_name, self.class_names)

    def locate(self, class_name: bytes, image_path: bytes) -> bytes:
        """Return where the XML of an image must be, whether or not it is there."""
        stem = image_stem(image_path)
        parts = (self.path, class_name, stem) if self.per_class and class_name else (self.path, stem)
        return b"/".join(parts) + self.suffix

    def to_json(self) -> dict[str, Any]:
        names = sorted(map(to_text, self.class_names))
        own = {"path": to_text(self.path), "per_class": self.per_class, "suffix": to_text(self.suffix)}
        return {**own, "class_names": names}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable, classes: int) -> Self:  # noqa: ARG003
        class_names = frozenset(map(to_bytes, described["class_names"]))
        path, suffix = to_bytes(described["path"]), to_bytes(described["suffix"])
        return cls(path, bool(described["per_class"]), class_names, suffix)


@dataclass(frozen=True, slots=True)
class MappedBoxes:
    """Annotations that lie where the images do, below ``Annotations`` instead of ``Data`` (ILSVRC's own layout)."""

    base: bytes  # folder that paths of images are relative to
    class_names: frozenset[bytes]  # the whole label set
    name: ClassVar[str] = "mapped"
    has_labels: ClassVar[bool] = False

    @property
    def where(self) -> str:
        return "Data -> Annotations"

    def read(self, item: Item, class_name: bytes) -> list[Box]:
        mapped = annotations_beside(join(self.base, item.path))
        if mapped is None:
            return []
        annotation = divide_suffix(mapped)[0] + b".xml"
        return read_boxes(annotation, class_name, self.class_names)

    def to_json(self) -> dict[str, Any]:
        return {"base": to_text(self.base), "class_names": sorted(map(to_text, self.class_names))}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable, classes: int) -> Self:  # noqa: ARG003
        return cls(to_bytes(described["base"]), frozenset(map(to_bytes, described["class_names"])))


def annotations_beside(where: bytes) -> bytes | None:
    """Return an absolute path or a URL with ``Annotations`` for its last part ``Data``; None if it has no such part."""
    bucket, rest = split_bucket(where)
    parts = rest.split(b"/")
    if not replace_last(parts, b"Data", b"Annotations"):
        return None
    return (bucket and bucket + b"/") + b"/".join(parts)


def replace_last(parts: list[bytes], name: bytes, new: bytes) -> bool:
    """Rename the last part of a path that has a name; return whether there is one."""
    if name not in parts:
        return False
    parts[len(parts) - 1 - parts[::-1].index(name)] = new
    return True


@dataclass(frozen=True, slots=True)
class NamedBox:
    """A box, and what its annotation says of the object: its name, and whether it is difficult or truncated.

    ``size`` is the width and the height of the image that the annotation states.
    """

    name: bytes
    box: Box
    difficult: bool = False
    truncated: bool = False
    size: tuple[float, float] = (0, 0)

    def is_of(self, class_name: bytes, class_names: Collection[bytes]) -> bool:
        """Return whether it belongs to an image of a class, by the rule of `read_boxes`."""
        return self.name == class_name or self.name not in class_names


def read_boxes(path: bytes, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
    """Return the boxes of one image, as fractions of its width and height.

    Boxes that name another class of the label set are dropped; names outside it are kept, because ImageNet's files
    often carry a breed's name instead of its id.

    Args:
        path: The XML file, or its URL. An image without one has no boxes.
        class_name: Class of the image.
        class_names: The whole label set.

    Raises:
        SourceError: The file is damaged, or a number in it is not finite.
        StorageError: Its store cannot be reached.
    """
    text = read_annotation(path)
    if text is None:
        return []
    try:
        return [named.box for named in parse_annotation(text) if named.is_of(class_name, class_names)]
    except ValueError as error:
        raise SourceError(f"damaged annotation: {error}", path=os.fsdecode(path)) from error


def parse_annotation(text: bytes) -> list[NamedBox]:
    """Return all boxes of an annotation.

    Coordinates are divided by the size that the XML states (annotators saw scaled pictures, so it may differ from the
    image's), put in order and clamped to 0..1; empty boxes are dropped.

    Raises:
        ValueError: It is not such an XML document, or a number in it is not finite.
    """
    if len(text) > MAX_XML_BYTES:
        raise ValueError(f"{len(text)} bytes of XML, more than {MAX_XML_BYTES}")
    try:
        root: Element = fromstring(text)
    except (ParseError, DefusedXmlException, LookupError) as error:  # the last: of an encoding that Python lacks
        raise ValueError(str(error)) from error
    return list(_boxes(root))


def place_box(x: Sequence[float], y: Sequence[float], width: float, height: float) -> Box | None:
    """Return the box between two corners, as fractions of a width and a height; None if nothing of it is inside.

    The edges ``x`` and ``y`` are in any order.
    """
    left, right = sorted(min(max(value / width, 0.0), 1.0) for value in x)
    top, bottom = sorted(min(max(value / height, 0.0), 1.0) for value in y)
    return Box(left, top, right, bottom) if left < right and top < bottom else None


def _boxes(root: Element) -> Iterator[NamedBox]:
    width, height = (_number(root, f"size/{side}") for side in ("width", "height"))
    if width <= 0 or height <= 0:
        raise ValueError(f"size is {width:g} x {height:g}")
    for item in root.iterfind("object"):
        name = (item.findtext("name") or "").strip().encode()
        flags = [(item.findtext(tag) or "").strip().lower() in ("1", "true") for tag in ("difficult", "truncated")]
        for corners in item.iterfind("bndbox"):
            x = [_number(corners, tag) for tag in ("xmin", "xmax")]
            y = [_number(corners, tag) for tag in ("ymin", "ymax")]
            box = place_box(x, y, width, height)
            if box is not None:
                yield NamedBox(name, box, flags[0], flags[1], (width, height))


def _number(element: Element, path: str) -> float:
    text = element.findtext(path)
    if text is None:
        raise ValueError(f"no <{path}>")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"<{path}> is {text.strip()[:40]!r}, which is not a finite number")
    return value


@dataclass(frozen=True, slots=True, eq=False)
class BoxTable:
    """Boxes by the names of images, on their way into a table of images. Read-only."""

    where: str  # file they come from
    # bytes (M,), ascending: for each box, the name of its image without its ending, after the class and a slash if
    # ``per_class``
    keys: NDArray[np.bytes_]
    boxes: NDArray[np.void]  # `BOX` (M,), without classes
    # int32 (M,): number of the annotation it was read from. Of two of the same name the later one counts
    sources: NDArray[np.int32]
    # int32 (M,): index into ``vocabulary`` of what the annotation calls the object; -1 if it does not say
    names: NDArray[np.int32]
    vocabulary: tuple[bytes, ...]  # names of objects
    damaged: dict[bytes, str]  # what is wrong with an annotation, by key
    per_class: bool  # whether ``keys`` hold the class
    class_names: frozenset[bytes]  # the whole label set

    def columns(
        self, table: ItemTable, rows: NDArray[np.int64], classes: Sequence[bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield what `stoker.sources.table_boxes.TableBoxes` has of some images that follow one another in a table.

        Their boxes are chosen as `read_boxes` chooses them.
        """
        width = self.keys.itemsize
        for start, end in chunks(len(rows)):
            labels = table.labels[rows[start:end]].tolist()
            names = [classes[label] if label >= 0 else b"" for label in labels]
            stems = map(image_stem, table.paths.values(int(rows[start]), int(rows[start]) + len(labels)))
            keys = [name + b"/" + stem if self.per_class else stem for name, stem in zip(names, stems, strict=True)]
            # Of another length, NumPy would convert all keys to compare them.
            wanted = np.array([key if len(key) <= width else b"" for key in keys], self.keys.dtype)
            bounds = (np.searchsorted(self.keys, wanted, side).tolist() for side in ("left", "right"))
            for key, name, first, last in zip(keys, names, *bounds, strict=True):
                boxes = self._chosen(first, last, name) if first < last and len(key) <= width else b""
                problem = self.damaged.get(key)
                yield (boxes, b"") if problem is None else (b"", problem.encode("utf-8", "backslashreplace"))

    def _chosen(self, first: int, last: int, class_name: bytes) -> bytes:
        newest = self.sources[first:last].max()
        chosen = (row for row in range(first, last) if self.sources[row] == newest and self._is_of(row, class_name))
        return b"".join(self.boxes[row].tobytes() for row in chosen)

    def _is_of(self, row: int, class_name: bytes) -> bool:
        if self.names[row] < 0:
            return True
        name = self.vocabulary[self.names[row]]
        return name == class_name or name not in self.class_names


class BoxTableBuilder:
    """Collects boxes annotation by annotation.

    Args:
        where: File they come from.
        replacing: Whether an annotation replaces an earlier one of the same name, as a member of a tar does when it is
            unpacked; otherwise its boxes are added to those.
    """

    def __init__(self, where: str, *, replacing: bool) -> None:
        self.damaged: dict[bytes, str] = {}
        self._where = where
        self._keys = io.BytesIO()
        self._ends = array("q", [0])
        self._corners = array("d")
        self._sources = array("i")
        self._names = array("i")
        self._vocabulary: dict[bytes, int] = {}
        self._folders: set[bytes] = set()
        self._replacing = replacing
        self._source = 0

    def add(self, folder: bytes, stem: bytes, boxes: Iterable[NamedBox]) -> None:
        """Add the boxes of one image, given the folder, which may be the class, and the stem of its annotation."""
        key = self._key(folder, stem)
        self._source += self._replacing
        for named in boxes:
            if len(self._names) == _MAX_BOXES:
                raise SourceError(f"{self._where} holds more than {_MAX_BOXES} boxes", path=self._where)
            self._keys.write(key)
            self._ends.append(self._keys.tell())
            self._corners.extend((named.box.xmin, named.box.ymin, named.box.xmax, named.box.ymax))
            self._sources.append(self._source)
            self._names.append(self._name(named.name))

    def add_damaged(self, folder: bytes, stem: bytes, problem: str) -> None:
        """Note that the annotation of an image is damaged."""
        if len(self.damaged) == _MAX_DAMAGED:
            message = f"{self._where} holds more than {_MAX_DAMAGED} damaged annotations; is it the right file?"
            raise SourceError(message, path=self._where)
        self.damaged[self._key(folder, stem)] = problem

    def finish(self, class_names: frozenset[bytes]) -> BoxTable:
        """Return the table; annotations that lie in folders named after classes are looked up by class."""
        per_class = not self._folders.isdisjoint(class_names)
        keys = self._key_array(with_folder=per_class)
        order = np.argsort(keys, kind="stable")
        boxes = np.empty(len(order), BOX)
        boxes["corners"], boxes["label"] = np.frombuffer(self._corners, np.float64).reshape(-1, 4)[order], -1
        return BoxTable(
            where=self._where,
            keys=keys[order],
            boxes=boxes,
            sources=np.frombuffer(self._sources, np.int32)[order],
            names=np.frombuffer(self._names, np.int32)[order],
            vocabulary=tuple(self._vocabulary),
            damaged={_lookup_key(key, with_folder=per_class): what for key, what in self.damaged.items()},
            per_class=per_class,
            class_names=class_names,
        )

    def _key(self, folder: bytes, stem: bytes) -> bytes:
        if len(stem) > _MAX_KEY_BYTES or len(folder) > _MAX_KEY_BYTES:
            name = (folder + b"/" + stem)[:64].decode("utf-8", "replace")
            message = f"{self._where} names an image {name}..., longer than any file name; is it the right file?"
            raise SourceError(message, path=self._where)
        self._folders.add(folder)
        return folder + b"/" + stem

    def _name(self, name: bytes) -> int:
        if not name or (name not in self._vocabulary and len(self._vocabulary) == _MAX_NAMES):
            return -1
        return self._vocabulary.setdefault(name, len(self._vocabulary))

    def _key_array(self, *, with_folder: bool) -> NDArray[np.bytes_]:
        names = self._keys.getbuffer()
        longest = int(np.diff(np.frombuffer(self._ends, np.int64)).max(initial=1))
        keys = np.empty(len(self._names), f"S{longest}")
        for row in range(len(keys)):
            keys[row] = _lookup_key(bytes(names[self._ends[row] : self._ends[row + 1]]), with_folder=with_folder)
        return keys


def _lookup_key(key: bytes, *, with_folder: bool) -> bytes:
    return key if with_folder else key[key.rfind(b"/") + 1 :]


def read_box_tar(path: Location, progress: Progress | None) -> BoxTableBuilder:
    """Read every annotation of a tar, which may be compressed with gzip.

    A damaged annotation is an error of its image, not of the tar. Members that end neither in ``.xml`` nor in nothing
    (Stanford Dogs) are passed over.
    """
    builder = BoxTableBuilder(str(path), replacing=True)
    total = path.size()
    with open_stream(path) as stream:
        source = ForwardBytes(stream, str(path))
        for done, member in enumerate(tar_members(source)):
            if member.isreg() and not member.issparse():
                _add_member(builder, source, member)
            if progress is not None and done % _PROGRESS_MEMBERS == 0:
                progress(done=done, total=max(done, total // 512), size_bytes=source.tell(), rejects=0)
        source.finish()
    return builder


def _add_member(builder: BoxTableBuilder, source: ForwardBytes, member: tarfile.TarInfo) -> None:
    folder, _, name = member.name.encode("utf-8", "surrogateescape").rpartition(b"/")
    stem, dot, ending = name.rpartition(b".")
    if not dot:
        stem = name
    elif ending.lower() != b"xml":
        return
    if not stem or name.startswith(b"."):
        return
    folder = folder[folder.rfind(b"/") + 1 :]
    try:
        builder.add(folder, stem, parse_annotation(read_member(source, member, MAX_XML_BYTES)))
    except ValueError as error:
        builder.add_damaged(folder, stem, str(error))


def read_box_csv(path: Location) -> tuple[BoxTableBuilder, list[str]]:
    """Read lines of ``NAME.JPEG,xmin,ymin,xmax,ymax``, in fractions of the image's sides.

    Boxes are put in order, clamped and dropped when empty, as those of XML files are.

    Returns:
        The boxes, and warnings about lines that are something else.
    """
    builder = BoxTableBuilder(str(path), replacing=False)
    bad: list[int] = []
    good = False
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        parts = line.strip().split(b",")
        try:
            x0, y0, x1, y1 = (_fraction(part) for part in parts[1:])
        except ValueError:
            bad.append(number)
            continue
        good = True
        box = place_box((x0, x1), (y0, y1), 1.0, 1.0)
        if box is not None:
            builder.add(b"", image_stem(parts[0]), [NamedBox(b"", box)])
    if bad and not good:
        message = f"{path} has no line of the form NAME.JPEG,xmin,ymin,xmax,ymax"
        raise SourceError(message, path=str(path))
    lines = f"line {format_some(bad, _SHOWN_LINES)}"
    note = f"{path}: {len(bad)} lines are not NAME.JPEG,xmin,ymin,xmax,ymax and are not used: {lines}"
    return builder, [note] if bad else []


def _fraction(text: bytes) -> float:
    value = float(text)
    if not -1e6 < value < 1e6:  # also false for NaN
        raise ValueError
    return value


def read_tiny_boxes(base: Location, class_names: Iterable[bytes], warnings: list[str]) -> BoxTableBuilder | None:
    """Return the boxes of all images of Tiny ImageNet; None if there is no such file.

    They lie in ``<wnid>_boxes.txt`` in each class folder and in `TINY_LIST`. A line is
    ``NAME.JPEG<TAB>x0<TAB>y0<TAB>x1<TAB>y1``; in `TINY_LIST` the class follows the name. The numbers are pixels of the
    64 x 64 image, from 0 to 63, the last one included (a whole image is ``0 0 63 63``), whatever the columns are called
    elsewhere.
    """
    names = [name.decode("utf-8", "surrogateescape") for name in sorted(class_names)]
    lists = [base / "train" / name / f"{name}{TINY_BOXES}" for name in names]
    builder = BoxTableBuilder(str(base), replacing=False)
    bad = files = 0
    for lines in in_order(_lines_of, (*lists, base / "val" / TINY_LIST), base.requests_at_once):
        files += lines is not None
        bad += _add_list(lines or [], builder)
    if bad:
        warnings.append(f"{bad} lines of the lists of boxes in {base} are not boxes and are not used")
    return builder if files else None


def _lines_of(path: Location) -> list[bytes] | None:
    return [line for _, line in nonblank_lines(path)] if path.is_file() else None


def _add_list(lines: Iterable[bytes], builder: BoxTableBuilder) -> int:
    """Add the boxes of one file; return how many lines have none."""
    seen: set[bytes] = set()
    bad = 0
    for line in lines:
        if line in seen:  # a line that comes twice is one box
            continue
        seen.add(line)
        columns = line.split(b"\t")
        try:
            x0, y0, x1, y1 = (int(column) for column in columns[-4:])
            box = place_box(_edges(x0, x1), _edges(y0, y1), _TINY_SIDE, _TINY_SIDE)
        except (ValueError, OverflowError):
            bad += 1
            continue
        if box is not None:
            builder.add(b"", image_stem(columns[0].strip()), [NamedBox(b"", box)])
    return bad


def _edges(first: int, last: int) -> tuple[int, int]:
    """Return the edges around the pixels from ``first`` to ``last``, whichever of them is smaller."""
    return min(first, last), max(first, last) + 1
