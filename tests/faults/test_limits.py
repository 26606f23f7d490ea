"""Little memory and few files: an error that says so, and never a crash or a hang."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from builder.trees import write_tree
from loader.shards import payload
from programs import output_of, run
from reference import tfrecord

PRELUDE = """
import gc, json, resource, sys
from pathlib import Path
import stoker
from stoker.inspect import verify_dataset

def feed(path):
    train = stoker.open(path, "train")
    transform = stoker.RandomResizedCrop(64)
    with stoker.Loader(train, batch_size=8, transform=transform, shuffle=True, threads=4) as loader:
        return sorted(key for batch in loader for key in batch.indices.tolist())

def outcome(action):
    try:
        return [action(), ""]
    except Exception as error:
        return [None, f"{type(error).__name__}: {error}"]
"""
OF_MEMORY = {"MemoryError", "OSError", "BlockingIOError", "RuntimeError"}  # the last: Python has no thread any more


def told(program: str, *words: object) -> Any:
    """What a program prints, as JSON; it must end by itself, and well."""
    return json.loads(output_of(PRELUDE + textwrap.dedent(program), *words).splitlines()[-1])


@pytest.mark.parametrize("action", ["feed(path)", "len(verify_dataset(path, threads=4).problems)"])
@pytest.mark.slow
def test_little_memory(dataset: Path, action: str) -> None:
    outcomes = told(
        f"""
        path = sys.argv[1]
        expected = outcome(lambda: {action})
        used = int(Path("/proc/self/status").read_text().split("VmSize:")[1].split()[0]) << 10
        seen = []
        for more in (0, 256, 4096, 9000, 20000, 100_000, 200_000):  # KiB; the stack of a thread has 8 MiB
            gc.collect()
            resource.setrlimit(resource.RLIMIT_AS, (used + (more << 10), resource.RLIM_INFINITY))
            seen.append(outcome(lambda: {action}))
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print(json.dumps({{"expected": expected, "seen": seen, "again": outcome(lambda: {action})}}))
        """,
        dataset,
    )
    assert not outcomes["expected"][1]
    assert outcomes["again"] == outcomes["expected"]
    for value, error in outcomes["seen"]:
        assert value == outcomes["expected"][0] or error.split(":")[0] in OF_MEMORY, error


@pytest.mark.slow
def test_builds_with_little_memory(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", {"a": 20, "b": 20})
    command = [sys.executable, "-m", "stoker.cli.main", "build", str(source), "--shards", "3", "--resize", "short:64"]
    command += ["--json", "--threads", "4"]

    def build(name: str, kilobytes: int | None = None) -> subprocess.CompletedProcess[str]:
        limited = ["bash", "-c", f'ulimit -v {kilobytes or "unlimited"}; exec "$@"', "bash", *command]
        return subprocess.run(
            [*limited, str(tmp_path / name)], capture_output=True, text=True, timeout=120, check=False
        )

    whole = json.loads(build("whole").stdout)["dataset_id"]
    codes = set()
    for megabytes in (180, 220, 250, 300, 500, 4000):
        first = build(str(megabytes), megabytes << 10)
        codes.add(first.returncode)
        if first.returncode:
            # Without room for a thread's stack, Python only says that there is no thread.
            assert re.search("not enough memory|or more memory", first.stderr)
            assert "Traceback" not in first.stderr
        told = json.loads(build(str(megabytes)).stdout)
        assert (told["dataset_id"], told["rejects"]) == (whole, [])
    assert codes == {0, 1}


@pytest.mark.slow
def test_no_memory_for_the_stacks_of_threads(dataset: Path) -> None:
    outcome = told(
        """
        used = int(Path("/proc/self/status").read_text().split("VmSize:")[1].split()[0]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20), resource.RLIM_INFINITY))
        print(json.dumps(outcome(lambda: verify_dataset(sys.argv[1], threads=4))))
        """,
        dataset,
    )
    assert outcome == [None, "MemoryError: no memory for 8 threads: their stacks take 83,886,080 bytes"]


def test_no_more_threads(tmp_path: Path, shim: dict[str, str]) -> None:
    source = write_tree(tmp_path / "source", {"a": 2, "b": 2})
    program = """
        import errno, sys
        import numpy  # its OpenBLAS interrupts a process that gets no threads
        sys.path.insert(0, sys.argv[1])
        import shim
        import stoker.builder  # with NumPy, whose own threads are not what this is about
        from stoker.cli.main import main
        shim.arm(shim.Fault("thread", "thread", errno.EAGAIN, shim.FAIL_ALWAYS), 1)
        sys.exit(main(["build", *sys.argv[2:], "--shards", "1"]))
    """
    done = run(program, Path(__file__).parent, source, tmp_path / "built", env=shim)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("stoker: error: the system refuses to start more threads; allow more, or more memory")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_thousands_of_shards_with_few_files(tmp_path: Path) -> None:
    shards = 1000
    frames = [tfrecord.frame(payload(i)) for i in range(8)]
    for shard in range(shards):
        (tmp_path / f"train-{shard:05d}-of-{shards:05d}").write_bytes(frames[shard % 8])
        (tmp_path / f"train-{shard:05d}-of-{shards:05d}.idx").write_text(f"0 {len(frames[shard % 8])}\n")
    result = told(
        """
        resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))
        before = len(list(Path("/proc/self/fd").iterdir()))
        keys = feed(sys.argv[1])
        left = len(list(Path("/proc/self/fd").iterdir())) - before
        print(json.dumps({"all": keys == list(range(1000)), "left": left}))
        """,
        tmp_path,
    )
    assert result == {"all": True, "left": 0}


@pytest.mark.slow
def test_no_file_left(dataset: Path) -> None:
    outcomes = told(
        """
        import os
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        train = stoker.open(sys.argv[1], "train")
        loader = stoker.Loader(train, batch_size=8, transform=stoker.Resize(16), threads=2)
        taken = []
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        failed = outcome(lambda: len(list(loader)))
        for file in taken:
            os.close(file)
        loader.set_epoch(0)
        print(json.dumps({"failed": failed, "again": outcome(lambda: sum(len(b.indices) for b in loader) ==
        len(train))}))
        """,
        dataset,
    )
    assert "Too many open files" in outcomes["failed"][1]
    assert ".tfrecord" in outcomes["failed"][1]
    assert outcomes["again"] == [True, ""]
