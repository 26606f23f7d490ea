"""The files of a dataset that lie in stores, under the numbers by which the core knows them."""

from __future__ import annotations

import bisect
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import _native

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from stoker.storage import Location, PatientStore


class RemoteFiles:
    """Files of one dataset, some of which may be on this machine. Immutable, and safe from any thread.

    Args:
        count: How many there are.
        path_of: Gives the path of one, from 0.

    Attributes:
        first: Number of the first, which nobody else in this process has; the others follow.
        count: How many there are.
    """

    def __init__(self, count: int, path_of: Callable[[int], Location]) -> None:
        self.first = _native.number_remote_files(count)
        self.count = count
        self._path_of = path_of

    def path(self, number: int) -> Location:
        """Return the path of a file by its number in this process."""
        return self._path_of(number - self.first)

    def read(self, number: int, offset: int, length: int) -> bytes:
        """Return bytes of a file; the core calls this where nothing is read ahead."""
        path = self.path(number)
        return (
            _read_local(path, offset, length) if isinstance(path, Path) else path.store.read(path.key, offset, length)
        )

    def tell(self, records: _native.RecordSet | _native.FileSet) -> None:
        """Tell the core that the files of a set are these."""
        records.set_remote(_native.DirectReader(self.read), self.first)


class StoppableFiles:
    """The files of several datasets, for readers that can be told to stop. Safe from any thread.

    Args:
        files: Of each dataset.
        stop: Ends every wait once it is set.
    """

    def __init__(self, files: Sequence[RemoteFiles], stop: threading.Event) -> None:
        self._files = sorted(files, key=lambda one: one.first)
        self._firsts = [one.first for one in self._files]
        self._stop = stop
        self._stores: dict[str, PatientStore] = {}

    def read(self, number: int, offset: int, length: int) -> bytes:
        """Return bytes of a file.

        Raises:
            OSError: As `stoker.storage.PatientStore.read`.
            ClosedError: It was told to stop.
        """
        path = self._files[bisect.bisect_right(self._firsts, number) - 1].path(number)
        if isinstance(path, Path):
            return _read_local(path, offset, length)
        store = self._stores.get(path.root)
        if store is None:  # two threads may both make one, which does no harm
            store = self._stores[path.root] = path.store.stoppable(self._stop)
        return store.read(path.key, offset, length)


def _read_local(path: Path, offset: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)
