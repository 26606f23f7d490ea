"""Weighted epochs in plain Python, from docs/explanation/determinism.md: whole epochs as lists."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

from reference import order as orders
from reference.philox import MASK, philox

if TYPE_CHECKING:
    from collections.abc import Sequence

PURPOSE = 0x73616D70


def words(counter: tuple[int, int, int], seed: int) -> tuple[int, int]:
    w = philox((*counter, PURPOSE), (seed & MASK, seed >> 32))
    return w[0] << 32 | w[1], w[2] << 32 | w[3]


def whole(weights: Sequence[float]) -> list[int]:
    """Weights as parts of the heaviest, none of those above 0 as 0."""
    return [0 if w == 0 else max(1, round(w / max(weights) * 2**32)) for w in weights]


def group_at(weights: Sequence[int], point: Fraction | int) -> int:
    return next(group for group, end in enumerate(accumulate(weights)) if point < end)


def drawn(weights: Sequence[int], sizes: Sequence[int], size: int, seed: int, epoch: int) -> list[tuple[int, int]]:
    """Group and member of every position, each drawn by itself."""
    key, _ = words((epoch & MASK, epoch >> 32, 0), seed)
    draws = []
    for position in range(size):
        first, second = words((position & MASK, position >> 32, 1), key)
        group = group_at(weights, first * sum(weights) >> 64)
        draws.append((group, second * sizes[group] >> 64))
    return draws


def spread(weights: Sequence[int], size: int, seed: int, epoch: int) -> list[int]:
    """The sample of every slot: evenly spaced points over the samples in an order of the epoch's own, the first at a
    random part of their distance."""
    total = sum(weights)
    key, start = words((epoch & MASK, epoch >> 32, 0), seed)
    offset = start * total >> 64
    order = [orders.order(len(weights), key, 0, position) for position in range(len(weights))]
    arranged = [weights[sample] for sample in order]
    return [order[group_at(arranged, Fraction(slot * total + offset, size))] for slot in range(size)]


def shares(weights: Sequence[int], size: int) -> list[int]:
    exact = [Fraction(size * weight, sum(weights)) for weight in weights]
    given = [int(share) for share in exact]
    by_remainder = sorted(range(len(weights)), key=lambda group: (given[group] - exact[group], group))
    for group in by_remainder[: size - sum(given)]:
        given[group] += 1
    return given


def in_turn(labels: Sequence[int], weights: Sequence[int], size: int, seed: int, epoch: int) -> list[int]:
    """The sample of every slot: class after class, the samples of each in turn, going on where the last epoch ended."""
    samples = []
    known = sorted(set(labels))
    for label, share in zip(known, shares(weights, size), strict=True):
        members = [sample for sample, own in enumerate(labels) if own == label]
        own_seed, _ = words((label & MASK, label >> 32, 2), seed)
        before = epoch % 2**32 * share
        for running in range(before, before + share):
            passed, position = divmod(running, len(members))
            samples.append(members[orders.order(len(members), own_seed, passed, position)])
    return samples


def shuffled(slots: list[int], seed: int, epoch: int) -> list[int]:
    return [slots[orders.order(len(slots), seed, epoch, position)] for position in range(len(slots))]
