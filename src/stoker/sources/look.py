"""What kinds of sources check of a path to tell whether it is theirs; results are cached.

Where images, and their lists and annotations, lie in a folder (`find_layout`):

============================================  ==============================================================
ILSVRC's own layout, also Kaggle's            ``[ILSVRC/]Data/CLS-LOC/{train,val,test}``; the source may be
                                              any folder on the way
NVIDIA's download script                      ``data/{train,validation}`` beside ``bounding_boxes/``
Stanford Dogs                                 ``Images/<class>`` beside ``Annotation/``
a folder alone in another, with splits        that folder
anything else                                 the folder itself
============================================  ==============================================================
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from stoker.format import is_dataset
from stoker.sources.files import DATASET_MARKS, folders_in, some_entries
from stoker.sources.names import JUNK, NOT_CLASSES, is_image_name, is_sidecar
from stoker.sources.options import SourceOptions
from stoker.splits import splits_among
from stoker.storage import Child, Location, location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.types import Progress


T = TypeVar("T")
_MAIN_SPLITS = ("train", "validation", "val")  # asked for one by one: millions of files may lie beside them
_BESIDE_IMAGES = NOT_CLASSES | {b"Images"}
_LOOKED_AT = 1000
_FEW = 4  # up to so many folders are checked for datasets: the number of folders decides the kind of a source


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a folder lie."""

    base: Location  # folder of the splits or the classes
    tops: tuple[Location, ...]  # folders in which lists and annotations are looked for, in this order
    is_alone: bool = False  # whether the base lies alone in the folder


def find_layout(root: Location, without: Location | None = None) -> Layout:
    """Return where the parts of a folder lie, by the table above; the folder ``without`` is ignored."""
    inner = (root / "Data" / "CLS-LOC", root / "ILSVRC" / "Data" / "CLS-LOC")
    base = root if root.parts[-2:] == ("Data", "CLS-LOC") else next((path for path in inner if path.is_dir()), None)
    if base is not None:
        return Layout(base, (base, *base.parents[1:3]))
    if not _holds_splits(root) and _holds_splits(root / "data"):
        return Layout(root / "data", (root / "data", root))
    images = root / "Images"  # if it holds folders, and nothing that could be a class lies beside it
    if images.is_dir() and folders_in(images.to_uri()) and not any(_other_folders(root, _BESIDE_IMAGES, without)):
        return Layout(images, (images, root))
    annotations = {"data": "bounding_boxes", "Images": "Annotation"}.get(root.name)
    if annotations is not None and (root.parent / annotations).is_dir():
        return Layout(root, (root, root.parent))
    alone = [] if _holds_splits(root) else list(islice(_other_folders(root, NOT_CLASSES, without), 2))
    if len(alone) == 1 and (_holds_splits(lone := root / os.fsdecode(alone[0])) or _holds_only_splits(root, lone)):
        return Layout(lone, (lone, root), is_alone=True)
    return Layout(root, (root,))


def _holds_splits(folder: Location) -> bool:
    return any((folder / name).is_dir() for name in _MAIN_SPLITS)


def _holds_only_splits(root: Location, lone: Location) -> bool:
    """Return whether a folder holds several splits, called in any case, with no file in it or beside it."""
    some = dict(chain(*(islice(some_entries(folder.to_uri()), _LOOKED_AT) for folder in (root, lone))))
    names = {name for name in some if name not in JUNK and name[:1] != b"."} - {os.fsencode(lone.name)}
    splits = splits_among(names)
    return len({*splits.values()}) == len(names) > 1 and all(some[name] for name in names)


def is_built_in(folder: Location, without: Location | None) -> bool:
    """Return whether a folder is a dataset, or is ``without``, in which a dataset is to be built."""
    return (without is not None and folder.is_same(without)) or is_dataset(folder)


