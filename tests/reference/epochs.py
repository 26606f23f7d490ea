"""The steps of a run in plain Python, from the words of docs/explanation/determinism.md."""

from __future__ import annotations


def steps_of_a_run(
    size: int, epochs: int, global_batch: int, tail: str, epoch: int, consumed: int
) -> list[tuple[int, list[int], tuple[int, int]]]:
    """Every step from a position to the end of the last epoch: its epoch, its positions, and the state after it."""
    steps = []
    while epoch < epochs:
        rest = list(range(consumed, size))
        parts = [rest[first : first + global_batch] for first in range(0, len(rest), global_batch)]
        if tail == "drop":
            parts = [part for part in parts if len(part) == global_batch]
        for number, part in enumerate(parts, 1):
            state = (epoch + 1, 0) if number == len(parts) else (epoch, part[-1] + 1)
            steps.append((epoch, part, state))
        epoch, consumed = epoch + 1, 0
    return steps
