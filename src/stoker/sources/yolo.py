"""YOLO's folders: ``data.yaml`` names the classes and the folders of images, whose boxes lie in ``labels/*.txt``.

In place of a folder there may be a list with the path of an image on each line; the file may have another name where
it is the only one of its kind.

The boxes of ``images/train/1.jpg`` are in ``labels/train/1.txt``: ``labels`` is in place of the last folder called
``images``; without one, the text lies beside the image. An image without a text has no boxes. A line is
``CLASS X Y WIDTH HEIGHT``, the centre and the sides as fractions of the image's, or ``CLASS X1 Y1 X2 Y2 X3 Y3 ...``, a
polygon, of which the box around it is taken. Images have no class; their boxes do.
"""

from __future__ import annotations

import dataclasses
import os
import posixpath
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from stoker.errors import SourceError, StorageError
from stoker.sources.cells import Cells, json_bytes
from stoker.sources.coco_masks import drawn_mask
from stoker.sources.columns import GrowingBlobs
from stoker.sources.imagenet.boxes import place_box, replace_last
from stoker.sources.imagenet.labels import has_control_character
from stoker.sources.items import Group
from stoker.sources.kind import Kind
from stoker.sources.reader import to_bytes, to_text
from stoker.sources.reading import nonblank_lines, sizes_of
from stoker.sources.source_builder import SourceBuilder
from stoker.sources.walking import Walk, divide_suffix, seen_in
from stoker.sources.yolo_labels import BOX_NUMBERS, read_labels
from stoker.storage import from_uri, is_absolute, join
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stoker.sources.items import Item, ItemTable
    from stoker.sources.look import Look
    from stoker.sources.source import Source
    from stoker.storage import Location
    from stoker.types import Box

_NAME, _CLASSES, _SUFFIXES = "data.yaml", "classes.txt", (".yaml", ".yml")
_MAX_BYTES = 2**20
_LOOKED_AT = 1000
_SPLITS = {"train": "train", "val": "validation", "test": "test"}


@dataclass(frozen=True, slots=True)
class _Contents:
    """What a file says: the classes, and for each split the folders or lists of its images, relative to one folder."""

    path: Location
    names: tuple[bytes, ...]
    folders: Mapping[str, tuple[str, ...]]
    below: str


def claim_yolo(look: Look) -> _Contents | None:
    """Return what the file ``data.yaml`` of a folder says, or a YAML file that is named; None without one of YOLO's.

    Label Studio writes no such file: ``images/``, ``labels/`` and ``classes.txt``.

    Raises:
        SourceError: It is damaged, or a folder without ``data.yaml`` has several others.
        OSError: It cannot be read.
    """
    if look.is_file:
        if look.path.suffix not in _SUFFIXES:
            return None
        document = _read(look.path)
        if document is None:
            _refuse(look.path, f"it lacks names and nc, or each of {', '.join(_SPLITS)}")
        return _contents(look.path, document)
    if look.layout is None:
        return None
    path = look.path / _NAME
    documents = {path: _read(path)} if path.is_file() else {}
    for name in () if documents else sorted(_yaml_files(look.path)):
        try:
            document = _read(look.path / name) or {}
        except StorageError:
            raise
        except (SourceError, OSError):
            continue  # of another program
        if document and all(isinstance(document.get(split) or "", (str, list)) for split in _SPLITS):
            documents[look.path / name] = document
    usable = {path: document for path, document in documents.items() if document is not None}
    if len(usable) > 1:
        shown = " and ".join(map(str, usable))
        raise SourceError(f"{look.root} holds several files of YOLO's: {shown}; give one of them", path=look.root)
    return _contents(*next(iter(usable.items()))) if usable else _without_yaml(look)


