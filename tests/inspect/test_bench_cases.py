"""Every case hands out the same images, and does what its name says."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bench_prepared import case_of, prepared_images, spec_for
from stoker.inspect import bench as reading
from stoker.inspect.bench import CASES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stoker.inspect.bench import BenchImages

IMAGES = 12
KEYS = [case.key for case in CASES if case.group != "limit"]


@pytest.fixture(scope="module")
def images(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> BenchImages:
    """Twelve images in every form. For reading only."""
    return prepared_images(photos, tmp_path_factory.mktemp("bench") / "data", most=IMAGES)


@pytest.fixture
def own_copy(images: BenchImages, tmp_path: Path) -> BenchImages:
    """The same for tests that change it."""
    shutil.copytree(images.folder, tmp_path / "data")
    return replace(images, folder=str(tmp_path / "data"))


def counts(batches: Iterator[int], images: int) -> list[int]:
    """Sizes of batches until so many images came."""
    sizes: list[int] = []
    while sum(sizes) < images:
        sizes.append(next(batches))
    return sizes


@pytest.mark.parametrize("transform", ["train", "eval"])
@pytest.mark.parametrize("key", KEYS)
def test_every_case_hands_out_batches(images: BenchImages, key: str, transform: str) -> None:
    case = case_of(key)
    batches = reading.batches(spec_for(transform, 3), images, case)
    assert set(counts(batches, 3 * IMAGES)) == {3}
    batches.close()


def test_the_codec_alone_runs_long_on_few_images(images: BenchImages) -> None:
    assert next(reading.batches(spec_for("train"), images, case_of("codec"))) == 512


@pytest.mark.slow
def test_caches_hold_pixels_and_not_paths(own_copy: BenchImages) -> None:
    """The originals' cache held the paths: taking the files away would have stopped them."""
    spec = spec_for("train")
    running = (
        reading.batches(spec, own_copy, case_of("python-cache")),
        reading.batches(spec, own_copy, case_of("stoker-cache")),
    )
    for batches in running:
        list(itertools.islice(batches, 2 * IMAGES))
    for form in ("files", "plain"):
        for path in own_copy.path_of(form).rglob("*"):
            if path.is_file():
                path.write_bytes(b"")
    for batches in running:
        assert len(list(itertools.islice(batches, 4 * IMAGES))) == 4 * IMAGES
