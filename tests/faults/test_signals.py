"""Signals, pipes that close, children and the end of the interpreter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from builder.trees import write_tree
from programs import run, run_python

if TYPE_CHECKING:
    from pathlib import Path

STOKER = [sys.executable, "-m", "stoker.cli.main"]

FEEDING = """
import sys, warnings, stoker
warnings.filterwarnings("ignore", ".*EXIF orientation")  # which an image of the sample has
loader = stoker.Loader(
    stoker.open(sys.argv[1], "train"), batch_size=4, transform=stoker.RandomResizedCrop(64), shuffle=True, threads=3
)
def forever():
    while True:
        yield from loader
def until_closed():
    try:
        for batch in forever():
            pass
    except stoker.errors.ClosedError:  # at exit all loaders are closed
        pass
"""


def wait_for(condition: object, process: subprocess.Popen[bytes]) -> None:
    """Wait until a condition holds or the process has ended."""
    assert callable(condition)
    while not condition() and process.poll() is None:
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM], -signal.SIGTERM),
        ([signal.SIGINT, signal.SIGINT], 130),
    ],
    ids=["STOP, CONT and TERM", "INT twice"],
)
@pytest.mark.slow
def test_a_build_ended_by_signals_is_finished_later(tmp_path: Path, signals: list[signal.Signals], code: int) -> None:
    source, out = write_tree(tmp_path / "source", {"a": 300, "b": 300}), tmp_path / "out"  # not done before the signals
    command = [*STOKER, "build", str(source), str(out), "--shards", "60", "--resize", "short:64", "--json"]
    process = subprocess.Popen([*command, "--threads", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    journal = out / "build.journal"
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 2, process)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    process.communicate(timeout=60)
    assert process.returncode in {code, -signal.SIGINT if code == 130 else code}
    again = subprocess.run(command, capture_output=True, check=True, timeout=60)
    told = json.loads(again.stdout)
    command[5] = str(tmp_path / "whole")
    whole = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert told["dataset_id"] == json.loads(whole.stdout)["dataset_id"]
    assert not list(out.glob("*.tmp-*"))


@pytest.mark.slow
def test_output_without_a_reader(dataset: Path) -> None:
    command = f"{sys.executable} -m stoker.cli.main info {dataset} | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert "Traceback" not in done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(
    "rest",
    [
        "kept = [forever()]; next(kept[0]); kept.append(kept)",
        "import threading, time\nthreading.Thread(target=until_closed, daemon=True).start(); time.sleep(0.2)",
        ("import threading, time\nkept = forever(); next(kept)\ndef hold(loader):\n while True: time.sleep(0.001)\n"
        "threading.Thread(target=hold, args=[loader], daemon=True).start()"),
        ("import os, sys\nkept = forever(); next(kept); nothing = [sys.executable, '-c', '']\n"
        "if os.fork() == 0: os.execv(nothing[0], nothing)\nassert os.wait()[1] == 0; next(kept)"),
        "import sys\nkept = forever(); next(kept)\ntry: raise ValueError\nexcept ValueError as error: sys.kept = error",
    ],
    ids=["cycle", "daemon", "daemon that holds", "fork and exec", "exception kept"],
)  # fmt: skip
@pytest.mark.slow
def test_a_program_ends_well_whatever_it_was_doing(dataset: Path, rest: str) -> None:
    quiet = ["-W", "ignore:This process:DeprecationWarning"]  # ... "is multi-threaded", says Python 3.12 of any fork
    done = run_python(*quiet, "-c", FEEDING + rest, dataset)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "work",
    [
        """
        def work():
            while True:
                _native.resize(pixels, 500, 500, "bilinear")
                begun.set()
        """,
        """
        class Failing(Exception):
            def __str__(self, sleep=time.sleep):  # runs below a function of the core
                begun.set()
                [sleep(0.001) for _ in range(1000)]
        def work():
            ranges.fail(0, Failing())
        """,
        """
        class Owner:
            def __call__(self, *place): ...
            def __del__(self, sleep=time.sleep):  # runs below a destructor of the core
                begun.set()
                [sleep(0.001) for _ in range(1000)]
        owned = [_native.DirectReader(Owner())]
        def work():
            owned.clear()
        """,
    ],
    ids=["at work", "that asks for a text", "that frees"],
)
def test_a_thread_when_the_interpreter_ends(work: str) -> None:
    program = """
        import threading, time
        import numpy as np
        from stoker import _native
        class Slow:  # lets go of the interpreter's lock while its modules are taken down
            def __del__(self, sleep=time.sleep):
                sleep(0.5)
        slow, begun, pixels = Slow(), threading.Event(), np.zeros((1000, 1000, 3), np.uint8)
        ranges = _native.RemoteRanges(1000)
    """
    started = "threading.Thread(target=work, daemon=True).start(); begun.wait()"
    done = run(textwrap.dedent(program) + textwrap.dedent(work) + started)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_processes_of_their_own_feed_themselves(dataset: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        FEEDING.replace("loader =", "import multiprocessing\ndef make(): return", 1)
        + textwrap.dedent("""
        def work(rank):
            return sum(len(batch.indices) for batch in make())

        if __name__ == "__main__":
            with make() as loader, multiprocessing.get_context('forkserver').Pool(2) as pool:
                batches = iter(loader)
                next(batches)
                counts = pool.map(work, range(2))
                assert counts == [len(loader.dataset)] * 2, counts
                assert sum(len(batch.indices) for batch in batches) == len(loader.dataset) - 4
        """)
    )
    done = run_python(program, dataset, env={**os.environ, "PYTHONWARNINGS": "error"})
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_storm_of_signals(dataset: Path, photos: Path, tmp_path: Path) -> None:
    program = """
import signal, sys, warnings, stoker
from pathlib import Path
warnings.filterwarnings("ignore", ".*EXIF orientation")
came = 0
def count(*_):
    global came
    came += 1
def once(number):
    out = Path(sys.argv[3], str(number))
    built = stoker.build(sys.argv[2], out, threads=2)
    train = stoker.open(sys.argv[1], "train")
    with stoker.Loader(train, batch_size=4, transform=stoker.Resize(32), threads=2) as loader:
        return built.manifest.dataset_id, [batch.images.tobytes() for batch in loader]
expected = once(0)
signal.signal(signal.SIGALRM, count)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
assert once(1) == expected
signal.setitimer(signal.ITIMER_REAL, 0)
assert came > 20, came
"""
    done = run(program, dataset, photos, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
