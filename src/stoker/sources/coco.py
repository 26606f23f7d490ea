"""COCO's JSON files: ``instances_val2017.json`` with boxes, ``captions_val2017.json`` with captions of images.

docs/reference/images.md says where files and images lie. The files of several splits are one source, in which
categories of one name are one class. Images have no class; their boxes do. A missing image is still an item, which a
build reports as a reject. Boxes of crowds are omitted.

A file is decoded one image, one annotation and one category at a time, so that it takes little more memory than its
text has bytes. The polygons and RLE of masks lie in temporary files until they are drawn.
"""

from __future__ import annotations

import errno
import json
import os
import re
from array import array
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy as np

from stoker.config import format_count, option
from stoker.errors import ConfigError, SourceError
from stoker.fields import Json, Mask, Text
from stoker.sources.boxes import BoxColumns, TableBoxes, flaws_of, place_box
from stoker.sources.drawn_masks import drawn_mask, is_drawn, is_side, shown
from stoker.sources.files import conversion_of, in_order, sizes_of
from stoker.sources.image_tables import image_base
from stoker.sources.items import GrowingBlobs, GrowingColumn
from stoker.sources.labels import has_control_character
from stoker.sources.look import Look, is_built_in
from stoker.sources.names import find_moved, path_below, path_ends, path_parts, shown_names, without_own
from stoker.sources.reader import Cells, json_bytes
from stoker.sources.source import Kind, Source, SourceBuilder
from stoker.splits import SPLIT_FOLDERS, SPLIT_WORDS, SPLITS, without_year
from stoker.storage import Location, from_uri, is_absolute, join
from stoker.strict_json import no_constant
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_MAX_BYTES = 2**30
_HAS_IMAGES = re.compile(rb'"images"\s*:\s*\[')
_BLANKS = re.compile(r"[ \t\r\n]*")
_LISTS = ("images", "annotations", "categories")
_BOX_NUMBERS = 4
_INT64 = range(-(2**63) + 1, 2**63)  # without `_NO_CATEGORY`
_NO_CATEGORY = -(2**63)

_LIST = re.compile(rb'\s*(\xef\xbb\xbf)?\{.*"(images|annotations)"\s*:\s*\[', re.DOTALL)
_FIRST_NAME = re.compile(rb'"file_name"\s*:\s*("[^"\\\x00-\x1f]{1,4096}")')
_HEAD_BYTES = 2**16
_ANNOTATIONS, _IMAGES, _DATA = "annotations", "images", "data"
_ROBOFLOW = "_annotations.coco.json"
_IN_SPLITS = (_ROBOFLOW, "labels.json", "annotations.json", f"{_ANNOTATIONS}/instances.json")
_STARTS = {"train": "train", "val": "validation", "test": "test"}  # as in ``valminusminival2014``, ``testdev2017``
_IMAGE_FOLDER = re.compile("|".join((*_STARTS, "unlabeled")), re.IGNORECASE)
_INSTANCES, _UNANNOTATED = "instances", "image_info"
_TRIED, _TRIED_IMAGES = 32, 8


@dataclass(frozen=True, slots=True)
class CocoFile:
    """A COCO file."""

    path: Location  # where it lies
    split: str  # the split of its images
    subject: str  # the rest of its name without the split: ``instances``, ``captions``
    images: Location | None = None  # the folder that may have its images; None if it was not looked for
    is_of_folders: bool = False  # whether ``images`` has folders that may be classes

    @classmethod
    def called(cls, path: Location, images: Location | None = None) -> CocoFile:
        """Return a file with the split in its name, such as ``instances_val2017.json``.

        The last word decides if it is a split, otherwise any word. For Roboflow's file it is the folder.
        """
        words = [path.parent.name] if path.name == _ROBOFLOW else _stem(path).split("_")
        last = words[-1].lower()
        splits = {len(words) - 1: split for start, split in _STARTS.items() if last.startswith(start)} or {
            at: SPLIT_WORDS[name]
            for at, word in enumerate(words)
            if (name := without_year(word.lower())) in SPLIT_WORDS
        }
        at, split = next(iter(splits.items()), (len(words), "train"))
        return cls(path, split, "_".join(words[:at] + words[at + 1 :]), images)


