"""Pascal VOC's folders, also from CVAT, Roboflow and LabelImg: XML beside images, masks, lists of splits.

docs/reference/images.md says which folders and lists are read. Images have no class; their boxes do. Coordinates are
read as `stoker.sources.boxes` reads them: divided by the size that the XML states. Every annotation is read
once.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.config import format_count, option
from stoker.errors import ConfigError, SourceError
from stoker.fields import Array, Mask
from stoker.sources.boxes import BoxColumns, NamedBoxes, TableBoxes, parse_annotation
from stoker.sources.drawn_masks import LABEL_MAP, Colours, are_coloured, read_colours, read_mask_classes, voc_colours
from stoker.sources.files import in_order, nonblank_lines, read_annotation
from stoker.sources.items import Column, GrowingBlobs
from stoker.sources.names import divide_suffix, is_image_name, is_sidecar
from stoker.sources.reader import Cells, json_bytes
from stoker.sources.source import Kind, Source, SourceBuilder
from stoker.sources.split_lists import BOTH, find_lists, name_and_rest
from stoker.splits import splits_among
from stoker.storage import Location, from_uri, join

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stoker.sources.look import Look
    from stoker.types import Field

_IMAGES, _ANNOTATIONS, _MASKS, _SETS = b"JPEGImages/", b"Annotations/", b"SegmentationClass/", b"ImageSets/"
_PARTS = frozenset(name[:-1] for name in (_ANNOTATIONS, _MASKS, _SETS))
_YEAR = re.compile(rb"VOC\d{4}")
_DEPTH = 3
_IMAGE_FOLDERS = frozenset({b"images", b"image", b"imgs", b"img", b"jpegimages", b"photos", b"pics", b"pictures"})
_XML_FOLDERS = frozenset({b"annotations", b"annotation", b"xml", b"xmls", b"labels"})
_XML = ".xml"
_OF_A_CLASS = re.compile(".+_(train|val|trainval|test|default)")
_PROGRESS_IMAGES, _TRIED, _HEAD_BYTES = 1000, 8, 2**12
_CLASSES = tuple(
    b"aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep"
    b" sofa train tvmonitor".split()
)
"""The classes of Pascal VOC, in the order of their labels."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The folders of some images and their annotations below the source, each empty or ending in a slash."""

    top: bytes  # the folder that holds both
    images: bytes  # the folder of the images
    annotations: bytes  # the folder of the XML files
    split: str = "train"  # the split of the images, if no lists say it


def _claim(look: Look) -> list[_Part]:
    if look.layout is None:
        return []
    base = look.path.resolve().to_uri()
    tops = list(_devkits(look, base, b"", _DEPTH))
    if tops:
        return [_Part(top, top + _IMAGES, top + _ANNOTATIONS) for top in tops]
    names = set(look.folders_in(base))
    if names == {_ANNOTATIONS[:-1], b"ImageSets"}:  # of CVAT without "Save images"
        message = f"{look.root} has the annotations of Pascal VOC, but no images; export it with its images"
        raise SourceError(f"{message}, or put them into {look.path / 'JPEGImages'}", path=look.root)
    splits = splits_among(names)
    tops_of_splits = {name + b"/": split for name, split in splits.items()} or {b"": "train"}
    parts = {top: _annotated(look, base, top, split) for top, split in tops_of_splits.items()}
    known = next((part for part in parts.values() if part is not None), None)
    if known is None:
        return []
    images, annotations = (path[len(known.top) :] for path in (known.images, known.annotations))
    return [part or _Part(top, top + images, top + annotations, tops_of_splits[top]) for top, part in parts.items()]


def _devkits(look: Look, base: bytes, top: bytes, depth: int) -> Iterator[bytes]:
    """Yield the folders that hold ``JPEGImages``: the folder itself, or those in its folders ``VOC*``."""
    names = look.folders_in(_at(base, top).to_uri())
    if _IMAGES[:-1] in names and not _PARTS.isdisjoint(names):
        if _ANNOTATIONS[:-1] not in names or not _are_masks(look, base, top + _ANNOTATIONS):
            yield top
    elif depth:
        for name in names:
            if name[:3].upper() == b"VOC":
                yield from _devkits(look, base, top + name + b"/", depth - 1)


