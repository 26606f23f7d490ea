"""The annotations that belong to a source of images: where they lie, and the formats of ImageNet and the like.

- XML of PASCAL VOC's format in a folder (`BoxFolder`) or where the images lie (`MappedBoxes`), read image by image
- XML in a tar (`read_box_tar`), the CSV that the ImageNet build scripts make (`read_box_csv`), and Tiny ImageNet's
  lists (`read_tiny_boxes`), read once and put into the table of the images by a `BoxTable`
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

from stoker.config import format_some, option, option_with
from stoker.errors import SourceError
from stoker.sources.reader import to_bytes, to_text
from stoker.sources.reading import first_file, in_order, nonblank_lines, numbered_lines
from stoker.sources.table_boxes import MAX_XML_BYTES, BoxTable, NamedBox, parse_annotation, place_box, read_boxes
from stoker.sources.tar_format import ForwardBytes, is_compressed, is_tar, open_stream, read_member, tar_members
from stoker.sources.walking import divide_suffix, folders_in, image_stem, replace_last, seen_in
from stoker.storage import Location, from_uri, join, location, split_bucket

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Collection, Iterable, Mapping

    from stoker.sources.items import Item, ItemTable
    from stoker.sources.table_boxes import Annotations
    from stoker.types import Box, Progress


ANNOTATION_FOLDERS = frozenset({b"bounding_boxes", b"Annotations", b"annotations", b"Annotation"})
"""Names that are never a class or a split."""

TINY_LIST, TINY_BOXES = "val_annotations.txt", "_boxes.txt"
"""The classes and the boxes of Tiny ImageNet's validation images."""

KAGGLE_BOXES = "LOC_train_solution.csv"
_FILES = (
    "ILSVRC2012_bbox_train_v2.tar.gz",
    "annotations.tar.gz",
    "annotation.tar",
    "imagenet_2012_bounding_boxes.csv",
)
_VALIDATION_FILES = ("ILSVRC2012_bbox_val_v3.tgz", "ILSVRC2012_bbox_val_v3.tar.gz")
_TINY_SIDE = 64
_PROGRESS_MEMBERS = 1024
_SHOWN_LINES = 5


def find_boxes(
    explicit: str | None,
    tops: tuple[Location, ...],
    base: Location,
    folders: Mapping[str, bytes],
    warnings: list[str],
    progress: Progress | None,
) -> dict[str, Annotations | BoxTable]:
    """Return the annotations of each split; a split without annotations is absent.

    Looked at, in this order: what the user names, a folder of XML files, a tar of them, or a CSV file; a folder of
    `ANNOTATION_FOLDERS` in the first of ``tops``; the path of the images with its last component ``Data`` replaced by
    ``Annotations``; such a folder in the other tops; a file of the names under which the annotations of ImageNet and of
    Stanford Dogs are distributed. In a folder of annotations, one for the split comes before the folder itself.

    Args:
        explicit: What the user names.
        tops: Folders in which annotations are looked for.
        base: Absolute path or URL of the images.
        folders: That of each split below ``base``: empty, or ending in a slash.
        warnings: Receives those about a file.
        progress: Called after every few annotations of a tar.
    """
    place = location(explicit).resolve() if explicit is not None else _find_place(tops, base)
    if explicit is not None and not location(explicit).exists():
        message = f"{option('boxes')} {explicit} does not exist; give a folder of XML files, a tar of them or a CSV"
        raise SourceError(message, path=explicit)
    if place is None:
        if kaggle := first_file(tops, (KAGGLE_BOXES,)):
            message = f"{kaggle} has boxes, which are not read; the same are in Annotations/ of its download"
            warnings.append(f"{message}: give {option_with('boxes', 'FOLDER')}")
        return {}
    boxes: dict[str, Annotations | BoxTable]
    if place.is_dir():
        boxes = {split: _boxes_in(place, os.fsdecode(folder)) for split, folder in folders.items()}
    else:
        boxes = dict.fromkeys(folders, _read_file(place, warnings, progress))
    validation = first_file(tops, _VALIDATION_FILES)
    if explicit is None and validation is not None and "validation" in boxes:
        boxes["validation"] = _read_file(validation, warnings, progress)
    return boxes


