"""The node cache: right bytes whatever happens to its file, a budget that holds, and a source that is never touched."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

import stoker
from loader.shards import behind, payload, write_shards
from reference import tfrecord
from stoker import _native
from stoker.errors import ConfigError
from stoker.loader.caches import ENTRY_BYTES, TAG_NAME, CacheDirectory, NodeCache
from written_files import write_files

RECORDS = 24


def read_all(cache: NodeCache, folder: Path) -> None:
    dataset = stoker.open(folder)
    source = behind(cache, dataset)
    for number in range(len(dataset)):
        assert source.read(number) == dataset.records.read(number)


def disk_bytes(directory: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in directory.iterdir())


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_hits_give_the_same_bytes_also_to_later_runs(shards: Path, tmp_path: Path) -> None:
    before = state_of(shards)
    first = NodeCache(tmp_path / "cache", "10MB")
    for _ in range(2):
        read_all(first, shards)
    stats = first.stats()
    assert (stats.hits, stats.misses, stats.errors, stats.full) == (RECORDS, RECORDS, 0, False)
    assert stats.hit_rate == 0.5
    assert disk_bytes(tmp_path / "cache") <= stats.bytes <= stats.budget == 10_000_000
    later = NodeCache(str(tmp_path / "cache"), 10_000_000)
    read_all(later, shards)
    assert later.stats().hit_rate == 1.0
    assert "100.0% of 24 reads hit" in repr(later)
    assert state_of(shards) == before


def test_the_file_is_a_shard_that_anybody_reads(shards: Path, tmp_path: Path) -> None:
    read_all(NodeCache(tmp_path / "cache", "10MB"), shards)
    (samples,) = (tmp_path / "cache").glob("*.samples")
    assert [record.payload for record in tfrecord.scan(samples.read_bytes())] == [payload(i) for i in range(RECORDS)]


def test_damage_is_a_miss_and_repaired(shards: Path, tmp_path: Path) -> None:
    cache = NodeCache(tmp_path / "cache", "10MB")
    read_all(cache, shards)
    (samples,) = (tmp_path / "cache").glob("*.samples")
    whole = samples.read_bytes()
    chosen = random.Random(3)
    for round_ in range(60):
        damaged = bytearray(whole)
        damaged[chosen.randrange(len(damaged))] ^= 1 << chosen.randrange(8)
        with samples.open("r+b") as file:
            file.write(damaged)
        read_all(cache, shards)
        assert cache.stats().misses == RECORDS + round_ + 1
        assert samples.read_bytes() == whole


@pytest.mark.parametrize("size", [0, 1, 5000, 10**7])
def test_a_file_of_another_length_is_brought_to_its_own(shards: Path, tmp_path: Path, size: int) -> None:
    read_all(NodeCache(tmp_path / "cache", "10MB"), shards)
    (samples,) = (tmp_path / "cache").glob("*.samples")
    whole = samples.read_bytes()
    os.truncate(samples, size)
    read_all(NodeCache(tmp_path / "cache", "10MB"), shards)
    assert samples.read_bytes() == whole


def test_changed_files_never_hit_old_bytes(shards: Path, tmp_path: Path) -> None:
    read_all(NodeCache(tmp_path / "cache", "10MB"), shards)
    path = sorted(shards.glob("train-*"))[0]
    frames = [tfrecord.frame(payload(i).replace(b"picture-", b"Picture-")) for i in range(RECORDS // 2)]
    size = path.stat().st_size
    path.write_bytes(b"".join(frames))
    assert path.stat().st_size == size
    cache = NodeCache(tmp_path / "cache", "10MB")
    read_all(cache, shards)
    assert cache.stats().hits == 0


def test_a_manifest_stands_for_its_bytes_wherever_they_lie(dataset: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(dataset, tmp_path / "copy", copy_function=shutil.copyfile)
    cache = NodeCache(tmp_path / "cache", "50MB")
    original, copied = stoker.open(dataset, split="train"), stoker.open(copy, split="train")
    for number in range(len(original)):
        behind(cache, original).read(number)
        assert behind(cache, copied).read(number) == original.records.read(number)
    assert cache.stats().hit_rate == 0.5


def test_a_file_that_grew_or_was_replaced_is_read_as_it_is(photos: Path, tmp_path: Path) -> None:
    some = sorted((photos / "train").rglob("*.*"))[:6]
    folder = write_files(tmp_path / "photos", {f"fish/{path.name}": path.read_bytes() for path in some})
    cache = NodeCache(tmp_path / "cache", "50MB")
    opened = stoker.open(folder)
    source = behind(cache, opened)
    path = Path(opened.records.where(0)[0])
    was = path.read_bytes()
    path.write_bytes(was + b"more")
    assert [source.read(0) for _ in range(2)] == [was + b"more"] * 2
    assert cache.stats().hits == 0
    path.with_suffix(".new").write_bytes(was[::-1])
    path.with_suffix(".new").replace(path)
    assert behind(NodeCache(tmp_path / "cache", "50MB"), stoker.open(folder)).read(0) == was[::-1]


def test_the_budget_is_what_the_disk_gives_and_what_came_first_stays(shards: Path, tmp_path: Path) -> None:
    cache = NodeCache(tmp_path / "cache", 65536)
    for _ in range(3):
        read_all(cache, shards)
        assert disk_bytes(tmp_path / "cache") <= 65536
    stats = cache.stats()
    assert stats.full
    assert 0 < stats.hits < 2 * RECORDS
    assert stats.hits % 2 == 0  # the same ones in both later rounds


def other_shards(tmp_path: Path, name: str, records: int = 30) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    write_shards(folder, records, 1)
    stoker.open(folder)
    return folder


def test_entries_that_are_not_in_use_are_evicted_the_oldest_first(shards: Path, tmp_path: Path) -> None:
    old, older = other_shards(tmp_path, "old", 31), other_shards(tmp_path, "older")
    for folder in (older, old):
        read_all(NodeCache(tmp_path / "cache", "1MB"), folder)
    directory = CacheDirectory(tmp_path / "cache")
    keys = [entry.key for entry in directory.entries()]
    used = sum(entry.disk_bytes for entry in directory.entries())
    cache = NodeCache(tmp_path / "cache", used + 65536)  # space for two of the three
    before = state_of(old) | state_of(older)
    read_all(cache, shards)
    left = [entry.key for entry in directory.entries()]
    assert keys[0] not in left
    assert keys[1] in left
    assert not cache.stats().full
    assert state_of(old) | state_of(older) == before


@pytest.mark.parametrize(("budget", "fits"), [(131072, False), (212992, True)])
def test_what_is_in_use_is_never_evicted(shards: Path, tmp_path: Path, budget: int, fits: bool) -> None:
    other = other_shards(tmp_path, "other")
    busy = NodeCache(tmp_path / "cache", budget)
    for _ in range(2):
        read_all(busy, other)
    kept = busy.stats().hits
    cache = NodeCache(tmp_path / "cache", budget)
    dataset = stoker.open(shards)
    source = cache.source(dataset, dataset.reader.source(check=True))
    assert isinstance(source, _native.CachedSource) == fits
    if fits:
        read_all(cache, shards)
    assert cache.stats().full
    assert cache.stats().errors == 0
    assert disk_bytes(tmp_path / "cache") <= budget
    assert busy.stats().bytes <= budget
    read_all(busy, other)
    assert busy.stats().hits == 2 * kept
    assert {entry.in_use for entry in CacheDirectory(tmp_path / "cache").entries()} == {True}


@pytest.mark.slow
def test_what_is_removed_gives_back_all_that_was_counted_for_it(shards: Path, tmp_path: Path) -> None:
    def counted() -> int:
        return int.from_bytes((tmp_path / "cache" / "budget").read_bytes(), "little")

    busy = NodeCache(tmp_path / "cache", "10MB")
    read_all(busy, shards)
    before = counted()
    for name in ("a", "b", "c", "d"):
        read_all(NodeCache(tmp_path / "cache", "10MB"), other_shards(tmp_path, name))
        assert counted() > before + ENTRY_BYTES
        assert len(CacheDirectory(tmp_path / "cache").clear()) == 1
    assert 0 <= counted() - before < ENTRY_BYTES  # but for the ends of blocks


def test_a_smaller_budget_takes_back_what_a_larger_one_gave(shards: Path, tmp_path: Path) -> None:
    read_all(NodeCache(tmp_path / "cache", "1MB"), shards)
    assert disk_bytes(tmp_path / "cache") > 65536
    read_all(NodeCache(tmp_path / "cache", 65536), shards)
    assert disk_bytes(tmp_path / "cache") <= 65536


def test_a_directory_of_other_things_is_refused(shards: Path, tmp_path: Path) -> None:
    dataset = stoker.open(shards)
    with pytest.raises(ConfigError, match="is not a Stoker cache"):
        NodeCache(shards, "1MB").source(dataset, dataset.reader.source(check=True))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / TAG_NAME).write_text("Signature: 8a477f597d28d172789f06886806bc55\n# of another program\n")
    (tmp_path / "mine" / "notes.txt").write_text("do not touch")
    with pytest.raises(ConfigError, match=r"holds 'notes.txt'"):
        NodeCache(tmp_path / "mine", "1MB").source(dataset, dataset.reader.source(check=True))
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == [TAG_NAME, "notes.txt"]


@pytest.mark.parametrize("damage", ["a lost byte", "lost", "all but another tag"])
def test_without_its_tag_a_cache_is_left_and_training_goes_on(shards: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "cache"
    read_all(NodeCache(folder, "1MB"), shards)
    (folder / TAG_NAME).write_bytes((folder / TAG_NAME).read_bytes()[:-1])
    if damage == "lost":
        (folder / TAG_NAME).unlink()
    if damage == "all but another tag":
        for path in (path for path in folder.iterdir() if path.name != TAG_NAME):
            path.unlink()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    dataset = stoker.open(shards, keys=stoker.RecordKeys("image/encoded", "image/class/label", 0))
    with (
        pytest.warns(UserWarning, match=r"CACHEDIR\.TAG is damaged or missing; remove the directory to start"),
        stoker.Loader(dataset, 5, transform=stoker.CenterCrop(8), cache=NodeCache(folder, "1MB")) as loader,
    ):
        assert sum(len(batch) for batch in loader) == RECORDS
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    shutil.rmtree(folder)
    read_all(NodeCache(folder, "1MB"), shards)


@pytest.mark.parametrize("budget", ["12 parsecs", 0, "1KB", -5])
def test_a_senseless_budget_is_refused(tmp_path: Path, budget: str | int) -> None:
    with pytest.raises(ConfigError):
        NodeCache(tmp_path, budget)


def test_a_cache_in_a_store_is_refused() -> None:
    with pytest.raises(ConfigError, match="s3://bucket/cache is in a store, and a NodeCache lies on a disk"):
        NodeCache("s3://bucket/cache", "1GB")
    with pytest.raises(ConfigError, match="a URL that has lost a slash"):
        NodeCache(Path("s3://bucket/cache"), "1GB")


def hostile(kind: str, directory: Path, name: str, victim: Path) -> None:
    path = directory / name
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "hard link":
        path.hardlink_to(victim)
    elif kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)


@pytest.mark.parametrize("kind", ["link", "hard link", "directory", "pipe"])
@pytest.mark.parametrize("which", ["samples", "budget"])
@pytest.mark.slow
def test_files_that_are_not_its_own_are_not_used(shards: Path, tmp_path: Path, kind: str, which: str) -> None:
    directory = tmp_path / "cache"
    read_all(NodeCache(directory, "10MB"), shards)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 1000)
    name = "budget" if which == "budget" else next(directory.glob("*.samples")).name
    hostile(kind, directory, name, victim)
    dataset = stoker.open(shards)
    samples = dataset.reader.source(check=True)
    cache = NodeCache(directory, "10MB")
    with pytest.warns(UserWarning, match="the dataset is read instead") as caught:
        assert cache.source(dataset, samples) is samples
    assert len(caught) == 1
    assert cache.source(dataset, samples) is samples  # without another warning
    assert cache.stats().errors == 2
    assert victim.read_bytes() == b"precious" * 1000


def test_a_cache_that_cannot_be_made_is_done_without(shards: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    dataset = stoker.open(shards)
    samples = dataset.reader.source(check=True)
    cache = NodeCache(tmp_path / "file" / "cache", "10MB")
    with pytest.warns(UserWarning, match="Not a directory"):
        assert cache.source(dataset, samples) is samples


def test_a_counter_that_breaks_stops_no_reading_and_warns_once(shards: Path, tmp_path: Path) -> None:
    cache = NodeCache(tmp_path / "cache", "10MB")
    dataset = stoker.open(shards)
    source = behind(cache, dataset)
    os.truncate(tmp_path / "cache" / "budget", 0)
    for number in range(len(dataset)):
        assert source.read(number) == dataset.records.read(number)
    with pytest.warns(UserWarning, match="counts its bytes"):
        cache.warn_of_problems()
    cache.warn_of_problems()  # without another warning
    assert cache.stats().errors == 1
    whole = NodeCache(tmp_path / "cache", "10MB")
    del source, cache
    read_all(whole, shards)
    read_all(whole, shards)
    whole.warn_of_problems()
    assert whole.stats().hits == RECORDS
