"""How long the objects are that lists name: from listings of their folders, not one question for each object."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError, StorageError
from stoker.sources.in_order import in_order
from stoker.sources.stored import stored_below
from stoker.sources.where import object_at, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stoker.sources.gather import Gathering
    from stoker.types import Progress

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
        for path, size in stored_below(url):
            if path in found:
                found[path] = size
    except SourceError:
        return None
    return found


def _size(url: bytes) -> int:
    try:
        return object_at(url).stat().st_size
    except StorageError:
        raise
    except OSError:
        return 0  # still an item, so that the build names it among the rejects