def _find_place(tops: tuple[Location, ...], base: Location) -> Location | None:
    mirrored = annotations_beside(os.fsencode(str(base)))
    mirrors = [] if mirrored is None else [from_uri(mirrored)]
    below = [[top / os.fsdecode(name) for name in sorted(ANNOTATION_FOLDERS)] for top in tops]
    # In ILSVRC's layout the folder that mirrors that of the images is more exact than the one above it.
    places = chain(*below[:1], mirrors, *below[1:])
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        return first_file(tops, _FILES)
    if any(is_folder or name.endswith(b".xml") for name, is_folder in seen_in(folder.to_uri())):
        return folder
    return first_file((folder,), _FILES) or folder


def _read_file(path: Location, warnings: list[str], progress: Progress | None) -> BoxTable:
    if is_compressed(path) or is_tar(path):
        return read_box_tar(path, progress)
    boxes, notes = read_box_csv(path)
    warnings += notes
    return boxes


def _boxes_in(top: Location, split_folder: str) -> BoxFolder:
    inner = top / split_folder
    where = (inner if split_folder and inner.is_dir() else top).to_uri()
    folders = folders_in(where)
    names = [name for name, _ in seen_in(where + b"/" + folders[0])] if folders else []  # one folder shows enough
    suffix = b"" if names and not any(name.endswith(b".xml") for name in names) else b".xml"
    return BoxFolder(where, per_class=bool(folders), suffix=suffix)


@dataclass(frozen=True, slots=True)
class BoxFolder:
    """Where the annotations of one split lie.

    Attributes:
        path: Folder of the XML files: an absolute path or a URL.
        per_class: Whether they lie in a folder for each class below ``path``, or directly in it.
        suffix: How the name of each file ends; Stanford Dogs' have no ending.
    """

    path: bytes
    per_class: bool
    suffix: bytes = b".xml"
    name: ClassVar[str] = "folder"
    has_labels: ClassVar[bool] = False

    @property
    def where(self) -> str:
        return os.fsdecode(self.path)

    def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
        return read_boxes(self.locate(class_name, item.path), class_name, class_names)

    def locate(self, class_name: bytes, image_path: bytes) -> bytes:
        """Return where the XML of an image must be, whether or not it is there."""
        stem = image_stem(image_path)
        parts = (self.path, class_name, stem) if self.per_class and class_name else (self.path, stem)
        return b"/".join(parts) + self.suffix

    def to_json(self) -> dict[str, Any]:
        return {"path": to_text(self.path), "per_class": self.per_class, "suffix": to_text(self.suffix)}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable, classes: int) -> Self:  # noqa: ARG003
        return cls(to_bytes(described["path"]), bool(described["per_class"]), to_bytes(described["suffix"]))


@dataclass(frozen=True, slots=True)
class MappedBoxes:
    """Annotations that lie where the images do, below ``Annotations`` instead of ``Data`` (ILSVRC's own layout)."""

    base: bytes  # folder that paths of images are relative to
    name: ClassVar[str] = "mapped"
    has_labels: ClassVar[bool] = False

    @property
    def where(self) -> str:
        return "Data -> Annotations"

    def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
        mapped = annotations_beside(join(self.base, item.path))
        if mapped is None:
            return []
        return read_boxes(divide_suffix(mapped)[0] + b".xml", class_name, class_names)

    def to_json(self) -> dict[str, Any]:
        return {"base": to_text(self.base)}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable, classes: int) -> Self:  # noqa: ARG003
        return cls(to_bytes(described["base"]))


def annotations_beside(where: bytes) -> bytes | None:
    """Return an absolute path or a URL with ``Annotations`` for its last part ``Data``; None if it has no such part."""
    bucket, rest = split_bucket(where)
    parts = rest.split(b"/")
    if not replace_last(parts, b"Data", b"Annotations"):
        return None
    return (bucket and bucket + b"/") + b"/".join(parts)


