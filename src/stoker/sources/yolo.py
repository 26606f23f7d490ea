"""YOLO's folders: ``data.yaml`` names the classes and the folders of images, whose boxes lie in ``labels/*.txt``.

docs/reference/images.md says what else may name them, and what is in the texts. Images have no class; their boxes do.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import os
import posixpath
from codecs import BOM_UTF8
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from stoker.errors import SourceError, StorageError
from stoker.sources.boxes import Annotations, flaws_of, place_box
from stoker.sources.drawn_masks import CocoMask, DrawnMask, drawn_mask
from stoker.sources.files import first_file, in_order, nonblank_lines, read_annotation, sizes_of, text_of
from stoker.sources.items import GrowingBlobs, Item
from stoker.sources.labels import has_control_character
from stoker.sources.names import divide_suffix, find_moved, own_names, path_parts, replace_last, without_own
from stoker.sources.reader import Cells, json_bytes
from stoker.sources.source import Kind, Source, SourceBuilder
from stoker.splits import splits_among
from stoker.storage import Location, from_uri, is_absolute, join
from stoker.types import MAX_CLASSES, Box

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from stoker.sources.look import Look

_NAME, _DARKNET, _SUFFIXES = "data.yaml", "obj.data", (".yaml", ".yml", ".data")
_CLASSES = ("classes.txt", "obj.names", "_darknet.labels")
"""Lists of the classes: of LabelImg and Label Studio, of darknet and CVAT, of Roboflow's export for darknet."""
_BOTH = {"images", "labels"}
_MAX_BYTES = 2**20
_TRIED, _HEAD_BYTES = 8, 2**12
_BOX_NUMBERS, _MIN_NUMBERS = 4, 6
"""How many numbers a box has, its centre and its sides; and a polygon at least, x and y of each point."""
_MOST_FRACTION = 1.01  # other programs round up to this and still read it
_SPLITS = {"train": "train", "val": "validation", "test": "test"}  # the keys of ``data.yaml``


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of a file: the classes, and for each split the folders or lists of its images below one folder."""

    path: Location  # the file
    base: Location  # that folder
    names: tuple[bytes, ...]  # the classes
    folders: Mapping[str, tuple[str, ...]]  # see above
    is_beside: bool = False  # whether texts lie beside the images even if these lie in a folder ``images``


def _claim(look: Look) -> _Contents | None:
    if look.is_file:
        if look.path.suffix not in _SUFFIXES:
            return None
        document = _read(look.path)
        if document is None:
            _refuse(look.path, f"it lacks names and nc, or each of {', '.join(_SPLITS)}")
        return _contents(look.path, document)
    if look.layout is None:
        return None
    files = (look.path / _NAME, *_darknet_files(look))
    documents = {path: _read(path) for path in files[:2] if path.is_file()}
    names = () if documents else look.look_into(look.path).files
    for name in (name for name in names if name.endswith(_SUFFIXES[:2])):
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
    """Return the contents without ``data.yaml``: a list of classes, and texts in ``labels`` or beside the images."""
    folders, is_beside = look.look_into(look.path).folders, False
    splits = {os.fsdecode(name): split for name, split in splits_among({*map(os.fsencode, folders)}).items()}
    if {*folders} >= _BOTH:
        inner = splits_among({*map(os.fsencode, look.look_into(look.path / "images").folders)})
        tops = {split: f"images/{os.fsdecode(name)}" for name, split in inner.items()} or {"train": "images"}
    elif splits and all({*look.look_into(look.path / name).folders} >= _BOTH for name in splits):
        tops = {split: f"{name}/images" for name, split in splits.items()}
    else:
        alone = "" if splits or not folders else folders[0]
        tops, is_beside = {split: name for name, split in splits.items()} or {"train": alone}, True
    first = next(iter(tops.values()))
    texts = look.path / (first if is_beside else first.replace("images", "labels"))
    if is_beside and (len(folders) > max(1, len(splits)) or not _are_boxes(look, texts)):
        return None
    if not is_beside and not all(name.endswith(".txt") for name in look.look_into(texts).files or ("",)):
        return None
    path = first_file((look.path, look.path / "labels", texts), _CLASSES)
    if path is None:
        return None
    return _Contents(
        path, look.path.resolve(), _names(path, _lines(path)), {split: (top,) for split, top in tops.items()}, is_beside
    )


def _are_boxes(look: Look, folder: Location) -> bool:
    """Return whether texts lie in a folder beside images of the same names, and the first texts have boxes."""
    _, files, end = look.look_into(folder)
    texts = [name for name in files if name.endswith(".txt") and name[:-4] + end in files][:_TRIED]
    words = [(folder / name).read_head(_HEAD_BYTES).partition(b"\n")[0].split() for name in texts]
    known = [each for each in words if each]
    return bool(known) and all(each[0].isdigit() and len(each) > _BOX_NUMBERS for each in known)


def _lines(path: Location, errors: str = "strict") -> list[str]:
    lines = path.read_at_most(_MAX_BYTES).removeprefix(BOM_UTF8).rstrip().splitlines()
    return [text_of(path, number, line, errors=errors).strip() for number, line in enumerate(lines, 1)]


def _read_darknet(path: Location) -> dict[str, Any] | None:
    """Return the contents of a darknet file with the keys of ``data.yaml``; None for any other file."""
    values = {}
    for line in _lines(path, "replace"):  # it has paths of files
        key, between, value = map(str.strip, line.partition("="))
        values.update({key: value} if between else {})
    if "names" not in values or not values.keys() & {"train", "valid"}:
        return None
    names = path.parent / values["names"].rpartition("/")[2].replace("\0", "")
    if not names.is_file():
        _refuse(path, f"names is {values['names']!r}, and there is no such file beside it")
    count = {"nc": int(values["classes"][:9])} if values.get("classes", "").isdecimal() else {}
    lists = {split: values[key] for key, split in {"train": "train", "valid": "val"}.items() if key in values}
    return {"names": _lines(names), **count, **lists}


def _darknet_files(look: Look) -> list[Location]:
    """Return the file ``obj.data`` of a folder, or of its folder ``data``, where darknet has it."""
    tops = [look.path, *(look.path / name for name in look.look_into(look.path).folders if name == "data")]
    return [top / _DARKNET for top in tops if _DARKNET in look.look_into(top).files]


def _read(path: Location) -> dict[str, Any] | None:
    """Return the contents of a YOLO file; None for any other YAML file."""
    import yaml  # noqa: PLC0415 - few sources need it

    if path.suffix == ".data":
        return _read_darknet(path)
    try:
        data = path.read_at_most(_MAX_BYTES)
        document = yaml.safe_load(data)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, yaml.reader.ReaderError) and error.encoding == "utf-8":
            for number, line in enumerate(data.splitlines(), 1):
                text_of(path, number, line)
        raise SourceError(f"{path} is not YAML: {' '.join(str(error).split())}; mend it", path=str(path)) from error
    if isinstance(document, dict) and "val" not in document and "valid" in document:
        document["val"] = document["valid"]
    is_usable = isinstance(document, dict) and document.keys() & {"names", "nc"} and document.keys() & _SPLITS.keys()
    return document if is_usable else None


def _contents(path: Location, document: Mapping[str, Any]) -> _Contents:
    count = document.get("nc")
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
    base, below = path.parent.resolve(), document.get("path")
    below = below if isinstance(below, str) else ""
    parts = path_parts(os.fsencode(below).replace(b"\\", b"/"))
    if parts and b".." not in parts and not is_absolute(os.fsencode(below)):
        inner = (base / os.fsdecode(b"/".join(parts))).resolve()
        base = inner if inner.is_dir() and inner.lies_in(base) else base
    return _Contents(path, base, names, folders)


def _names(path: Location, names: Any) -> tuple[bytes, ...]:
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


def _list(look: Look, contents: _Contents) -> Source:
    path, base = contents.path, contents.base
    builder = SourceBuilder(look, base, is_ordered=False)
    own = own_names(base)
    present, listed = False, _Listed(builder, own)
    for split, names in contents.folders.items():
        for name in names:
            folder = _below(path, base, name, own)
            target = base / os.fsdecode(folder)
            if not target.is_dir() and not (target.suffix == ".txt" and target.is_file()):
                what = "list" if target.suffix == ".txt" else "folder"
                builder.warnings.append(f"{path}: {split} is {name!r}, a {what} that is not there")
                continue
            present = True
            if not target.is_dir():
                listed.add(split, target, folder)
                continue
            prefix = folder and folder + b"/"
            (listing,) = builder.walk.list_folders([prefix])
            builder.skipped.add(listing.skipped)
            group = builder.collector.group(split, None, len(prefix))
            files = [(path, size) for path, size in listing.files if os.fsdecode(path) not in _CLASSES]
            builder.collector.add_folder(group, prefix, files)
    if not present:
        _refuse(path, f"none of the folders and lists that it names is in {base}")
    listed.report()
    _warn_of_texts(builder, contents)
    cells = _masks(builder, contents) if look.options.masks else None
    labels = _YoloLabels(builder.base, contents.is_beside)
    boxes = {group.split: labels for group in builder.collector.groups if group.split is not None}
    return builder.finish(boxes, cells=cells, box_classes=contents.names)


def _warn_of_texts(builder: SourceBuilder, contents: _Contents) -> None:
    """Warn if no image has a text and, unless lists name the images, of texts that no image has."""
    paths, warn = builder.collector.paths(), builder.skipped.warn
    wanted = {_text_of(path, is_beside=contents.is_beside) for path in paths.values(0, len(paths))}
    folders = sorted({text[: text.rfind(b"/") + 1] for text in wanted})
    in_each = in_order(functools.partial(_texts_in, builder.base), folders, builder.folder.requests_at_once)
    texts = {text for some in in_each for text in some}
    missing = sorted(wanted) if wanted.isdisjoint(texts) else []
    warn(missing, "no image has boxes, as none of their texts is there: {names}; call them so")
    are_listed = any(name.endswith(".txt") for names in contents.folders.values() for name in names)
    warn([] if are_listed else sorted(texts - wanted), "annotations of images that are not there: {names}")


def _texts_in(base: bytes, folder: bytes) -> list[bytes]:
    where, classes = from_uri(join(base, folder).rstrip(b"/")), {*map(os.fsencode, _CLASSES)}
    names = {child.name for child in where.some_children()} if where.is_dir() else set()
    return [folder + name for name in names - classes if name.endswith(b".txt") and not name.startswith(b".")]


def _masks(builder: SourceBuilder, contents: _Contents) -> Cells:
    """Store the path of the polygons of each image, and return the `Cells` that draw its mask from them."""
    mask = drawn_mask(contents.path, len(contents.names), "classes")
    cells, paths = GrowingBlobs(), builder.collector.paths()
    for path in paths.values(0, len(paths)):
        cells.append(json_bytes([os.fsdecode(_text_of(path, is_beside=contents.is_beside))]))
    builder.collector.columns["cells"] = cells.finish()
    return Cells((("mask", mask),), drawn=("yolo", len(contents.names)))


def _below(path: Location, base: Location, name: str, own: Collection[bytes]) -> bytes:
    """Return the path of a folder below a base.

    Paths in Roboflow's files lead one folder too high: ``../train/images`` lies beside the file.
    """
    parts = path_parts(without_own(os.fsencode(name), own).replace(b"\\", b"/"))
    if parts[:1] == [b".."] and not (base.parent / os.fsdecode(b"/".join(parts[1:]))).is_dir():
        parts = parts[1:]
    if is_absolute(os.fsencode(name)) or b".." in parts:
        _refuse(path, f"{name!r} is no folder in {base}; give paths of folders relative to that")
    if not name.endswith(".txt") and (base / os.fsdecode(b"/".join(parts))).is_file():
        _refuse(path, f"{name!r} is a file; give the folder of the images, or a list *.txt of their paths")
    return b"/".join(parts)


class _Listed:
    """Adds the images that lists name. Paths in lists may begin with one of ``own``, the folder of the source."""

    def __init__(self, builder: SourceBuilder, own: Collection[bytes]) -> None:
        self._builder = builder
        self._own = own
        self._sizes: dict[bytes, int] = {}
        self._folders: set[bytes] = set()
        self._named: Counter[bytes] = Counter()

    def add(self, split: str, list_file: Location, name: bytes) -> None:
        """Add the images of a list, whose path below the source is ``name``."""
        walk = self._builder.walk
        top = name[: name.rfind(b"/") + 1]
        lines = list(self._lines(list_file, top))
        if foreign := [path for _, _, path in lines if b"\\" in path]:
            files = (file for listing in walk.list_folders([b""]) for file, _ in listing.files)
            moved = find_moved(list_file, foreign, files, walk.root, self._builder.warnings)
            lines = [(number, text, moved.get(path, path)) for number, text, path in lines]
        paths = [path for _, _, path in lines]
        folders = {line[2][: line[2].rfind(b"/") + 1]: line for line in reversed(lines)}
        new = sorted(folders.keys() - self._folders)
        for folder in new:
            if not from_uri(join(walk.root, folder).rstrip(b"/")).is_dir():
                self._refuse(list_file, *folders[folder][:2])
        self._folders |= folders.keys()
        listed = [folder for folder in new if not is_absolute(folder)]
        for folder, listing in zip(listed, walk.list_folders(listed), strict=True):
            self._sizes.update((folder + file, size) for file, size in listing.files)
        self._sizes |= sizes_of(walk.root, (path for path in paths if path not in self._sizes))
        if lines and not any(self._sizes[path] for path in paths):
            self._refuse(list_file, *lines[0][:2])
        group = self._builder.collector.group(split)
        for path in paths:
            self._builder.collector.add(group, path, self._sizes[path])
        self._named.update(paths)

    def _lines(self, list_file: Location, top: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the number and the text of each line, and its path below the source.

        A line is relative to the source, or to the folder of the list if it begins with ``./``.
        """
        for number, line in nonblank_lines(list_file):
            text = line.strip()
            own = without_own(text, self._own)
            path = text if is_absolute(text) else posixpath.normpath(top + text if text[:2] == b"./" else own)
            if b"\0" in path or path.startswith(b"../"):
                self._refuse(list_file, number, text)
            yield number, text, path

    def _refuse(self, list_file: Location, number: int, text: bytes) -> NoReturn:
        message = f"{list_file}, line {number}: {os.fsdecode(text[:200])!r} is no file in {self._builder.root}"
        raise SourceError(f"{message}; give paths relative to that", path=str(list_file))

    def report(self) -> None:
        """Count files that no list names; warn of images that several lines name."""
        skipped = self._builder.skipped
        repeated = self._named.total() - len(self._named)
        if repeated:
            skipped.warnings.append(f"images that a line names again: {repeated:,}; each line is an item of its own")
        skipped.ignored["in no list"] += len(self._sizes.keys() - self._named.keys())


