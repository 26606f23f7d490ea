"""The cache in memory: same bytes, a budget that holds, one dataset."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loader.shards import behind
from stoker.errors import ConfigError
from stoker.loader.caches import MemoryCache

if TYPE_CHECKING:
    import stoker

RECORDS = 24


class Model:
    """The slow twin: a dictionary that never gives up what it has."""

    def __init__(self, sizes: list[int], budget: int) -> None:
        self.sizes, self.budget = sizes, budget
        self.held: set[int] = set()
        self.used = self.hits = self.misses = 0
        self.full = False

    def read(self, number: int) -> None:
        if number in self.held:
            self.hits += 1
            return
        self.misses += 1
        cost = 256 + (self.sizes[number] + 16 + 15) // 16 * 16  # of samples below 64 KiB
        if self.used + cost <= self.budget:
            self.held.add(number)
            self.used += cost
        else:
            self.full = True


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reads=st.lists(st.integers(0, RECORDS - 1), max_size=60), budget=st.integers(1, 100_000))
def test_it_does_what_the_slow_twin_does(train: stoker.Dataset, reads: list[int], budget: int) -> None:
    cache, model = MemoryCache(budget), Model([len(train.records.read(i)) for i in range(RECORDS)], budget)
    source = behind(cache, train)
    for number in reads:
        assert source.read(number) == train.records.read(number)
        model.read(number)
        stats = cache.stats()
        assert (stats.hits, stats.misses, stats.bytes, stats.full) == (
            model.hits,
            model.misses,
            model.used,
            model.full,
        )
        assert stats.bytes <= budget


def test_many_threads(train: stoker.Dataset) -> None:
    cache = MemoryCache("60KB")
    source = behind(cache, train)
    expected = [train.records.read(i) for i in range(RECORDS)]

    def work(seed: int) -> bool:
        chosen = random.Random(seed)
        numbers = [chosen.randrange(RECORDS) for _ in range(300)]
        return all(source.read(number) == expected[number] for number in numbers) and cache.stats().bytes <= 60_000

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert cache.stats().hits + cache.stats().misses == 2400


def test_settings(train: stoker.Dataset) -> None:
    samples = train.reader.source(check=True)
    assert MemoryCache("1MB", keep="decoded").source(train, samples) is samples
    assert repr(MemoryCache("2GB")) == "<stoker.MemoryCache of encoded samples: 0 B of 2.0 GB, 0.0% of 0 reads hit>"
    with pytest.raises(ConfigError, match="keep is 'raw'"):
        MemoryCache("1MB", keep="raw")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="budget is 0"):
        MemoryCache(0)
    with pytest.raises(ConfigError, match="not a size"):
        MemoryCache("much")