def find_coco(look: Look) -> list[CocoFile]:
    """Return the COCO files of a folder whose images lie beside them, in folders that are not classes."""
    return [file for file in look.once(_find_all) if not file.is_of_folders]


def coco_of_classes(look: Look) -> list[bytes]:
    """Return the paths of the COCO files of a folder whose images lie in folders that may be classes."""
    return [path_below(file.path, look.path.resolve()) for file in look.once(_find_all) if file.is_of_folders]


def _find_all(look: Look) -> list[CocoFile]:
    if look.layout is None:
        return []
    root = look.path.resolve()
    names = look.look_into(root).folders
    alone = [inner for name in names if len(names) == 1 and look.look_into(inner := root / name).folders]
    folders = dict.fromkeys((look.layout.base, root, *alone))
    return next(filter(None, (_coco_at(look, folder) for folder in folders)), [])


def _coco_at(look: Look, base: Location) -> list[CocoFile]:
    names = [os.fsdecode(name) for name in look.folders_in(base.to_uri())]
    splits = {base / name: split for name in names if (split := SPLIT_FOLDERS.get(os.fsencode(name))) is not None}
    files = [CocoFile(top / name, split, "", top) for top, split in splits.items() for name in _IN_SPLITS]
    is_given = look.options.image_root is not None
    folders = {"": image_base(look)} if is_given else _image_folders(look, base, names)
    paths = _json_in(look, base)[:_TRIED] + (_json_in(look, base / _ANNOTATIONS) if _ANNOTATIONS in names else [])
    files += [CocoFile.called(path, folders.get(_last_word(path), folders.get(""))) for path in paths]
    tops = [base / name for name in _alone(names)] + [base]
    checked = in_order(partial(_checked, tops=tops), files, base.requests_at_once)
    return [replace(file, is_of_folders=file.is_of_folders and not is_given) for file in checked if file is not None]


def _image_folders(look: Look, base: Location, names: Sequence[str]) -> dict[str, Location]:
    """Return the folders that may hold the images of COCO files beside them, by the last word of the files' names."""
    above = [base / name for name in ([_IMAGES] if _IMAGES in names else _alone(names))]
    folders = {name: top / name for top in above for name in look.look_into(top).folders}
    folders |= {name: base / name for name in names if _IMAGE_FOLDER.match(name)}
    folders |= {without_year(name): folder for name, folder in folders.items() if without_year(name) not in folders}
    others = [base / name for name in (_IMAGES, _DATA) if name in names]
    return {**folders, "": others[0]} if others else folders


def _alone(names: Sequence[str]) -> list[str]:
    """Return the only folder apart from that of annotations, if there is only one."""
    others = [name for name in names if name != _ANNOTATIONS]
    return others if len(others) == 1 else []


def _json_in(look: Look, folder: Location) -> list[Location]:
    names = (os.fsdecode(child.name) for child in look.beside_images(folder) if not child.is_folder)
    return [folder / name for name in names if name.endswith(".json")]


def is_coco(path: Location) -> bool:
    """Return whether a file begins as COCO's do."""
    return path.suffix == ".json" and path.is_file() and _LIST.match(path.read_head(_HEAD_BYTES)) is not None


def _checked(file: CocoFile, tops: Sequence[Location]) -> CocoFile | None:
    """Return a file if it begins like COCO's, and note whether its images may lie in folders of classes.

    If no folder is named after images, they lie in the first of ``tops`` that has the file's first image.
    """
    if not is_coco(file.path):
        return None
    images = file.images
    if images is None and (first := _FIRST_NAME.search(file.path.read_head(_HEAD_BYTES))) is not None:
        ends = [*path_ends(os.fsencode(json.loads(first[1])))]
        names = ((top, without_own(end, {os.fsencode(top.name)})) for top in tops for end in ends)
        images = next((top for top, name in names if from_uri(join(top.to_uri(), name)).is_file()), None)
    if images is None:
        return None
    others = {*map(os.fsdecode, images.folders())} - {_ANNOTATIONS, _IMAGES, _DATA}
    return replace(file, images=images, is_of_folders=bool(others))