def _read_labels(uri: bytes, classes: int) -> Iterator[tuple[int, int, list[float]]]:
    """Yield the number of each line of a text, if that exists, its class and its numbers, fractions of the sides."""
    for number, line in enumerate((read_annotation(uri) or b"").split(b"\n"), 1):
        if words := line.split():
            try:
                yield number, *_parse(words, classes)
            except ValueError as error:
                problem = str(error).replace("could not convert string to float: b", "not a number: ")
                raise _damaged_line(uri, number, problem) from error


def _damaged_line(uri: bytes, number: int, problem: str) -> SourceError:
    where = os.fsdecode(uri)
    return SourceError(f"damaged annotation: {where}, line {number}: {problem}", path=where)


def _parse(words: list[bytes], classes: int) -> tuple[int, list[float]]:
    label, *numbers = map(float, words)  # the label may be a fraction, as NumPy writes it
    if len(numbers) != _BOX_NUMBERS and (len(numbers) < _MIN_NUMBERS or len(numbers) % 2):
        raise ValueError(f"{len(words)} words, not a class and 4 numbers, or 3 or more points")
    if not 0 <= label < classes or label % 1:
        raise ValueError(f"there is no class {label:g}")
    wrong = next((number for number in numbers if not 0 <= number <= _MOST_FRACTION), None)
    if wrong is not None:
        raise ValueError(f"{wrong:g} is no fraction of the image's sides, from 0 to 1")
    return int(label), numbers


