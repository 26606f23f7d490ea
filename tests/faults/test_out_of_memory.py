"""Where there is no memory for a batch or an image: `MemoryError`, never the end of the process, and work goes on."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from programs import run

if TYPE_CHECKING:
    from pathlib import Path

# Each attempt is a process of its own, forked before anything has a thread.
PRELUDE = """
import json, os, resource, sys, traceback

def limit(spare):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))

def in_child(act, *arguments):
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(out, json.dumps(act(*arguments)).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    os.close(out)
    with os.fdopen(into, "rb") as pipe:
        output = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [status, json.loads(output) if output else None]
"""
# A batch takes 96 MiB, which is more than what glibc keeps for the small allocations of a thread, and the limits leave
# nothing, a little more than nothing, or a little more than some batches, so that memory ends everywhere.
BATCHES = """
import hashlib
import stoker

train = stoker.open(sys.argv[1], "train")
transform = stoker.RandomResizedCrop(1024)

def checksum(batch):
    return hashlib.sha256(batch.images.tobytes() + batch.labels.tobytes()).hexdigest()

def attempt(spare):
    seen = []
    with stoker.Loader(train, 32, transform=transform, shuffle=True, seed=3, threads=8) as loader:
        limit(spare)
        for _ in range(5):
            try:
                next(iter(loader))
                seen.append("")
            except Exception as error:
                seen.append(type(error).__name__)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        loader.set_epoch(7)
        return [seen, checksum(next(iter(loader)))]

print(json.dumps([in_child(attempt, int(spare)) for spare in sys.argv[2:]]))
"""
ENCODING = """
import numpy as np
from stoker import _native

pixels = np.random.default_rng(0).integers(0, 255, (2000, 2000, 3), dtype=np.uint8)

def attempt(spare):
    limit(spare)
    try:
        size = len(_native.encode_jpeg(pixels, 100, "4:4:4"))
    except MemoryError:
        size = 0
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return [size, len(_native.encode_jpeg(pixels, 100, "4:4:4"))]

print(json.dumps([in_child(attempt, int(spare) << 20) for spare in sys.argv[1:]]))
"""
BATCH = 32 * 1024 * 1024 * 3
SPARE = [at * BATCH + more for at in (0, 1, 2) for more in (0, 100_000, 400_000, 1_000_000, 2_000_000, 4_000_000)]


ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="no limit of the address space elsewhere")


def told(program: str, *words: object) -> tuple[Any, str]:
    """What a program prints, as JSON, and what it says beside."""
    done = run(PRELUDE + program, *words, seconds=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@ONLY_LINUX
@pytest.mark.slow
def test_batches_without_memory(dataset: Path) -> None:
    spare = [*SPARE, 1 << 40]  # at last as much as there is
    (*short, (_, (seen, expected))), stderr = told(BATCHES, dataset, *spare)
    assert seen == [""] * 5
    assert [status for status, _ in short] == [0] * len(short), stderr
    assert {error for _, (errors, _) in short for error in errors} == {"", "MemoryError"}
    assert {checksum for _, (_, checksum) in short} == {expected}


@ONLY_LINUX
@pytest.mark.slow
def test_encoding_without_memory() -> None:
    results, stderr = told(ENCODING, *range(20, 64, 4))  # MiB; the JPEG has 11.7, and its coefficients 24
    assert [status for status, _ in results] == [0] * len(results), stderr
    sizes = [size for _, (size, _) in results]
    whole = results[-1][1][1]
    assert (sizes[0], sizes[-1]) == (0, whole)
    assert set(sizes) == {0, whole}
    assert {again for _, (_, again) in results} == {whole}
