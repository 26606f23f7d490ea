"""Making lists of files from patterns."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable


def find_files(patterns: Iterable[str]) -> list[bytes]:
    """Return the absolute paths of the files that match any of some patterns, in the order of their bytes, each once.

    ``*`` and ``?`` match inside a name, ``**`` any number of folders. Names that begin with a dot match only a pattern
    that says so. Links stay links.

    Raises:
        SourceError: No file matches, or the name of one cannot stand in a list.
    """
    found = set()
    shown = []
    for pattern in patterns:
        shown.append(pattern)
        for path in glob.iglob(os.fsencode(pattern), recursive=True):  # noqa: PTH207 - pathlib has no bytes paths
            if os.path.isfile(path):  # noqa: PTH113
                found.add(os.path.abspath(path))  # noqa: PTH100
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
