"""Loading images before their turn, where each of them has to wait for a network."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from stoker.storage import check_stacks, stop_waiting_when

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable

    from stoker.sources import Item, Source, SourceImage

    Load = Callable[[Item, str], SourceImage]
    """Returns the image of an item of a split, as `stoker.sources.Source.load` does."""

AT_ONCE = 64
"""Images that are asked for at the same time: at 200 ms an answer these are 320 a second."""


def request_threads(tree: Source, threads: int) -> int:
    """Return how many threads look at images of a source that are loaded and dealt with in one thread.

    Args:
        tree: The source.
        threads: How many there should be if nothing has to wait.
    """
    return max(threads, AT_ONCE) if tree.is_remote else threads


class LoadingAhead:
    """Loads many images at a time, in the order in which they are asked for. For one thread, but for what it returns.

    Args:
        tree: Where they come from.
        stop: Set by the owner before `close`, so that no load goes on waiting for its store.
    """

    def __init__(self, tree: Source, stop: threading.Event) -> None:
        check_stacks(AT_ONCE)
        self._tree = tree
        self._pool = ThreadPoolExecutor(AT_ONCE, "stoker-load", initializer=stop_waiting_when, initargs=(stop,))

    def begin(self, items: Iterable[Item], split: str) -> Load:
        """Begin to load some items of a split.

        Returns:
            What gives each of them, in any thread; it waits for the image and raises what loading it raised. The images
            are held as long as it is.
        """
        loads: dict[Item, Future[SourceImage]] = {}
        for item in items:
            if item not in loads:
                loads[item] = self._pool.submit(self._tree.load, item, split)

        def load(item: Item, _split: str) -> SourceImage:
            return loads[item].result()

        return load

    def close(self) -> None:
        """End the threads; waits for at most one request of each."""
        self._pool.shutdown(cancel_futures=True)
