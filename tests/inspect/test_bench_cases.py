"""Every case hands out the same images, and does what its name says."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from bench_prepared import made, spec_for

from stoker.inspect.bench import read_pillow, read_stoker
from stoker.inspect.bench.cases import CASES, find_case
from stoker.inspect.bench.read_tensorflow import pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stoker.inspect.bench import BenchSpec
    from stoker.inspect.bench.images import BenchImages

IMAGES = 12
TF_KEYS = [case.key for case in CASES if case.module == "read_tensorflow"]
TF_JPEG = [key for key in TF_KEYS if key != "raw"]
OTHER_KEYS = [case.key for case in CASES if case.module != "read_tensorflow" and case.group != "limit"]


@pytest.fixture(scope="module")
def images(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> BenchImages:
    """Twelve images in every form. For reading only."""
    return made(photos, tmp_path_factory.mktemp("bench") / "data", most=IMAGES)


@pytest.fixture
def own_copy(images: BenchImages, tmp_path: Path) -> BenchImages:
    """The same for tests that change it."""
    shutil.copytree(images.folder, tmp_path / "data")
    return replace(images, folder=str(tmp_path / "data"))


def counts(batches: Iterator[int], images: int) -> list[int]:
    """Sizes of batches until so many images came."""
    found: list[int] = []
    while sum(found) < images:
        found.append(next(batches))
    return found


def tf_images(spec: BenchSpec, images: BenchImages, key: str, count: int) -> list[bytes]:
    batches = pipeline(spec, images, key).take(-(-count // spec.batch_size))
    return [image.tobytes() for batch in batches for image in batch.numpy()][:count]


@pytest.mark.parametrize("transform", ["train", "eval"])
@pytest.mark.parametrize("key", OTHER_KEYS)
def test_cases_without_tensorflow_hand_out_batches(images: BenchImages, key: str, transform: str) -> None:
    module: Any = read_stoker if find_case(key).module == "read_stoker" else read_pillow
    batches = module.batches(spec_for(transform, 3), images, key)
    assert set(counts(batches, 3 * IMAGES)) == {3}
    batches.close()


def test_the_codec_alone_runs_long_on_few_images(images: BenchImages) -> None:
    assert next(read_stoker.batches(spec_for("train"), images, "codec")) == 512


@pytest.mark.parametrize("key", TF_KEYS)
def test_every_case_of_tensorflow_has_the_shape_of_the_transform(own_copy: BenchImages, key: str) -> None:
    found = [batch.numpy() for batch in pipeline(spec_for("train", 3), own_copy, key).take(4)]
    assert {(batch.shape, batch.dtype.name) for batch in found} == {((3, 224, 224, 3), "uint8")}
    assert all(batch.std() > 1 for batch in found)


def test_cases_of_tensorflow_do_the_same_work(own_copy: BenchImages) -> None:
    first = sorted(tf_images(spec_for(), own_copy, "serial", IMAGES))
    assert len(set(first)) == IMAGES
    for key in TF_JPEG:
        assert sorted(tf_images(spec_for(), own_copy, key, IMAGES)) == first, key


def test_tensorflow_and_pillow_see_the_same_pictures(images: BenchImages) -> None:
    ours = [read_pillow.center(read_pillow.decode(path)) for path in images.files()]
    theirs = np.frombuffer(b"".join(tf_images(spec_for(), images, "serial", IMAGES)), np.uint8)
    for mine, other in zip(ours, theirs.reshape(-1, 224, 224, 3), strict=True):
        # The one antialiases and the other does not.
        assert np.abs(mine.astype(float) - other).mean() < 12


def test_caches_hold_pixels_and_not_paths(own_copy: BenchImages) -> None:
    """The originals' cache held the paths: taking the files away would have stopped them."""
    spec = spec_for("train")
    running: dict[str, Iterator[Any]] = {
        key: iter(pipeline(spec, own_copy, key)) for key in ("cache-memory", "cache-file", "prefetch")
    }
    running["python-cache"] = read_pillow.batches(spec, own_copy, "python-cache")
    running["stoker-cache"] = read_stoker.batches(spec, own_copy, "stoker-cache")
    for batches in running.values():
        list(itertools.islice(batches, 2 * IMAGES))
    for form in ("files", "plain"):
        for path in own_copy.place(form).rglob("*"):
            if path.is_file():
                path.write_bytes(b"")
    for key in ("cache-memory", "cache-file", "python-cache", "stoker-cache"):
        assert len(list(itertools.islice(running[key], 4 * IMAGES))) == 4 * IMAGES, key
    with pytest.raises(Exception, match=r"JPEG|decode|Input"):
        list(itertools.islice(running["prefetch"], 4 * IMAGES))


def test_crops_are_drawn_anew_from_what_is_cached(images: BenchImages) -> None:
    found = tf_images(spec_for("train"), images, "cache-memory", 4 * IMAGES)
    assert len(set(found)) == 4 * IMAGES
