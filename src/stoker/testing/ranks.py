"""All ranks of a run, played in one process, step by step."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Self

    from stoker.feed import Batch, Loader

STATE_BYTES = 200
"""A state is shorter than this, as JSON."""


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """One step of all ranks.

    Attributes:
        number: From 0, since the state that was loaded.
        batches: What each rank was given.
        state: The state right after it, the same on every rank, as it comes out of JSON.
        state_bytes: Its length as JSON.
    """

    number: int
    batches: list[Batch]
    state: dict[str, Any]
    state_bytes: int


class Ranks:
    """The loaders of all ranks; a context manager, which closes them.

    Args:
        make: Returns the loader of a rank.
        world_size: Number of ranks.
    """

    def __init__(self, make: Callable[[int], Loader], world_size: int) -> None:
        self._stack = ExitStack()
        with ExitStack() as opened:
            self._loaders = [opened.enter_context(make(rank)) for rank in range(world_size)]
            self._stack = opened.pop_all()

    def play(self, state: dict[str, Any], where: str) -> Iterator[PlayedStep]:
        """Load a state on every rank, and yield the steps from there to the end of the epoch.

        Args:
            state: Where to go on.
            where: What to say in a message.

        Raises:
            AssertionError: The ranks do not make the same number of steps, or their states differ or are too long.
        """
        for loader in self._loaders:
            loader.load_state_dict(state)
        iterators = [iter(loader) for loader in self._loaders]
        number = 0
        while True:
            batches = [batch for batch in (next(iterator, None) for iterator in iterators) if batch is not None]
            if not batches:
                return
            if len(batches) < len(iterators):
                raise AssertionError(f"{where}: only {len(batches)} of {len(iterators)} ranks make step {number}")
            yield PlayedStep(number, batches, *self._state(f"{where}, step {number}"))
            number += 1

    def _state(self, where: str) -> tuple[dict[str, Any], int]:
        texts = [json.dumps(loader.state_dict()) for loader in self._loaders]
        for rank, text in enumerate(texts):
            if text != texts[0]:
                raise AssertionError(f"{where}: the state of rank {rank} is {text}, but that of rank 0 is {texts[0]}")
        if len(texts[0]) >= STATE_BYTES:
            raise AssertionError(f"{where}: the state has {len(texts[0])} bytes, not below {STATE_BYTES}: {texts[0]}")
        return json.loads(texts[0]), len(texts[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
