"""One shard from its first item to its final name: what an engine runs wherever it likes."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from stoker.build.job import ShardAssembler

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from stoker.build.job import ItemConverter, Outcome, ShardJob, ShardResult
    from stoker.storage import Location


def build_shard(
    converter: ItemConverter,
    destination: Location,
    job: ShardJob,
    threads: int = 1,
    before_commit: Callable[[], None] | None = None,
) -> ShardResult:
    """Build one shard in this thread, from the first item to its final name.

    Two attempts at the same job may run at once, on any machines: what each writes has a name of its own until it is
    complete, and both write the same bytes.

    Args:
        converter: Turns items into records.
        destination: The dataset.
        job: The shard.
        threads: Items converted at the same time; more than one where they come from afar.
        before_commit: Called when all is written and nothing has its final name yet; raises to keep it so.

    Raises:
        OSError: The source or the destination failed; nothing of this attempt is left.
    """
    shard = ShardAssembler(destination, job)
    try:
        with closing(_outcomes(converter, job, threads)) as outcomes:
            for outcome in outcomes:
                shard.add(outcome)
        if before_commit is not None:
            before_commit()
        return shard.commit()
    finally:
        shard.abort()


def _outcomes(converter: ItemConverter, job: ShardJob, threads: int) -> Generator[Outcome, None, None]:
    """Yield what becomes of each item, in order; a few items ahead are under way."""
    if threads == 1:
        for item in job.items:
            yield converter.convert([item], job.split, _never)
        return
    stop = threading.Event()
    pool = ThreadPoolExecutor(threads, "stoker-convert")
    window: deque[Future[Outcome]] = deque()
    try:
        for item in job.items:
            window.append(pool.submit(converter.convert, [item], job.split, stop.is_set))
            if len(window) > 2 * threads:
                yield window.popleft().result()
        while window:
            yield window.popleft().result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _never() -> bool:
    return False
