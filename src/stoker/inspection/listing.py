"""Which TFRecords a text names: a file, a directory of them, or a pattern; on this machine or in a store."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import ConfigError
from stoker.records.layout import SPLIT_FOLDERS, find_shards, group_shards
from stoker.storage import RemotePath, matches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stoker.records.layout import FoundSplit
    from stoker.storage import Location

_WILD = "*?["


def shards_in(place: Location) -> Mapping[str, FoundSplit[Path] | FoundSplit[RemotePath]]:
    """Return the shards of a directory without a manifest, by split; see `stoker.records.layout.find_shards`.

    Raises:
        OSError: It cannot be listed.
    """
    if not isinstance(place, RemotePath):
        return find_shards(place)
    children = place.store.children(place.key)
    folders = [RemotePath(place.root, key) for key in sorted(children.folders)]
    return group_shards(
        [RemotePath(place.root, key) for key in sorted(file.key for file in children.files)],
        {folder.name: _files_in(folder) for folder in folders if folder.name in SPLIT_FOLDERS},
    )


def _files_in(folder: RemotePath) -> Iterator[RemotePath]:
    for key in sorted(file.key for file in folder.store.children(folder.key).files):
        yield RemotePath(folder.root, key)


def files_matching(pattern: Location) -> Sequence[Location]:
    """Return the files that match a pattern, sorted; none for a text without wildcards.

    Raises:
        ConfigError: A pattern of a store has a wildcard in front of its last part.
        OSError: The store cannot be listed.
    """
    if not isinstance(pattern, RemotePath):
        # pathlib takes no pattern that may be absolute
        return sorted(Path(match) for match in glob.glob(str(pattern)))  # noqa: PTH207
    if any(char in pattern.parent.key for char in _WILD):
        raise ConfigError(f"{pattern}: in a store only the last part of a pattern may have {', '.join(_WILD)}")
    if not any(char in pattern.name for char in _WILD):
        return []
    found = set(_files_in(pattern.parent))
    return [path for path in matches(pattern) if path in found]


def names_below(place: Location) -> list[str]:
    """Return the names of all files below a directory, relative to it, sorted."""
    if isinstance(place, RemotePath):
        start = len(place.key) + 1 if place.key else 0
        return sorted(entry.key[start:] for entry in place.store.entries(place.key))
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*"))
