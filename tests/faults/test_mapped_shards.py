"""Shards of raw tensors are mapped: what their files do then must be an error, and never the end of the process."""

from __future__ import annotations

import hashlib
import signal
from pathlib import Path

import numpy as np
import pytest

import stoker
from programs import run

RECORDS = 300
SIDE = 16

READER = f"""
import ctypes, faulthandler, hashlib, mmap, os, resource, signal, sys
from pathlib import Path

@ctypes.CFUNCTYPE(None, ctypes.c_int)
def last_words(number):
    os._exit(42)

def signals_of_c():
    ctypes.CDLL(None).signal(signal.SIGBUS, last_words)

def limit_space():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 46, resource.getrlimit(resource.RLIMIT_AS)[1]))

folder, *words = sys.argv[1:]
steps = {{"faulthandler": faulthandler.enable, "disable": faulthandler.disable, "c": signals_of_c}}
steps["limit"] = limit_space
if words[0] in steps:
    steps[words[0]]()

import stoker
from stoker.errors import ShardError

dataset = stoker.open(folder)
loader = stoker.Loader(
    dataset, 20, transform=stoker.RawTensor({SIDE}), shuffle=True, seed=1, threads=2, tail="short"
)

def epoch():
    sums = {{}}
    for batch in loader:
        for index, image in zip(batch.indices.tolist(), batch.images, strict=True):
            sums[index] = hashlib.sha256(image).hexdigest()
    return "".join(sums[index] for index in range({RECORDS}))

whole = {{epoch() for _ in range(4)}}
shard = Path(dataset.shards[1].local_path)
mapped = shard.name in Path("/proc/self/maps").read_text()
if words[1] in steps:
    steps[words[1]]()
    whole |= {{epoch() for _ in range(20)}}  # long enough for each thread to notice
print(mapped, *whole, flush=True)

if words[2] == "others":
    with shard.open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    os.truncate(shard, 0)
    view[0]
    os._exit(1)
os.truncate(shard, shard.stat().st_size // 2)
try:
    epoch()
except ShardError as error:
    print(type(error).__name__, Path(error.path).name, error.record, flush=True)
loader.close()
"""


def pixels_of(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), np.uint8)


@pytest.fixture
def tensors(tmp_path: Path) -> Path:
    """Two shards of raw tensors."""
    records = [{"image": pixels_of(i), "label": i % 7} for i in range(RECORDS)]
    resize = f"exact:{SIDE}x{SIDE}"
    stoker.build(records, tmp_path / "data", shards=2, resize=resize, encode="raw", preset="dlbs", progress=False)
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nothing", "nothing"), ("nothing", "faulthandler"), ("nothing", "c"), ("faulthandler", "nothing"),
        ("faulthandler", "disable"), ("limit", "nothing"),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_a_shard_that_is_cut_under_a_loader(tensors: Path, before: str, after: str) -> None:
    dataset = stoker.open(tensors)
    whole = "".join(hashlib.sha256(sample.encoded).hexdigest() for sample in (dataset[i] for i in range(RECORDS)))
    done = run(READER, tensors, before, after, "ours")
    assert (done.returncode, done.stderr) == (0, "")
    epochs, error = done.stdout.splitlines()
    assert epochs.split() == [str(before != "limit"), whole]
    name, shard, record = error.split()
    assert (name, shard) == ("TruncatedShardError", Path(dataset.shards[1].local_path).name)
    assert RECORDS // 4 <= int(record) < RECORDS // 2


@pytest.mark.parametrize("before", ["nothing", "faulthandler", "c"])
@pytest.mark.slow
def test_faults_of_others_go_where_they_went(tensors: Path, before: str) -> None:
    done = run(READER, tensors, before, "nothing", "others")
    assert done.stdout.startswith("True ")
    assert done.returncode == (42 if before == "c" else -signal.SIGBUS)
    assert ("Fatal Python error: Bus error" in done.stderr) == (before == "faulthandler")
