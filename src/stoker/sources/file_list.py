"""Lists of files: a text file with the path of one image a line.

A path is absolute, or relative to the folder of the list, or it is the URL of an object. Blank lines are counted,
everything else is a path: there are no comments. Blanks around a path belong to it unless only the path without them is
there. The class is the folder of the image, or the one above that if it is called ``images``. A file that is not there
is an item all the same, so that a build names it among the rejects.
"""

from __future__ import annotations

import os
import stat
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError, StorageError
from stoker.sources.annotations import BoxSearch
from stoker.sources.boxes import read_boxes
from stoker.sources.gather import Group
from stoker.sources.in_order import AT_ONCE, in_order
from stoker.sources.lines import numbered_lines
from stoker.sources.sizes import fill_sizes
from stoker.sources.validation_labels import find_validation_labels, read_validation_labels
from stoker.sources.walk import is_of_the_name
from stoker.sources.where import is_absolute, object_at, place_at, spelled, split_bucket, within
from stoker.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.sources.draft import Draft
    from stoker.sources.tree import BoxSource
    from stoker.storage import Location
    from stoker.types import Box

_NO_CLASS = frozenset({b"val", b"validation", b"test", b"train", b"images"})
"""Folders that hold images of many classes."""


@dataclass(frozen=True, slots=True)
class MappedBoxes:
    """Annotations that lie where the images do, below ``Annotations`` instead of ``Data`` (ILSVRC's own layout).

    Attributes:
        base: Folder that paths of images are relative to.
        class_names: The whole label set.
    """

    base: bytes
    class_names: frozenset[bytes]

    @property
    def where(self) -> str:
        """What is replaced by what."""
        return "Data -> Annotations"

    def read(self, item_path: bytes, class_name: bytes) -> list[Box]:
        """Return the boxes of an image; see `read_boxes`.

        Raises:
            SourceError: The annotation is damaged.
        """
        mapped = _mapped(self.base, item_path)
        if mapped is None:
            return []
        annotation = os.path.splitext(mapped)[0] + b".xml"  # noqa: PTH122 - pathlib has no bytes paths
        return read_boxes(annotation, class_name, self.class_names)


def _mapped(base: bytes, path: bytes) -> bytes | None:
    """Return an absolute path or a URL whose last part ``Data`` is replaced; None if it has no such part."""
    bucket, rest = split_bucket(within(base, path))
    parts = rest.split(b"/")
    if b"Data" not in parts:
        return None
    parts[len(parts) - 1 - parts[::-1].index(b"Data")] = b"Annotations"
    return (bucket and bucket + b"/") + b"/".join(parts)


def _is_folder(where: bytes) -> bool:
    return place_at(where).is_dir()


class FileLists:
    """One or more lists, each of which is a split.

    Args:
        draft: Receives the images.
        lists: The split of each list.
    """

    def __init__(self, draft: Draft, lists: Mapping[Location, str]) -> None:
        self._draft = draft
        self._lists = lists
        self._folders: dict[tuple[str, bytes, bytes | None], int] = {}
        self._hashes = array("q")
        explicit = find_validation_labels((), draft.options.validation_labels)
        self._labels = read_validation_labels(explicit, draft.labels) if explicit else None

    def fill(self) -> None:
        """Gather the images.

        Raises:
            SourceError: A list is not there, is no text, or its images do not lie in class folders.
            OSError: A list cannot be read.
        """
        for path, split in self._lists.items():
            if not path.is_file():
                raise SourceError(f"the list {path} is not there or is no file", path=str(path))
            folder = spelled(path.parent)
            before = b"" if folder == self._draft.base else folder + b"/"
            for number, line in numbered_lines(path):
                self._add(line, split, before, f"line {number} of {path}")
        gathering = self._draft.gathering
        fill_sizes(gathering, self._stored_folders(), self._draft.progress)
        names = gathering.class_names()
        if names and names <= _NO_CLASS and not self._labels:
            shown = " and ".join(sorted(map(os.fsdecode, names)))
            message = f"all images of {self._draft.root} lie in a folder called {shown}, not in class folders"
            raise SourceError(f"{message}; give their classes with --validation-labels", path=self._draft.root)
        repeated = len(self._hashes) - len(np.unique(np.frombuffer(self._hashes, np.int64)))
        if repeated:
            self._draft.skipped.warnings.append(f"{repeated} lines repeat an earlier one; each is an item of its own")

    def find_boxes(self, class_names: frozenset[bytes], warnings: list[str]) -> dict[str, BoxSource]:
        """Return the annotations of each split.

        Raises:
            SourceError: See `BoxSearch.find`.
            OSError: See `BoxSearch.find`.
        """
        splits = dict.fromkeys(self._lists.values(), b"")
        explicit = self._draft.options.boxes
        if explicit is not None:
            return BoxSearch(explicit, (), place_at(self._draft.base), splits).find(class_names, warnings)
        base = self._draft.base
        found = (_mapped(base, folder) for _, folder, _ in self._folders)
        mapped = {folder for folder in found if folder is not None}
        if not any(in_order(_is_folder, mapped, AT_ONCE if any(map(is_remote, mapped)) else 1)):
            return {}
        return dict.fromkeys(splits, MappedBoxes(base, class_names))

    def _add(self, line: bytes, split: str, before: bytes, where: str) -> None:
        if not line.strip():
            self._draft.skipped.ignored["blank line"] += 1
            return
        if b"\0" in line:
            raise SourceError(f"{where} has a NUL byte, so it is no list of files", path=self._draft.root)
        path, stripped = (text if is_absolute(text) else before + text for text in (line, line.strip()))
        if path != stripped and self._size(path) is None and self._size(stripped) is not None:
            path = stripped
        # What lies in a store gets its size later, from a listing of its folder.
        size = 0 if is_remote(within(self._draft.base, path)) else self._size(path)
        folder, _, name = path.rpartition(b"/")
        self._hashes.append(hash((split, path)))
        self._draft.gathering.add(self._group(split, folder, name, where), path, size or 0)

    def _stored_folders(self) -> dict[int, bytes]:
        """Return the URL of the folder of each group that lies in a store."""
        folders = ((number, within(self._draft.base, folder)) for (_, folder, _), number in self._folders.items())
        return {number: folder for number, folder in folders if is_remote(folder)}

    def _size(self, path: bytes) -> int | None:
        """Return the size of a file; None if there is none."""
        where = within(self._draft.base, path)
        try:
            info = object_at(where).stat() if is_remote(where) else os.stat(where)  # noqa: PTH116
        except StorageError:
            raise
        except OSError as error:
            if not is_remote(where) and not is_of_the_name(error):
                raise
            return None
        return info.st_size if not isinstance(info, os.stat_result) or stat.S_ISREG(info.st_mode) else 0

    def _group(self, split: str, folder: bytes, name: bytes, where: str) -> int:
        parts = split_bucket(folder)[1].split(b"/")
        class_name: bytes | None = parts[-2] if len(parts) > 1 and parts[-1] == b"images" else parts[-1]
        if class_name in _NO_CLASS and self._labels is not None:
            class_name = self._labels.class_of(name)
        if class_name in (b"", b".", b".."):
            raise SourceError(f"{where}: {os.fsdecode(name)} lies in no class folder", path=self._draft.root)
        key = (split, folder, class_name)
        if key not in self._folders:
            self._folders[key] = self._draft.gathering.group(Group(split, class_name, len(folder) + 1))
        return self._folders[key]