@dataclass(frozen=True, slots=True)
class _YoloMask(DrawnMask):
    """The polygons of an image, from which `draw` makes a mask."""

    name: ClassVar[str] = "yolo"
    uri: bytes  # path or URL of their text
    classes: int  # how many classes there are

    @classmethod
    def of_cell(cls, source: Any, value: Any, base: bytes) -> Self:
        return cls(join(base, os.fsencode(value)), int(source))

    def draw(self, size: tuple[int, int]) -> NDArray[Any]:
        """See `CocoMask.draw`; the number of an object is its class plus 1."""
        objects = []
        for number, label, numbers in _read_labels(self.uri, self.classes):
            if len(numbers) == _BOX_NUMBERS:
                raise _damaged_line(self.uri, number, "a box, but masks are drawn of polygons")
            polygon = [value * size[at % 2] for at, value in enumerate(numbers)]
            objects.append((label + 1, number, f"line {number}", label, [polygon]))
        return CocoMask(os.fsdecode(self.uri), *size, objects).draw(size)


@dataclass(frozen=True, slots=True)
class _YoloLabels(Annotations):
    """Annotations in texts beside the images, read image by image."""

    name: ClassVar[str] = "yolo"
    base: bytes  # folder that paths of images are relative to
    is_beside: bool = False  # see `_Contents`

    @property
    def where(self) -> str:
        return os.fsdecode(self.base)

    @property
    def has_labels(self) -> bool:
        return True

    def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> list[Box | None]:  # noqa: ARG002
        placed = ((place_box(x, y, 1.0, 1.0), label) for label, x, y in self._edges(item, len(class_names)))
        return [box and dataclasses.replace(box, label=label) for box, label in placed]

    def flaws(self, item: Item, class_name: bytes) -> int:  # noqa: ARG002
        return functools.reduce(operator.or_, (flaws_of(x, y) for _, x, y in self._edges(item, MAX_CLASSES)), 0)

    def _edges(self, item: Item, classes: int) -> Iterator[tuple[int, tuple[float, float], tuple[float, float]]]:
        """Yield the class of each box of an image, and its edges."""
        text = join(self.base, _text_of(item.path, is_beside=self.is_beside))
        for _, label, numbers in _read_labels(text, classes):
            if len(numbers) == _BOX_NUMBERS:
                x, y, width, height = numbers
                numbers = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]  # noqa: PLW2901 - two corners
            xs, ys = numbers[::2], numbers[1::2]
            yield label, (min(xs), max(xs)), (min(ys), max(ys))


def _text_of(path: bytes, *, is_beside: bool) -> bytes:
    *folders, name = path.split(b"/")
    if not is_beside:
        replace_last(folders, b"images", b"labels")
    return b"/".join((*folders, divide_suffix(name)[0] + b".txt"))


YOLO = Kind(
    name="YOLO folder",
    claim=_claim,
    list=_list,
    options=frozenset({"masks", "imagenet_labels"}),
    annotations=(_YoloLabels,),
)
