"""Which samples a part of a dataset has: numbers in the split, as a range where they are evenly spaced.

A range takes no memory; an array takes 8 bytes a sample. Random parts are drawn by the name of each sample, and by its
image if it shares the name: so a sample stays in its part, whatever other samples there are.
"""

from __future__ import annotations

import hashlib
import math
import operator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stoker import _native
from stoker.config import check_range
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stoker.format import ClassLabel

    Numbers = range | NDArray[np.int64]

_Scalar = TypeVar("_Scalar", bound=np.generic)
_DIGEST_DIGITS = 16
_PURPOSE = 0x73706C74  # "splt": keeps these draws apart from others of the same seed
_TOLERANCE = 1e-9


def single_index(index: object) -> int | None:
    """Return the index of a single sample as an integer; None if it selects several."""
    if isinstance(index, slice) or (not isinstance(index, int) and np.ndim(index) > 0):  # type: ignore[arg-type]
        return None
    return operator.index(index)  # type: ignore[arg-type]


def select(numbers: Numbers, index: Any, name: str) -> Numbers:
    """Return the numbers that a slice, integers, or a boolean for each select; messages call the dataset ``name``."""
    if isinstance(index, slice):
        chosen = numbers[index]
        return chosen if isinstance(chosen, range) else _evenly_spaced(chosen)
    positions, size = np.asarray(index), len(numbers)
    if positions.ndim != 1 or (positions.size and positions.dtype.kind not in "iub"):
        actual = f"{positions.dtype} of shape {positions.shape}"
        raise TypeError(f"samples are chosen by a slice, or by a list of integers or of booleans, not by {actual}")
    if positions.dtype.kind == "b":
        if len(positions) != size:
            raise IndexError(f"{len(positions)} booleans for the {size} samples of {name}; give one for each")
        positions = np.flatnonzero(positions)
    given, positions = positions, positions.astype(np.int64)
    outside = (positions < -size) | (positions >= size) | (positions != given)  # the last: more than 63 bits
    if outside.any():
        raise IndexError(f"there is no sample {given[outside][0]}; {name} has {size}")
    positions[positions < 0] += size
    _refuse_repeated(positions, name)
    return _evenly_spaced(numbers_at(numbers, positions))


def numbers_at(numbers: Numbers, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers at valid positions, int64 like ``positions``."""
    if isinstance(numbers, range):
        return positions * np.int64(numbers.step) + np.int64(numbers.start)
    return numbers[positions]


def values_at(numbers: Numbers, values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return the values of the selected samples, given those of all; for a range, a view of them."""
    if not isinstance(numbers, range):
        return values[numbers]
    if len(numbers) == 0:
        return values[:0]
    end = numbers[-1] + (1 if numbers.step > 0 else -1)
    return values[numbers.start : None if end < 0 else end : numbers.step]


def same_numbers(numbers: Numbers, others: Numbers) -> bool:
    """Return whether two selections are the same samples in the same order."""
    if isinstance(numbers, range) and isinstance(others, range):
        return numbers == others
    return len(numbers) == len(others) and bool(np.array_equal(np.asarray(numbers), np.asarray(others)))


def selection_name(numbers: Numbers) -> str:
    """Return a short name of a selection: ``0:1000:1``, or a digest of its numbers."""
    if isinstance(numbers, range):
        return f"{numbers.start}:{numbers.stop}:{numbers.step}"
    return hashlib.sha256(np.ascontiguousarray(numbers, "<i8").data).hexdigest()[:_DIGEST_DIGITS]


def _refuse_repeated(positions: NDArray[np.int64], name: str) -> None:
    ordered = np.sort(positions)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(again):
        message = f"sample {again[0]} of {name} is chosen twice; a part of a dataset has each sample once"
        raise ConfigError(f"{message}. To see some more often, give the loader sampling=stoker.Weighted(...)")


def _evenly_spaced(numbers: NDArray[np.int64]) -> Numbers:
    """Return evenly spaced numbers as a range, so that equal selections have equal names."""
    if len(numbers) == 0:
        return range(0)
    step = int(numbers[1] - numbers[0]) if len(numbers) > 1 else 1
    if (np.diff(numbers) == step).all():
        return range(int(numbers[0]), int(numbers[-1]) + (1 if step > 0 else -1), step)
    numbers.flags.writeable = False  # loaders share it
    return numbers


def sharing_a_name(digests: NDArray[np.uint64], classes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which samples share name and class with another, bool (N,); arguments are those of `draws_by_name`."""
    order = np.lexsort((classes, digests))
    same = (np.diff(digests[order]) == 0) & (np.diff(classes[order]) == 0)
    shared = np.zeros(len(order), np.bool_)
    shared[order[:-1][same]] = shared[order[1:][same]] = True
    return shared


def draws_by_name(
    digests: NDArray[np.uint64], classes: NDArray[np.uint32], seed: int, depth: int
) -> NDArray[np.uint64]:
    """Return a random number of 64 bits for each sample that depends on its digest, its class and the seed alone.

    Digests, uint64 (N,), are of names, mixed with those of images that share a name; classes, uint32 (N,), are CRC-32Cs
    of class names. ``depth`` says how often the dataset was divided before: each division has other numbers.
    """
    words = _native.philox((depth, 0, 0, _PURPOSE), (seed % 2**32, seed >> 32))
    low, high = (digests & np.uint64(0xFFFFFFFF)).astype(np.uint32), (digests >> np.uint64(32)).astype(np.uint32)
    counters = np.stack([low, high, classes, np.full_like(classes, _PURPOSE)], axis=1)
    return _native.philox_each(counters, (words[1], words[0]))


def division(fractions: Sequence[float]) -> list[int]:
    """Return where each part ends among the numbers of 64 bits, given the shares of the parts."""
    shares = [float(fraction) for fraction in np.atleast_1d(fractions)]
    if not shares or not all(share > 0 for share in shares) or abs(math.fsum(shares) - 1) > _TOLERANCE:
        raise ConfigError(f"fractions is {fractions!r}; give numbers above 0 whose sum is 1, such as [0.9, 0.1]")
    return [min(2**64, round(math.fsum(shares[: end + 1]) * 2**64)) for end in range(len(shares) - 1)] + [2**64]


def first_of_each(labels: NDArray[np.int64], draws: NDArray[np.uint64], count: int) -> NDArray[np.bool_]:
    """Return which samples have one of the ``count`` lowest draws of their class, bool (N,)."""
    order = np.lexsort((draws, labels))
    ordered = labels[order]
    rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    chosen = np.zeros(len(order), np.bool_)
    chosen[order[rank < count]] = True
    return chosen


def label_named(label: int | str, classes: Sequence[ClassLabel], path: str) -> int:
    """Return the label of a class of the dataset at a path; the class is given by its label or its name."""
    if not isinstance(label, str):
        return check_range("label", label, -1, 2**63 - 1)
    labels = [number for number, known in enumerate(classes) if known.name == label]
    if not labels:
        message = f"{path} has no class named {label!r}"
        raise ConfigError(f"{message}; dataset.classes lists the names, and labels can be given as numbers")
    return labels[0]


def refuse_unlabelled(path: str, labels: NDArray[np.int64]) -> None:
    """Refuse samples if none of them has a label."""
    if len(labels) and labels.max() < 0:
        hint = "of boxes use filter(lambda sample: any(box.label == 3 for box in sample.boxes))"
        raise ConfigError(f"no sample of {path} has a label; {hint}")