def of_each_split(files: Sequence[CocoFile]) -> list[CocoFile]:
    """Return a file for each split, ``instances`` if there are any; nothing if several could be meant.

    A split without a file may have an ``image_info``, which names images that have no annotations.
    """
    chosen = [file for file in files if file.subject.startswith(_INSTANCES)]
    chosen = chosen or [file for file in files if file.subject != _UNANNOTATED] or [*files]
    by_split = {file.split: file for file in chosen}
    if len(by_split) < len(chosen) or len({file.subject for file in chosen}) > 1:
        return []
    by_split = {file.split: file for file in files if file.subject == _UNANNOTATED} | by_split
    return [by_split[split] for split in SPLITS if split in by_split]


def find_images(file: CocoFile, paths: Sequence[bytes], within: Location | None) -> Location:
    """Return the folder of the images of a file, given the paths in it; only a folder ``within`` that one, if given."""
    path, parent, above = file.path, file.path.parent, file.path.parent.absolute().parent
    name = _last_word(path)
    is_apart = parent.name == _ANNOTATIONS
    tops = [top for top in ((above,) if is_apart else (parent, above)) if name]
    folders: list[Location] = [top / name for top in tops] + [top / _IMAGES / name for top in tops]
    folders += [above / _IMAGES, parent, parent / _IMAGES, above if is_apart else parent / _DATA]
    if within is not None:
        folders = [folder for folder in folders if within in (folder, *folder.parents)]
    folders = ([] if file.images is None else [file.images]) + [folder for folder in folders if folder != file.images]
    tried, firsts = paths[:_TRIED_IMAGES], {image_path.partition(b"/")[0] for image_path in paths}
    for ends in (tried, [end for image_path in tried for end in path_ends(image_path)]):
        for folder in folders:
            if any(from_uri(join(folder.to_uri(), end)).is_file() for end in ends):
                return folder
    for folder in folders:  # where the first images are missing, others may be there
        if folder.is_dir() and any(child.name in firsts for child in folder.some_children()):
            return folder
    message = (
        f"the images that {path} names, such as {os.fsdecode(tried[0])}, are in none of {', '.join(map(str, folders))}"
    )
    raise SourceError(f"{message}; give the folder in which they lie as {option('image_root')}", path=str(path))


def unused_beside(look: Look, base: Location, folders: Sequence[Location]) -> Iterator[bytes]:
    """Yield the paths of folders beside the folders of the images that hold none of the images."""
    used = {path for folder in folders for path in (folder, *folder.parents) if base in (path, *path.parents)}
    for path in sorted(used - {*folders}, key=str):
        children = [path / os.fsdecode(name) for name in look.folders_in(path.to_uri())]
        for child in children:
            is_left_out = child in used or child.name == _ANNOTATIONS or child.name.startswith(".")
            if not (is_left_out or is_built_in(child, look.without)):
                yield path_below(child, base)


def _stem(path: Location) -> str:
    return path.name.removesuffix(path.suffix)


def _last_word(path: Location) -> str:
    return _stem(path).rpartition("_")[2]