def _other_folders(folder: Location, known: frozenset[bytes], without: Location | None) -> Iterator[bytes]:
    """Yield the names of folders that could be classes or splits: neither ``known`` ones, nor hidden, nor datasets."""
    for name in folders_in(folder.to_uri()):
        inner = folder / os.fsdecode(name)
        if not name.startswith(b".") and name not in known and not is_built_in(inner, without):
            yield name


class FolderContents(NamedTuple):
    """The names in a folder, sorted, without hidden ones and datasets; only some of them if there are many.

    A folder that is a dataset itself has no names.
    """

    folders: list[str]
    files: list[str]
    ending: str  # how the names of most images end


class Look:
    """A path that the user gave, the options for it, and what lies there, which is cached."""

    def __init__(
        self, named: str, options: SourceOptions | None, progress: Progress | None, without: Location | None
    ) -> None:
        self.path: Location = location(named)
        self.root = str(self.path)  # its name in messages
        self.options = options or SourceOptions()  # what the user says about it
        self.progress = progress  # called after every few images or annotations
        self.without = without  # a folder in it to ignore
        self.is_file = self.path.is_file()
        self.layout: Layout | None = None  # where the parts of a folder lie; None if it is not a folder
        self._results: dict[Any, Any] = {}
        if self.path.is_dir():
            if without is not None and self.path.lies_in(without):
                self.without = None  # all of the source lies in it
            self.layout = find_layout(self.path.resolve(), self.without)

    # No `functools.cached_property`: before Python 3.12 it has a lock, which a forked process may inherit locked.
    @property
    def holds_folders(self) -> bool:
        """Whether it is a folder in which folders lie that could be classes or splits."""
        if self.layout is None:
            return False
        base = self.layout.base
        return self._once("folders", lambda: any(_other_folders(base, NOT_CLASSES, self.without)))

    def files_near(self, base: Location) -> list[Location]:
        """Return files that may be lists or annotations: those in ``base``, and some in the layout's other folders."""
        names = [child.name for child in self.beside_images(base) if child.is_file]
        tops = [] if self.layout is None else [top for top in self.layout.tops if top != self.layout.base]
        around = [top / name for top in tops for name in self.look_into(top).files]
        return [*(base / os.fsdecode(name) for name in names), *around]

    def beside_images(self, folder: Location) -> list[Child]:
        """Return what lies in a folder without files that have names of images, sorted; each folder is listed once."""
        return self._once(
            ("beside images", folder),
            lambda: [child for child in folder.children() if child.is_folder or not is_image_name(child.name)],
        )

    def once(self, find: Callable[[Look], T]) -> T:
        """Return the result of ``find(self)``, which is called only the first time."""
        return self._once(find, lambda: find(self))

    def folders_in(self, where: bytes) -> list[bytes]:
        """Return what `stoker.sources.files.folders_in` does; each folder is listed once."""
        return self._once(where, lambda: folders_in(where))

    def look_into(self, folder: Location) -> FolderContents:
        """Return some of what lies in a folder; each folder is listed once."""
        return self._once(folder, lambda: self._contents_of(folder))

    def _contents_of(self, folder: Location) -> FolderContents:
        some = dict(islice(some_entries(folder.to_uri()), _LOOKED_AT))
        if (DATASET_MARKS & some.keys() or len(some) == _LOOKED_AT) and is_dataset(folder):
            return FolderContents([], [], "")
        shown = sorted((os.fsdecode(name), is_folder) for name, is_folder in some.items() if name[:1] != b".")
        folders, files = ([name for name, is_folder in shown if is_folder is kind] for kind in (True, False))
        if len(folders) <= _FEW:
            folders = [name for name in folders if not is_built_in(folder / name, self.without)]
        ends = Counter((folder / name).suffix for name in files if not is_sidecar(os.fsencode(name)))
        return FolderContents(folders, files, max(ends, key=lambda end: ends[end], default=""))

    def _once(self, key: object, find: Callable[[], T]) -> T:
        if key not in self._results:
            self._results[key] = find()
        result: T = self._results[key]
        return result
