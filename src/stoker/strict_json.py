"""JSON that every reader understands alike; what readers differ about is an error."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

_MAX_LEVELS = 64  # of JSON


def parse_json(text: bytes) -> Any:
    """Return what a JSON document in UTF-8 says, if every reader of JSON understands the same by it.

    Raises:
        ValueError: It is not JSON (``json.JSONDecodeError``, with the position), or holds a key twice, a number that is
            not finite or has thousands of digits, or is nested more than 64 deep.
    """
    try:
        document = json.loads(text.decode(), object_pairs_hook=_object, parse_float=_finite, parse_constant=no_constant)
    except RecursionError:
        raise _too_deep() from None
    level = [document]
    for _ in range(_MAX_LEVELS):
        inner = [node for node in level if isinstance(node, dict | list)]
        level = [child for node in inner for child in (node.values() if isinstance(node, dict) else node)]
        if not level:
            return document
    raise _too_deep()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"it has the key {twice!r} twice")
    return members


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value


def no_constant(text: str) -> NoReturn:
    """Refuse NaN and Infinity, which are none of JSON: a ``parse_constant`` of `json`."""
    raise ValueError(f"{text} is not a number of JSON")


def _too_deep() -> ValueError:
    return ValueError(f"it is nested more than {_MAX_LEVELS} deep")