def _read(path: Location) -> str | None:
    """Return the text of a COCO file; None for other files."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    try:
        data = path.read_at_most(_MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            message = f"{path} is larger than {_MAX_BYTES} bytes, too large for a COCO file; divide it"
            raise SourceError(message, path=str(path)) from error
        raise
    if not _HAS_IMAGES.search(data):
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 at byte {error.start}; copy it again; {conversion_of(path)}"
        raise SourceError(message, path=str(path)) from error


def _claim(look: Look) -> tuple[Sequence[CocoFile], str | None] | None:
    """Return the COCO file of each split in a folder, or the file at the path itself, and its text."""
    if look.layout is not None:
        files = of_each_split(look.once(find_coco))
        return (files, None) if files else None
    text = _read(look.path)
    return None if text is None else ([CocoFile.called(look.path)], text)


def _list(look: Look, claim: tuple[Sequence[CocoFile], str | None]) -> Source:
    (files, text), options = claim, look.options
    parts = [_Contents(file.path, _Objects() if options.masks else None) for file in files]
    for part in parts:
        part.read(_read(part.path) if text is None else text)
    warnings: list[str] = []
    classes = _classes_of(parts, warnings)
    mask = _mask(parts, classes, warnings) if options.masks else None
    top = None if look.layout is None else look.path.resolve()
    if options.image_root is None:
        folders = [find_images(file, part.paths(), top) for part, file in zip(parts, files, strict=True)]
    else:
        folders = [image_base(look)] * len(parts)
    base = folders[0] if top is None or len({*folders}) == 1 else top
    builder = SourceBuilder(look, base)
    if top is not None:
        _warn_of_others(builder, look, top, files, folders)
    builder.warnings += warnings
    splits = [file.split for file in files]
    prefixes = [path + b"/" if (path := path_below(folder, base)) else b"" for folder in folders]
    _collect(builder, parts, splits, prefixes)
    captions = (("caption", Text()), ("captions", Json())) if any(part.has_captions for part in parts) else ()
    columns = captions if mask is None else (*captions, ("mask", mask))
    if columns:
        rows = GrowingBlobs()
        for number, part in enumerate(parts):
            for row in part.rows(classes, b",%d" % number if len(parts) > 1 else b"", has_captions=bool(captions)):
                rows.append(row)
        builder.collector.columns["cells"] = rows.finish()
    has_boxes = bool(classes) or any(part.box_images for part in parts)
    if has_boxes:
        box_columns = BoxColumns()
        for part in parts:
            part.add_boxes(box_columns, builder.warnings)
        builder.collector.columns |= box_columns.finish(classes)
    for part in filter(lambda part: part.crowds, parts):
        builder.skipped.ignored["with iscrowd"] += part.crowds
        builder.warnings.append(f"{part.path}: {format_count(part.crowds, 'annotation')} of crowds: no box of them")
    paths = [str(part.path) for part in parts]
    drawn = ("coco", paths if len(paths) > 1 else paths[0]) if options.masks else None
    boxes = {split: TableBoxes(path, has_labels=True) for split, path in zip(splits, paths, strict=True) if has_boxes}
    return builder.finish(boxes, cells=Cells(columns, drawn=drawn) if columns else None, box_classes=classes)


def _classes_of(parts: Sequence[_Contents], warnings: list[str]) -> tuple[bytes, ...]:
    """Return the names of all categories in the order of their labels: by their ids in the first file that has them."""
    ids: dict[bytes, int] = {}
    for number, part in enumerate(parts):
        for category, name in part.categories.items():
            ids.setdefault(name, category)
            for other in parts[:number]:
                theirs = other.categories.get(category, name)
                if theirs != name and name not in other.names and theirs not in part.names:
                    message = f"the category {category} is {os.fsdecode(name)!r} in {part.path}, but"
                    message += f" {os.fsdecode(theirs)!r} in {other.path}; name it alike in both, or give one of them"
                    raise SourceError(message, path=str(part.path))
    names = sorted(ids, key=ids.__getitem__)
    if len(names) > MAX_CLASSES:
        raise SourceError(f"{parts[0].path} and the others have more than {MAX_CLASSES} categories; give one of them")
    for part in parts:
        others = [name for category, name in sorted(part.categories.items()) if ids[name] != category]
        missing = [name for name in names if name not in part.names] if part.categories else []
        if others:
            warnings.append(f"{part.path} has other ids of categories, which count by name: {shown_names(others)}")
        if missing:
            warnings.append(f"{part.path} lacks categories of other splits: {shown_names(missing)}; no label changes")
    return tuple(names)


def _mask(parts: Sequence[_Contents], classes: Sequence[bytes], warnings: list[str]) -> Mask:
    """Return the field of masks; refuse masks if there are no categories, or no annotation has a segmentation."""
    path = parts[0].path
    undrawn = [part for part in parts if part.undrawn]
    is_any = not undrawn or any(part.objects for part in parts)
    if not (classes and is_any):
        what = "segmentations" if classes else "categories"
        message = f"{path} has no {what}, which {option('masks')} needs; give instances_*.json, or omit it"
        raise ConfigError(message)
    for part in undrawn:
        count = format_count(part.undrawn, "annotation")
        warnings.append(f"{part.path}: {count} without a polygon or RLE: their pixels are background in the masks")
    return drawn_mask(path, len(classes), "categories")


def _warn_of_others(
    builder: SourceBuilder, look: Look, top: Location, files: Sequence[CocoFile], folders: Sequence[Location]
) -> None:
    """Say which files of a folder are read, which are not, and which folders have none of the images."""
    names = " and ".join(os.fsdecode(path_below(file.path, top)) for file in files)
    builder.warnings.append(f"{look.root}: the images and their annotations are those of {names}")
    others = [path_below(file.path, top) for file in look.once(find_coco) if file not in files]
    builder.skipped.warn(others, f"COCO files in {look.root} that are not used: {{names}}; each may be given by itself")
    builder.skipped.warn([*unused_beside(look, top, folders)], f"folders in {look.root} that are not used: {{names}}")


@dataclass(frozen=True, slots=True)
class _Image:
    path: bytes
    width: Any
    height: Any


class _Objects:
    """The annotations that masks are drawn from, in the order of the file."""

    def __init__(self) -> None:
        self._images, self._categories, self._texts = GrowingColumn("q"), GrowingColumn("q"), GrowingBlobs()

    def __len__(self) -> int:
        return len(self._images)

    def add(self, image: int, number: int, value: Mapping[str, Any]) -> None:
        category = value.get("category_id")
        annotation = [number, value.get("id"), category, value.get("segmentation")]
        self._images.append(image)
        self._categories.append(category if _is_id(category) else _NO_CATEGORY)
        self._texts.append(json_bytes(annotation))

    def rows(self, images: Sequence[int], numbers: Mapping[int, int]) -> Iterator[bytes]:
        """Yield the annotations of each of some images as a JSON list; can be called only once."""
        of, categories, texts = self._images.finish(), self._categories.finish(), self._texts.finish()
        order = np.argsort(of, kind="stable")
        starts = np.searchsorted(of, images, "left", order), np.searchsorted(of, images, "right", order)
        for first, end in zip(*(some.tolist() for some in starts), strict=True):
            some = order[first:end].tolist()
            objects = (b"[%d,%b" % (numbers.get(int(categories[at]), 0), texts[at][1:]) for at in some)
            yield b"[" + b",".join(objects) + b"]"


@dataclass(slots=True)
class _Contents:
    """The contents of a COCO file that are used."""

    path: Location  # the file
    objects: _Objects | None  # what masks are drawn from; None without masks
    images: dict[int, _Image] = field(default_factory=dict)  # by id, in the order of the file
    categories: dict[int, bytes] = field(default_factory=dict)  # names by id
    names: set[bytes] = field(default_factory=set)  # the names of the categories
    # by image id; a caption that is not text stays as the value that JSON has
    captions: dict[int, list[Any]] = field(default_factory=dict)
    has_captions: bool = False  # whether any annotation is a caption
    box_images: array[int] = field(default_factory=lambda: array("q"))  # id of the image of each box
    box_numbers: array[int] = field(default_factory=lambda: array("q"))  # number of its annotation in the file
    box_categories: array[int] = field(default_factory=lambda: array("q"))  # id of its category
    box_sides: array[float] = field(default_factory=lambda: array("d"))  # its four numbers, end to end
    damaged: dict[int, str] = field(default_factory=dict)  # what is wrong with the annotations of an image, by its id
    crowds: int = 0  # how many annotations are of crowds
    undrawn: int = 0  # how many annotations have nothing to draw a mask from, if there are masks
    # whether all annotations are classes of images, as in iNaturalist; None without annotations
    of_images: bool | None = None

    def read(self, text: str | None) -> None:
        """Read everything that is used from the file's text, which is None if it has no list of images."""
        if text is None:
            self._refuse("it has no list images; export it as COCO, or move it away to read the images alone")
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
        if self.of_images:
            message = "its annotations are classes of images, and have no bbox; give the folder that holds the class"
            message += " folders, or write a table metadata.csv with the columns file_name and label beside the images"
            self._refuse(message)

    def paths(self) -> list[bytes]:
        return [image.path for image in self.images.values()]

    def rows(self, classes: Sequence[bytes], end: bytes, *, has_captions: bool) -> Iterator[bytes]:
        """Yield the values of the fields of each image, in the order of the file, as `Cells` has them, only once.

        In a mask ``end`` follows the objects; ``has_captions`` says whether any file has captions.
        """
        number_of = {name: number for number, name in enumerate(classes, 1)}
        numbers = {category: number_of[name] for category, name in self.categories.items()}
        images = list(self.images)
        objects = repeat(b"") if self.objects is None else self.objects.rows(images, numbers)
        for image_id, mask in zip(images, objects, strict=False):
            several, image = self.captions.get(image_id, []), self.images[image_id]
            parts = [json_bytes([several[0] if several else None, several or None])[1:-1]] * has_captions
            if self.objects is not None:
                parts.append(b"%b,%b%b]" % (json_bytes([image.width, image.height])[:-1], mask, end))
            yield b"[%b]" % b",".join(parts)

    def add_boxes(self, columns: BoxColumns, warnings: list[str]) -> None:
        """Add the images, in the order of the file, and their boxes."""
        sizes = ((each.width, each.height) for each in self.images.values())
        numbers = [columns.add_image(size if all(map(is_side, size)) else (0, 0)) for size in sizes]
        number_of = dict(zip(self.images, numbers, strict=True))
        orphans = outside = 0
        for row, (image_id, category) in enumerate(zip(self.box_images, self.box_categories, strict=True)):
            image = self.images.get(image_id)
            where = f"annotations[{self.box_numbers[row]}]"
            if image is None:
                orphans += 1
            elif category not in self.categories:
                self.damaged.setdefault(image_id, f"{where}: there is no category {category}")
            elif not (is_side(image.width) and is_side(image.height)):
                problem = f"the width of the image is {shown(image.width)}, its height {shown(image.height)}"
                self.damaged.setdefault(image_id, problem)
            else:
                x, y, width, height = self.box_sides[_BOX_NUMBERS * row : _BOX_NUMBERS * (row + 1)]
                edges = (x, x + width), (y, y + height), image.width, image.height
                box = place_box(*edges)
                columns.flaws[number_of[image_id]] |= flaws_of(*edges)
                if box is None:
                    outside += 1
                else:
                    columns.add(number_of[image_id], self.categories[category], box)
        for count, what in ((orphans, "of images that it does not name"), (outside, "without area inside the image")):
            warnings += [f"{self.path}: {format_count(count, 'box')} {what}"] if count else []
        columns.damaged |= {number_of[image]: what for image, what in self.damaged.items() if image in number_of}

    def _add_image(self, where: str, value: Mapping[str, Any], paths: dict[bytes, int]) -> None:
        image = self._id(where, "id", value)
        name, url = value.get("file_name"), value.get("coco_url")
        if name is None and isinstance(url, str):  # LVIS's
            name = "/".join(url.split("/")[-2:])
        path = self._path(where, name)
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
        others = ("bbox", "caption", "segmentation", "segments_info")
        is_class = "category_id" in value and value.keys().isdisjoint(others)
        self.of_images = is_class and self.of_images is not False
        if "bbox" not in value and "caption" in value:
            self.has_captions = True
            self.captions.setdefault(image, []).append(value["caption"])
            return
        if "segments_info" in value:
            self._refuse(f"{where} has segments_info, of panoptic masks, which are not read; give instances_*.json")
        if self.objects is not None and not is_drawn(value.get("segmentation")):
            self.undrawn += 1
        elif self.objects is not None:
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
        parts = path_parts(path)
        if not parts:
            self._refuse(f"{where}: file_name is {shown(value)}, not the name of a file")
        return b"/".join(parts)

    def _refuse(self, problem: str) -> NoReturn:
        raise SourceError(f"{self.path} is not a COCO file that can be used: {problem}", path=str(self.path))


