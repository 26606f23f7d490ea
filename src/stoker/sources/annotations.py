"""Finding the annotations that belong to a source of images."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.box_archive import read_box_csv, read_box_tar
from stoker.sources.boxes import BoxFolder
from stoker.sources.tar_bytes import is_compressed, is_tar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.sources.tree import BoxSource
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
        base: Absolute path of the images, whose component ``Data`` may be replaced by ``Annotations``.
        split_folders: Folder of each split below ``base``: empty, or ending in a slash.
        progress: Told about every few annotations of a tar.
    """

    explicit: str | None
    tops: tuple[Path, ...]
    base: Path
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

    def _find_place(self) -> Path | None:
        if self.explicit is not None:
            if not Path(self.explicit).exists():
                message = f"--boxes {self.explicit} is not there; give a folder of XML files, a tar of them or a CSV"
                raise SourceError(message, path=self.explicit)
            return Path(self.explicit).resolve()
        # In ILSVRC's layout the folder that mirrors that of the images is more exact than the one above it.
        found = _first_folder(self.tops[:1]) or _mapped(self.base) or _first_folder(self.tops[1:])
        return _inside(found) if found is not None else self._first_file(_FILES)

    def _first_file(self, names: tuple[str, ...]) -> Path | None:
        return next((top / name for top in self.tops for name in names if (top / name).is_file()), None)

    def _read_file(self, path: Path, class_names: frozenset[bytes], warnings: list[str]) -> BoxSource:
        if is_compressed(path) or is_tar(path):
            return read_box_tar(path, self.progress).finish(class_names)
        builder, notes = read_box_csv(path)
        warnings += notes
        return builder.finish(class_names)


def _first_folder(tops: tuple[Path, ...]) -> Path | None:
    folders = (top / os.fsdecode(name) for top in tops for name in sorted(ANNOTATION_FOLDERS))
    return next((folder for folder in folders if folder.is_dir()), None)


def _inside(folder: Path) -> Path:
    """Return the folder if XML files lie in it, else a tar or a list of them that does."""
    if any(entry.is_dir() or entry.suffix == ".xml" for entry in folder.iterdir()):
        return folder
    return next((folder / name for name in _FILES if (folder / name).is_file()), folder)


def _folder_source(top: Path, split_folder: str, class_names: frozenset[bytes]) -> BoxSource:
    inner = top / split_folder
    place = inner if split_folder and inner.is_dir() else top
    folders = list(_folders(place))
    names = os.listdir(folders[0]) if folders else []  # noqa: PTH208 - one name is enough, of perhaps a thousand
    suffix = b"" if names and not any(name.endswith(".xml") for name in names) else b".xml"
    return BoxFolder(os.fsencode(place), per_class=bool(folders), class_names=class_names, suffix=suffix)


def _folders(place: Path) -> Iterator[str]:
    with os.scandir(place) as entries:
        yield from (entry.path for entry in entries if entry.is_dir())


def _mapped(base: Path) -> Path | None:
    for at in reversed(range(len(base.parts))):
        if base.parts[at] == "Data":
            mapped = Path(*base.parts[:at], "Annotations", *base.parts[at + 1 :])
            return mapped if mapped.is_dir() else None
    return None
