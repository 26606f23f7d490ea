"""Every operation on pixels with every setting, made from the declarations, so that new settings are among them.

A new type of settings needs its line in `VALUES`; the slow twins of operations are in ``reference/transform.py``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from hypothesis import strategies as st

import stoker
from stoker import transforms
from stoker.transforms import OPERATIONS, ColorJitter, Operation
from stoker.types import Filter, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

JITTER = ColorJitter(0.4, (0.2, 1.9), 0.7, 0.1)
MODES: tuple[Mode, ...] = get_args(Mode)
VALUES: dict[Any, list[Any]] = {
    transforms.Size: [24, (7, 90), 1, (31, 20)],
    transforms.Side: [90, 107],  # no less than the sizes
    transforms.Probability: [0.0, 0.5, 1.0],
    transforms.Shares: [(0.08, 1.0), (0.01, 0.02), (1.0, 1.0), (0.5, 0.6)],
    transforms.Ratios: [(3 / 4, 4 / 3), (0.1, 10.0), (100.0, 100.0), (4.0, 5.0)],
    transforms.Factors: [0.0, 0.7, 3.0, (0.0, 0.0), (1.0, 1.0), (2.0, 3.0)],
    transforms.Shifts: [0.0, 0.1, (-0.5, 0.5), (0.5, 0.5)],
    transforms.ColorChange: [None, JITTER],
    Filter: list(get_args(Filter)),
    bool: [False, True],
}


def types_of_settings(kind: type[Operation]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}  # type: ignore[arg-type]


def every_value(kind: type[Operation]) -> Iterator[Operation]:
    """Yield the operation as simple as it can be, then with each value of each setting, none of them alone."""
    values = {name: VALUES[hint] for name, hint in types_of_settings(kind).items()}
    if "size" in values:
        yield kind(VALUES[transforms.Size][0])  # type: ignore[call-arg]
    for row in range(max(map(len, values.values()))):
        yield kind(**{name: listed[(row + at) % len(listed)] for at, (name, listed) in enumerate(values.items())})


CASES: dict[str, list[Operation]] = {name: list(every_value(kind)) for name, kind in OPERATIONS.items()}
EACH = [case for cases in CASES.values() for case in cases]


def of_image(operation: Operation, width: int, height: int) -> Any:
    """The operation as a transform that images of this size have."""
    if isinstance(operation, ColorJitter):
        return stoker.RawTensor((height, width), color_jitter=operation)
    if isinstance(operation, stoker.RawTensor):
        return dataclasses.replace(operation, size=(height, width))
    if isinstance(operation, stoker.TopLeft):
        down, across = transforms.extent(operation.size)
        return dataclasses.replace(operation, size=(min(down, height), min(across, width)))
    return operation


def of_any_image(width: int, height: int) -> list[Any]:
    """Every case that images have which are of this size or larger."""
    return [of_image(case, width, height) for case in EACH if not isinstance(case, ColorJitter | stoker.RawTensor)]


@st.composite
def any_transform(draw: st.DrawFn, width: int, height: int, mode: Mode = "RGB") -> Any:
    """A transform that an image of this size and mode has."""
    kind = draw(st.sampled_from([kind for kind in OPERATIONS.values() if kind is not ColorJitter]))
    sides = st.integers(1, 40)
    values = {}
    for name, hint in types_of_settings(kind).items():
        listed = st.sampled_from(VALUES[hint])
        values[name] = draw(sides | st.tuples(sides, sides) if hint is transforms.Size else listed)
    if mode not in ColorJitter.modes and "color_jitter" in values:
        values["color_jitter"] = None
    return of_image(kind(**values), width, height)
