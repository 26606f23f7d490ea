"""Finding the annotations that belong to a source of images; their formats are in `stoker.sources.imagenet.boxes`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.config import option, option_with
from stoker.errors import SourceError
from stoker.sources.imagenet.boxes import BoxFolder, BoxTable, annotations_beside, read_box_csv, read_box_tar
from stoker.sources.tar_format import is_compressed, is_tar
from stoker.sources.walking import folders_in, seen_in
from stoker.storage import Location, from_uri, location

if TYPE_CHECKING:
    from stoker.sources.table_boxes import Annotations
    from stoker.types import Progress


ANNOTATION_FOLDERS = frozenset({b"bounding_boxes", b"Annotations", b"annotations", b"Annotation"})
"""Names that are never a class or a split."""

KAGGLE_BOXES = "LOC_train_solution.csv"
_FILES = (
    "ILSVRC2012_bbox_train_v2.tar.gz",
    "annotations.tar.gz",
    "annotation.tar",
    "imagenet_2012_bounding_boxes.csv",
)
_VALIDATION_FILES = ("ILSVRC2012_bbox_val_v3.tgz", "ILSVRC2012_bbox_val_v3.tar.gz")


@dataclass(frozen=True, slots=True)
class BoxSearch:
    """Where annotations may be."""

    explicit: str | None  # what the user names: a folder of XML files, a tar of them, or a CSV file
    tops: tuple[Location, ...]  # folders in which annotations are looked for otherwise, in this order
    base: Location  # absolute path or URL of the images, whose component ``Data`` may be replaced by ``Annotations``
    split_folders: dict[str, bytes]  # folder of each split below ``base``: empty, or ending in a slash
    progress: Progress | None = None  # called after every few annotations of a tar

    def find(self, class_names: frozenset[bytes], warnings: list[str]) -> dict[str, Annotations | BoxTable]:
        """Return the annotations of each split; a split without annotations is absent.

        Looked at, in this order: what the user names; a folder of `ANNOTATION_FOLDERS` in the first of ``tops``; the
        path of the images with its last component ``Data`` replaced by ``Annotations``; such a folder in the other
        tops; a file of the names under which the annotations of ImageNet and of Stanford Dogs are distributed. In a
        folder of annotations, one for the split comes before the folder itself.
        """
        place = self._find_place()
        if place is None:
            if kaggle := self._first_file((KAGGLE_BOXES,)):
                message = f"{kaggle} has boxes, which are not read; the same are in Annotations/ of its download"
                warnings.append(f"{message}: give {option_with('boxes', 'FOLDER')}")
            return {}
        if not place.is_dir():
            source = self._read_file(place, class_names, warnings)
            boxes: dict[str, Annotations | BoxTable] = dict.fromkeys(self.split_folders, source)
        else:
            boxes = {
                split: _folder_source(place, os.fsdecode(folder), class_names)
                for split, folder in self.split_folders.items()
            }
        validation = self._first_file(_VALIDATION_FILES)
        if self.explicit is None and validation is not None and "validation" in boxes:
            boxes["validation"] = self._read_file(validation, class_names, warnings)
        return boxes

    def _find_place(self) -> Location | None:
        if self.explicit is not None:
            place = location(self.explicit)
            if not place.exists():
                message = f"{option('boxes')} {self.explicit} does not exist; give a folder of XML files"
                message += ", a tar of them or a CSV"
                raise SourceError(message, path=self.explicit)
            return place.resolve()
        # In ILSVRC's layout the folder that mirrors that of the images is more exact than the one above it.
        folder = _first_folder(self.tops[:1]) or _beside_images(self.base) or _first_folder(self.tops[1:])
        return _inside(folder) if folder is not None else self._first_file(_FILES)

    def _first_file(self, names: tuple[str, ...]) -> Location | None:
        return next((top / name for top in self.tops for name in names if (top / name).is_file()), None)

    def _read_file(self, path: Location, class_names: frozenset[bytes], warnings: list[str]) -> BoxTable:
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
    if any(is_folder or name.endswith(b".xml") for name, is_folder in seen_in(folder.to_uri())):
        return folder
    return next((folder / name for name in _FILES if (folder / name).is_file()), folder)


def _folder_source(top: Location, split_folder: str, class_names: frozenset[bytes]) -> Annotations:
    inner = top / split_folder
    place = inner if split_folder and inner.is_dir() else top
    where = place.to_uri()
    folders = folders_in(where)
    names = [name for name, _ in seen_in(where + b"/" + folders[0])] if folders else []  # one folder shows enough
    suffix = b"" if names and not any(name.endswith(b".xml") for name in names) else b".xml"
    return BoxFolder(where, per_class=bool(folders), class_names=class_names, suffix=suffix)


def _beside_images(base: Location) -> Location | None:
    where = annotations_beside(os.fsencode(str(base)))
    return from_uri(where) if where is not None and from_uri(where).is_dir() else None
