"""The state of a loader as JSON: a position inside the epoch, which is written again as the same, or an error."""

from __future__ import annotations

import json

from stoker.loader.feed import RunIdentity
from stoker.order import Position

_RUN = RunIdentity("d" * 64, seed=7, shuffle=True, max_consumed=1000)
_START = _RUN.state_at(Position(0, 0))


def one_input(data: bytes) -> None:
    """Parse any JSON object as a state; what it does not say is taken from a sound one."""
    try:
        state = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(state, dict):
        return
    position = _RUN.position_in({**_START, **state})
    assert 0 <= position.consumed <= _RUN.max_consumed
    assert _RUN.position_in(_RUN.state_at(position)) == position


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    return [json.dumps(_START).encode(), b'{"epoch": 3, "consumed": 1000}', b'{"consumed": 1.0, "version": 1}']
