"""Every case hands out the same images, and does what its name says."""

from __future__ import annotations

import itertools
import random
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from bench_prepared import made, task_for

from stoker.inspect.bench import read_pillow, read_stoker
from stoker.inspect.bench.cases import CASES, find_case
from stoker.inspect.bench.images import ImageList
from stoker.inspect.bench.read_tensorflow import pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stoker.inspect.bench import Task

IMAGES = 12
TF_KEYS = [case.key for case in CASES if case.module == "read_tensorflow"]
TF_JPEG = [key for key in TF_KEYS if key != "raw"]
LOADER_KEYS = [case.key for case in CASES if case.group == "stoker" and not case.bucket]
PYTHON_KEYS = [case.key for case in CASES if case.module == "read_pillow" and not case.bucket]


@pytest.fixture(scope="module")
def data(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve images in every form. For reading only."""
    place = tmp_path_factory.mktemp("bench") / "data"
    made(photos, place, most=IMAGES)
    return place


@pytest.fixture
def own_copy(data: Path, tmp_path: Path) -> Path:
    """The same for tests that change it."""
    shutil.copytree(data, tmp_path / "data")
    return tmp_path / "data"


def counts(batches: Iterator[int], images: int) -> list[int]:
    """Sizes of batches until so many images came."""
    found: list[int] = []
    while sum(found) < images:
        found.append(next(batches))
    return found


def tf_images(task: Task, key: str, count: int) -> list[bytes]:
    batches = pipeline(task, find_case(key).form).take(-(-count // task.batch_size))
    return [image.tobytes() for batch in batches for image in batch.numpy()][:count]


@pytest.mark.parametrize("transform", ["train", "eval", "objects"])
@pytest.mark.parametrize("key", [*LOADER_KEYS, *PYTHON_KEYS])
def test_cases_without_tensorflow_hand_out_batches(photos: Path, data: Path, key: str, transform: str) -> None:
    case = find_case(key)
    if transform == "objects" and case.needs == "raw":
        return  # raw tensors have no boxes, and are left out
    module: Any = read_stoker if case.module == "read_stoker" else read_pillow
    batches = module.batches(task_for(photos, data, transform, batch_size=3), case.form)
    assert set(counts(batches, 3 * IMAGES)) == {3}
    batches.close()


def test_the_codec_alone_runs_long_on_few_images(photos: Path, data: Path) -> None:
    assert next(read_stoker.batches(task_for(photos, data, "train"), "codec")) == 512


@pytest.mark.parametrize("key", TF_KEYS)
def test_every_case_of_tensorflow_has_the_shape_of_the_transform(photos: Path, data: Path, key: str) -> None:
    task = task_for(photos, data, "train", batch_size=3)
    found = [batch.numpy() for batch in pipeline(task, find_case(key).form).take(4)]
    assert {(batch.shape, batch.dtype.name) for batch in found} == {((3, 224, 224, 3), "uint8")}
    assert all(batch.std() > 1 for batch in found)


def test_cases_of_tensorflow_do_the_same_work(photos: Path, own_copy: Path) -> None:
    task = task_for(photos, own_copy)
    first = sorted(tf_images(task, "serial", IMAGES))
    assert len(set(first)) == IMAGES
    for key in TF_JPEG:
        assert sorted(tf_images(task, key, IMAGES)) == first, key


def test_cases_of_tensorflow_cut_out_the_same_objects(photos: Path, own_copy: Path) -> None:
    task = task_for(photos, own_copy, "objects", batch_size=1)
    samples = ImageList.read(task).objects
    assert samples > IMAGES  # or nothing would be shown
    first = sorted(tf_images(task, "serial", samples))
    for key in ("cache-memory", "cache-file", "tfrecord", "interleave"):
        # Shuffled, an epoch still holds each once.
        assert sorted(tf_images(task, key, samples)) == first, key


def test_tensorflow_and_pillow_see_the_same_pictures(photos: Path, data: Path) -> None:
    task = task_for(photos, data)
    chance = random.Random(0)
    paths = ImageList.read(task).files(task)
    ours = [read_pillow.transforms_of(read_pillow.decode(path), "eval", chance, ())[0] for path in paths]
    theirs = np.frombuffer(b"".join(tf_images(task, "serial", IMAGES)), np.uint8).reshape(-1, 224, 224, 3)
    for mine, other in zip(ours, theirs, strict=True):
        # The one antialiases and the other does not.
        assert np.abs(mine.astype(float) - other).mean() < 12


def test_caches_hold_pixels_and_not_paths(photos: Path, own_copy: Path) -> None:
    """The originals' cache held the paths: taking the files away would have stopped them."""
    task = task_for(photos, own_copy, "train")
    running: dict[str, Iterator[Any]] = {
        key: iter(pipeline(task, key)) for key in ("cache-memory", "cache-file", "prefetch")
    }
    running["python-cache"] = read_pillow.batches(task, "cache")
    running["stoker-cache"] = read_stoker.batches(task, "cache")
    for batches in running.values():
        list(itertools.islice(batches, 2 * IMAGES))
    for form in ("files", "plain"):
        for path in (own_copy / form).rglob("*"):
            if path.is_file():
                path.write_bytes(b"")
    for key in ("cache-memory", "cache-file", "python-cache", "stoker-cache"):
        assert len(list(itertools.islice(running[key], 4 * IMAGES))) == 4 * IMAGES, key
    with pytest.raises(Exception, match=r"JPEG|decode|Input"):
        list(itertools.islice(running["prefetch"], 4 * IMAGES))


def test_crops_are_drawn_anew_from_what_is_cached(photos: Path, own_copy: Path) -> None:
    task = task_for(photos, own_copy, "train")
    found = tf_images(task, "cache-memory", 4 * IMAGES)
    assert len(set(found)) == 4 * IMAGES
