"""A tree of class folders: what is in it, listed once.

Two layouts are understood::

    root/train/<class>/...          root/<class>/...
    root/validation/<class>/...     (all of it is the split "train")
    root/test/<class>/...

``val`` is another name for ``validation``. The class of a file is the first folder below its split; how deep the file
lies below that does not matter. Every regular file is an item, whatever it is called, except hidden files and the
sidecars of `stoker.sources.walk.SIDECARS`: content decides later what an item is.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError
from stoker.sources.annotations import ANNOTATION_FOLDERS, find_boxes
from stoker.sources.items import ItemTable, ItemTableBuilder
from stoker.sources.text import class_texts
from stoker.sources.walk import ClassWalk, Skipped, is_folder, is_sidecar, scan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.sources.boxes import BoxFolder

SPLITS = ("train", "validation", "test")
_SPLIT_FOLDERS = {b"train": "train", b"validation": "validation", b"val": "validation", b"test": "test"}
_METADATA = frozenset({b"synsets.txt", b"imagenet_metadata.txt", b"words.txt"})


@dataclass(frozen=True, slots=True, eq=False)
class SourceTree:
    """Everything a build needs to know about a tree. Read-only.

    Attributes:
        root: Path of the tree.
        classes: Names of the class folders of all splits, sorted by their bytes; the index is the class index.
        texts: What each class is called in words; empty where unknown.
        table: All items: by split, then by class, then by the bytes of the path.
        splits: For each split that is there, the rows of ``table`` that belong to it (int64, ascending).
        ignored: Files that are not items, counted by suffix or by kind.
        warnings: What a person should know.
        boxes: Where the annotations of each split lie; a split without them is absent.
    """

    root: str
    classes: tuple[bytes, ...]
    texts: tuple[bytes, ...]
    table: ItemTable
    splits: dict[str, NDArray[np.int64]]
    ignored: dict[str, int]
    warnings: tuple[str, ...]
    boxes: dict[str, BoxFolder]

    def fingerprint(self) -> str:
        """Return 32 hex digits that change with any name, size, class, text or split, but not with dates or places."""
        digest = hashlib.sha256()
        for part in (*self.classes, b"", *self.texts):
            digest.update(len(part).to_bytes(8, "little") + part)
        for split, rows in self.splits.items():
            where = self.boxes.get(split)
            digest.update(f"\n{split} {len(rows)} {where is not None}\n".encode())
            digest.update(rows.astype("<i8").tobytes())
        for column in (self.table.starts, self.table.labels, self.table.sizes):
            digest.update(column.astype("<i8").tobytes())
        digest.update(self.table.names)
        return digest.hexdigest()[:32]


def list_folder(root: str, *, boxes: str | None = None, class_names: str | None = None) -> SourceTree:
    """List a tree of class folders.

    Args:
        root: The tree.
        boxes: Folder of the annotations; found beside the images when not given.
        class_names: File of ``name<TAB>text`` lines; ``imagenet_metadata.txt`` or ``words.txt`` in the root when not
            given.

    Raises:
        SourceError: It is not a directory, holds no class folder, or cannot be read.
    """
    if not Path(root).is_dir():
        problem = "is not a directory" if Path(root).exists() else "does not exist"
        message = f"{root} {problem}; give the folder that holds the class folders, or train/ and validation/"
        raise SourceError(message, path=root)
    inner = Path(root, "Data", "CLS-LOC")
    if inner.is_dir():
        raise SourceError(f"{root} is the top of ILSVRC's own layout; give {inner}", path=root)
    skipped = Skipped()
    base = os.path.realpath(os.fsencode(root))
    folders = _split_folders(base, skipped)
    names = sorted({name for found in folders.values() for name in found.classes})
    if not names:
        message = f"{root} holds no class folder; put the images of each class into a folder named after the class"
        raise SourceError(message, path=root)
    _check_names(names, root)
    table, splits = _list_items(base, folders, names, skipped)
    _warn_about_classes(folders, names, table, skipped)
    return SourceTree(
        root=root,
        classes=tuple(names),
        texts=class_texts(root, names, class_names),
        table=table,
        splits=splits,
        ignored=dict(sorted(skipped.ignored.items())),
        warnings=tuple(skipped.warnings),
        boxes=find_boxes(base, {split: found.folder for split, found in folders.items()}, boxes),
    )


@dataclass(frozen=True, slots=True)
class _SplitFolder:
    """A folder (relative to the root, empty or ending in a slash) and the class folders in it."""

    folder: bytes
    classes: tuple[bytes, ...]


def _split_folders(base: bytes, skipped: Skipped) -> dict[str, _SplitFolder]:
    entries = scan(base)
    candidates = [entry for entry in entries if entry.name in _SPLIT_FOLDERS and is_folder(entry)]
    # A class may be called "train". Only a folder that holds folders is a split.
    held = {entry.name: [sub for sub in scan(entry.path) if is_folder(sub)] for entry in candidates}
    others = [entry.name for entry in entries if entry.name not in held and entry.name not in ANNOTATION_FOLDERS]
    others = [name for name in others if name not in _METADATA and not name.startswith(b".")]
    lone = not held.get(b"train") and any(is_folder(entry) for entry in entries if entry.name in others)
    if lone or not any(held.values()):
        return {"train": _SplitFolder(b"", _class_folders(base, b"", entries, skipped))}
    if b"val" in held and b"validation" in held:
        where = os.fsdecode(base)
        raise SourceError(f"{where} holds both val/ and validation/; keep one of them", path=where)
    _count_others(others, skipped)
    found: dict[str, _SplitFolder] = {}
    for name in sorted(held, key=lambda name: SPLITS.index(_SPLIT_FOLDERS[name])):
        classes = _class_folders(base, name + b"/", scan(os.path.join(base, name)), skipped)  # noqa: PTH118
        found[_SPLIT_FOLDERS[name]] = _SplitFolder(name + b"/", classes)
    return found


def _count_others(names: list[bytes], skipped: Skipped) -> None:
    """Count what lies beside the split folders, and warn of what may be images."""
    unused = []
    for name in names:
        if is_sidecar(name):
            skipped.count_sidecar(name)
        else:
            unused.append(name)
    if unused:
        skipped.ignored["outside the splits"] += len(unused)
        _warn(skipped, unused, "beside the splits and not used: {names}")


def _class_folders(
    base: bytes, folder: bytes, entries: list[os.DirEntry[bytes]], skipped: Skipped
) -> tuple[bytes, ...]:
    """Return the names of the class folders among ``entries``; count the files that lie outside any class."""
    walk = ClassWalk(base, skipped)
    classes = []
    loose = 0
    for entry in entries:
        if entry.name in ANNOTATION_FOLDERS or (not folder and entry.name in _METADATA):
            continue
        if entry.name.startswith(b"."):
            skipped.ignored["hidden"] += 1
        elif is_sidecar(entry.name) and not is_folder(entry):
            skipped.count_sidecar(entry.name)
        elif not is_folder(entry):
            loose += 1
        elif not entry.is_symlink() or walk.stays_inside(entry):
            classes.append(entry.name)
    if loose:
        skipped.ignored["outside a class folder"] += loose
        where = os.fsdecode(folder) or "the root"
        skipped.warnings.append(f"{loose} files in {where} lie outside any class folder and are not used")
    return tuple(classes)


def _list_items(
    base: bytes, folders: dict[str, _SplitFolder], names: list[bytes], skipped: Skipped
) -> tuple[ItemTable, dict[str, NDArray[np.int64]]]:
    label_of = {name: label for label, name in enumerate(names)}
    builder = ItemTableBuilder()
    splits = {}
    for split, found in folders.items():
        first = len(builder)
        for name in found.classes:
            below = found.folder + name + b"/"
            for path, size in ClassWalk(base, skipped).files(base + b"/" + below):
                builder.add(below + path, label_of[name], size)
        splits[split] = np.arange(first, len(builder), dtype=np.int64)
    return builder.finish(), splits


def _check_names(names: list[bytes], root: str) -> None:
    for name in names:
        if any(byte < 32 for byte in name):
            message = f"the class folder {os.fsdecode(name)!r} has a control character in its name; rename it"
            raise SourceError(message, path=root)


def _warn_about_classes(
    folders: dict[str, _SplitFolder], names: list[bytes], table: ItemTable, skipped: Skipped
) -> None:
    counts = np.bincount(table.labels, minlength=len(names))
    empty = [name for name, count in zip(names, counts.tolist(), strict=True) if not count]
    _warn(skipped, empty, "no images in class {names}; it keeps its label")
    if "train" in folders:
        extra = sorted(set(names) - set(folders["train"].classes))
        _warn(skipped, extra, "class {names} is not in train; it gets a label all the same")


def _warn(skipped: Skipped, names: list[bytes], message: str) -> None:
    if names:
        shown = ", ".join(os.fsdecode(name) for name in names[:5])
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        skipped.warnings.append(message.format(names=shown + more))