def _without_yaml(look: Look) -> _Contents | None:
    """Return what ``classes.txt`` says beside ``images`` and texts in ``labels``."""
    path = look.path / _CLASSES
    if not path.is_file() or not {"images", "labels"} <= {*look.look_into(look.path)[0]}:
        return None
    files = look.look_into(look.path / "labels")[1]
    if not files or not all(name.endswith(".txt") for name in files):
        return None
    lines = path.read_at_most(_MAX_BYTES).decode("utf-8-sig", "replace").rstrip().splitlines()
    return _Contents(path, _names(path, [line.strip() for line in lines]), {"train": ("images",)}, "")


def _yaml_files(folder: Location) -> list[str]:
    names = (os.fsdecode(name) for name, is_folder in islice(seen_in(folder.to_uri()), _LOOKED_AT) if not is_folder)
    return [name for name in names if name.endswith(_SUFFIXES)]


def _read(path: Location) -> dict[str, Any] | None:
    """Return what a file of YOLO's says; None of another YAML file."""
    import yaml  # noqa: PLC0415 - few sources need it

    try:
        document = yaml.safe_load(path.read_at_most(_MAX_BYTES))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SourceError(f"{path} is not YAML: {' '.join(str(error).split())}; mend it", path=str(path)) from error
    if isinstance(document, dict) and "val" not in document and "valid" in document:
        document["val"] = document["valid"]
    is_usable = isinstance(document, dict) and document.keys() & {"names", "nc"} and document.keys() & _SPLITS.keys()
    return document if is_usable else None


def _contents(path: Location, document: Mapping[str, Any]) -> _Contents:
    below, count = document.get("path") or "", document.get("nc")
    if "kpt_shape" in document:
        _refuse(path, "its labels are boxes with keypoints, which are not read; omit kpt_shape and the keypoints")
    if "names" in document:
        names = _names(path, document["names"])
    elif type(count) is int and 0 < count <= MAX_CLASSES:
        names = tuple(b"class_%d" % number for number in range(count))  # as Ultralytics calls them
    else:
        _refuse(path, f"nc is {count!r}, not 1 to {MAX_CLASSES} classes")
    if type(count) is int and count != len(names):
        _refuse(path, f"nc is {count}, but names has {len(names)} classes")
    folders = {split: _folders(path, key, document.get(key)) for key, split in _SPLITS.items()}
    return _Contents(path, names, folders, below if isinstance(below, str) else "")


def _names(path: Location, names: Any) -> tuple[bytes, ...]:
    """Return the names of the classes, in the order of their numbers."""
    if isinstance(names, dict):
        missing = next((number for number in range(len(names)) if number not in names), None)
        if missing is not None:
            _refuse(path, f"names has {len(names)} classes, but none with the number {missing}")
        names = [names[number] for number in range(len(names))]
    if not isinstance(names, list) or not 0 < len(names) <= MAX_CLASSES:
        _refuse(path, f"names is no list of 1 to {MAX_CLASSES} classes")
    for number, name in enumerate(names):
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            _refuse(path, f"names[{number}] is of type {type(name).__name__}, not text; put it into quotes")
        if not str(name) or has_control_character(str(name).encode("utf-8", "replace")):
            _refuse(path, f"names[{number}] is {name!r}, which cannot be the name of a class")
    texts = [str(name).encode("utf-8", "replace") for name in names]
    if len(set(texts)) < len(texts):
        name, count = Counter(texts).most_common(1)[0]
        _refuse(path, f"names has {name.decode()!r} {count} times")
    return tuple(texts)


def _folders(path: Location, key: str, value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value] if value else []
    for folder in values:
        if not isinstance(folder, str) or "\0" in folder:
            _refuse(path, f"{key} is of type {type(folder).__name__}, not the path of a folder or a list")
    return tuple(values)


def _refuse(path: Location, problem: str) -> NoReturn:
    raise SourceError(f"{path} is not a file of YOLO's that can be used: {problem}", path=str(path))


