"""Datasets in buckets and HDFS give what the same dataset gives from this machine's disk, bit for bit."""

from __future__ import annotations

import pickle
import tarfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import stoker
from loader.remote_datasets import TRANSFORM, assert_same, copy, epochs, folder_in
from loader.shards import write_annotated, write_shards
from mixed_images import write_folder, write_records
from stoker.errors import ConfigError, DatasetNotFoundError, IndexMismatchError, TruncatedShardError
from stoker.loader.caches import NodeCache
from stoker.storage import location
from stoker.torch import MapDataset

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

SMALL = stoker.ReadAhead(budget="40KB", connections=4, gap=500, longest="20KB")
BLOCKS = stoker.BlockShuffle(4, 3)


@pytest.fixture(params=["s3", "gs", "hdfs"])
def remote(request: pytest.FixtureRequest, dataset: Path, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return copy(dataset, folder_in(request.param, request, monkeypatch))


@pytest.fixture
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return folder_in("s3", request, monkeypatch)


def test_every_order_and_budget_gives_the_same_batches(remote: StoreLocation, dataset: Path) -> None:
    here, there = stoker.open(dataset, "train"), stoker.open(str(remote), "train")
    assert (there.identity, len(there), there.classes) == (here.identity, len(here), here.classes)
    settings: list[dict[str, Any]] = [
        {"shuffle": True},
        {"shuffle": True, "read_ahead": SMALL},
        {"shuffle": BLOCKS, "read_ahead": SMALL, "tail": "wrap"},
        {"tail": "pad", "batch_size": 7, "rank": 1, "world_size": 3},
    ]
    for each in settings:
        assert_same(epochs(here, **each), epochs(there, **each))
        assert_same(epochs(here[::-3], **each), epochs(there[::-3], **each))


def test_all_ways_to_look_at_a_dataset(remote: StoreLocation, dataset: Path) -> None:
    here, there = stoker.open(dataset, "train"), stoker.open(remote, "train")
    assert (there[3].encoded, there[-1].features) == (here[3].encoded, here[-1].features)
    np.testing.assert_array_equal(there.labels, here.labels)
    np.testing.assert_array_equal(there.object_counts, here.object_counts)
    assert pickle.loads(pickle.dumps(there))[0].encoded == here[0].encoded
    objects = {"transform": stoker.ObjectCrops(8), "shuffle": True, "read_ahead": SMALL}
    assert_same(epochs(here, **objects), epochs(there, **objects))
    with pytest.raises(IndexError):
        there[len(there)]


def test_the_budget_is_kept_and_ranges_are_long(bucket: StoreLocation, dataset: Path) -> None:
    there = stoker.open(copy(dataset, bucket), "train")
    largest = max(int(shard.extents[:, 1].max()) for shard in there.shards)
    size = sum(shard.size_bytes for shard in there.shards)
    budget = max(2 * largest, size // 3)
    ahead = stoker.ReadAhead(budget=budget, connections=8, gap=0)  # bytes between samples would come on top of those
    with stoker.Loader(there, batch_size=4, read_ahead=ahead, transform=TRANSFORM, shuffle=True) as loader:
        for _ in range(3):
            assert len(list(loader)) == 10
        counts = loader._engine.ranges.counts()
        assert counts.peak_bytes <= budget, loader
        assert (counts.unplanned, counts.rereads) == (0, 0), loader
        assert 3 * size <= counts.bytes <= 3 * size + budget, loader
    with stoker.Loader(there, batch_size=4, transform=TRANSFORM) as loader:
        list(loader)
        assert loader._engine.ranges.counts().requests <= 2 * 2 * len(there.shards)  # this epoch and the next


def test_resuming_with_other_ranks_and_leaving_early(bucket: StoreLocation, dataset: Path) -> None:
    there = stoker.open(copy(dataset, bucket), "train")
    settings: dict[str, Any] = {"transform": TRANSFORM, "shuffle": True, "seed": 5, "read_ahead": SMALL}
    with stoker.Loader(there, batch_size=8, **settings) as loader:
        whole = [index for batch in loader for index in batch.indices.tolist()]
        loader.set_epoch(0)
        taken = next(iter(loader)).indices.tolist()
        state = loader.state_dict()
        second = [index for batch in loader for index in batch.indices.tolist()]  # the next epoch
    rest = []
    for rank in range(2):
        with stoker.Loader(there, batch_size=8, rank=rank, world_size=2, **settings) as loader:
            loader.load_state_dict(state)
            rest += [index for batch in loader for index in batch.indices[batch.valid].tolist()]
            assert loader.state_dict()["epoch"] == 1
    assert taken == whole[:8]
    assert sorted(taken + rest) == sorted(whole) == sorted(second)


def test_mixes_of_here_and_there(bucket: StoreLocation, dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    old = write_shards(tmp_path / "old", 13, 2)
    copy(tmp_path / "old", bucket / "old")
    here, there = stoker.open(dataset, "train"), stoker.open(copy(dataset, bucket / "new"), "train")
    local = stoker.mix([here, stoker.open(old[0].parent), here], label_offsets=[0, 10, 20])
    mixed = stoker.mix([there, stoker.open(f"{bucket}/old"), here], label_offsets=[0, 10, 20])
    for shuffle in (True, BLOCKS):
        expected = epochs(local, shuffle=shuffle, batch_size=9)
    assert_same(expected, epochs(mixed, shuffle=shuffle, batch_size=9, read_ahead=SMALL))


@pytest.mark.parametrize("kind", ["node", "encoded", "decoded"])
def test_what_a_cache_has_is_not_fetched_again(kind: str, bucket: StoreLocation, dataset: Path, tmp_path: Path) -> None:
    here, there = stoker.open(dataset, "train"), stoker.open(copy(dataset, bucket), "train")
    cache = NodeCache(tmp_path / "cache", "1GB") if kind == "node" else stoker.MemoryCache("1GB", kind)  # type: ignore[arg-type]
    expected = epochs(here, 3, shuffle=True)
    for _ in range(2):
        settings = {"batch_size": 8, "transform": TRANSFORM, "seed": 5, "shuffle": True}
        with stoker.Loader(there, cache=cache, read_ahead=SMALL, **settings) as loader:
            batches = [[b.images, b.labels, b.indices, b.valid] for _ in range(3) for b in loader]
            counts = loader._engine.ranges.counts()
        assert_same(batches, expected)
    assert counts.requests == 0  # of the second loader, which found all in the cache


def test_images_that_were_torn_in_the_cache_are_fetched(bucket: StoreLocation, dataset: Path, tmp_path: Path) -> None:
    here, there = stoker.open(dataset, "train"), stoker.open(copy(dataset, bucket), "train")
    cache = NodeCache(tmp_path / "cache", "1GB")
    epochs(there, 1, cache=cache)
    for path in (tmp_path / "cache").glob("*.samples"):
        with path.open("r+b") as file:
            for at in range(5000, path.stat().st_size, 9000):
                file.seek(at)
                file.write(b"torn")
    assert_same(epochs(there, cache=cache, shuffle=True), epochs(here, shuffle=True))


def test_bad_samples_are_replaced_by_the_same_ones(bucket: StoreLocation, tmp_path: Path) -> None:
    write_shards(tmp_path, 20, 2, {3: b"\xff\xd8 no image", 13: b"\xff\xd8"})
    here, there = stoker.open(tmp_path), stoker.open(copy(tmp_path, bucket))
    settings: dict[str, Any] = {"on_bad": "substitute", "shuffle": True}
    with pytest.warns(stoker.errors.BadSampleWarning):
        expected = epochs(here, 2, **settings)
    with pytest.warns(stoker.errors.BadSampleWarning):
        assert_same(epochs(there, 2, read_ahead=SMALL, **settings), expected)


def test_shards_without_an_index_are_read_through_once(bucket: StoreLocation, tmp_path: Path) -> None:
    write_annotated(tmp_path / "train.tfrecord", 9)
    copy(tmp_path, bucket)
    path = bucket / "train.tfrecord"
    for target in (bucket, path, bucket / "tr*.tfrecord"):
        assert len(stoker.open(target)) == 9
    kept = list((tmp_path / "user-cache" / "indexes").iterdir())
    assert len(kept) == 1
    kept[0].write_bytes(b"0 17\n")
    assert stoker.open(bucket)[8].encoded == stoker.open(tmp_path / "train.tfrecord")[8].encoded
    path.write_atomically((tmp_path / "train.tfrecord").read_bytes()[:-1])
    with pytest.raises(TruncatedShardError, match="record 8 at byte"):
        stoker.open(bucket)


def test_what_is_missing_or_does_not_fit_is_reported(bucket: StoreLocation, dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="s3://"):
        stoker.open(bucket)
    with pytest.raises(ConfigError, match="ftp://"):
        stoker.open("ftp://host/dataset")
    there = copy(dataset, bucket)
    shard = (there / "train*.tfrecord").matching()[0]
    index = shard.with_name(shard.name + ".idx")
    whole = shard.read_bytes()
    index.write_atomically(b"0 17\n")
    with pytest.raises(IndexMismatchError, match=r"s3://.*idx"):
        stoker.open(there, "train")
    index.unlink()
    assert len(stoker.open(there, "train")) == 40
    shard.write_atomically(whole[:-1])
    with pytest.raises(TruncatedShardError, match=r"s3://.*has \d+ bytes"):
        stoker.open(there, "train")
    shard.unlink()
    with pytest.raises(DatasetNotFoundError, match="is missing"):
        stoker.open(there, "train")


def test_a_kept_index_that_was_damaged_is_fetched_again(bucket: StoreLocation, dataset: Path, tmp_path: Path) -> None:
    there = copy(dataset, bucket)
    expected = [sample.encoded for sample in (stoker.open(there, "train")[i] for i in (0, 39))]
    for path in (tmp_path / "user-cache" / "indexes").iterdir():
        path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    again = stoker.open(there, "train")
    assert [again[i].encoded for i in (0, 39)] == expected


def test_images_and_tars_in_a_bucket_are_read_as_they_are(bucket: StoreLocation, photos: Path, tmp_path: Path) -> None:
    here = stoker.open(photos, "train")
    copy(photos, bucket / "photos")
    there = stoker.open(bucket / "photos", "train")
    np.testing.assert_array_equal(there.labels, here.labels)
    assert there[7].encoded == here[7].encoded
    for shuffle in (False, True):
        assert_same(epochs(here, shuffle=shuffle), epochs(there, shuffle=shuffle, read_ahead=SMALL))
    with tarfile.open(tmp_path / "some.tar", "w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(photos / "train", ".")
    (bucket / "some.tar").write_atomically((tmp_path / "some.tar").read_bytes())
    for folder in (location(tmp_path), bucket):  # nothing to warn of where all classes are listed
        (folder / "synsets.txt").write_atomically((photos / "synsets.txt").read_bytes())
    tars = stoker.open(tmp_path / "some.tar"), stoker.open(bucket / "some.tar")
    assert_same(epochs(tars[0], shuffle=True), epochs(tars[1], shuffle=True, read_ahead=SMALL))


def test_indices_of_a_sampler_are_fetched_batch_by_batch(bucket: StoreLocation, dataset: Path) -> None:
    here, there = (
        MapDataset(stoker.open(dataset, "train"), TRANSFORM),
        MapDataset(stoker.open(copy(dataset, bucket), "train"), TRANSFORM),
    )
    for numbers in ([5, 3, 3, 39], [0], list(range(40))):
        for (image, label), (like, same) in zip(here.__getitems__(numbers), there.__getitems__(numbers), strict=True):
            assert (image == like).all()
            assert label == same
    here.close()
    there.close()


def test_settings_that_make_no_sense_are_refused() -> None:
    for wrong in ({"budget": 0}, {"budget": "much"}, {"connections": 0}, {"gap": -1}, {"longest": 0}):
        with pytest.raises(ConfigError):
            stoker.ReadAhead(**wrong)


@pytest.mark.parametrize("kind", ["s3", "gs"])
@pytest.mark.parametrize("make", [write_folder, write_records])
def test_images_of_every_format_come_as_from_a_disk(
    kind: str, make: Any, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = make(tmp_path / "mixed")
    remote = copy(local, folder_in(kind, request, monkeypatch))
    for cache in (None, stoker.MemoryCache("8MB", "decoded"), NodeCache(tmp_path / "node", "8MB")):
        assert_same(
            epochs(stoker.open(local), shuffle=True),
            epochs(stoker.open(remote), shuffle=True, read_ahead=SMALL, cache=cache),
        )
