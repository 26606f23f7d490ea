"""COCO's JSON files: ``instances_val2017.json`` with boxes, ``captions_val2017.json`` with captions of images.

The images lie in the folder that the name of the file ends with, such as ``val2017``, beside the folder of the file or
in ``images`` there; in that ``images`` itself; or beside the file. They have no class; their boxes do. An image that is
not there is an item all the same, which a build names among the rejects. Boxes of crowds are omitted.

The file is decoded one image, one annotation and one category at a time, so that it takes little more memory than its
text has bytes. What masks are drawn from lies in temporary files until then.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
from array import array
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np

from stoker.config import format_count, option
from stoker.errors import ConfigError, SourceError
from stoker.fields import Json, Text
from stoker.sources.cells import Cells, json_bytes
from stoker.sources.coco_masks import drawn_mask, is_side, shown
from stoker.sources.columns import Blobs, GrowingBlobs, GrowingColumn, GrowingNames
from stoker.sources.image_tables import image_base
from stoker.sources.imagenet.boxes import place_box
from stoker.sources.imagenet.labels import has_control_character
from stoker.sources.items import Group
from stoker.sources.kind import Kind
from stoker.sources.moved_files import find_moved, path_ends
from stoker.sources.reading import sizes_of
from stoker.sources.source_builder import SourceBuilder
from stoker.sources.table_boxes import BOX, TableBoxes
from stoker.sources.walking import Walk
from stoker.storage import from_uri, is_absolute, join
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stoker.fields import Mask
    from stoker.sources.columns import Column
    from stoker.sources.look import Look
    from stoker.sources.source import Source
    from stoker.storage import Location
    from stoker.types import Field


_MAX_BYTES = 2**30
_IMAGES = re.compile(rb'"images"\s*:\s*\[')
_BLANKS = re.compile(r"[ \t\r\n]*")
_LISTS = ("images", "annotations", "categories")
_LIST = re.compile(rb'"(images|annotations)"\s*:\s*\[')
_HEAD_BYTES = 2**16
_ANNOTATIONS = "annotations"
_ROBOFLOW = "_annotations.coco.json"
_ROBOFLOW_FOLDERS = ("train", "valid", "test")
_SPLIT_WORD = re.compile("train|val|test|unlabeled|images$")
_SPLITS = (("val", "validation"), ("test", "test"))
_BOX_NUMBERS = 4
_TRIED_IMAGES = 8
_INT64 = range(-(2**63) + 1, 2**63)  # but `_NO_CATEGORY`
_NO_CATEGORY = -(2**63)


def read_coco(path: Location) -> str | None:
    """Return the text of a COCO file; None for other files.

    Raises:
        SourceError: It is too large, or not UTF-8.
        OSError: It cannot be read.
    """
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    try:
        data = path.read_at_most(_MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            message = f"{path} is larger than {_MAX_BYTES} bytes, too large for a COCO file; divide it"
            raise SourceError(message, path=str(path)) from error
        raise
    if not _IMAGES.search(data):
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 at byte {error.start}; copy it again", path=str(path)) from error


def claim_coco(look: Look) -> tuple[Location, str] | None:
    """Return a COCO file and its text: the file that is named, or the only one of a folder with no other images.

    Raises:
        SourceError: It is too large, or not UTF-8.
        OSError: It cannot be read.
    """
    files = [look.path]
    if look.layout is not None:
        files = look.once(find_coco)
        folders = {*look.folders_in(look.layout.base.to_uri())} - {_ANNOTATIONS.encode()} if files else ()
        files = files if len(folders) == 1 else []
    text = read_coco(files[0]) if len(files) == 1 else None
    return None if text is None else (files[0], text)


def find_coco(look: Look) -> list[Location]:
    """Return the COCO files of a folder whose images lie beside them in folders that are no classes.

    Such are ``annotations/instances_val2017.json`` beside ``val2017``, ``train/_annotations.coco.json``, as Roboflow
    has it, and ``result.json`` beside ``images``, as Label Studio has it.

    Raises:
        OSError: A folder cannot be listed, or a file cannot be read.
    """
    if look.layout is None:
        return []
    base = look.layout.base
    children = list(base.children())
    names = {os.fsdecode(child.name) for child in children if child.is_folder}
    image_folders = {base / name / _ROBOFLOW: name for name in _ROBOFLOW_FOLDERS if name in names}
    if "images" in names:  # Label Studio's, and others'
        tops = [base / os.fsdecode(child.name) for child in children if child.name.endswith(b".json")]
        image_folders |= dict.fromkeys(tops[:_TRIED_IMAGES], "images")
    if _ANNOTATIONS in names:
        files = [
            base / _ANNOTATIONS / os.fsdecode(child.name)
            for child in (base / _ANNOTATIONS).children()
            if child.name.endswith(b".json")
        ]
        files.sort(key=lambda path: not path.name.startswith("instances"))
        image_folders |= {path: _last_word(path) for path in files if _last_word(path) in names}
    return [path for path, name in image_folders.items() if _SPLIT_WORD.match(name) and _has_list(path, base / name)]


def _has_list(path: Location, images: Location) -> bool:
    """Return whether a file begins as COCO's do, and the folder of its images has no folders of classes in it."""
    return path.is_file() and _LIST.search(path.read_head(_HEAD_BYTES)) is not None and not images.folders()