def list_yolo(look: Look, contents: _Contents) -> Source:
    """List the images in the folders and the lists that a file names.

    Args:
        look: The file, or its folder.
        contents: What `claim_yolo` returned.

    Raises:
        ConfigError: Masks are asked for, and there are too many classes, or pycocotools is not installed.
        SourceError: No folder or list is there, or one cannot be used.
        OSError: One cannot be read.
    """
    path = contents.path
    base = path.parent.resolve()
    below = _parts(contents.below)
    if below and ".." not in below and not is_absolute(os.fsencode(contents.below)):
        inner = (base / "/".join(below)).resolve()
        base = inner if inner.is_dir() and inner.lies_in(base) else base
    builder = SourceBuilder(look, base.to_uri(), ())
    builder.is_ordered = False
    walk, present, listed = Walk(builder.base, look.without), False, _Listed(builder)
    for split, names in contents.folders.items():
        for name in names:
            folder = _below(path, base, name)
            place = base / os.fsdecode(folder)
            if not place.is_dir() and not (place.suffix == ".txt" and place.is_file()):
                what = "list" if place.suffix == ".txt" else "folder"
                builder.skipped.warnings.append(f"{path}: {split} is {name!r}, a {what} that is not there")
                continue
            present = True
            if not place.is_dir():
                listed.add(split, place, folder, walk)
                continue
            prefix = folder and folder + b"/"
            (listing,) = walk.list_folders([prefix])
            builder.skipped.add(listing.skipped)
            group = builder.collector.add_group(Group(split, None, len(prefix)))
            builder.collector.add_folder(group, prefix, listing.files)
    if not present:
        _refuse(path, f"none of the folders and lists that it names is in {base}")
    listed.report()
    cells = _masks(builder, contents) if look.options.masks else None
    builder.settle()
    labels = YoloLabels(builder.base, len(contents.names))
    boxes = {group.split: labels for group in builder.collector.groups if group.split is not None}
    return builder.finish(boxes, cells=cells, box_classes=contents.names)


def _masks(builder: SourceBuilder, contents: _Contents) -> Cells:
    """Return what draws the masks of images, and note of each where its polygons are."""
    mask = drawn_mask(contents.path, len(contents.names), "classes")
    places, paths = GrowingBlobs(), builder.collector.paths()
    for path in paths.values(0, len(paths)):
        places.append(json_bytes([os.fsdecode(_text_of(path))]))
    builder.collector.columns["cells"] = places.finish()
    return Cells((("mask", mask),), drawn=("yolo", len(contents.names)))


def _parts(name: str) -> list[str]:
    """Return the parts of a path as a key of a store has them: none is empty or ``.``."""
    return [part for part in name.split("/") if part not in ("", ".")]


def _below(path: Location, base: Location, name: str) -> bytes:
    """Return the path of a folder below a base.

    Files of Roboflow lead one folder too high: ``../train/images`` lies beside the file.
    """
    parts = _parts(name)
    if parts[:1] == [".."] and not (base.parent / "/".join(parts[1:])).is_dir():
        parts = parts[1:]
    if is_absolute(os.fsencode(name)) or ".." in parts:
        _refuse(path, f"{name!r} is no folder in {base}; give paths of folders relative to that")
    if not name.endswith(".txt") and (base / "/".join(parts)).is_file():
        _refuse(path, f"{name!r} is a file; give the folder of the images, or a list *.txt of their paths")
    return os.fsencode("/".join(parts))


