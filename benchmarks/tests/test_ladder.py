"""Every step of the ladder in tf.data hands out the same images, and does what its name says."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from bench_prepared import prepared_images, spec_for
from benchmarks.ladder.__main__ import STEPS, main
from benchmarks.ladder.pipelines import pipeline
from mixed_images import FILES, write_folder
from reference.transform import center_crop
from stoker.inspect.bench import CASES

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.inspect.bench import BenchImages, BenchSpec

pytestmark = pytest.mark.needs("tensorflow")
IMAGES = 12
KEYS = [step.key for step in STEPS]


@pytest.fixture(scope="module")
def images(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> BenchImages:
    """Twelve images in the forms that tf.data reads. For reading only."""
    folder = tmp_path_factory.mktemp("bench") / "data"
    return prepared_images(photos, folder, most=IMAGES, forms=frozenset({"files", "plain", "raw"}))


@pytest.fixture
def own_copy(images: BenchImages, tmp_path: Path) -> BenchImages:
    """The same for tests that change it."""
    shutil.copytree(images.folder, tmp_path / "data")
    return replace(images, folder=str(tmp_path / "data"))


def pixels_of(spec: BenchSpec, images: BenchImages, key: str, count: int) -> list[bytes]:
    batches = pipeline(spec, images, key).take(-(-count // spec.batch_size))
    return [image.tobytes() for batch in batches for image in batch.numpy()][:count]


def test_keys_and_names_are_those_of_no_other_case() -> None:
    cases = (*CASES, *STEPS)
    assert len({case.key for case in cases}) == len({case.name for case in cases}) == len(cases)
    assert all(len(step.note) > 15 for step in STEPS)


@pytest.mark.parametrize("key", KEYS)
def test_every_step_has_the_shape_of_the_transform(own_copy: BenchImages, key: str) -> None:
    batches = [batch.numpy() for batch in pipeline(spec_for("train", 3), own_copy, key).take(4)]
    assert {(batch.shape, batch.dtype.name) for batch in batches} == {((3, 224, 224, 3), "uint8")}
    assert all(batch.std() > 1 for batch in batches)


@pytest.mark.slow
def test_all_steps_do_the_same_work(own_copy: BenchImages) -> None:
    first = sorted(pixels_of(spec_for(), own_copy, "serial", IMAGES))
    assert len(set(first)) == IMAGES
    for key in KEYS:
        if key != "raw":
            assert sorted(pixels_of(spec_for(), own_copy, key, IMAGES)) == first, key


def test_tensorflow_and_pillow_see_the_same_pictures(images: BenchImages) -> None:
    crop = stoker.CenterCrop(224)
    ours = [center_crop(Image.open(path).convert("RGB"), crop) for path in images.files()]
    theirs = np.frombuffer(b"".join(pixels_of(spec_for(), images, "serial", IMAGES)), np.uint8)
    for mine, other in zip(ours, theirs.reshape(-1, 224, 224, 3), strict=True):
        # The one antialiases and the other does not.
        assert np.abs(mine.astype(float) - other).mean() < 12


@pytest.mark.slow
def test_caches_hold_pixels_and_not_paths(own_copy: BenchImages) -> None:
    """The originals' cache held the paths: taking the files away would have stopped them."""
    running = {
        key: iter(pipeline(spec_for("train"), own_copy, key)) for key in ("cache-memory", "cache-file", "prefetch")
    }
    for batches in running.values():
        list(itertools.islice(batches, 2 * IMAGES))
    for path in own_copy.path_of("files").rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    for key in ("cache-memory", "cache-file"):
        assert len(list(itertools.islice(running[key], 4 * IMAGES))) == 4 * IMAGES, key
    with pytest.raises(Exception, match=r"JPEG|decode|Input"):
        list(itertools.islice(running["prefetch"], 4 * IMAGES))


def test_crops_are_drawn_anew_from_what_is_cached(images: BenchImages) -> None:
    pixels = pixels_of(spec_for("train"), images, "cache-memory", 4 * IMAGES)
    assert len(set(pixels)) == 4 * IMAGES


@pytest.mark.parametrize("key", ["serial", "tfrecord"])
def test_images_of_every_format_are_read(tmp_path: Path, key: str) -> None:
    images = prepared_images(write_folder(tmp_path / "photos"), tmp_path / "data", forms=frozenset({"plain"}))
    batch = next(iter(pipeline(spec_for("eval", len(FILES)), images, key)))
    assert batch.shape == (len(FILES), 224, 224, 3)


@pytest.mark.slow
def test_the_ladder_is_shown(photos: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [case for case in CASES if case.key in ("codec", "stoker-own")]
    monkeypatch.setattr("benchmarks.ladder.__main__.CASES", chosen)
    monkeypatch.setattr("benchmarks.ladder.__main__.STEPS", STEPS[:1])
    assert main([str(photos), "--seconds", "0.1", "--rounds", "1", "--images", "8"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("codec alone") < shown.index("tf.data: one file") < shown.index("Stoker: your data")
