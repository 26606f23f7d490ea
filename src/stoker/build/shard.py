"""One shard from its first item to its final name: what an engine runs wherever it likes."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING

from stoker.build.job import ShardAssembler
from stoker.build.loading import AT_ONCE, LoadingAhead

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from stoker.build.job import ItemConverter, Outcome, ShardJob, ShardResult
    from stoker.build.loading import Load
    from stoker.sources import Item
    from stoker.storage import Location

_CHUNK_ITEMS = 16


def build_shard(
    converter: ItemConverter,
    destination: Location,
    job: ShardJob,
    *,
    load_ahead: bool = False,
    before_commit: Callable[[], None] | None = None,
) -> ShardResult:
    """Build one shard in this thread, from the first item to its final name.

    Two attempts at the same job may run at once, on any machines: what each writes has a name of its own until it is
    complete, and both write the same bytes.

    Args:
        converter: Turns items into records.
        destination: The dataset.
        job: The shard.
        load_ahead: Whether images are loaded many at a time, as they should be where each has to wait for a network.
        before_commit: Called when all is written and nothing has its final name yet; raises to keep it so.

    Raises:
        OSError: The source or the destination failed; nothing of this attempt is left.
    """
    shard = ShardAssembler(destination, job)
    try:
        with closing(_outcomes(converter, job, ahead=load_ahead)) as outcomes:
            for outcome in outcomes:
                shard.add(outcome)
        if before_commit is not None:
            before_commit()
        return shard.commit()
    finally:
        shard.abort()


def _outcomes(converter: ItemConverter, job: ShardJob, *, ahead: bool) -> Generator[Outcome, None, None]:
    """Yield what becomes of a few items at a time, in order; with ``ahead`` the next are loaded meanwhile."""
    if not ahead:
        for item in job.items:
            yield converter.convert([item], job.split)
        return
    stop = threading.Event()
    loading = LoadingAhead(converter.tree, stop)
    window: deque[tuple[list[Item], Load]] = deque()
    try:
        items = iter(job.items)
        while chunk := list(islice(items, _CHUNK_ITEMS)):
            window.append((chunk, loading.begin(chunk, job.split)))
            if len(window) * _CHUNK_ITEMS > AT_ONCE:
                chunk, load = window.popleft()
                yield converter.convert(chunk, job.split, load=load)
        for chunk, load in window:
            yield converter.convert(chunk, job.split, load=load)
    finally:
        stop.set()
        loading.close()
