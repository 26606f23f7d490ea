"""What a forked process makes of its parent's datasets, caches and loaders, whose locks may be held forever there.

A child that has not ended after half a minute is killed, which fails its test.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from benchmarks import forks
from loader.shards import write_shards
from other_threads import meanwhile
from programs import output_of
from reference import pictures
from stoker.errors import ClosedError
from stoker.forks import PerProcess, process_number
from stoker.loader import caches as cache_files
from stoker.loader import engine
from stoker.loader.caches import About, CacheDirectory, try_lock
from stoker.recipe import decode
from stoker.sources import Source
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RECORDS = 24
TRANSFORM = stoker.Resize(16)
QUIET = {**os.environ, "PYTHONWARNINGS": "ignore"}  # which of forks beside threads say what is the point here
# Python, and JAX where an earlier test has loaded it, warn of forks next to threads; here they are the point.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
]


def status_of_child(act: Callable[[], object]) -> int:
    """How a forked process ends that does something: 0 if it went well, below 0 if it had to be killed."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - the parent only sees how it ends
            os.write(2, f"in the child: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(ended[1])


@contextmanager
def in_the_middle_of(work: Callable[[Callable[[], None]], object]) -> Iterator[None]:
    """Call a function in another thread, with one that it calls in its middle and that does not return meanwhile."""
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        assert go_on.wait(60)

    thread = threading.Thread(target=work, args=(wait,))
    thread.start()
    try:
        assert inside.wait(60)
        yield
    finally:
        go_on.set()
        thread.join()


def in_a_small_process(function: Callable[..., None], *arguments: str) -> None:
    """Call a function of this file where no framework is loaded: a fork takes the longer the more memory there is."""
    program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import *; {function.__name__}(*{arguments!r})"
    output_of(program, seconds=200, env=QUIET)


def epoch(dataset: stoker.Dataset, **settings: Any) -> list[int]:
    with stoker.Loader(dataset, 8, transform=TRANSFORM, threads=2, **settings) as loader:
        return [int(batch.images.sum()) for batch in loader]


def test_a_process_has_a_number_and_values_of_its_own() -> None:
    values = PerProcess(list[int])
    values.get().append(process_number())

    def in_child() -> None:
        assert values.get() == []
        values.get().append(process_number())
        assert status_of_child(lambda: values.get() == [] or os._exit(2)) == 0

    assert status_of_child(in_child) == 0
    assert values.get() == [process_number()]


def use_a_memory_cache_in_children(folder: str, keep: Any) -> None:
    train = stoker.open(folder)
    expected = epoch(train)
    caches = [stoker.MemoryCache("10MB", keep)]

    def fill() -> None:
        caches[0] = stoker.MemoryCache("10MB", keep)
        epoch(train, cache=caches[0])

    def ask() -> None:
        stats = caches[0].stats()
        assert (stats.hits, stats.misses, stats.bytes, stats.full) == (0, 0, 0, False)

    with meanwhile(fill):
        assert [status_of_child(ask) for _ in range(100)] == [0] * 100

    def use() -> None:
        cache = caches[0]
        assert epoch(train, cache=cache) == epoch(train, cache=cache) == expected
        assert cache.stats().hits == RECORDS

    assert status_of_child(use) == 0


@pytest.mark.parametrize("keep", ["encoded", "decoded"])
@pytest.mark.slow
def test_a_memory_cache_begins_empty_in_a_child_whatever_fills_it(tmp_path: Path, keep: str) -> None:
    write_shards(tmp_path, RECORDS, 3)
    in_a_small_process(use_a_memory_cache_in_children, str(tmp_path), keep)


def test_a_node_cache_is_opened_again_while_the_parent_opens_it(train: stoker.Dataset, tmp_path: Path) -> None:
    cache = stoker.NodeCache(tmp_path / "cache", "10MB")
    expected = epoch(train, cache=cache)
    other = stoker.open(train.path)

    def open_slowly(wait: Callable[[], None]) -> None:
        def stamps() -> Iterator[bytes]:
            wait()
            return iter((b"another",))

        other.stamps = stamps  # type: ignore[method-assign]
        epoch(other, cache=cache)

    def use() -> None:
        assert cache.stats().misses == 0
        assert epoch(train, cache=cache) == expected
        assert cache.stats().hits == RECORDS

    with in_the_middle_of(open_slowly):
        assert status_of_child(use) == 0


def test_a_child_keeps_no_lock_of_the_files_of_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []

    def lock_and_fork(descriptor: int, kind: int) -> bool:
        locked = try_lock(descriptor, kind)
        children.append(os.fork())
        if children[-1] == 0:
            time.sleep(300)
            os._exit(0)
        return locked

    directory = CacheDirectory(tmp_path / "cache")
    directory.create()
    about = About("somewhere", "train", 1)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(cache_files, "try_lock", lock_and_fork)
            for key in "ab":  # the second looks whether the first is in use
                os.close(directory.acquire(key * 32, about, 100, 10**6) or -1)
        monkeypatch.setattr(cache_files, "_LOCK_SECONDS", 0.0)
        with directory.locked():
            assert len(children) >= 5
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_labels_are_read_in_a_child_beside_the_parent(train: stoker.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    others = stoker.open(train.path)

    def read_slowly(wait: Callable[[], None]) -> None:
        def sample(number: int) -> stoker.Sample:
            wait()
            return train[number]

        monkeypatch.setattr(others.reader, "sample", sample)
        assert not len(others.reader.box_labels)

    with in_the_middle_of(read_slowly):
        assert status_of_child(lambda: train.reader.box_labels) == 0


def test_annotations_are_read_in_a_child_beside_the_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_files(tmp_path / "photos", {"class/0.jpg": encoded("JPEG")})
    mine, childs = stoker.open(folder), stoker.open(folder)

    def read_slowly(wait: Callable[[], None]) -> None:
        def boxes_of(*_: object) -> tuple[()]:
            if threading.current_thread() is not threading.main_thread():
                wait()
            return ()

        monkeypatch.setattr(Source, "read_boxes", boxes_of)
        assert mine.object_counts.tolist() == [0]

    with in_the_middle_of(read_slowly):
        assert status_of_child(lambda: childs.object_counts.tolist() == [0] or os._exit(2)) == 0


def test_other_formats_are_decoded_in_a_child_while_the_parent_converts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bmp = encoded("BMP")

    def convert_slowly(wait: Callable[[], None]) -> None:
        def quiet(*_: object, **__: object) -> None:
            if threading.current_thread() is not threading.main_thread():
                wait()

        monkeypatch.setattr("warnings.filterwarnings", quiet)
        decode(bmp, 1)

    with in_the_middle_of(convert_slowly):
        assert status_of_child(lambda: decode(bmp, 1)) == 0


def encoded(kind: str) -> bytes:
    return pictures.encode(Image.new("RGB", (1, 1)), format=kind)


def fork_while_threads_begin_to_run_python(folder: str) -> None:
    photos, pixels = stoker.open(folder), np.zeros((1, 1, 3), np.uint8)
    engine.decode = lambda *_, **__: pixels  # type: ignore[assignment]  # as little Python as there can be

    def read() -> None:
        with stoker.Loader(photos, 256, transform=stoker.Resize(1), threads=8) as loader:
            for _ in range(20):
                list(loader)

    with meanwhile(read):
        assert [status_of_child(lambda: None) for _ in range(300)] == [0] * 300


@pytest.mark.slow
def test_a_fork_waits_for_no_thread_that_begins_to_run_python(tmp_path: Path) -> None:
    """The core calls Python for each BMP; what such a call needs, Python 3.11 makes under a lock of its own."""
    folder = write_files(tmp_path / "photos", {f"class/{number}.bmp": encoded("BMP") for number in range(256)})
    in_a_small_process(fork_while_threads_begin_to_run_python, str(folder))


@pytest.mark.slow
def test_a_child_reads_the_files_of_its_parent_while_the_parent_does(tmp_path: Path) -> None:
    write_shards(tmp_path, 60, 60)
    program = f"""
        import os, resource, signal, threading
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        import stoker
        train = stoker.open({str(tmp_path)!r})
        expected = [train[i].encoded for i in range(60)]
        stop = threading.Event()
        def read():
            while not stop.is_set():
                for i in range(60):
                    train[i]
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        ends = []
        for _ in range(100):
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                assert [train[i].encoded for i in range(60)] == expected
                assert len(os.listdir("/proc/self/fd")) < 60
                os._exit(0)
            ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        assert ends == [0] * 100, ends
    """
    output_of(program, env=QUIET)


def test_every_use_of_the_loader_of_a_parent_says_what_to_do(train: stoker.Dataset) -> None:
    with stoker.Loader(train, 8, transform=TRANSFORM, threads=2) as loader:
        next(iter(loader))

        def use() -> None:
            for way in (lambda: next(iter(loader)), loader.stats, loader.events):
                with pytest.raises(ClosedError, match=r"before a fork.*make the loader in the process that uses it"):
                    way()
            loader.close()

        assert status_of_child(use) == 0
        assert len(list(loader)) == 3


@pytest.mark.slow
def test_a_child_leaves_the_trace_of_its_parent_alone(train: stoker.Dataset, tmp_path: Path) -> None:
    program = f"""
        import os, sys, stoker
        with stoker.Loader(stoker.open({train.path!r}), 8, transform=stoker.Resize(16), threads=2) as loader:
            with stoker.trace(loader, {str(tmp_path / "t.json")!r}):
                for _ in range(20):
                    list(loader)
                    child = os.fork()
                    if child == 0:
                        sys.exit(3)
                    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    """
    output_of(program, env=QUIET)
    assert json.loads((tmp_path / "t.json").read_text())["otherData"] == {"lost": 0}


@pytest.mark.slow
def test_children_of_a_program_under_load_neither_hang_nor_fail(tmp_path: Path) -> None:
    forks.write_data(tmp_path)
    report, stacks = forks.trial(4 * len(forks.ACTIONS), tmp_path)
    assert not stacks, stacks  # the stacks of a child that hangs, whole
    assert (sum(report.hung.values()), sum(report.failed.values())) == (0, 0)
    assert report.samples > 0
