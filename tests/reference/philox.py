"""Philox4x32-10 in plain Python, written from the paper's description (Salmon et al., SC 2011)."""

from __future__ import annotations

MASK = 0xFFFFFFFF


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> list[int]:
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        low0, high0 = (0xD2511F53 * c0) & MASK, (0xD2511F53 * c0) >> 32
        low1, high1 = (0xCD9E8D57 * c2) & MASK, (0xCD9E8D57 * c2) >> 32
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return [c0, c1, c2, c3]


def sample_draw(seed: int, epoch: int, sample: int, op: int, i: int) -> list[int]:
    """Draw ``i`` of operation ``op`` on one sample, as docs/explanation/determinism.md defines it."""
    counter = (sample & MASK, sample >> 32, epoch & MASK, op << 16 | i)
    return philox(counter, (seed & MASK, seed >> 32))