_DECODER = json.JSONDecoder(parse_constant=no_constant)


class _Reader:
    """Reads a JSON text value by value.

    Attributes:
        at: Its position in the text: at a character that is not blank, or at the end.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._skip_blanks()

    def skip(self, mark: str) -> None:
        if not self._text.startswith(mark, self.at):
            raise self.error(f"{mark!r} is missing")
        self.at += 1
        self._skip_blanks()

    def value(self) -> Any:
        value, self.at = _DECODER.raw_decode(self._text, self.at)
        self._skip_blanks()
        return value

    def within(self, first: str, last: str) -> Iterator[int]:
        """Yield the number of each element between two marks, which the caller then reads; stop after the last mark."""
        self.skip(first)
        number = 0
        while not self._text.startswith(last, self.at):
            if number:
                self.skip(",")
            yield number
            number += 1
        self.skip(last)

    def end(self) -> None:
        if self.at < len(self._text):
            raise self.error("something follows the end")

    def error(self, problem: str) -> json.JSONDecodeError:
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
    for _ in reader.within("{", "}"):
        name = reader.value()
        if not isinstance(name, str) or name in seen:
            raise reader.error(f"the key {shown(name)} comes twice, or is not a text")
        seen.add(name)
        reader.skip(":")
        if name in _LISTS:
            yield from ((name, number, reader.value()) for number in reader.within("[", "]"))
        else:
            reader.value()
    reader.end()


def _is_id(value: object) -> TypeGuard[int]:
    return type(value) is int and value in _INT64


def _numbers(value: object) -> list[float] | None:
    if not isinstance(value, list) or len(value) != _BOX_NUMBERS:
        return None
    are_numbers = all(type(number) in (int, float) and -1e9 < number < 1e9 for number in value)
    return [*map(float, value)] if are_numbers and min(value[2:]) >= 0 else None


def _collect(
    builder: SourceBuilder, parts: Sequence[_Contents], splits: Sequence[str], folders: Sequence[bytes]
) -> None:
    """Add the images of all files, each of which has a folder below the source; warn of other files there."""
    tops = [top for top in dict.fromkeys(folders) if not any(top != each and top.startswith(each) for each in folders)]
    sizes = builder.sizes_in(tops)
    named = Counter[bytes]()
    for part, split, folder in zip(parts, splits, folders, strict=True):
        own = {path[len(folder) :]: size for path, size in sizes.items() if path.startswith(folder)}
        group = builder.collector.group(split, None, len(folder))
        for path, size in _sizes_of_images(builder, part, join(builder.base, folder).rstrip(b"/"), own):
            image = path if is_absolute(path) else folder + path
            builder.collector.add(group, image, size)
            named[image] += 1
    files = " and ".join(str(part.path) for part in parts)
    unused = sorted(sizes.keys() - named.keys())
    message = f"{files} {'do' if len(parts) > 1 else 'does'} not name these files: {{names}}"
    builder.skipped.warn(unused, message, "not in the COCO file")
    again = sorted(path for path, count in named.items() if count > 1)
    builder.skipped.warn(again, f"{files} name the same images, which are items of each split: {{names}}")


def _sizes_of_images(
    builder: SourceBuilder, part: _Contents, base: bytes, sizes: dict[bytes, int]
) -> list[tuple[bytes, int]]:
    """Return the path and the size of each image of a COCO file, given the sizes of all files in its folder."""
    paths = part.paths()
    unlisted = [path for path in paths if path not in sizes]
    moved = find_moved(part.path, unlisted, sizes.keys() - {*paths}, base, builder.warnings)
    paths = [moved.get(path, path) for path in paths]
    sizes |= sizes_of(base, (path for path in paths if path not in sizes))
    if not any(sizes[path] for path in paths):
        unused = min(sizes.keys() - {*paths}, default=None)
        seen = "" if unused is None else f", which has {os.fsdecode(unused)}"
        message = f"no image that {part.path} names, such as {os.fsdecode(paths[0])}, is in {from_uri(base)}{seen}"
        message += f"; give the folder to which file_name is relative as {option('image_root')}, or mend file_name"
        raise SourceError(message, path=str(part.path))
    return [(path, sizes[path]) for path in paths]


COCO = Kind(
    name="COCO file",
    claim=_claim,
    list=_list,
    options=frozenset({"masks", "imagenet_labels", "image_root"}),
)