def _are_masks(look: Look, base: bytes, annotations: bytes) -> bool:
    """Return whether annotations are images, as in DAVIS, which has a folder for each sequence."""
    for _ in range(_DEPTH):
        folders, files, _ = look.look_into(_at(base, annotations))
        if files or not folders:
            return any(is_image_name(os.fsencode(name)) for name in files)
        annotations += os.fsencode(sorted(folders)[0]) + b"/"
    return False


def _annotated(look: Look, base: bytes, top: bytes, split: str) -> _Part | None:
    """Return the images of a folder, if they lie beside VOC's XML, or in a folder beside a folder of it."""
    folders = [*map(os.fsencode, look.look_into(_at(base, top)).folders)]
    pairs = [(top, top)]
    pairs += [
        (top + images + b"/", top + annotations + b"/")
        for images in folders
        for annotations in folders
        if images.lower() in _IMAGE_FOLDERS and annotations.lower() in _XML_FOLDERS
    ]
    if len(folders) == 1 and folders[0].lower() in _IMAGE_FOLDERS:
        pairs.append((top + folders[0] + b"/",) * 2)
    parts = (_Part(top, images, annotations, split) for images, annotations in pairs)
    return next((part for part in parts if _holds_both(look, base, part)), None)


def _holds_both(look: Look, base: bytes, part: _Part) -> bool:
    """Return whether some XML files are VOC's and named after images, which do not lie in class folders."""
    images, annotations = _at(base, part.images), _at(base, part.annotations)
    folders, files, _ = look.look_into(images)
    ends = sorted({divide_suffix(name)[1] for name in map(os.fsencode, files) if not is_sidecar(name)})[:_TRIED]
    stems = [name.removesuffix(_XML) for name in look.look_into(annotations).files if name.endswith(_XML)][:_TRIED]
    return (images == annotations or not folders) and any(
        any((images / (stem + os.fsdecode(end))).is_file() for end in ends)
        and b"<annotation" in (annotations / (stem + _XML)).read_head(_HEAD_BYTES)
        for stem in stems
    )


def _at(base: bytes, path: bytes) -> Location:
    return from_uri(join(base, path.rstrip(b"/")) if path else base)


def _list(look: Look, parts: Sequence[_Part]) -> Source:
    builder = SourceBuilder(look, look.path.resolve(), is_ordered=False)
    images = _Images(builder, parts)
    tops = [_at(builder.base, top) for top in (*(part.top for part in parts), b"")]
    objects = _Objects(read_mask_classes(tops))
    for done, contents in enumerate(in_order(images.read, images.add_all(), builder.folder.requests_at_once), 1):
        objects.add(*contents)
        if builder.progress is not None and done % _PROGRESS_IMAGES == 0:
            builder.progress(done=done, total=0, size_bytes=0, rejects=0)
    images.report(objects.missing)
    if objects.dropped:
        builder.warnings.append(f"{format_count(objects.dropped, 'box')} without area inside the image")
    names = [(part.top or builder.base + b"/")[:-1].rpartition(b"/")[2] for part in parts]
    classes = objects.classes(builder.root, of_voc=all(map(_YEAR.fullmatch, names)))
    colours = _colours(look, tops) if images.has_masks else None
    mask = Mask() if colours is None else colours.mask
    fields = (("mask", mask) if images.has_masks else None, *objects.flags())
    columns = objects.columns(classes)
    if not any(fields):
        del columns["cells"]
    builder.collector.columns |= columns
    boxes = TableBoxes(builder.root, has_labels=True)
    splits = {group.split: boxes for group in builder.collector.groups if group.split}
    cells = Cells(fields, drawn=None if colours is None else colours.drawn) if any(fields) else None
    return builder.finish(splits, cells=cells, box_classes=classes)


def _colours(look: Look, tops: Sequence[Location]) -> Colours | None:
    """Return the classes of the colours of masks; None if masks have ids."""
    folders = [folder for top in tops if (folder := top / os.fsdecode(_MASKS[:-1])).is_dir()]
    for _ in range(_DEPTH):
        folders += [folder / name for folder in folders for name in look.look_into(folder).folders[:1]]
    some = (folder / name for folder in folders for name in look.look_into(folder).files[:_TRIED])
    return (read_colours(tops) or voc_colours()) if are_coloured(some) else None


