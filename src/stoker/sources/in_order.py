"""Several tasks at a time whose results come in the order of the tasks."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeVar

from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

AT_ONCE = 32
"""Requests of a listing that are under way at the same time."""

_WAITING_PER_THREAD = 2


def in_order(work: Callable[[_Task], _Result], tasks: Iterable[_Task], at_once: int = AT_ONCE) -> Iterator[_Result]:
    """Yield the result of each task in the order of the tasks.

    At most twice as many results as there are threads are held. The first error of a task, in their order, ends it all.

    Args:
        work: Done for each task, in any thread.
        tasks: Taken as there is room, in the calling thread.
        at_once: How many tasks are done at the same time; 1 takes no thread.
    """
    if at_once == 1:
        yield from map(work, tasks)
        return
    waiting: deque[Future[_Result]] = deque()
    with stoppable_pool(at_once, "stoker-list") as pool:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) == at_once * _WAITING_PER_THREAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