def read_box_tar(path: Location, progress: Progress | None) -> BoxTable:
    """Read every annotation of a tar, which may be compressed with gzip.

    A damaged annotation is an error of its image, not of the tar. Members that end neither in ``.xml`` nor in nothing
    (Stanford Dogs) are passed over.
    """
    boxes = BoxTable(str(path), replacing=True)
    total = path.size()
    with open_stream(path) as stream:
        source = ForwardBytes(stream, str(path))
        for done, member in enumerate(tar_members(source)):
            if member.isreg() and not member.issparse():
                _add_member(boxes, source, member)
            if progress is not None and done % _PROGRESS_MEMBERS == 0:
                progress(done=done, total=max(done, total // 512), size_bytes=source.tell(), rejects=0)
        source.finish()
    return boxes


def _add_member(boxes: BoxTable, source: ForwardBytes, member: tarfile.TarInfo) -> None:
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
        boxes.add(folder, stem, parse_annotation(read_member(source, member, MAX_XML_BYTES)))
    except ValueError as error:
        boxes.add_damaged(folder, stem, str(error))


def read_box_csv(path: Location) -> tuple[BoxTable, list[str]]:
    """Read lines of ``NAME.JPEG,xmin,ymin,xmax,ymax``, in fractions of the image's sides.

    Boxes are put in order, clamped and dropped when empty, as those of XML files are.

    Returns:
        The boxes, and warnings about lines that are something else.
    """
    boxes = BoxTable(str(path), replacing=False)
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
            boxes.add(b"", image_stem(parts[0]), [NamedBox(b"", box)])
    if bad and not good:
        raise SourceError(f"{path} has no line of the form NAME.JPEG,xmin,ymin,xmax,ymax", path=str(path))
    lines = f"line {format_some(bad, _SHOWN_LINES)}"
    note = f"{path}: {len(bad)} lines are not NAME.JPEG,xmin,ymin,xmax,ymax and are not used: {lines}"
    return boxes, [note] if bad else []


def _fraction(text: bytes) -> float:
    value = float(text)
    if not -1e6 < value < 1e6:  # also false for NaN
        raise ValueError
    return value


def read_tiny_boxes(base: Location, class_names: Iterable[bytes], warnings: list[str]) -> BoxTable | None:
    """Return the boxes of all images of Tiny ImageNet; None if there is no such file.

    They lie in ``<wnid>_boxes.txt`` in each class folder and in `TINY_LIST`. A line is
    ``NAME.JPEG<TAB>x0<TAB>y0<TAB>x1<TAB>y1``; in `TINY_LIST` the class follows the name. The numbers are pixels of the
    64 x 64 image, from 0 to 63, the last one included (a whole image is ``0 0 63 63``), whatever the columns are called
    elsewhere.
    """
    names = [name.decode("utf-8", "surrogateescape") for name in sorted(class_names)]
    lists = [base / "train" / name / f"{name}{TINY_BOXES}" for name in names]
    boxes = BoxTable(str(base), replacing=False)
    bad = files = 0
    for lines in in_order(_lines_of, (*lists, base / "val" / TINY_LIST), base.requests_at_once):
        files += lines is not None
        bad += _add_list(lines or [], boxes)
    if bad:
        warnings.append(f"{bad} lines of the lists of boxes in {base} are not boxes and are not used")
    return boxes if files else None


def _lines_of(path: Location) -> list[bytes] | None:
    return [line for _, line in nonblank_lines(path)] if path.is_file() else None


def _add_list(lines: Iterable[bytes], boxes: BoxTable) -> int:
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
            boxes.add(b"", image_stem(columns[0].strip()), [NamedBox(b"", box)])
    return bad


def _edges(first: int, last: int) -> tuple[int, int]:
    """Return the edges around the pixels from ``first`` to ``last``, whichever of them is smaller."""
    return min(first, last), max(first, last) + 1
