"""Which images are the same, compared with every pair looked at."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import stoker
from reference import pictures
from stoker import _native
from stoker.inspect.auditing import (
    MAX_DISTANCE,
    Duplicates,
    exact_duplicates,
    measure_all,
    near_duplicates,
)


def levels(signs: int, strong: int) -> list[int]:
    """Return for each bit one of four levels, from strong and 0 to strong and 1."""
    return [[[1, 0], [2, 3]][signs >> bit & 1][strong >> bit & 1] for bit in range(64)]


def are_near(first: tuple[int, int], second: tuple[int, int], distance: int) -> bool:
    """Return whether few bits differ, and their levels are few steps apart."""
    apart = [abs(a - b) for a, b in zip(levels(*first), levels(*second), strict=True)]
    return (first[0] ^ second[0]).bit_count() <= distance and sum(apart) <= 24


def chained(hashes: list[tuple[int, int]], distance: int, flips: tuple[int, ...]) -> list[int]:
    """Return the first of those that each hash is chained to, by comparing all pairs until nothing changes."""
    firsts = list(range(len(hashes)))
    near = [
        (i, j)
        for i, (signs, strong) in enumerate(hashes)
        for j in range(i)
        if any(are_near((signs ^ flip, strong), hashes[j], distance) for flip in flips)
    ]
    while True:
        before = list(firsts)
        for i, j in near:
            firsts[i] = firsts[j] = min(firsts[i], firsts[j])
        if firsts == before:
            return firsts


@given(st.data(), st.integers(0, MAX_DISTANCE), st.booleans(), st.integers(1, 3))
def test_near_hashes_are_those_of_all_pairs(data: st.DataObject, distance: int, mirrored: bool, threads: int) -> None:
    centres = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=3))
    changes = st.lists(st.integers(0, 63), max_size=14).map(lambda bits: sum(1 << bit for bit in set(bits)))
    flipped = st.sampled_from([0, _native.MIRRORED_BITS])
    parts = st.tuples(st.sampled_from(centres), changes, flipped, st.sampled_from(centres), changes)
    hashes = data.draw(st.lists(parts.map(lambda part: (part[0] ^ part[1] ^ part[2], part[3] ^ part[4])), max_size=25))
    flips = (0, _native.MIRRORED_BITS) if mirrored else (0,)
    columns = np.array(hashes, np.uint64).reshape(-1, 2).T.copy()
    groups = _native.near_hashes(*columns, distance, mirrored, threads)
    assert groups.tolist() == chained(hashes, distance, flips)


def test_copies_are_found_in_the_strictest_sense() -> None:
    def saved(image: Image.Image, kind: str, **options: object) -> bytes:
        return pictures.encode(image, format=kind, **options)

    photo, other = pictures.jpeg(160, 120, 3), pictures.jpeg(160, 120, 4)
    image = Image.open(io.BytesIO(photo)).convert("RGB")
    data = [
        other,
        photo,
        saved(image, "PNG"),
        photo,
        saved(image.resize((80, 60)), "JPEG", quality=70),
        saved(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), "BMP"),
        saved(Image.new("RGB", (160, 120), (9, 9, 9)), "PNG"),
        saved(Image.new("RGB", (160, 120), (200, 9, 9)), "PNG"),
        b"damaged",
    ]
    measured = measure_all(len(data), lambda row: (data[row], ()), 2)
    exact = exact_duplicates(measured, lambda row: (data[row], ()))
    assert exact == [Duplicates("bytes", (1, 3)), Duplicates("pixels", (1, 2))]
    assert near_duplicates(measured, exact, 6, 2) == [Duplicates("near", (1, 4, 5))]


def test_the_largest_distance_is_that_of_the_core_and_of_the_texts() -> None:
    none = np.empty(0, np.uint64)
    assert not len(_native.near_hashes(none, none, MAX_DISTANCE, True, 1))
    with pytest.raises(ValueError, match=f"must be 0..{MAX_DISTANCE}$"):
        _native.near_hashes(none, none, MAX_DISTANCE + 1, True, 1)
    for function in (_native.near_hashes, stoker.audit):
        assert f"0 to {MAX_DISTANCE}" in str(function.__doc__)


@pytest.mark.slow
@pytest.mark.parametrize("distance", [MAX_DISTANCE, 6])
def test_near_ones_among_many_are_those_that_were_planted(distance: int) -> None:
    count, planted = 401_000, 6_000
    random = np.random.default_rng(distance)
    hashes, strong = random.integers(0, 2**64, (2, count), np.uint64)
    planted_rows = random.permutation(count)[: 2 * planted].reshape(2, planted)
    for number, (original, copy) in enumerate(planted_rows.T.tolist()):
        bits = random.permutation(64)[: number % 14].tolist()
        weak = random.permutation(64)[: number % 15].tolist()
        changed, flip = sum(1 << bit for bit in bits), [0, _native.MIRRORED_BITS][number % 2]
        hashes[copy] = int(hashes[original]) ^ changed ^ flip
        strong[copy] = int(strong[original]) ^ sum(1 << bit for bit in weak)
    expected = np.arange(count)
    for number, (original, copy) in enumerate(planted_rows.T.tolist()):
        flip = [0, _native.MIRRORED_BITS][number % 2]
        first, second = (int(hashes[original]), int(strong[original])), (int(hashes[copy]) ^ flip, int(strong[copy]))
        if are_near(first, second, distance):
            expected[[original, copy]] = min(original, copy)
    assert 1000 < np.count_nonzero(expected != np.arange(count)) < planted
    assert _native.near_hashes(hashes, strong, distance, True, 2).tolist() == expected.tolist()
