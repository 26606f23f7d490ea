"""One function that lists any source of images."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.draft import Draft
from stoker.sources.image_folders import fill_from_folder
from stoker.sources.imagenet.annotations import ANNOTATION_FOLDERS, BoxSearch, read_tiny_boxes
from stoker.sources.imagenet.config_file import read_config
from stoker.sources.imagenet.labels import find_validation_labels, read_validation_labels
from stoker.sources.lists import FileLists
from stoker.sources.tar_format import is_compressed, is_tar
from stoker.sources.tars import TarGatherer, find_tars, split_of
from stoker.sources.tree import SourceOptions, SourceTree
from stoker.sources.walking import folders_in
from stoker.storage import location

if TYPE_CHECKING:
    from stoker.sources.tree import BoxSource
    from stoker.storage import Location
    from stoker.types import Progress


# Where in a folder the images lie, and where the lists and annotations that belong to them.


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
    if not images.is_dir() or not folders_in(images.spelled()):
        return False
    others = ANNOTATION_FOLDERS | {b"Images", b"lists"}
    return all(name in others or name.startswith(b".") for name in folders_in(root.spelled()))


_NO_CLASSES = ANNOTATION_FOLDERS | {b"lists"}


def list_source(
    root: str,
    options: SourceOptions | None = None,
    progress: Progress | None = None,
) -> SourceTree:
    """List the images of a source.

    ====================================  ==========================================================================
    folder of splits or classes           `stoker.sources.image_folders`, `stoker.sources.listing`
    tar, or folder of ImageNet's tars     `stoker.sources.tars`
    text file with one path a line        `stoker.sources.lists`
    ``ilsvrc.json``                       `stoker.sources.imagenet.config_file`: two such lists
    ====================================  ==========================================================================

    Every file that is named may be the URL of an object instead. The same images have the same items, the same order
    and the same fingerprint wherever they lie.

    Args:
        root: Path or URL of one of these.
        options: What the user says about it.
        progress: Told about every few images or annotations.

    Raises:
        SourceError: It does not exist, is nothing that can be listed, or is damaged.
        ConfigError: What the user says does not fit.
        OSError: It cannot be read; a ``StorageError``, if it is the store that is gone.
    """
    path = location(root)
    options = options or SourceOptions()
    if path.is_dir():
        return _list_directory(path, options, progress)
    if not path.is_file():
        problem = "is neither a folder nor a file" if path.exists() else "does not exist"
        message = f"{root} {problem}; give the folder that holds the class folders, or train/ and validation/"
        raise SourceError(f"{message}, a tar, or a list of files", path=root)
    if is_tar(path) or is_compressed(path):
        return _list_tars(root, {path: split_of(path.name)}, path.parent, options, progress)
    return _list_files(path, options, progress)


def _list_directory(path: Location, options: SourceOptions, progress: Progress | None) -> SourceTree:
    place = find_place(path.resolve())
    tars = find_tars(place.base)
    if tars and not _holds_folders(place.base):
        return _list_tars(str(path), tars, place.base, options, progress)
    draft = Draft(str(path), place.base.spelled(), options, place.tops, progress=progress)
    label_places = (*place.tops, path.resolve().parent)
    folders = fill_from_folder(draft, label_places)

    def find_boxes(class_names: frozenset[bytes], warnings: list[str]) -> dict[str, BoxSource]:
        if options.boxes is None:
            listed = draft.skipped.ignored[".txt"] > 0  # they have been seen beside the images
            tiny = read_tiny_boxes(place.base, class_names if listed else (), warnings)
            if tiny is not None:
                return dict.fromkeys(folders, tiny.finish(class_names))
        paths = {split: found.path for split, found in folders.items()}
        search = BoxSearch(options.boxes, place.tops, place.base, paths, progress)
        return search.find(class_names, warnings)

    return draft.finish(find_boxes)


def _holds_folders(folder: Location) -> bool:
    """Return whether there are folders that could be classes or splits."""
    return any(not name.startswith(b".") and name not in _NO_CLASSES for name in folders_in(folder.spelled()))


def _list_tars(
    root: str, tars: dict[Location, str], folder: Location, options: SourceOptions, progress: Progress | None
) -> SourceTree:
    draft = Draft(root, folder.spelled(), options, (folder,), progress=progress)
    labels = None
    listed = find_validation_labels((folder, folder.resolve().parent), options.validation_labels)
    if listed is not None and "validation" in tars.values():
        labels = read_validation_labels(listed, draft.labels)
        if "train" not in tars.values():
            draft.classes |= labels.class_names()  # a part of the images must have the labels of the whole
    gatherer = TarGatherer(draft, labels)
    for path, split in tars.items():
        gatherer.add(path, split)
    gatherer.finish()
    if not draft.gathering.class_names() and not len(draft.gathering):
        raise SourceError(f"{root} holds no image", path=root)

    def find_boxes(class_names: frozenset[bytes], warnings: list[str]) -> dict[str, BoxSource]:
        splits = {group.split: b"" for group in draft.gathering.groups if group.split is not None}
        search = BoxSearch(options.boxes, (folder,), folder.resolve(), splits, progress)
        return search.find(class_names, warnings)

    return draft.finish(find_boxes)


def _list_files(path: Location, options: SourceOptions, progress: Progress | None) -> SourceTree:
    config = read_config(path) if path.suffix.lower() == ".json" else None
    draft = Draft(str(path), path.parent.spelled(), options, (path.parent,), progress=progress)
    lists = FileLists(draft, config.lists() if config else {path: "train"})
    lists.fill()
    tree = draft.finish(lists.find_boxes)
    if config is None or config.num_classes in (None, len(tree.classes)):
        return tree
    note = f"{path} says num_classes {config.num_classes}, but its lists have {len(tree.classes)} classes"
    return dataclasses.replace(tree, warnings=(*tree.warnings, note))
