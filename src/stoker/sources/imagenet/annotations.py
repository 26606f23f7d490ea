"""Finding the annotations that belong to a source of images."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.imagenet.boxes import (
    BoxFolder,
    BoxTableBuilder,
    NamedBox,
    image_stem,
    place_box,
    read_box_csv,
    read_box_tar,
)
from stoker.sources.imagenet.labels import TINY_LIST
from stoker.sources.lines import list_lines
from stoker.sources.reading import in_order
from stoker.sources.tar_format import is_compressed, is_tar
from stoker.sources.walking import folders_in, seen_in
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stoker.sources.tree import BoxSource
    from stoker.storage import Location
    from stoker.types import Progress


ANNOTATION_FOLDERS = frozenset({b"bounding_boxes", b"Annotations", b"annotations", b"Annotation"})
"""Names that are never a class or a split."""

_FILES = (
    "ILSVRC2012_bbox_train_v2.tar.gz",
    "annotations.tar.gz",
    "annotation.tar",
    "imagenet_2012_bounding_boxes.csv",
)
_VALIDATION_FILES = ("ILSVRC2012_bbox_val_v3.tgz", "ILSVRC2012_bbox_val_v3.tar.gz")


@dataclass(frozen=True, slots=True)
class BoxSearch:
    """Where annotations may be.

    Attributes:
        explicit: What the user names: a folder of XML files, a tar of them, or a CSV file.
        tops: Folders in which annotations are looked for otherwise, in this order.
        base: Absolute path or URL of the images, whose component ``Data`` may be replaced by ``Annotations``.
        split_folders: Folder of each split below ``base``: empty, or ending in a slash.
        progress: Told about every few annotations of a tar.
    """

    explicit: str | None
    tops: tuple[Location, ...]
    base: Location
    split_folders: dict[str, bytes]
    progress: Progress | None = None

    def find(self, class_names: frozenset[bytes], warnings: list[str]) -> dict[str, BoxSource]:
        """Return the annotations of each split; a split without annotations is absent.

        Looked at, in this order: what the user names; a folder of `ANNOTATION_FOLDERS` in the first of ``tops``; the
        path of the images with its last component ``Data`` replaced by ``Annotations``; such a folder in the other
        tops; a file of the names under which the annotations of ImageNet and of Stanford Dogs are distributed. In a
        folder of annotations, one for the split comes before the folder itself.

        Args:
            class_names: The whole label set.
            warnings: Gets what a person should know.

        Raises:
            SourceError: What the user names is not there, or a file is damaged.
            OSError: A file cannot be read.
        """
        place = self._find_place()
        if place is None:
            return {}
        if not place.is_dir():
            source = self._read_file(place, class_names, warnings)
            found = dict.fromkeys(self.split_folders, source)
        else:
            found = {
                split: _folder_source(place, os.fsdecode(folder), class_names)
                for split, folder in self.split_folders.items()
            }
        validation = self._first_file(_VALIDATION_FILES)
        if self.explicit is None and validation is not None and "validation" in found:
            found["validation"] = self._read_file(validation, class_names, warnings)
        return found

    def _find_place(self) -> Location | None:
        if self.explicit is not None:
            place = location(self.explicit)
            if not place.exists():
                message = f"--boxes {self.explicit} is not there; give a folder of XML files, a tar of them or a CSV"
                raise SourceError(message, path=self.explicit)
            return place.resolve()
        # In ILSVRC's layout the folder that mirrors that of the images is more exact than the one above it.
        found = _first_folder(self.tops[:1]) or _mapped(self.base) or _first_folder(self.tops[1:])
        return _inside(found) if found is not None else self._first_file(_FILES)

    def _first_file(self, names: tuple[str, ...]) -> Location | None:
        return next((top / name for top in self.tops for name in names if (top / name).is_file()), None)

    def _read_file(self, path: Location, class_names: frozenset[bytes], warnings: list[str]) -> BoxSource:
        if is_compressed(path) or is_tar(path):
            return read_box_tar(path, self.progress).finish(class_names)
        builder, notes = read_box_csv(path)
        warnings += notes
        return builder.finish(class_names)


def _first_folder(tops: tuple[Location, ...]) -> Location | None:
    folders = (top / os.fsdecode(name) for top in tops for name in sorted(ANNOTATION_FOLDERS))
    return next((folder for folder in folders if folder.is_dir()), None)


def _inside(folder: Location) -> Location:
    """Return the folder if XML files lie in it, else a tar or a list of them that does."""
    if any(is_folder or name.endswith(b".xml") for name, is_folder in seen_in(folder.spelled())):
        return folder
    return next((folder / name for name in _FILES if (folder / name).is_file()), folder)


def _folder_source(top: Location, split_folder: str, class_names: frozenset[bytes]) -> BoxSource:
    inner = top / split_folder
    place = inner if split_folder and inner.is_dir() else top
    where = place.spelled()
    folders = folders_in(where)
    names = [name for name, _ in seen_in(where + b"/" + folders[0])] if folders else []  # one folder tells enough
    suffix = b"" if names and not any(name.endswith(b".xml") for name in names) else b".xml"
    return BoxFolder(where, per_class=bool(folders), class_names=class_names, suffix=suffix)


def _mapped(base: Location) -> Location | None:
    parts = base.parts
    for at in reversed(range(len(parts))):
        if parts[at] == "Data":
            mapped = base.parents[len(parts) - at - 1] / "/".join(("Annotations", *parts[at + 1 :]))
            return mapped if mapped.is_dir() else None
    return None


# The boxes of Tiny ImageNet: `<wnid>_boxes.txt` in each class folder, and `val_annotations.txt`.
#
# A line is `NAME.JPEG<TAB>x0<TAB>y0<TAB>x1<TAB>y1`; in `val_annotations.txt` the class follows the name. The numbers
# are pixels of the 64 x 64 image, from 0 to 63, the last one included (a whole image is `0 0 63 63`), whatever the
# columns are called elsewhere.


_SIDE = 64


def read_tiny_boxes(base: Location, class_names: Iterable[bytes], warnings: list[str]) -> BoxTableBuilder | None:
    """Return the boxes of all images; None if there is no file of them.

    Args:
        base: Folder of the splits.
        class_names: Classes in whose folder there may be such a file.
        warnings: Gets what a person should know.

    Raises:
        SourceError: A file is too large.
        OSError: A file cannot be read.
    """
    names = [name.decode("utf-8", "surrogateescape") for name in sorted(class_names)]
    lists = [base / "train" / name / f"{name}_boxes.txt" for name in names]
    builder = BoxTableBuilder(str(base), replacing=False)
    bad = found = 0
    for lines in in_order(_lines_of, (*lists, base / "val" / TINY_LIST), base.requests_at_once):
        found += lines is not None
        bad += _add_list(lines or [], builder)
    if bad:
        warnings.append(f"{bad} lines of the lists of boxes in {base} hold no box and are not used")
    return builder if found else None


def _lines_of(path: Location) -> list[bytes] | None:
    return [line for _, line in list_lines(path)] if path.is_file() else None


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
            box = place_box(_edges(x0, x1), _edges(y0, y1), _SIDE, _SIDE)
        except (ValueError, OverflowError):
            bad += 1
            continue
        if box is not None:
            builder.add(b"", image_stem(columns[0].strip()), [NamedBox(b"", box)])
    return bad


def _edges(first: int, last: int) -> tuple[int, int]:
    """Return the edges around the pixels from ``first`` to ``last``, whichever of them is smaller."""
    return min(first, last), max(first, last) + 1
