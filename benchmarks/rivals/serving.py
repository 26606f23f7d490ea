"""What a program does that is measured in turns, in a rival's own environment; see `stoker.inspect.measuring`.

A program hands `serve_batches` its batches, or `serve_builds` its way to build. What it prints goes to standard error;
standard output carries the answers, one line of JSON each. NumPy and the standard library only: a rival's environment
has no Stoker.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import numpy as np

from benchmarks.rivals.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WARM_UP_SECONDS = 1.0
LEAD_IN = 1 / 8
"""Of a turn, read before the clock starts: what was made ahead earlier is used up, and threads get going."""

_LOOKED_AT = 4
"""Batches of which the pixels are averaged."""


class Batch(NamedTuple):
    """What readers yield: the pixels, as they would be used, and which samples they are."""

    images: Any
    ids: Any


def serve_batches(batches: Callable[[Work], Iterator[Batch]]) -> None:
    """Measure a reader, as often as standard input asks."""
    answers, work = _begin()
    endless = batches(work)
    counts = (len(batch.ids) for batch in endless)
    _answer(answers, _warm_up(endless, work.samples))
    for seconds in _turns():
        _measure(counts, seconds * LEAD_IN)
        _answer(answers, _measure(counts, seconds))
    _leave()


def serve_amounts(amounts: Callable[[Work], Iterator[float]]) -> None:
    """Measure work that has no batches, of which each step says how much it did."""
    answers, work = _begin()
    endless = amounts(work)
    _measure(endless, WARM_UP_SECONDS)
    _answer(answers, {})
    for seconds in _turns():
        _answer(answers, _measure(endless, seconds))


def serve_builds(build: Callable[[Work, Path], None]) -> None:
    """Measure a writer: from the call to the finished output, which goes to a new directory each time."""
    answers, work = _begin()
    out = Path(work.data, f"out-{work.line}-{work.form}")
    photos = len(work.build_photos())
    _answer(answers, _measure_build(build, work, out, photos))
    for _ in _turns():
        _answer(answers, _measure_build(build, work, out, photos))


def cpu_seconds() -> float:
    """CPU time of this process and of all its descendants, those that have ended included.

    Of living descendants it is known in steps of 10 ms.
    """
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used) + tree_seconds(descendants(os.getpid()))


def tree_seconds(members: set[int]) -> float:
    """CPU time of living processes and of children that they waited for, in steps of 10 ms."""
    return sum(sum(map(int, _stat(pid)[11:15])) for pid in members) / os.sysconf("SC_CLK_TCK")


def descendants(root: int) -> set[int]:
    """Living descendants of a process, as ``/proc`` tells."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    living: set[int] = set()
    while grown := {child for child, parent in parents.items() if parent in living | {root}} - living:
        living |= grown
    return living


def _stat(pid: int) -> list[bytes]:
    """Fields of a process from its state on; none if it has just ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def _begin() -> tuple[TextIO, Work]:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers, Work.from_json(sys.argv[1])


def _turns() -> Iterator[float]:
    for line in sys.stdin:
        yield float(line)


def _answer(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _warm_up(endless: Iterator[Batch], samples: int) -> dict[str, Any]:
    """Read for a moment, and at least as many samples as there are; say what came."""
    began, read = time.perf_counter(), 0
    means: list[float] = []
    seen: set[int] = set()
    shape, dtype = "", ""
    while time.perf_counter() - began < WARM_UP_SECONDS or read < samples:
        batch = next(endless)
        if len(means) < _LOOKED_AT:
            pixels = np.asarray(batch.images)
            shape, dtype = "x".join(map(str, pixels.shape)), str(pixels.dtype)
            means.append(float(pixels.mean()))
        ids = np.asarray(batch.ids).reshape(-1).tolist()
        if read < samples:
            seen.update(ids)
        read += len(ids)
    return {"shape": shape, "dtype": dtype, "mean": float(np.mean(means)), "distinct": len(seen)}


def _measure(amounts: Iterator[float], seconds: float) -> dict[str, float]:
    cpu, began, images = cpu_seconds(), time.perf_counter(), 0.0
    while (elapsed := time.perf_counter() - began) < seconds:
        images += next(amounts)
    return {"images": images, "seconds": elapsed, "cpu_seconds": cpu_seconds() - cpu}


def _measure_build(build: Callable[[Work, Path], None], work: Work, out: Path, photos: int) -> dict[str, float]:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cpu, began = cpu_seconds(), time.perf_counter()
    build(work, out)
    elapsed = time.perf_counter() - began
    figures = {"images": float(photos), "seconds": elapsed, "cpu_seconds": cpu_seconds() - cpu}
    files = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    shutil.rmtree(out)
    return figures | {"files": len(files), "bytes": sum(files)}


def _leave() -> None:
    """End at once: worker processes and threads of rivals would otherwise be waited for, some of them for ever."""
    sys.stderr.flush()
    os._exit(0)