class _Images:
    """The images of all parts, and whether their masks are read."""

    def __init__(self, builder: SourceBuilder, parts: Sequence[_Part]) -> None:
        self._builder, self._parts, self._annotations, self._has_lists = builder, parts, 0, False
        self._annotated = [part for part in parts if _at(builder.base, part.annotations).is_dir()]
        masks = [folder for part in parts if (folder := _at(builder.base, part.top + _MASKS)).is_dir()]
        if builder.options.masks and not masks:
            raise ConfigError(f"{builder.root} has no SegmentationClass, which {option('masks')} needs; omit it")
        self.has_masks = bool(masks) and (builder.options.masks or not self._annotated)
        if masks and not self.has_masks:
            message = f"{masks[0]} is not used: {option('masks')} reads the masks of ImageSets/Segmentation"
            builder.warnings.append(message)

    def add_all(self) -> Iterator[tuple[bytes, bytes]]:
        """Add the images; yield the paths of the annotation (empty without annotations) and of the mask of each."""
        for part in self._parts:
            folders = dict.fromkeys((part.images, part.annotations) if part in self._annotated else (part.images,))
            listing, *others = self._builder.walk.list_folders(folders)
            self._annotations += (others or [listing])[0].skipped.ignored[_XML]
            if not others:
                listing.skipped.ignored.pop(_XML, None)
            self._builder.skipped.add(listing.skipped)
            for split, files in self._placed(part, listing.files):
                group = self._builder.collector.group(split, None, len(part.images))
                for path, size in files:
                    self._builder.collector.add(group, part.images + path, size)
                    stem = divide_suffix(path)[0]
                    annotation = part.annotations + stem + _XML.encode() if part in self._annotated else b""
                    yield annotation, part.top + _MASKS + stem + b".png"

    def _placed(
        self, part: _Part, files: Sequence[tuple[bytes, int]]
    ) -> Iterator[tuple[str, Iterable[tuple[bytes, int]]]]:
        """Yield each split of a part, with the paths and the sizes of its images."""
        sets = _at(self._builder.base, part.top + _SETS)
        if part.annotations != part.top + _ANNOTATIONS or not sets.is_dir():
            yield part.split, files
            return
        self._has_lists = True
        by_stem: dict[bytes, tuple[bytes, int]] = {}
        for path, size in files:
            by_stem.setdefault(divide_suffix(path)[0], (path, size))
        listed: set[bytes] = set()
        lists = self._lists(sets)
        for split, list_file in lists.items():
            stems = dict.fromkeys(_stems_in(list_file, by_stem))
            if split == "train" and list_file.name == BOTH and "validation" in lists:
                held_out = {*_stems_in(lists["validation"], by_stem)}
                stems = {stem: None for stem in stems if stem not in held_out}
            listed |= stems.keys()
            # A missing image is still an item, which the build reports as a reject.
            yield split, (by_stem.get(stem, (stem + b".jpg", 0)) for stem in stems)
        self._builder.skipped.ignored["in no list of ImageSets"] += len(files) - len(listed & by_stem.keys())

    def _lists(self, sets: Location) -> dict[str, Location]:
        folders = (sets / "Segmentation", sets / "Main") if self.has_masks else (sets / "Main", sets / "Segmentation")
        for folder in (*folders, sets):
            children = folder.children() if folder.is_dir() else ()
            names = [os.fsdecode(child.name) for child in children if child.name.endswith(b".txt")]
            lists = {split: folder / name for split, name in find_lists(names)[0].items()}
            unused = {*names} - {path.name for path in lists.values()}
            if lists.keys() >= {"train", "validation"}:
                unused.discard(BOTH)
            others = [name[:-4] for name in sorted(unused) if not _OF_A_CLASS.fullmatch(name[:-4])]
            if lists:
                self._builder.skipped.warn(others, f"lists of no split in {folder}, not used: {{names}}")
                return lists
        message = f"{sets} has no list of a split, such as Main/train.txt"
        raise SourceError(f"{message}; write one, or move the folder away to read all images as train", path=str(sets))

    def read(self, paths: tuple[bytes, bytes]) -> tuple[bytes, bytes, NamedBoxes | str | None]:
        """Return both paths, and the objects of the annotation, or what is wrong with it, or None if it is missing."""
        path, mask = paths
        try:
            text = read_annotation(join(self._builder.base, path)) if path else None
            return path, mask, None if text is None else parse_annotation(text)
        except (SourceError, ValueError) as error:
            return path, mask, str(error)

    def report(self, missing: int) -> None:
        """Warn of ``missing`` images without annotations and, unless there are lists, of annotations without images."""
        warnings = self._builder.warnings
        orphans = self._annotations - (len(self._builder.collector) - missing)
        if self._annotated and missing:
            warnings.append(f"{format_count(missing, 'image')} without an annotation, and so without boxes")
        if orphans > 0 and not self._has_lists:
            warnings.append(f"{format_count(orphans, 'annotation')} of images that are not there")