def list_coco(look: Look, claim: tuple[Location, str]) -> Source:
    """List the images of a COCO file.

    Args:
        look: The file, or its folder.
        claim: What `claim_coco` returned.

    Raises:
        ConfigError: Masks are asked for, and there are no categories, or pycocotools is not installed.
        SourceError: The file is damaged, or its images are not found.
        OSError: A folder cannot be read.
    """
    (path, text), options = claim, look.options
    contents = _Contents(path, _Objects() if options.masks else None)
    contents.read(text)
    mask = contents.mask() if options.masks else None
    folder = _find_images(path, contents) if options.image_root is None else image_base(look)
    split = _split_of(path)
    builder = SourceBuilder(look, folder.to_uri(), ())
    if look.layout is not None:
        builder.skipped.warnings.append(f"{look.root}: the images and their annotations are those of {path.name}")
    _collect(builder, contents, split)
    columns = contents.columns(mask)
    if columns:
        rows = GrowingBlobs()
        for row in contents.rows():
            rows.append(row)
        builder.collector.columns["cells"] = rows.finish()
    has_boxes = bool(contents.categories or contents.box_images)
    if has_boxes:
        builder.collector.columns |= contents.boxes(builder.skipped.warnings)
    builder.settle()
    if contents.crowds:
        builder.skipped.ignored["with iscrowd"] += contents.crowds
        builder.skipped.warnings.append(
            f"{path}: {format_count(contents.crowds, 'annotation')} of crowds: no box of them"
        )
    cells = Cells(columns, drawn=("coco", str(path)) if options.masks else None) if columns else None
    boxes = {split: TableBoxes(str(path), has_labels=True)} if has_boxes else {}
    return builder.finish(boxes, cells=cells, box_classes=contents.class_names())


@dataclass(frozen=True, slots=True)
class _Image:
    path: bytes
    width: Any
    height: Any


class _Objects:
    """What masks are drawn from: the annotations in the order of the file."""

    def __init__(self) -> None:
        self._images = GrowingColumn("q")
        self._categories = GrowingColumn("q")
        self._ends = GrowingColumn("q", 0)
        self._texts = GrowingNames()

    def add(self, image: int, number: int, value: Mapping[str, Any]) -> None:
        """Append one.

        Args:
            image: Id of its image.
            number: Which annotation of the file it is.
            value: All of it.
        """
        category = value.get("category_id")
        annotation = [number, value.get("id"), category, value.get("segmentation")]
        self._images.append(image)
        self._categories.append(category if _is_id(category) else _NO_CATEGORY)
        self._ends.append(self._texts.append(json_bytes(annotation)))

    def rows(self, images: Sequence[int], numbers: Mapping[int, int]) -> Iterator[bytes]:
        """Yield the annotations of some images as a JSON list for each; nothing can be added afterwards.

        Args:
            images: Their ids.
            numbers: What is in a mask for each category.
        """
        of, categories, ends = (column.finish() for column in (self._images, self._categories, self._ends))
        texts = self._texts.finish()
        order = np.argsort(of, kind="stable")
        starts = np.searchsorted(of, images, "left", order), np.searchsorted(of, images, "right", order)
        for first, end in zip(*(some.tolist() for some in starts), strict=True):
            objects = []
            for at in order[first:end].tolist():
                number = numbers.get(int(categories[at]), 0)
                objects.append(b"[%d,%b" % (number, texts[int(ends[at]) + 1 : int(ends[at + 1])]))
            yield b"[" + b",".join(objects) + b"]"


