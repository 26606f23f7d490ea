"""Batches for which there is no memory: `MemoryError`, never the end of the process, and a loader that goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Each attempt is a process of its own, forked before anything has a thread. A batch takes 96 MiB, which is more than
# what glibc keeps for the small allocations of a thread, and the limits leave nothing, a little more than nothing, or
# a little more than some batches, so that memory ends everywhere.
PROGRAM = """
import hashlib, json, os, resource, sys, traceback
import stoker

train = stoker.open(sys.argv[1], "train")
transform = stoker.RandomResizedCrop(1024)

def checksum(batch):
    return hashlib.sha256(batch.images.tobytes() + batch.labels.tobytes()).hexdigest()

def limit(spare):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))

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
        said = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [status, json.loads(said) if said else None]

print(json.dumps([in_child(attempt, int(spare)) for spare in sys.argv[2:]]))
"""
BATCH = 32 * 1024 * 1024 * 3
SPARE = [at * BATCH + more for at in (0, 1, 2) for more in (0, 100_000, 400_000, 1_000_000, 2_000_000, 4_000_000)]


@pytest.mark.skipif(sys.platform != "linux", reason="no limit of the address space elsewhere")
def test_batches_without_memory(dataset: Path) -> None:
    spare = [*SPARE, 1 << 40]  # at last as much as there is
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(dataset), *map(str, spare)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    *short, (_, (seen, expected)) = json.loads(done.stdout)
    assert seen == [""] * 5
    assert [status for status, _ in short] == [0] * len(short), done.stderr
    assert {error for _, (errors, _) in short for error in errors} == {"", "MemoryError"}
    assert {checksum for _, (_, checksum) in short} == {expected}
