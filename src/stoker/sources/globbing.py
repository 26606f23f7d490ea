"""Making lists of files from patterns."""

from __future__ import annotations

import fnmatch
import glob
import os
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import SourceError
from stoker.sources.stored import stored_files_below
from stoker.sources.where import spelled
from stoker.storage import RemotePath, location

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


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
        place = location(pattern)
        found.update(_stored(place) if isinstance(place, RemotePath) else _local(pattern))
    if not found:
        message = f"no file matches {' '.join(shown)}; quote the pattern, for example 'photos/**/*.JPEG'"
        raise SourceError(message, path=shown[0] if shown else None)
    for path in found:
        if b"\n" in path or b"\r" in path:
            message = f"{os.fsdecode(path)!r} has a line break in its name, so it cannot stand in a list; rename it"
            raise SourceError(message, path=os.fsdecode(path))
    return sorted(found)


def _local(pattern: str) -> Iterator[bytes]:
    for path in glob.iglob(os.fsencode(pattern), recursive=True):  # noqa: PTH207 - pathlib has no bytes paths
        if os.path.isfile(path):  # noqa: PTH113
            yield os.path.abspath(path)  # noqa: PTH100


def _stored(pattern: RemotePath) -> Iterator[bytes]:
    parts = pattern.key.split("/")
    fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), None)
    if fixed is None:
        if pattern.is_file():
            yield spelled(pattern)
        return
    top = spelled(RemotePath(pattern.root, "/".join(parts[:fixed])))
    wanted = [os.fsencode(part) for part in parts[fixed:]]
    for path, _ in stored_files_below(top):
        if _matches(path.split(b"/"), wanted):
            yield top + b"/" + path


def _matches(parts: Sequence[bytes], pattern: Sequence[bytes]) -> bool:
    """Return whether the parts of a path match those of a pattern, as `glob` would have it."""
    states = {0}  # how much of the pattern the parts so far can have used up
    for part in parts:
        hidden = part.startswith(b".")
        states = _past_stars(states, pattern)
        after = {at for at in states if at < len(pattern) and pattern[at] == b"**" and not hidden}
        for at in states:
            if at < len(pattern) and pattern[at] != b"**" and (not hidden or pattern[at].startswith(b".")):
                after |= {at + 1} if fnmatch.fnmatchcase(part, pattern[at]) else set()
        states = after
    return len(pattern) in _past_stars(states, pattern)


def _past_stars(states: set[int], pattern: Sequence[bytes]) -> set[int]:
    """Return the states and those that are reached when ``**`` stands for nothing."""
    found = set(states)
    for at in sorted(states):
        while at < len(pattern) and pattern[at] == b"**":
            at += 1  # noqa: PLW2901
            found.add(at)
    return found


def shuffled(paths: list[bytes], seed: int) -> list[bytes]:
    """Return the paths in the order that belongs to a seed (0 to 2**63 - 1), the same on every machine."""
    order = _native.permute(0, len(paths), len(paths), seed, 0)
    return [paths[at] for at in order.tolist()]
