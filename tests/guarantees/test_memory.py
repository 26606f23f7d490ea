"""The memory of a whole epoch and of a whole build is that of the settings, however many records there are."""

from __future__ import annotations

import math
import shutil
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from loader.shards import write_shards
from programs import output_of
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
import stoker
report = stoker.build(sys.argv[1], Path(sys.argv[1] + ".dataset"), threads=2, shard_size=2**20)
print(re.search(r"VmHWM:\s+([0-9]+) kB", open("/proc/self/status").read())[1], report.manifest.records)
"""

CROPS = r"""
import re, sys
import numpy as np
import stoker
from stoker import _native

def kib(name):
    return int(re.search(name + r":\s+([0-9]+) kB", open("/proc/self/status").read())[1])

data, share = open(sys.argv[1], "rb").read(), float(sys.argv[2])
transform = stoker.RandomResizedCrop(224, scale=(share, share)).native()
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak is counted from now on
before = kib("VmRSS")
_native.decode_loop(images=[data], indices=np.zeros(3, np.uint64), transform=transform, seed=1, epoch=0, threads=1)
print(kib("VmHWM") - before)
"""


RECORDS = r"""
import re
from stoker.sources import list_records

class Made:
    def __init__(self, count):
        self.count = count
    def __len__(self):
        return self.count
    def __getitem__(self, position):
        return {"image": b"image", "label": 1}

def kib(name):
    return int(re.search(name + r":\s+([0-9]+) kB", open("/proc/self/status").read())[1])

list_records({"train": Made(100)}, None)
before = kib("VmRSS")
listed = list_records({"train": Made(4_000_000), "validation": Made(1_000_000)}, None)
print(kib("VmHWM") - before, len(listed.table))
"""


def peak(program: str, path: Path, most: float = math.inf) -> tuple[int, int]:
    """Return the largest resident size in bytes, and the samples or records.

    What the allocator keeps differs by a megabyte from one run to the next: one of three may be less than ``most``.
    """
    sizes = []
    for _ in range(3):
        shutil.rmtree(f"{path}.dataset", ignore_errors=True)
        kib, count = map(int, output_of(program, path, seconds=240).split())
        sizes.append(kib * 1024)
        if sizes[-1] < most:
            break
    return min(sizes), count


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    (tmp_path / "few").mkdir()
    write_shards(tmp_path / "few", 200, 1)
    return tmp_path / "few" / "train-00000-of-00001"


@pytest.mark.slow
def test_an_epoch_takes_no_more_for_more_records(tmp_path: Path, shards: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(40):
        shutil.copy(shards, many / f"train-{number:05d}-of-00040")
    few_peak, few = peak(EPOCH, shards.parent)
    more = 8000 - few
    many_peak, count = peak(EPOCH, many, few_peak + SLACK + 16 * more)
    assert (few, count) == (200, 8000)
    assert more * (96 * 96 * 3) > 10 * SLACK  # what would be seen if batches stayed
    assert many_peak - few_peak < SLACK + 16 * more


@pytest.mark.slow
def test_a_build_takes_no_more_for_more_images(tmp_path: Path) -> None:
    image = pictures.jpeg(120, 120, 1, quality=90)
    for name, classes in (("few", 6), ("many", 18)):  # fewer do not fill the first arenas
        for folder in (tmp_path / name / str(number) for number in range(classes)):
            folder.mkdir(parents=True)
            first = folder / "0.JPEG"
            first.write_bytes(image)
            for number in range(1, 1000):
                (folder / f"{number}.JPEG").hardlink_to(first)
    few_peak, few = peak(BUILD, tmp_path / "few")
    more = 18000 - few
    many_peak, count = peak(BUILD, tmp_path / "many", few_peak + SLACK + 250 * more)
    assert (few, count) == (6000, 18000)
    assert more * len(image) > 5 * SLACK
    assert many_peak - few_peak < SLACK + 250 * more


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("share", [0.25, 0.9])
@pytest.mark.slow
def test_a_crop_of_a_large_photo_takes_a_tenth_of_its_pixels(tmp_path: Path, share: float, progressive: bool) -> None:
    width, height = 4000, 3000
    image = Image.fromarray(pictures.pixels(200, 150, 1)).resize((width, height), Image.Resampling.BICUBIC)
    path = tmp_path / "large.jpg"
    image.save(path, "JPEG", quality=85, subsampling="4:2:0", progressive=progressive)
    assert int(output_of(CROPS, path, share)) * 1024 < 3 * width * height / 10


def test_a_sequence_is_planned_in_few_bytes_a_record(tmp_path: Path) -> None:
    most = 10 * 5_000_000 + SLACK
    size, count = peak(RECORDS, tmp_path, most)
    assert count == 5_000_000
    assert size < most
