"""Finding the folder of box annotations that belongs to a tree of images."""

from __future__ import annotations

import os
from pathlib import Path

from stoker.errors import SourceError
from stoker.sources.boxes import BoxFolder

ANNOTATION_FOLDERS = frozenset({b"bounding_boxes", b"Annotations", b"annotations"})
"""Names that are never a class or a split."""


def find_boxes(root: bytes, split_folders: dict[str, bytes], explicit: str | None) -> dict[str, BoxFolder]:
    """Return where the XML files of each split lie; a split without annotations is absent.

    Looked at, in this order: the folder given; a folder of `ANNOTATION_FOLDERS` in the root; the path of the root with
    its last component ``Data`` replaced by ``Annotations`` (ILSVRC's own layout). Inside it, a folder for the split
    comes before the folder itself.

    Args:
        root: Real path of the tree.
        split_folders: Folder of each split relative to the root: empty, or ending in a slash.
        explicit: Folder named by the user.

    Raises:
        SourceError: ``explicit`` is not a directory.
    """
    top = _top_folder(Path(os.fsdecode(root)), explicit)
    if top is None:
        return {}
    found = {}
    for split, folder in split_folders.items():
        inner = top / os.fsdecode(folder)
        place = inner if folder and inner.is_dir() else top
        found[split] = BoxFolder(os.fsencode(place), per_class=_has_folders(place))
    return found


def _top_folder(root: Path, explicit: str | None) -> Path | None:
    if explicit is not None:
        if not Path(explicit).is_dir():
            raise SourceError(
                f"{explicit} is not a directory; --boxes names the folder of the XML files", path=explicit
            )
        return Path(explicit).resolve()
    for name in sorted(ANNOTATION_FOLDERS):
        if (root / os.fsdecode(name)).is_dir():
            return root / os.fsdecode(name)
    for at in reversed(range(len(root.parts))):
        if root.parts[at] == "Data":
            mapped = Path(*root.parts[:at], "Annotations", *root.parts[at + 1 :])
            return mapped if mapped.is_dir() else None
    return None


def _has_folders(place: Path) -> bool:
    with os.scandir(place) as entries:
        return any(entry.is_dir() for entry in entries)
