"""Lists of files: a text file with the path of one image a line.

A path is absolute, or relative to the folder of the list, or it is the URL of an object. Blank lines are counted,
everything else is a path: there are no comments. Blanks around a path belong to it unless only the path without them is
there. The class is the folder of the image, or the one above that if it is called ``images``. A file that is not there
is an item all the same, so that a build names it among the rejects.
"""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.errors import SourceError, StorageError
from stoker.sources.gather import Group
from stoker.sources.imagenet.annotations import BoxSearch
from stoker.sources.imagenet.boxes import read_boxes
from stoker.sources.imagenet.labels import find_validation_labels, read_validation_labels
from stoker.sources.lines import numbered_lines
from stoker.sources.reading import in_order
from stoker.storage import is_absolute, is_of_the_name, location, place_at, split_bucket, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stoker.sources.draft import Draft
    from stoker.sources.gather import Gathering
    from stoker.sources.tree import BoxSource
    from stoker.storage import Location
    from stoker.types import Box, Progress


# How long the objects are that lists name: from listings of their folders, not one question for each object.


_LISTED_FROM = 8
"""Objects of one folder from which on that is listed."""


def fill_sizes(gathering: Gathering, folders: Mapping[int, bytes], progress: Progress | None) -> None:
    """Give every image that was gathered from a folder of a store its size; 0 stays what is not there.

    Args:
        gathering: Holds the images, with a size of 0.
        folders: URL of the folder of each group that lies in a store.
        progress: Told how many have theirs.

    Raises:
        StorageError: A store is gone.
    """
    if not folders:
        return
    by_url = {url: number for number, url in enumerate(dict.fromkeys(folders.values()))}
    folder_of = np.full(len(gathering.groups), -1, np.int64)
    for group, url in folders.items():
        folder_of[group] = by_url[url]
    rows_of = gathering.rows_by(folder_of)
    tasks = _tasks(gathering, list(by_url), rows_of)
    done = 0
    for rows, sizes in in_order(_sizes, tasks):
        gathering.set_sizes(rows, sizes)
        done += len(rows)
        if progress is not None and done < len(gathering):
            progress(done=done, total=len(gathering), size_bytes=0, rejects=0)


def _tasks(
    gathering: Gathering, urls: list[bytes], rows_of: Iterator[tuple[int, list[int]]]
) -> Iterator[tuple[bytes, list[int], list[bytes]]]:
    """Yield a folder, rows of the gathering, and the names of their files in it."""
    for number, rows in rows_of:
        names = [gathering.name(row) for row in rows]
        yield urls[number], rows, names


def _sizes(task: tuple[bytes, list[int], list[bytes]]) -> tuple[list[int], list[int]]:
    """Return the rows and the size of each; 0 for what is not there."""
    url, rows, names = task
    found = _listed(url, names) if len(names) >= _LISTED_FROM else None
    if found is None:
        return rows, [_size(within(url, name)) for name in names]
    return rows, [found[name] for name in names]


def _listed(url: bytes, names: list[bytes]) -> dict[bytes, int] | None:
    """Return the size of each name that lies directly in a folder; None if that cannot be listed."""
    found = dict.fromkeys(names, 0)
    try:
        for path, size in place_at(url).files_below():
            if path in found:
                found[path] = size or 0
    except StorageError:
        raise
    except OSError:
        return None
    return found


def _size(url: bytes) -> int:
    try:
        return place_at(url).size()
    except StorageError:
        raise
    except OSError:
        return 0  # still an item, so that the build names it among the rejects


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
            folder = path.parent.spelled()
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
        if not any(
            in_order(_is_folder, mapped, max((place_at(folder).requests_at_once for folder in mapped), default=1))
        ):
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
        size = self._size(path) if place_at(within(self._draft.base, path)).is_local else 0
        folder, _, name = path.rpartition(b"/")
        self._hashes.append(hash((split, path)))
        self._draft.gathering.add(self._group(split, folder, name, where), path, size or 0)

    def _stored_folders(self) -> dict[int, bytes]:
        """Return the URL of the folder of each group that lies in a store."""
        folders = ((number, within(self._draft.base, folder)) for (_, folder, _), number in self._folders.items())
        return {number: folder for number, folder in folders if not place_at(folder).is_local}

    def _size(self, path: bytes) -> int | None:
        """Return the size of a file; None if there is none."""
        place = place_at(within(self._draft.base, path))
        try:
            size = place.size()
            return size if place.is_file() else 0
        except StorageError:
            raise
        except OSError as error:
            if place.is_local and not is_of_the_name(error):
                raise
            return None

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


# Making lists of files from patterns.


def find_files(patterns: Iterable[str]) -> list[bytes]:
    """Return the absolute paths or the URLs of the files that match any of some patterns, in the order of their bytes.

    Each comes once. A pattern that is a URL is matched against the names in its store.

    ``*`` and ``?`` match inside a name, ``**`` any number of folders. Names that begin with a dot match only a pattern
    that says so. Links stay links.

    Raises:
        SourceError: No file matches, or the name of one cannot stand in a list.
    """
    found: set[bytes] = set()
    shown = []
    for pattern in patterns:
        shown.append(pattern)
        found.update(os.fsencode(str(place)) for place in location(pattern).normalized().matching(regular=True))
    if not found:
        message = f"no file matches {' '.join(shown)}; quote the pattern, for example 'photos/**/*.JPEG'"
        raise SourceError(message, path=shown[0] if shown else None)
    for path in found:
        if b"\n" in path or b"\r" in path:
            message = f"{os.fsdecode(path)!r} has a line break in its name, so it cannot stand in a list; rename it"
            raise SourceError(message, path=os.fsdecode(path))
    return sorted(found)


def shuffled(paths: list[bytes], seed: int) -> list[bytes]:
    """Return the paths in the order that belongs to a seed (0 to 2**63 - 1), the same on every machine."""
    order = _native.permute(0, len(paths), len(paths), seed, 0)
    return [paths[at] for at in order.tolist()]
