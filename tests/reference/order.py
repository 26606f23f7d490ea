"""The order of an epoch in plain Python, from the formulas of docs/explanation/determinism.md."""

from __future__ import annotations

from math import isqrt

from reference.philox import MASK, philox

MASK64 = 0xFFFFFFFFFFFFFFFF


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def order(n: int, seed: int, epoch: int, position: int) -> int:
    columns = isqrt(n - 1) + 1
    rows = -(-n // columns)
    keys = []
    for i in range(8):
        words = philox((epoch & MASK, epoch >> 32, i, 0x6F726472), (seed & MASK, seed >> 32))
        keys.append(words[0] << 32 | words[1])
    cell = position
    while True:
        row, column = divmod(cell, columns)
        for i in range(0, 8, 2):
            row = (row + (mix(column ^ keys[i]) * rows >> 64)) % rows
            column = (column + (mix(row ^ keys[i + 1]) * columns >> 64)) % columns
        cell = row * columns + column
        if cell < n:
            return cell


def block_order(n: int, block: int, window: int, seed: int, epoch: int) -> list[int]:
    """The whole block shuffle as lists, from the words of docs/explanation/determinism.md."""
    w = philox((epoch & MASK, epoch >> 32, 0, 0x626C6F6B), (seed & MASK, seed >> 32))
    blocks_seed, windows_seed = w[0] << 32 | w[1], w[2] << 32 | w[3]
    blocks = [range(start, min(n, start + block)) for start in range(0, n, block)]
    visited = [blocks[order(len(blocks), blocks_seed, 0, visit)] for visit in range(len(blocks))]
    sequence: list[int] = []
    for number, start in enumerate(range(0, len(blocks), window)):
        samples = [sample for visit in visited[start : start + window] for sample in visit]
        sequence += [samples[order(len(samples), windows_seed, number, i)] for i in range(len(samples))]
    return sequence
