"""A folder of images: splits, classes, and images that lie in one folder without any class.

Three layouts of a split are understood::

    root/train/<class>/...           root/<class>/...
    root/validation/<class>/...      (all of it is the split "train")
    root/test/<class>/...

    root/validation/*.JPEG           with a list of `stoker.sources.imagenet.labels`
    root/test/*.JPEG                 without labels

    root/train/<wnid>/images/*.JPEG  Tiny ImageNet: val/images with val/val_annotations.txt, test/images without labels

``val`` is another name for ``validation``. The class of a file is the first folder below its split; how deep the file
lies below that does not matter. Every regular file is an item, whatever it is called, except hidden files and the
sidecars of `stoker.sources.walking.SIDECARS`: content decides later what an item is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.gather import Group
from stoker.sources.imagenet.annotations import ANNOTATION_FOLDERS
from stoker.sources.imagenet.labels import (
    LABEL_LISTS,
    TEXT_LISTS,
    TINY_LIST,
    find_validation_labels,
    read_validation_labels,
)
from stoker.sources.tree import SPLITS
from stoker.sources.walking import folders_in, is_sidecar, list_folders, scan, stays_inside
from stoker.storage import place_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.sources.draft import Draft
    from stoker.sources.imagenet.labels import ValidationLabels
    from stoker.sources.walking import Skipped
    from stoker.storage import Child, Location


# Which folders of a source are splits, and whether a split has class folders or images without any.
#
# What is understood is drawn in `stoker.sources.image_folders`.


SPLIT_FOLDERS = {b"train": "train", b"validation": "validation", b"val": "validation", b"test": "test"}
"""Folders that are splits, if they hold classes, and which."""

_METADATA = frozenset(name.encode() for name in (*TEXT_LISTS, *LABEL_LISTS, TINY_LIST, "synsets.txt", "wnids.txt"))
_TINY_FOLDER = b"images"


@dataclass(frozen=True, slots=True)
class SplitFolder:
    """Where the images of a split are.

    Attributes:
        path: The folder, relative to the root: empty, or ending in a slash.
        classes: The class folders in it; None if the images lie in it directly.
        labels: The classes of such images; None if they have none.
    """

    path: bytes
    classes: tuple[bytes, ...] | None
    labels: ValidationLabels | None = None


class SplitFinder:
    """Looks at the folders below ``draft.base``; counts and reports in ``draft`` what belongs to no class.

    Args:
        draft: The source.
        label_places: Folders in which a list of the validation labels is looked for.
    """

    def __init__(self, draft: Draft, label_places: tuple[Location, ...]) -> None:
        self._draft = draft
        self._base = draft.base
        self._skipped: Skipped = draft.skipped
        self._labels = find_validation_labels(label_places, draft.options.validation_labels)

    def find(self) -> dict[str, SplitFolder]:
        """Return the folder of each split.

        Raises:
            ConfigError: See `read_validation_labels`.
            SourceError: A folder cannot be read, or validation images have neither class folders nor a list.
        """
        entries = scan(self._base)
        candidates = [entry for entry in entries if entry.name in SPLIT_FOLDERS and entry.is_folder]
        # A class may be called "train". Only a folder that holds folders is a split, or one with a list of labels.
        held = {entry.name: folders_in(self._base + b"/" + entry.name) for entry in candidates}
        others = [entry for entry in entries if entry.name not in held and _may_matter(entry.name)]
        lone = not held.get(b"train") and any(entry.is_folder for entry in others)
        listed = self._labels is not None and not {b"val", b"validation"}.isdisjoint(held)
        if lone or not (any(held.values()) or listed):
            return self._without_splits(entries)
        if b"val" in held and b"validation" in held:
            where = os.fsdecode(self._base)
            raise SourceError(f"{where} holds both val/ and validation/; keep one of them", path=where)
        self._count_others([entry.name for entry in others])
        names = sorted(held, key=lambda name: SPLITS.index(SPLIT_FOLDERS[name]))
        return {SPLIT_FOLDERS[name]: self._split(name) for name in names}

    def _without_splits(self, entries: Sequence[Child]) -> dict[str, SplitFolder]:
        if self._draft.options.validation_labels is not None and not any(entry.is_folder for entry in entries):
            return {"validation": SplitFolder(b"", None, self._read_labels())}
        return {"train": SplitFolder(b"", self._class_folders(b"", entries))}

    def _split(self, name: bytes) -> SplitFolder:
        entries = scan(self._base + b"/" + name)
        split = SPLIT_FOLDERS[name]
        folders = [entry.name for entry in entries if entry.is_folder and _may_matter(entry.name)]
        if split == "train":
            return SplitFolder(name + b"/", self._class_folders(name + b"/", entries))
        if folders == [_TINY_FOLDER] and self._is_tiny():
            return self._flat(split, name + b"/" + _TINY_FOLDER + b"/")
        flat = not folders and any(_may_matter(entry.name) and not is_sidecar(entry.name) for entry in entries)
        return (
            self._flat(split, name + b"/")
            if flat
            else SplitFolder(name + b"/", self._class_folders(name + b"/", entries))
        )

    def _flat(self, split: str, folder: bytes) -> SplitFolder:
        return SplitFolder(folder, None, self._read_labels() if split == "validation" else None)

    def _is_tiny(self) -> bool:
        base = place_at(self._base)
        return (base / "val" / TINY_LIST).is_file() or (base / "wnids.txt").is_file()

    def _read_labels(self) -> ValidationLabels:
        tiny = place_at(self._base) / "val" / TINY_LIST
        path = self._labels or (tiny if tiny.is_file() else None)
        if path is None:
            where = self._draft.root
            message = f"{where} holds validation images without class folders; give their classes with"
            raise SourceError(f"{message} --validation-labels, or put {LABEL_LISTS[0]} into {where}", path=where)
        return read_validation_labels(path, self._draft.labels)

    def _count_others(self, names: list[bytes]) -> None:
        """Count what lies beside the split folders, and warn of what may be images."""
        unused = []
        for name in names:
            if is_sidecar(name):
                self._skipped.count_sidecar(name)
            else:
                unused.append(name)
        if unused:
            self._skipped.ignored["outside the splits"] += len(unused)
            self._skipped.warn(unused, "beside the splits and not used: {names}")

    def _class_folders(self, folder: bytes, entries: Sequence[Child]) -> tuple[bytes, ...]:
        """Return the names of the class folders among ``entries``; count the files that lie outside any class."""
        classes = []
        loose = 0
        for entry in entries:
            if entry.name in ANNOTATION_FOLDERS or entry.name in _METADATA:
                continue
            if entry.name.startswith(b"."):
                self._skipped.ignored["hidden"] += 1
            elif is_sidecar(entry.name) and not entry.is_folder:
                self._skipped.count_sidecar(entry.name)
            elif not entry.is_folder:
                loose += 1
            elif not entry.is_link or self._stays_inside(self._base + b"/" + folder + entry.name):
                classes.append(entry.name)
        if loose:
            self._skipped.ignored["outside a class folder"] += loose
            where = os.fsdecode(folder) or "the root"
            self._skipped.warnings.append(f"{loose} files in {where} lie outside any class folder and are not used")
        return tuple(classes)

    def _stays_inside(self, link: bytes) -> bool:
        return stays_inside(link, place_at(link).spelled(), self._base, self._skipped)


def _may_matter(name: bytes) -> bool:
    """Return whether a name could be that of a class, a split or an image."""
    return name not in ANNOTATION_FOLDERS and name not in _METADATA and not name.startswith(b".")


def fill_from_folder(draft: Draft, label_places: tuple[Location, ...]) -> dict[str, SplitFolder]:
    """Gather the images below ``draft.base``.

    Args:
        draft: Receives them.
        label_places: Folders in which a list of the validation labels is looked for.

    Returns:
        The folder of each split.

    Raises:
        ConfigError: The list of the validation labels needs a label map.
        SourceError: There is no class folder, a folder cannot be read, or validation images have no labels.
    """
    folders = SplitFinder(draft, label_places).find()
    if all(found.classes == () for found in folders.values()):
        message = (
            f"{draft.root} holds no class folder; put the images of each class into a folder named after the class"
        )
        raise SourceError(message, path=draft.root)
    for split, found in folders.items():
        if found.classes is None:
            _gather_flat(draft, split, found)
        else:
            _gather_classes(draft, split, found)
    labels = folders["validation"].labels if "validation" in folders else None
    if labels is None and draft.options.validation_labels is not None:
        draft.skipped.warnings.append("--validation-labels is not used: no validation images lie outside class folders")
    if labels is not None and "train" not in folders:
        draft.classes |= labels.class_names()  # a part of the images must have the labels of the whole
    return folders


def _gather_classes(draft: Draft, split: str, found: SplitFolder) -> None:
    classes = found.classes or ()
    folders = [found.path + name + b"/" for name in classes]
    before = len(draft.gathering)
    for done, listing in enumerate(list_folders(draft.base, folders), 1):
        folder = folders[done - 1]
        group = draft.gathering.group(Group(split, classes[done - 1], len(folder)))
        draft.skipped.add(listing.skipped)
        for path, size in listing.files:
            draft.gathering.add(group, folder + path, size)
        if draft.progress is not None and done < len(folders):  # a listing that is over at once shows nothing
            images = len(draft.gathering) - before
            total = before + max(images * len(folders) // done, images + 1)
            draft.progress(done=before + images, total=total, size_bytes=0, rejects=0)


def _gather_flat(draft: Draft, split: str, found: SplitFolder) -> None:
    labels = found.labels
    known = draft.gathering.class_names().union(draft.labels.names if draft.labels else ())
    groups: dict[bytes | None, int] = {}
    unlabelled = 0
    (listing,) = list_folders(draft.base, [found.path])
    draft.skipped.add(listing.skipped)
    for path, size in listing.files:
        name = labels.class_of(path) if labels is not None else None
        if labels is not None and labels.tolerant and known and name not in known:
            name = None
        unlabelled += name is None
        if name not in groups:
            groups[name] = draft.gathering.group(Group(split, name, len(found.path)))
        draft.gathering.add(groups[name], found.path + path, size)
    if labels is None:
        return
    if labels.bad_lines:
        draft.skipped.ignored["bad line of labels"] += labels.bad_lines
        draft.skipped.warnings.append(f"{labels.where}: {labels.bad_lines} lines name no image or no class")
    if unlabelled:
        draft.skipped.warnings.append(f"{labels.where} gives no known class to {unlabelled} images: they have no label")
