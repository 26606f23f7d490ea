"""Loaders with caches: the same batches, fewer reads, and a decoder that has nothing to do."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import pytest
from PIL import Image

import stoker
from loader.shards import image, write_annotated, write_shards
from stoker.errors import BadSampleWarning, ConfigError, ImageError
from written_files import flip_bit

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 24
KEYS = stoker.RecordKeys("image/encoded", "image/class/label", 0)
TRANSFORMS = stoker.MultiCrop(
    stoker.RandomResizedCrop(20, hflip=0.5), stoker.CenterCrop(16, 18), stoker.TopLeft(12), stoker.Resize(30)
)


@pytest.fixture
def train(tmp_path: Path) -> stoker.Dataset:
    return stoker.open(write_annotated(tmp_path / "train-00000-of-00001", RECORDS))


def caches(tmp_path: Path) -> list[stoker.MemoryCache | stoker.NodeCache]:
    return [
        stoker.MemoryCache("10MB"),
        stoker.MemoryCache("10MB", keep="decoded"),
        stoker.MemoryCache(150_000, keep="decoded"),  # not enough for all
        stoker.NodeCache(tmp_path / "cache", "10MB"),
    ]


def epochs(train: stoker.Dataset, **settings: object) -> list[tuple]:
    settings = {"transform": TRANSFORMS, "shuffle": True, "seed": 5, "batch_size": 7, "threads": 3, **settings}
    with stoker.Loader(train, **settings) as loader:
        return [
            (
                batch.indices.tolist(),
                batch.labels.tolist(),
                [images.tobytes() for images in batch.images],
                str(batch.boxes),
            )
            for _ in range(3)
            for batch in loader
        ]


def test_no_cache_changes_a_batch(train: stoker.Dataset, tmp_path: Path) -> None:
    plain = epochs(train)
    boxed = epochs(train, boxes=stoker.BoxOutput(pad_to=3))
    for cache in caches(tmp_path):
        assert epochs(train, cache=cache) == plain
        assert cache.stats().hits > 0
        assert epochs(train, cache=cache, boxes=stoker.BoxOutput(pad_to=3)) == boxed


def test_objects_of_kept_images(train: stoker.Dataset, tmp_path: Path) -> None:
    crops = {"transform": stoker.ObjectCrops(14), "shuffle": True, "seed": 1}

    def seen(**settings: object) -> list[bytes]:
        with stoker.Loader(train, batch_size=5, **crops, **settings) as loader:
            return [batch.images.tobytes() for _ in range(2) for batch in loader]

    plain = seen()
    for cache in caches(tmp_path):
        assert seen(cache=cache) == plain
        assert cache.stats().hits > 0


def test_what_is_decoded_is_neither_read_nor_decoded_again(train: stoker.Dataset) -> None:
    cache = stoker.MemoryCache("10MB", keep="decoded")
    first = epochs(train, cache=cache)
    assert cache.stats().misses == RECORDS
    assert cache.stats().hits == 2 * RECORDS
    os.truncate(train.shards[0].path, 0)  # whatever reads it now, fails
    assert epochs(train, cache=cache) == first
    assert cache.stats().hit_rate > 0.8
    assert "hit" in repr(cache)


def test_damage_is_found_also_without_check(train: stoker.Dataset) -> None:
    flip_bit(train.shards[0].path, 60)
    with pytest.raises(stoker.errors.CorruptRecordError, match="record 0"):
        epochs(train, cache=stoker.MemoryCache("10MB"), check=False)


def test_a_bad_image_is_never_kept(tmp_path: Path) -> None:
    write_shards(tmp_path, 6, 1, {2: image(2)[:200]})
    broken = stoker.open(tmp_path, keys=KEYS)
    cache = stoker.MemoryCache("10MB", keep="decoded")
    for _ in range(2):
        with pytest.raises(ImageError, match=r"picture-2\.JPEG|record 2"):
            epochs(broken, cache=cache)


def test_a_memory_cache_serves_one_dataset(train: stoker.Dataset, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("other")
    write_shards(folder, 8, 1)
    other = stoker.open(folder, keys=KEYS)
    cache = stoker.MemoryCache("10MB", keep="decoded")
    epochs(train, cache=cache)
    with pytest.raises(ConfigError, match="this cache holds samples of another dataset"):
        stoker.Loader(other, batch_size=2, transform=stoker.Resize(8), cache=cache)
    mixed = stoker.mix([train, other], label_offsets=[0, 0])
    for fresh in (stoker.MemoryCache("10MB"), stoker.MemoryCache("10MB", keep="decoded")):
        assert epochs(mixed, cache=fresh) == epochs(mixed)
        assert fresh.stats().hits > 0


def test_labels_that_were_moved_are_not_kept_for_others(train: stoker.Dataset) -> None:
    cache = stoker.MemoryCache("10MB", keep="decoded")
    epochs(stoker.mix([train, train], label_offsets=[0, 1000]), cache=cache)
    with pytest.raises(ConfigError, match="mix or record layout"):
        epochs(stoker.mix([train, train], label_offsets=[0, 0]), cache=cache)


def test_a_cache_changes_nothing_about_which_samples_are_bad(tmp_path: Path) -> None:
    whole = image(2)
    write_shards(tmp_path, 6, 1, {2: whole[: len(whole) * 2 // 3]})
    broken = stoker.open(tmp_path, keys=KEYS)
    small = stoker.RandomResizedCrop(16, scale=(0.02, 0.05))

    def keys(cache: stoker.MemoryCache | None) -> list[int]:
        settings = {"transform": small, "on_bad": "substitute", "cache": cache, "seed": 0}
        with stoker.Loader(broken, batch_size=6, **settings) as loader, warnings.catch_warnings():
            warnings.simplefilter("ignore", BadSampleWarning)
            return [index for _ in range(6) for batch in loader for index in batch.indices.tolist()]

    plain = keys(None)
    for budget in (2000, 10_000_000):
        assert keys(stoker.MemoryCache(budget, keep="decoded")) == plain


def test_an_image_that_was_written_again_is_not_the_one_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "photos" / "cat" / "0.bmp"
    path.parent.mkdir(parents=True)
    for value in (10, 200):
        Image.new("RGB", (8, 8), (value, value, value)).save(path)
        os.utime(path, ns=(value, value))
        cache = stoker.NodeCache(tmp_path / "cache", "10MB")
        with stoker.Loader(stoker.open(tmp_path / "photos"), 1, transform=stoker.RawTensor(8), cache=cache) as loader:
            assert next(iter(loader)).images.max() == value
