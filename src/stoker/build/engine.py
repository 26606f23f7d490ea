"""Where the shards of a build are made: by threads of this process, or by whatever else can run `build_shard`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stoker.build.job import ItemConverter, ShardJob, ShardResult
    from stoker.storage import Location


class Engine(Protocol):
    """Makes shards. Used once, from one thread."""

    def run(self, jobs: Iterable[ShardJob]) -> None:
        """Make every shard, in any order, and end only when all of them are reported.

        Args:
            jobs: The shards that are not there yet. Each job is made when it is asked for, so only those that are
                held take memory.

        Raises:
            OSError: The source or the destination failed. What is reported stays; the rest is removed.
            KeyboardInterrupt: The same.
        """


class EngineFactory(Protocol):
    """Returns the engine of one build; `stoker.build.local.LocalEngine` is one."""

    def __call__(
        self,
        converter: ItemConverter,
        destination: Location,
        threads: int,
        committed: Callable[[ShardResult], None],
        advanced: Callable[[int, int, int], None],
        /,
    ) -> Engine:
        """Return an engine.

        Args:
            converter: Turns items into records.
            destination: Where the shards go.
            threads: Items converted at the same time on one machine.
            committed: To be called, from one thread at a time, once for each shard that is complete in the destination.
            advanced: To be called, from the thread that runs the engine, with the items, source bytes and rejects that
                were added since.
        """