@dataclass(slots=True)
class _Contents:
    """What a file says, as far as it is used.

    Attributes:
        path: The file.
        objects: What masks are drawn from; None where they are not asked for.
        images: By id, in the order of the file.
        categories: Names by id.
        names: Those names.
        captions: Of each image that has some, by its id; what JSON has in their place, if it is no text.
        has_captions: Whether any annotation is one.
        box_images: Id of the image of each box.
        box_numbers: Number of the annotation that it is.
        box_categories: Id of its category.
        box_sides: Its four numbers, one after another.
        damaged: What is wrong with the annotations of an image, by its id.
        crowds: How many annotations are of crowds.
    """

    path: Location
    objects: _Objects | None
    images: dict[int, _Image] = field(default_factory=dict)
    categories: dict[int, bytes] = field(default_factory=dict)
    names: set[bytes] = field(default_factory=set)
    captions: dict[int, list[Any]] = field(default_factory=dict)
    has_captions: bool = False
    box_images: array[int] = field(default_factory=lambda: array("q"))
    box_numbers: array[int] = field(default_factory=lambda: array("q"))
    box_categories: array[int] = field(default_factory=lambda: array("q"))
    box_sides: array[float] = field(default_factory=lambda: array("d"))
    damaged: dict[int, str] = field(default_factory=dict)
    crowds: int = 0

    def read(self, text: str) -> None:
        """Take everything from the file."""
        paths: dict[bytes, int] = {}
        for name, number, value in _elements(text, self.path):
            where = f"{name}[{number}]"
            if not isinstance(value, dict):
                self._refuse(f"{where} is {shown(value)}, not an object")
            if name == "images":
                self._add_image(where, value, paths)
            elif name == "categories":
                self._add_category(where, value)
            else:
                self._add_annotation(where, number, value)
        if not self.images:
            self._refuse("it names no images")

    def class_names(self) -> tuple[bytes, ...]:
        """Return the names of the categories in the order of their ids."""
        return tuple(name for _, name in sorted(self.categories.items()))

    def mask(self) -> Mask:
        """Return the field of masks; refuse them where there are no categories."""
        if not self.categories:
            message = f"{self.path} has no categories, which {option('masks')} needs; give instances_*.json, or omit it"
            raise ConfigError(message)
        return drawn_mask(self.path, len(self.categories), "categories")

    def columns(self, mask: Mask | None) -> tuple[tuple[str, Field], ...]:
        """Return the fields."""
        captions = (("caption", Text()), ("captions", Json())) if self.has_captions else ()
        return captions if mask is None else (*captions, ("mask", mask))

    def rows(self) -> Iterator[bytes]:
        """Yield the values of the fields of each image, in the order of the file, as `Cells` has them.

        For use once.
        """
        numbers = {category: number for number, category in enumerate(sorted(self.categories), 1)}
        images = list(self.images)
        objects = repeat(b"") if self.objects is None else self.objects.rows(images, numbers)
        for image_id, mask in zip(images, objects, strict=False):
            several, image = self.captions.get(image_id, []), self.images[image_id]
            parts = [json_bytes([several[0] if several else None, several or None])[1:-1]] * self.has_captions
            if self.objects is not None:
                parts.append(b"%b,%b]" % (json_bytes([image.width, image.height])[:-1], mask))
            yield b"[%b]" % b",".join(parts)

    def boxes(self, warnings: list[str]) -> dict[str, Column]:
        """Return the columns of `TableBoxes`, in the order of the images.

        Args:
            warnings: Receives warnings.
        """
        label_of = {category: label for label, category in enumerate(sorted(self.categories))}
        place_of = {image: place for place, image in enumerate(self.images)}
        corners, labels, places = array("d"), array("i"), array("q")
        orphans = outside = 0
        for row, (image_id, category) in enumerate(zip(self.box_images, self.box_categories, strict=True)):
            image = self.images.get(image_id)
            where = f"annotations[{self.box_numbers[row]}]"
            if image is None:
                orphans += 1
            elif category not in label_of:
                self.damaged.setdefault(image_id, f"{where}: there is no category {category}")
            elif not (is_side(image.width) and is_side(image.height)):
                problem = f"the width and height of the image are {shown(image.width)} and {shown(image.height)}"
                self.damaged.setdefault(image_id, problem)
            else:
                x, y, width, height = self.box_sides[_BOX_NUMBERS * row : _BOX_NUMBERS * (row + 1)]
                box = place_box((x, x + width), (y, y + height), image.width, image.height)
                if box is None:
                    outside += 1
                    continue
                corners.extend((box.xmin, box.ymin, box.xmax, box.ymax))
                labels.append(label_of[category])
                places.append(place_of[image_id])
        if orphans:
            warnings.append(f"{self.path}: {format_count(orphans, 'box')} of images that it does not name")
        if outside:
            warnings.append(f"{self.path}: {format_count(outside, 'box')} without area inside the image")
        boxes = np.empty(len(labels), BOX)
        boxes["corners"], boxes["label"] = np.array(corners, np.float64).reshape(-1, _BOX_NUMBERS), labels
        order = np.argsort(places, kind="stable")
        starts = np.searchsorted(np.array(places, np.int64)[order], np.arange(len(self.images) + 1))
        damaged = GrowingBlobs()
        for image_id in self.images:
            damaged.append(self.damaged.get(image_id, "").encode("utf-8", "surrogatepass"))
        sizes = [(each.width, each.height) for each in self.images.values()]
        annotated = np.array([size if all(map(is_side, size)) else (0, 0) for size in sizes], np.int32)
        own = Blobs(boxes[order].tobytes(), starts * BOX.itemsize)
        return {"boxes": own, "damaged": damaged.finish(), "annotated": annotated}

    def _add_image(self, where: str, value: Mapping[str, Any], paths: dict[bytes, int]) -> None:
        image = self._id(where, "id", value)
        path = self._path(where, value.get("file_name"))
        if image in self.images:
            self._refuse(f"{where} has the id {image}, which another image has")
        if paths.setdefault(path, image) != image:
            self._refuse(f"{where} has the file_name {os.fsdecode(path)!r}, which the image {paths[path]} has")
        self.images[image] = _Image(path, value.get("width"), value.get("height"))

    def _add_category(self, where: str, value: Mapping[str, Any]) -> None:
        category = self._id(where, "id", value)
        name = self._encoded(where, "name", value.get("name"))
        if category in self.categories or name in self.names:
            self._refuse(
                f"{where}, {os.fsdecode(name)!r} with the id {category}, has the name or the id of another one"
            )
        if len(self.categories) == MAX_CLASSES:
            self._refuse(f"it has more than {MAX_CLASSES} categories")
        if has_control_character(name):
            self._refuse(f"{where} has a control character in its name {os.fsdecode(name)!r}")
        self.categories[category] = name
        self.names.add(name)

    def _add_annotation(self, where: str, number: int, value: Mapping[str, Any]) -> None:
        image = self._id(where, "image_id", value)
        if "bbox" not in value and "caption" in value:
            self.has_captions = True
            self.captions.setdefault(image, []).append(value["caption"])
            return
        if self.objects is not None:
            try:
                self.objects.add(image, number, value)
            except RecursionError:
                self._refuse(f"{where} is nested too deeply")
        if value.get("iscrowd"):
            self.crowds += 1
            return
        sides, category = _numbers(value.get("bbox")), value.get("category_id")
        if sides is None:
            problem = f"{where}: bbox is {shown(value.get('bbox'))}, not [x, y, width, height] in pixels"
            self.damaged.setdefault(image, problem)
        elif not _is_id(category):
            self.damaged.setdefault(image, f"{where}: category_id is {shown(category)}, not a whole number")
        else:
            self.box_images.append(image)
            self.box_numbers.append(number)
            self.box_categories.append(category)
            self.box_sides.extend(sides)

    def _id(self, where: str, key: str, value: Mapping[str, Any]) -> int:
        number = value.get(key)
        if not _is_id(number):
            self._refuse(f"{where}: {key} is {shown(number)}, not a whole number of 64 bits")
        return number

    def _encoded(self, where: str, key: str, value: object) -> bytes:
        if not isinstance(value, str) or not value:
            self._refuse(f"{where}: {key} is {shown(value)}, not a text")
        try:
            return value.encode()
        except UnicodeEncodeError:
            self._refuse(f"{where}: {key} is {shown(value)}, which UTF-8 cannot hold")

    def _path(self, where: str, value: object) -> bytes:
        path = self._encoded(where, "file_name", value)
        if b"\0" in path:
            self._refuse(f"{where}: file_name is {shown(value)}, which has a NUL byte")
        if is_absolute(path):
            return path
        parts = [part for part in path.split(b"/") if part not in (b"", b".")]
        if not parts:
            self._refuse(f"{where}: file_name is {shown(value)}, not the name of a file")
        return b"/".join(parts)

    def _refuse(self, problem: str) -> NoReturn:
        raise SourceError(f"{self.path} is not a COCO file that can be used: {problem}", path=str(self.path))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