class _Listed:
    """Images that lists name, and the folders in which they lie.

    Args:
        builder: Receives the images.
    """

    def __init__(self, builder: SourceBuilder) -> None:
        self._builder = builder
        self._sizes: dict[bytes, int] = {}
        self._folders: set[bytes] = set()
        self._named: Counter[bytes] = Counter()

    def add(self, split: str, place: Location, name: bytes, walk: Walk) -> None:
        """Add the images of a list.

        Args:
            split: Their split.
            place: The list.
            name: Its path below the source.
            walk: Walks over the folders.
        """
        top = name[: name.rfind(b"/") + 1]
        paths = list(self._paths(place, top))
        parents = {path[: path.rfind(b"/") + 1] for path in paths if not is_absolute(path)} - self._folders
        self._folders |= parents
        there = [parent for parent in sorted(parents) if from_uri(join(walk.root, parent).rstrip(b"/")).is_dir()]
        for parent, listing in zip(there, walk.list_folders(there), strict=True):
            self._sizes.update((parent + file, size) for file, size in listing.files)
        self._sizes |= sizes_of(walk.root, (path for path in paths if path not in self._sizes))
        group = self._builder.collector.add_group(Group(split, None))
        for path in paths:
            self._builder.collector.add(group, path, self._sizes[path])
        self._named.update(paths)

    def _paths(self, place: Location, top: bytes) -> Iterator[bytes]:
        """Yield the path below the source of each line: relative to it, or after ``./`` to the folder of the list."""
        for number, line in nonblank_lines(place):
            text = line.strip()
            path = text if is_absolute(text) else posixpath.normpath(top + text if text[:2] == b"./" else text)
            if b"\0" in path or path.startswith(b"../"):
                message = f"{place}, line {number}: {os.fsdecode(text[:200])!r} is no file in {self._builder.root}"
                raise SourceError(f"{message}; give paths relative to that", path=str(place))
            yield path

    def report(self) -> None:
        """Count files that no list names; warn of images that lines name again."""
        skipped = self._builder.skipped
        repeated = self._named.total() - len(self._named)
        if repeated:
            skipped.warnings.append(f"images that a line names again: {repeated:,}; each line is an item of its own")
        unlisted = len(self._sizes.keys() - self._named.keys())
        skipped.ignored.update({"in no list": unlisted} if unlisted else {})


@dataclass(frozen=True, slots=True)
class YoloLabels:
    """`stoker.sources.Annotations` that are texts beside images, read image by image.

    Attributes:
        base: Folder that paths of images are relative to.
        classes: How many classes there are.
    """

    base: bytes
    classes: int
    name: ClassVar[str] = "yolo"
    has_labels: ClassVar[bool] = True

    @property
    def where(self) -> str:
        """The folder."""
        return os.fsdecode(self.base)

    def read(self, item: Item, class_name: bytes) -> list[Box]:  # noqa: ARG002 - as all `Annotations`
        """Return the boxes of an image, in the order of the file.

        Raises:
            SourceError: A line is damaged.
        """
        boxes = []
        for _, label, numbers in read_labels(join(self.base, _text_of(item.path)), self.classes):
            if len(numbers) == BOX_NUMBERS:
                x, y, width, height = numbers
                box = place_box((x - width / 2, x + width / 2), (y - height / 2, y + height / 2), 1.0, 1.0)
            else:
                xs, ys = numbers[::2], numbers[1::2]
                box = place_box((min(xs), max(xs)), (min(ys), max(ys)), 1.0, 1.0)
            boxes += [] if box is None else [dataclasses.replace(box, label=label)]
        return boxes

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"base": to_text(self.base)}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable, classes: int) -> Self:  # noqa: ARG003
        """Return what `to_json` has described. See `stoker.sources.Annotations.from_json`."""
        return cls(to_bytes(described["base"]), classes)


def _text_of(path: bytes) -> bytes:
    """Return the path of the text that belongs to an image."""
    *folders, name = path.split(b"/")
    replace_last(folders, b"images", b"labels")
    return b"/".join((*folders, divide_suffix(name)[0] + b".txt"))


YOLO = Kind(
    name="YOLO folder",
    looks_like="a folder with `data.yaml`, or a file `*.yaml`, with `names` or `nc`, and `train`, `val` or `test`; "
    "or `images/`, `labels/` and `classes.txt`",
    claim=claim_yolo,
    list=list_yolo,
    options=frozenset({"masks", "imagenet_labels"}),
    annotations=(YoloLabels,),
)
