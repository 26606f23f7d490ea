"""The requests that the simulation plans are those that a real loader makes of a real store."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import stoker
from benchmarks.simulation import Data, Ranks, Span, Storage, simulate
from stoker.cli.main import main
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

AHEAD = stoker.ReadAhead("100KB", connections=4, gap="2KB", longest="40KB")
BATCH = 8


@pytest.fixture
def pixels(
    photos: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> StoreLocation:
    """Records of equal length, in a bucket."""
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    folder = store_folder("s3", request, monkeypatch)
    options = ["--preset", "tiny-imagenet", "--resize", "exact:32x32", "--shards", "4"]
    assert main(["build", str(photos), str(folder), *options]) == 0
    return folder


@pytest.mark.parametrize("shuffle", [False, True, stoker.BlockShuffle(5, 2)], ids=str)
@pytest.mark.parametrize("world", [1, 2])
def test_requests_and_bytes_are_those_of_a_loader(
    pixels: StoreLocation, tmp_path: Path, shuffle: bool | stoker.BlockShuffle, world: int
) -> None:
    dataset = stoker.open(pixels, "train")
    lengths = {int(size) for shard in dataset.shards for size in shard.extents[:, 1]}
    assert len(lengths) == 1
    of_shard = {len(shard.extents) for shard in dataset.shards}
    assert len(of_shard) == 1
    data = Data(len(dataset), lengths.pop(), of_shard.pop())
    ranks = Ranks(world, batch_size=BATCH, read_ahead=AHEAD)
    span = Span(shuffle, seed=3, steps=len(dataset), ranks=world)
    report = simulate(data, ranks, Storage(), span)
    for simulated in report.ranks:
        loader = stoker.Loader(
            dataset,
            batch_size=BATCH,
            transform=stoker.RawTensor(32),
            shuffle=shuffle,
            seed=3,
            tail="drop",
            rank=simulated.rank,
            world_size=world,
            read_ahead=AHEAD,
        )
        with loader:
            assert sum(len(batch) for batch in loader) == simulated.samples
            counts = loader._engine.ranges.counts()
        assert counts.unplanned == 0
        # The loader has gone on into the next epoch by as much as the budget allows.
        assert simulated.requests <= counts.requests <= simulated.requests + AHEAD.budget_bytes // data.record_bytes
        assert simulated.bytes_read <= counts.bytes <= simulated.bytes_read + AHEAD.budget_bytes
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)
