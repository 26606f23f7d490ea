"""Where in a folder the images lie, and where the lists and annotations that belong to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.sources.annotations import ANNOTATION_FOLDERS
from stoker.sources.folders import folders_in
from stoker.sources.where import spelled

if TYPE_CHECKING:
    from stoker.storage import Location

_SPLIT_NAMES = ("train", "validation", "val")


@dataclass(frozen=True, slots=True)
class Place:
    """Parts of a source.

    Attributes:
        base: Folder of the splits or the classes.
        tops: Folders in which lists and annotations are looked for, in this order.
    """

    base: Location
    tops: tuple[Location, ...]


def find_place(root: Location) -> Place:
    """Return where the images of a folder lie.

    ============================================  ============================================================
    ILSVRC's own layout, also Kaggle's            ``[ILSVRC/]Data/CLS-LOC/{train,val,test}``; ``root`` is any
                                                  folder on the way
    NVIDIA's download script                      ``data/{train,validation}`` beside ``bounding_boxes/``
    Stanford Dogs                                 ``Images/<class>`` beside ``Annotation/``
    anything else                                 the folder itself
    ============================================  ============================================================

    Args:
        root: Absolute path of the folder.
    """
    inner = (root / "Data" / "CLS-LOC", root / "ILSVRC" / "Data" / "CLS-LOC")
    base = root if root.parts[-2:] == ("Data", "CLS-LOC") else next((path for path in inner if path.is_dir()), None)
    if base is not None:
        return Place(base, (base, *base.parents[1:3]))
    if not _holds_splits(root) and _holds_splits(root / "data"):
        return Place(root / "data", (root / "data", root))
    if _holds_only_images(root):
        return Place(root / "Images", (root / "Images", root))
    annotations = {"data": "bounding_boxes", "Images": "Annotation"}.get(root.name)
    if annotations is not None and (root.parent / annotations).is_dir():
        return Place(root, (root, root.parent))
    return Place(root, (root,))


def _holds_splits(folder: Location) -> bool:
    return any((folder / name).is_dir() for name in _SPLIT_NAMES)


def _holds_only_images(root: Location) -> bool:
    """Return whether there is a folder ``Images`` of folders, and beside it nothing that could be a class."""
    images = root / "Images"
    if not images.is_dir() or not folders_in(spelled(images)):
        return False
    others = ANNOTATION_FOLDERS | {b"Images", b"lists"}
    return all(name in others or name.startswith(b".") for name in folders_in(spelled(root)))
