"""Which part of a dataset a sample is in, in plain Python, from docs/explanation/determinism.md."""

from __future__ import annotations

from fractions import Fraction

from reference.philox import MASK, philox

PURPOSE = 0x73706C74


def fnv1a(name: bytes) -> int:
    digest = 0xCBF29CE484222325
    for byte in name:
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    return digest


def crc32c(data: bytes) -> int:
    crc = MASK
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ MASK


def draw(name: bytes, class_name: bytes, seed: int, depth: int = 0, image: bytes | None = None) -> int:
    """The number of a sample; ``image`` is the bytes of its image, where another has the same name and class."""
    key = philox((depth, 0, 0, PURPOSE), (seed & MASK, seed >> 32))
    digest = fnv1a(name) ^ (0 if image is None else fnv1a(image))
    words = philox((digest & MASK, digest >> 32, crc32c(class_name), PURPOSE), (key[1], key[0]))
    return words[0] << 32 | words[1]


def part_of(drawn: int, shares: list[Fraction]) -> int:
    ends = [sum(shares[: part + 1], Fraction()) for part in range(len(shares))]
    return next(part for part, end in enumerate(ends) if Fraction(drawn, 2**64) < end)
