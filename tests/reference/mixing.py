"""A mix of datasets in plain Python: every position of an epoch, one after the other."""

from __future__ import annotations


def turns(counts: list[int]) -> list[tuple[int, int]]:
    """(part, how often it was its turn before) for every position of an epoch.

    The last part takes its turns among all positions wherever the share of the others does not grow by one; what is
    left is divided in the same way among the others.
    """
    if len(counts) == 1:
        return [(0, number) for number in range(counts[0])]
    rest, total = sum(counts[:-1]), sum(counts)
    others, order, own = iter(turns(counts[:-1])), [], 0
    for position in range(total):
        if (position + 1) * rest // total > position * rest // total:
            order.append(next(others))
        else:
            order.append((len(counts) - 1, own))
            own += 1
    return order
