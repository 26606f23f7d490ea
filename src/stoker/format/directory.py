"""The directory of a dataset: the names of its files, its text files within bounds, and its shards, found by name."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stoker.errors import DatasetNotFoundError, ManifestError
from stoker.format.shard_names import MAX_SHARDS, SPLIT_FOLDERS, parse_shard_name
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stoker.format.shard_names import ShardName
    from stoker.storage import Child, Location, LocationLike


MANIFEST_NAME = "manifest.json"
LABELS_NAME = "labels.txt"
REJECTS_NAME = "rejects.jsonl"
JOURNAL_NAME = "build.journal"
"""In an unfinished build on this machine."""
BUILD_FOLDER = ".stoker-build"
"""In an unfinished build in a store, which cannot append to a file."""

_NUMBER = re.compile(r"[0-9]{1,9}")
_NO_TEXT = (errno.EFBIG, errno.EINVAL, errno.EISDIR, errno.ELOOP)


@dataclass(frozen=True, slots=True)
class FoundSplit:
    """The shards of one split, found by their names.

    Attributes:
        paths: Their paths, in the order of their numbers, those without one in the order of their names.
        missing: Numbers that the other names promise and that are not there.
    """

    paths: tuple[Location, ...]
    missing: tuple[int, ...]


def is_unfinished(directory: Location) -> bool:
    """Return whether a build has begun in a directory and not ended.

    One that was killed after it had written the manifest, and before it could clean up, counts too.

    Raises:
        OSError: The store cannot be asked.
    """
    return (directory / (JOURNAL_NAME if directory.has_locks else BUILD_FOLDER)).exists()


def find_shards(directory: LocationLike) -> dict[str, FoundSplit]:
    """Return the shards of a directory without a manifest, by split; empty if there are none.

    Shards in its folders ``train``, ``val``, ``validation`` and ``test`` belong to the split of that name; they count
    when none lies in the directory itself.

    Raises:
        OSError: The directory cannot be listed.
    """
    place = location(directory)
    children = place.children()
    folders = (os.fsdecode(child.name) for child in children if child.is_folder)
    return group_shards(
        _files(place, children), {name: _below(place / name) for name in folders if name in SPLIT_FOLDERS}
    )


def _below(folder: Location) -> Iterator[Location]:
    yield from _files(folder, folder.children())


def _files(folder: Location, children: Iterable[Child]) -> Iterator[Location]:
    return (folder / os.fsdecode(child.name) for child in children if child.is_file)


def refuse_incomplete(place: Location, splits: Mapping[str, FoundSplit]) -> None:
    """See that all shards are there that the names of the others promise.

    Raises:
        DatasetNotFoundError: Some are not.
    """
    for split in splits.values():
        if split.missing:
            message = f"{place} lacks shards {list(split.missing[:5])} that the names of the others promise"
            raise DatasetNotFoundError(f"{message}; complete it before reading", path=str(place))


def group_shards(files: Iterable[Location], folders: Mapping[str, Iterable[Location]]) -> dict[str, FoundSplit]:
    """Return the shards among the files of a directory, and if there are none, of its folders; see `find_shards`.

    Args:
        files: Files in the directory itself, in the order of their names.
        folders: Those in each of its `stoker.format.shard_names.SPLIT_FOLDERS`.
    """
    groups: dict[str, list[tuple[ShardName, Location]]] = {}
    for said, path in _named_shards(files):
        groups.setdefault(said.split, []).append((said, path))
    if not groups:
        for folder, below in folders.items():
            found = [(replace(said, split=SPLIT_FOLDERS[folder]), path) for said, path in _named_shards(below)]
            groups.setdefault(SPLIT_FOLDERS[folder], []).extend(found)
    return {split: _found_split(found) for split, found in sorted(groups.items()) if found}


def _named_shards(paths: Iterable[Location]) -> Iterator[tuple[ShardName, Location]]:
    for path in paths:
        said = parse_shard_name(path.name)
        if said is not None:
            yield said, path


def _found_split(found: list[tuple[ShardName, Location]]) -> FoundSplit:
    ordered = sorted(found, key=lambda pair: (pair[0].shard is None, pair[0].shard or 0, _natural(pair[1].name)))
    promised = max((said.shards or 0 for said, _ in found), default=0)
    there = {said.shard for said, _ in found}
    # A hostile name may promise a billion shards; what is missing is named only where shards can exist.
    missing = tuple(number for number in range(min(promised, MAX_SHARDS)) if number not in there)
    return FoundSplit(tuple(path for _, path in ordered), missing)


def _natural(name: str) -> tuple[int, str]:
    """Return a key that puts ``10.tfrecords`` behind ``9.tfrecords``."""
    leading = _NUMBER.match(name)
    return (int(leading[0]) if leading else -1, name)


def read_text(path: Location, limit: int, kind: str) -> bytes:
    """Return the content of one of the text files of a dataset.

    Args:
        path: The file.
        limit: Most bytes that it may have.
        kind: What it should be, such as ``manifest``.

    Raises:
        FileNotFoundError: There is none.
        ManifestError: It is larger, or not a regular file, or a link that leads nowhere.
        OSError: It cannot be read.
    """
    try:
        return path.read_at_most(limit)
    except FileNotFoundError:
        if not path.lexists():
            raise
        problem = "is a link that leads nowhere"
    except OSError as error:
        if error.errno not in _NO_TEXT:
            raise
        problem = str(error.strerror)
    message = f"{path} {problem[0].lower()}{problem[1:]}, so it is not a {kind}; restore it, or build again"
    raise ManifestError(message, path=str(path))
