"""Which TFRecords a text names: a file, a directory of them, or a pattern; on this machine or in a store."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import ConfigError
from stoker.records.layout import stored_files
from stoker.storage import RemotePath, matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.storage import Location


def files_matching(pattern: Location) -> Sequence[Location]:
    """Return the files that match a pattern, sorted; none for a text without wildcards.

    Raises:
        ConfigError: A pattern of a store has a wildcard in front of its last part.
        OSError: The store cannot be listed.
    """
    if not isinstance(pattern, RemotePath):
        # pathlib takes no pattern that may be absolute
        return sorted(Path(match) for match in glob.glob(str(pattern)))  # noqa: PTH207
    if glob.has_magic(pattern.parent.key):
        raise ConfigError(f"{pattern}: in a store only the last part of a pattern may have *, ?, [")
    found = set(stored_files(pattern.parent)) if glob.has_magic(pattern.name) else set()
    return [path for path in matches(pattern) if path in found]


def names_below(place: Location) -> list[str]:
    """Return the names of all files below a directory, relative to it, sorted."""
    if isinstance(place, RemotePath):
        start = len(place.key) + 1 if place.key else 0
        return sorted(entry.key[start:] for entry in place.store.entries(place.key))
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*"))