def _stems_in(path: Location, known: Mapping[bytes, object]) -> Iterator[bytes]:
    """Yield the names in a list: a whole line, a name in quotes (CVAT's, with blanks), or the first word of a line."""
    for number, line in nonblank_lines(path):
        stem = line.strip()
        if stem not in known:
            stem = name_and_rest(line)[0]
            stem = own if stem not in known and (own := divide_suffix(stem)[0]) in known else stem
        if b"\0" in stem or b".." in stem.split(b"/"):
            message = f"{path}, line {number}: {os.fsdecode(stem[:200])!r} is not the name of an image; mend it"
            raise SourceError(message, path=str(path))
        yield stem


class _Objects:
    """Collects the annotated objects of all images, image by image; all must be of the classes ``names``, if given."""

    def __init__(self, names: Sequence[bytes] | None) -> None:
        self.missing = self.dropped = 0
        self._known, self._boxes, self._cells = names or (), BoxColumns(), GrowingBlobs()
        self._flagged = dict.fromkeys(("difficult", "truncated"), False)

    def add(self, path: bytes, mask: bytes, annotation: NamedBoxes | str | None) -> None:
        """Append the paths of the annotation and the mask of an image, and its objects, or a problem, or None."""
        self.missing += annotation is None
        problem = annotation if isinstance(annotation, str) else ""
        objects = annotation if isinstance(annotation, NamedBoxes) else NamedBoxes()
        unknown = [each.name for each in objects if self._known and each.name not in self._known]
        if unknown:
            objects, problem = NamedBoxes(), f"{LABEL_MAP} has no class {os.fsdecode(unknown[0])!r}"
        self.dropped += objects.dropped
        image = self._boxes.add_image(objects.size, objects.flaws)
        if problem:
            self._boxes.damaged[image] = f"{os.fsdecode(path)}: {problem}"
        for each in objects:
            if not each.name:
                raise SourceError(f"{os.fsdecode(path)}: an object has no name; write its class into <name>")
            self._boxes.add(image, each.name, each.box)
        flags = []
        for name in self._flagged:
            flags.append([int(getattr(each, name)) for each in objects])
            self._flagged[name] |= any(flags[-1])
        self._cells.append(json_bytes([os.fsdecode(mask), *flags]))

    def classes(self, root: str, *, of_voc: bool) -> tuple[bytes, ...]:
        """Return all classes in the order of their labels: ``names``, VOC's own in its folders, or all, sorted."""
        is_part = of_voc and self._boxes.names.keys() <= {*_CLASSES}
        return self._boxes.classes(root, self._known or (_CLASSES if is_part else ()))

    def flags(self) -> list[tuple[str, Field] | None]:
        """Return the fields that say whether each object is difficult or truncated; None for a field without any."""
        return [(name, Array("int64", (None,))) if any_is else None for name, any_is in self._flagged.items()]

    def columns(self, classes: Sequence[bytes]) -> dict[str, Column]:
        """Return the columns of `TableBoxes` and of `Cells`; no images can be added afterwards."""
        return {**self._boxes.finish(classes), "cells": self._cells.finish()}


VOC = Kind(
    name="Pascal VOC folder",
    claim=_claim,
    list=_list,
    options=frozenset({"masks", "imagenet_labels"}),
)