class _Reader:
    """Goes through a JSON text, value by value.

    Attributes:
        at: Where it is: at a character that is no blank, or at the end.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._skip_blanks()

    @property
    def is_at_end(self) -> bool:
        """Whether nothing follows."""
        return self.at >= len(self._text)

    def is_at(self, mark: str) -> bool:
        """Return whether a character follows."""
        return self._text.startswith(mark, self.at)

    def skip(self, mark: str) -> None:
        """Go past a character."""
        if not self.is_at(mark):
            raise self.error(f"{mark!r} is missing")
        self.at += 1
        self._skip_blanks()

    def value(self) -> Any:
        """Return a whole value and go past it."""
        value, self.at = _DECODER.raw_decode(self._text, self.at)
        self._skip_blanks()
        return value

    def elements(self) -> Iterator[Any]:
        """Yield the elements of a list, and go past it."""
        self.skip("[")
        is_first = True
        while not self.is_at("]"):
            if not is_first:
                self.skip(",")
            is_first = False
            yield self.value()
        self.skip("]")

    def error(self, problem: str) -> json.JSONDecodeError:
        """Return an error that says where it is."""
        return json.JSONDecodeError(problem, self._text, self.at)

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self._text, self.at)
        assert match is not None, "any number of blanks"
        self.at = match.end()


def _elements(text: str, path: Location) -> Iterator[tuple[str, int, Any]]:
    """Yield the list, the number and the value of each element of the lists that are used."""
    reader = _Reader(text)
    try:
        yield from _members(reader)
    except RecursionError:
        raise SourceError(f"{path} is nested too deeply at character {reader.at}", path=str(path)) from None
    except json.JSONDecodeError as error:
        message = f"{path} is damaged at character {error.pos}: {error.msg}; copy it again"
        raise SourceError(message, path=str(path)) from error
    except ValueError as error:
        message = f"{path} is damaged at character {reader.at}: {error}; copy it again"
        raise SourceError(message, path=str(path)) from error


def _members(reader: _Reader) -> Iterator[tuple[str, int, Any]]:
    seen: set[str] = set()
    reader.skip("{")
    while not reader.is_at("}"):
        if seen:
            reader.skip(",")
        name = reader.value()
        if not isinstance(name, str) or name in seen:
            raise reader.error(f"the key {shown(name)} comes twice, or is not a text")
        seen.add(name)
        reader.skip(":")
        if name in _LISTS:
            for number, value in enumerate(reader.elements()):
                yield name, number, value
        else:
            reader.value()
    reader.skip("}")
    if not reader.is_at_end:
        raise reader.error("something follows the end")


def _is_id(value: object) -> TypeGuard[int]:
    return type(value) is int and value in _INT64


def _numbers(value: object) -> list[float] | None:
    """Return the four numbers of a box; None if it is not one."""
    if not isinstance(value, list) or len(value) != _BOX_NUMBERS:
        return None
    if any(type(number) not in (int, float) or not -1e9 < number < 1e9 for number in value):
        return None
    x, y, width, height = map(float, value)
    return [x, y, width, height] if width >= 0 and height >= 0 and not math.isnan(x + y) else None


def _split_of(path: Location) -> str:
    """Return the split that the last word of a name stands for, as in ``instances_val2017.json``.

    Of a file of Roboflow's it is the folder: ``valid/_annotations.coco.json``.
    """
    last = path.parent.name if path.name == _ROBOFLOW else _last_word(path)
    return next((split for start, split in _SPLITS if last.startswith(start)), "train")


def _last_word(path: Location) -> str:
    return path.name.rpartition(".")[0].rpartition("_")[2]


def _find_images(path: Location, contents: _Contents) -> Location:
    """Return the folder in which the images lie."""
    above, name = path.parent.absolute().parent, _last_word(path)
    images, beside = above / "images", (path.parent, path.parent / "images")
    folders = (above / name, images / name, images, *beside) if name else (images, *beside)
    tried = [image.path for image in list(contents.images.values())[:_TRIED_IMAGES]]
    for ends in (tried, [end for image_path in tried for end in path_ends(image_path)]):
        for folder in folders:
            if any(from_uri(join(folder.to_uri(), end)).is_file() for end in ends):
                return folder
    firsts = {image.path.partition(b"/")[0] for image in contents.images.values()}
    for folder in folders:  # where the first images are missing, others may be there
        if folder.is_dir() and any(child.name in firsts for child in folder.some_children()):
            return folder
    shown = ", ".join(map(str, folders))
    message = f"the images that {path} names, such as {os.fsdecode(tried[0])}, are in none of {shown}"
    raise SourceError(f"{message}; give the folder in which they lie as {option('image_root')}", path=str(path))


def _collect(builder: SourceBuilder, contents: _Contents, split: str) -> None:
    """Add the images; report what lies beside them."""
    listing = next(iter(Walk(builder.base).list_folders([b""])))
    builder.skipped.add(listing.skipped)
    sizes = dict(listing.files)
    paths = [image.path for image in contents.images.values()]
    unlisted = [path for path in paths if path not in sizes]
    moved = find_moved(contents.path, unlisted, sizes.keys() - {*paths}, builder.base, builder.skipped)
    paths = [moved.get(path, path) for path in paths]
    unlisted = [path for path in unlisted if path not in moved]
    unused = sorted(sizes.keys() - {*paths})
    sizes |= sizes_of(builder.base, unlisted)
    if not any(sizes[path] for path in paths):
        seen = f", which has {os.fsdecode(unused[0])}" if unused else ""
        message = (
            f"no image that {contents.path} names, such as {os.fsdecode(paths[0])}, is in {from_uri(builder.base)}"
        )
        message += (
            f"{seen}; give the folder to which file_name is relative as {option('image_root')}, or mend file_name"
        )
        raise SourceError(message, path=str(contents.path))
    group = builder.collector.add_group(Group(split, None))
    for path in paths:
        builder.collector.add(group, path, sizes[path])
    if unused:
        builder.skipped.ignored["not in the COCO file"] += len(unused)
        name = str(contents.path).replace("{", "{{").replace("}", "}}")
        builder.skipped.warn(unused, f"{name} does not name these files: {{names}}")


COCO = Kind(
    name="COCO file",
    looks_like="a file called `*.json` with a list `images`, or a folder with one such file and its images",
    claim=claim_coco,
    list=list_coco,
    options=frozenset({"masks", "imagenet_labels", "image_root"}),
)
