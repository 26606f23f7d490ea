"""The memory of a whole epoch and of a whole build is that of the settings, however many records there are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from loader.shards import write_shards
from reference import pictures

if TYPE_CHECKING:
    from pathlib import Path

MIB = 2**20
SLACK = 4 * MIB  # arenas of the allocator, which a longer run fills a little more

EPOCH = r"""
import re, sys
import stoker
transform = stoker.Resize(96)
samples = 0
dataset = stoker.open(sys.argv[1], "train")
with stoker.Loader(dataset, batch_size=32, transform=transform, threads=2, prefetch=2, seed=1) as loader:
    for batch in loader:
        samples += len(batch.labels)
print(re.search(r"VmHWM:\s+([0-9]+) kB", open("/proc/self/status").read())[1], samples)
"""

BUILD = r"""
import re, sys
from pathlib import Path
from stoker.builder import BuildSettings, ShardSettings, SourceSettings, build
shards = ShardSettings(size_bytes=2**20)
report = build(BuildSettings(SourceSettings(sys.argv[1]), threads=2, shards=shards), Path(sys.argv[1] + ".dataset"))
print(re.search(r"VmHWM:\s+([0-9]+) kB", open("/proc/self/status").read())[1], report.manifest.records)
"""


def peak(program: str, path: Path) -> tuple[int, int]:
    """Return the largest resident size in bytes, and the samples or records.

    The least of three runs: what the allocator keeps differs by a megabyte from one to the next.
    """
    command = [sys.executable, "-c", program, str(path)]
    sizes = []
    for _ in range(3):
        shutil.rmtree(f"{path}.dataset", ignore_errors=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr
        kib, count = map(int, done.stdout.split())
        sizes.append(kib * 1024)
    return min(sizes), count


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    (tmp_path / "few").mkdir()
    write_shards(tmp_path / "few", 200, 1)
    return tmp_path / "few" / "train-00000-of-00001"


def test_an_epoch_takes_no_more_for_more_records(tmp_path: Path, shards: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(40):
        shutil.copy(shards, many / f"train-{number:05d}-of-00040")
    (few_peak, few), (many_peak, count) = peak(EPOCH, shards.parent), peak(EPOCH, many)
    assert (few, count) == (200, 8000)
    pixels = 96 * 96 * 3
    assert (count - few) * pixels > 10 * SLACK  # what would be seen if batches stayed
    assert many_peak - few_peak < SLACK + 16 * (count - few)


def test_a_build_takes_no_more_for_more_images(tmp_path: Path) -> None:
    image = pictures.jpeg(120, 120, 1, quality=90)
    for name, classes in (("few", 6), ("many", 18)):  # fewer do not fill the first arenas
        for folder in (tmp_path / name / str(number) for number in range(classes)):
            folder.mkdir(parents=True)
            first = folder / "0.JPEG"
            first.write_bytes(image)
            for number in range(1, 1000):
                (folder / f"{number}.JPEG").hardlink_to(first)
    (few_peak, few), (many_peak, count) = peak(BUILD, tmp_path / "few"), peak(BUILD, tmp_path / "many")
    assert (few, count) == (6000, 18000)
    assert (count - few) * len(image) > 5 * SLACK
    assert many_peak - few_peak < SLACK + 250 * (count - few)
