"""How a loader behaves around its batches: errors, early ends, states, settings."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import stoker
from loader.shards import image, write_shards
from programs import output_of, run
from reference import pictures
from stoker.errors import ClosedError, ConfigError, CorruptRecordError, ExampleError, ImageError, TruncatedShardError
from written_files import flip_bit, write_files

TRANSFORM = stoker.Resize(16)


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return write_shards(tmp_path, 20, 2, {13: image(13)[:200]})


def test_a_bad_image_is_named_and_the_batches_before_it_are_delivered(shards: list[Path]) -> None:
    with stoker.Loader(stoker.open(shards[0].parent), batch_size=4, transform=TRANSFORM, threads=3) as loader:
        seen = []
        with pytest.raises(ImageError) as caught:
            seen.extend(batch.indices.tolist() for batch in loader)
        assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
        assert loader.state_dict()["consumed"] == 12
    error = caught.value
    assert (error.path, error.record, error.source) == (str(shards[1]), 3, "picture-13.JPEG")
    for part in (shards[1].name, "record 3 at byte", "picture-13.JPEG", str(error.offset)):
        assert part in str(error)


def test_a_flipped_byte_is_found_by_a_default_read(shards: list[Path]) -> None:
    flip_bit(shards[0], 0.5)
    train = stoker.open(shards[0].parent)
    with stoker.Loader(train, batch_size=4, transform=TRANSFORM) as loader, pytest.raises(CorruptRecordError) as caught:
        list(loader)
    assert caught.value.path == str(shards[0])
    start = caught.value.offset
    assert start is not None
    assert start <= shards[0].stat().st_size // 2


def test_a_shard_cut_after_it_was_opened_is_an_error_not_a_crash(shards: list[Path]) -> None:
    train = stoker.open(shards[0].parent)
    os.truncate(shards[0], shards[0].stat().st_size - 5)
    with (
        stoker.Loader(train, batch_size=4, transform=TRANSFORM) as loader,
        pytest.raises(TruncatedShardError, match="record 9"),
    ):
        list(loader)


def test_a_record_without_the_image_names_what_it_has(shards: list[Path]) -> None:
    train = stoker.open(shards[0].parent)
    train.reader.schema = replace(train.schema, image_key="picture")
    with (
        stoker.Loader(train, batch_size=4, transform=TRANSFORM) as loader,
        pytest.raises(ExampleError, match="picture"),
    ):
        list(loader)
    with pytest.raises(ExampleError, match="image/encoded"):
        train[0]


def test_every_iteration_is_an_epoch_also_after_one_that_was_left_early(shards: list[Path]) -> None:
    with stoker.Loader(stoker.open(shards[0]), batch_size=3, transform=TRANSFORM, threads=2, shuffle=True) as loader:
        epochs = [[k for batch in loader for k in batch.indices.tolist()] for _ in range(2)]
        assert len(loader) == 4
        assert epochs[0] != epochs[1]
        assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(10))
        loader.set_epoch(0)
        assert next(iter(loader)).indices.tolist() == epochs[0][:3]
        left = loader.state_dict()
        assert (left["epoch"], left["consumed"]) == (0, 3)
        assert [k for batch in loader for k in batch.indices.tolist()] == epochs[1]
        loader.load_state_dict(left)
        assert [k for batch in loader for k in batch.indices.tolist()] == epochs[0][3:]
        loader.load_state_dict({**left, "consumed": 10})  # saved behind the last batch
        assert list(loader) == []
        assert [k for batch in loader for k in batch.indices.tolist()] == epochs[1]


def test_one_loader_serves_one_iteration(shards: list[Path]) -> None:
    with stoker.Loader(stoker.open(shards[0]), batch_size=3, transform=TRANSFORM) as loader:
        first = iter(loader)
        next(first)
        next(iter(loader))
        with pytest.raises(ClosedError, match="another iteration"):
            next(first)


def test_a_superseded_iteration_leaves_the_current_one_alone(tmp_path: Path) -> None:
    train = stoker.open(write_shards(tmp_path, 20, 1)[0])
    with stoker.Loader(train, batch_size=2, transform=TRANSFORM) as loader:
        superseded, current = iter(loader), iter(loader)
        indices = next(current).indices.tolist()
        with pytest.raises(ClosedError, match="another iteration"):
            next(superseded)  # had it not begun, it must not queue its batches among those of the current one
        indices += [index for batch in current for index in batch.indices.tolist()]
        assert indices == list(range(len(train)))


@pytest.mark.parametrize("with_state", [False, True])
def test_a_new_position_ends_the_iteration_under_way(shards: list[Path], *, with_state: bool) -> None:
    with stoker.Loader(stoker.open(shards[0]), batch_size=3, transform=TRANSFORM, shuffle=True) as loader:
        batches = iter(loader)
        next(batches)
        if with_state:
            loader.load_state_dict(loader.state_dict(stoker.Position(7, 0)))
        else:
            loader.set_epoch(7)
        with pytest.raises(ClosedError, match="another epoch or state"):
            next(batches)
        assert loader.state_dict()["epoch"] == 7
        assert [batch.position.epoch for batch in loader] == [7, 7, 7, 8]
        for batch in loader:
            if batch.position.consumed == 0:  # after the last batch it is over anyway
                loader.set_epoch(3)
        assert loader.state_dict()["epoch"] == 3


def test_a_closed_loader_says_so(shards: list[Path]) -> None:
    loader = stoker.Loader(stoker.open(shards[0]), batch_size=3, transform=TRANSFORM)
    batch = next(iter(loader))
    loader.close()
    loader.close()
    with pytest.raises(ClosedError):
        next(iter(loader))
    assert batch.images.sum() > 0


def test_states_of_other_datasets_seeds_or_programs_are_refused(shards: list[Path]) -> None:
    train = stoker.open(shards[0])
    with stoker.Loader(train, batch_size=3, transform=TRANSFORM, seed=1) as loader:
        state = loader.state_dict()
        loader.load_state_dict(state)
        for change in [
            {"dataset": "other"}, {"seed": 2}, {"shuffle": True}, {"version": 9}, {"consumed": 999},
            {"consumed": 1.5}, {"epoch": "1"}, {"x": 1}, {3: 1},
        ]:  # fmt: skip
            with pytest.raises(ConfigError):
                loader.load_state_dict({**state, **change})
        for other in (None, [], 3):
            with pytest.raises(ConfigError, match="give what state_dict"):
                loader.load_state_dict(other)


def test_numbers_of_numpy_are_numbers_and_a_state_stays_json(shards: list[Path]) -> None:
    settings = {"batch_size": np.int32(2), "seed": np.uint64(3), "rank": np.int64(0), "world_size": np.int64(2)}
    with stoker.Loader(stoker.open(shards[0]), transform=TRANSFORM, **settings) as loader:
        loader.set_epoch(np.int64(1))
        batch = next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["consumed"], state["seed"], len(batch)) == (1, 4, 3, 2)
    assert type(stoker.open(shards[0])[np.int64(-1)].index) is int


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 0}, {"batch_size": 2**21}, {"prefetch": -1}, {"drop_last": 1}, {"threads": 0}, {"seed": -1},
        {"rank": 1, "world_size": 1}, {"tail": "keep"}, {"max_pixels": 0}, {"batch_size": 2.0}, {"threads": "2"},
        {"max_bad": None}, {"max_bad": -1}, {"on_bad": "skip"}, {"shuffle": 1000}, {"output": "float32"},
        {"boxes": True}, {"cache": "8GB"}, {"read_ahead": "8GB"}, {"transform": 224},
        {"transform": stoker.CenterCrop},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.slow
def test_settings_out_of_range_are_refused_at_once(shards: list[Path], settings: dict) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        stoker.Loader(stoker.open(shards[0]), **{"batch_size": 2, "transform": TRANSFORM, **settings})


def test_what_is_not_a_dataset_is_refused(shards: list[Path]) -> None:
    with pytest.raises(ConfigError, match=r"give what stoker\.open or stoker\.mix returned"):
        stoker.Loader(str(shards[0]), batch_size=2, transform=TRANSFORM)
    dataset = stoker.open(shards[0])
    for datasets, message in [
        (3, "datasets is 3; give a list"),
        (dataset, "datasets is one dataset; give a list"),  # and not a sequence of samples, which it also is
        (str(shards[0]), "give a list of what stoker.open returned"),
        ([dataset, str(shards[0])], r"datasets\[1\] is '.*', which is not a dataset"),
        ([dataset, object()], r"datasets\[1\] is <object object>, which"),
    ]:
        with pytest.raises(ConfigError, match=message):
            stoker.mix(datasets)


@pytest.mark.parametrize(
    "transform", [stoker.CenterCrop, lambda image: image, [TRANSFORM]], ids=["class", "function", "list"]
)
def test_what_is_not_a_transform_is_shown_without_its_address(shards: list[Path], transform: object) -> None:
    with pytest.raises(ConfigError, match=r"^transform is .*; it must be one of Stoker's") as caught:
        stoker.Loader(stoker.open(shards[0]), 2, transform=transform)
    assert "0x" not in str(caught.value)


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.tfrecord").touch()
    with pytest.raises(ConfigError, match="no samples"):
        stoker.Loader(stoker.open(tmp_path), batch_size=2, transform=TRANSFORM)


@pytest.mark.slow
def test_a_forked_process_ends_as_any_other(shards: list[Path]) -> None:
    program = f"""
        import os, stoker
        loader = stoker.Loader(stoker.open({str(shards[0])!r}), batch_size=3, transform=stoker.Resize(16), threads=3)
        kept = next(iter(loader))
        for _ in range(5):
            child = os.fork()
            if child == 0:
                raise SystemExit
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sum(len(batch) for batch in loader) > 0
    """
    # From Python 3.12 on, any fork beside threads is warned of.
    ended = run(program, env={**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning"})
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.slow
def test_ctrl_c_ends_a_waiting_loader_within_a_second(tmp_path: Path) -> None:
    large = pictures.encode(Image.radial_gradient("L").resize((3000, 3000)).convert("RGB"))
    shard = write_shards(tmp_path, 2, 1, bad=dict.fromkeys(range(2), large))[0]
    program = f"""
        import stoker
        endless = stoker.mix([stoker.open({str(shard)!r})], samples_per_epoch=10_000)
        loader = stoker.Loader(endless, batch_size=1000, transform=stoker.Resize(32), threads=1)
        print("ready", flush=True)
        next(iter(loader))  # half a minute
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        started = time.monotonic()
        try:
            stderr = running.communicate(timeout=20)[1]
        finally:
            running.kill()
        assert time.monotonic() - started < 5  # generous: the bound is a second on an idle machine
        assert stderr.endswith(b"KeyboardInterrupt\n")


def held() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), len(list(Path("/proc/self/task").iterdir()))


def nothing_stays(before: tuple[int, int]) -> bool:
    """Wait for threads that have ended: the system lists them for a moment after they were joined."""
    end = time.monotonic() + 5
    while True:
        files, threads = held()
        if files <= before[0] and threads <= before[1]:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.01)


@pytest.mark.slow
def test_a_loader_that_its_dataset_refers_to_is_collected(shards: list[Path]) -> None:
    before = held()
    for _ in range(3):
        train = stoker.open(shards[0])
        train.loader = stoker.Loader(train, batch_size=3, transform=TRANSFORM, threads=4)  # type: ignore[attr-defined]
        next(iter(train.loader))  # type: ignore[attr-defined]
        del train
        gc.collect()
    assert nothing_stays(before)


def test_no_thread_or_file_stays_behind(shards: list[Path]) -> None:
    train = stoker.open(shards[0])
    with stoker.Loader(train, batch_size=3, transform=TRANSFORM, threads=4) as loader:
        list(loader)
    before = held()
    for _ in range(20):
        loader = stoker.Loader(train, batch_size=3, transform=TRANSFORM, threads=4)
        next(iter(loader))
        del loader
    assert nothing_stays(before)


FAILING = r"""
import gc, sys, weakref
import stoker
from stoker.errors import ImageError, TooManyBadSamplesError
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

def fail(dataset, **settings):
    loader = stoker.Loader(dataset, 2, transform=stoker.Resize(32), threads=2, **settings)
    try:
        with loader:
            for batch in loader:
                pass
    except (ImageError, TooManyBadSamplesError):
        return loader
    raise AssertionError("nothing was wrong")

dataset = stoker.open(sys.argv[1], "train")
gc.collect()  # what imports left
gc.disable()  # what only the collector frees is in a cycle
for settings in ({}, {"on_bad": "substitute", "max_bad": 0}):
    loader = fail(dataset, **settings)
    native, engine = loader._engine._native, weakref.ref(loader._engine)
    held = sys.getrefcount(native)
    del loader
    assert engine() is None, settings
    assert sys.getrefcount(native) < held, settings
    del native
before = resident()
closed = [fail(dataset) for _ in range(4)]  # also what is closed and not yet gone
assert resident() - before < 48 << 20, (resident() - before) >> 20
assert gc.collect() == 0
"""


@pytest.mark.slow
def test_a_loader_that_failed_and_was_closed_holds_nothing(tmp_path: Path) -> None:
    """Its error has a traceback, of frames that hold the loader: nothing of these may hold the error."""
    jpeg = pictures.encode(Image.linear_gradient("L").resize((4000, 4000)))  # 64 MB of RGBX
    write_files(tmp_path / "images/class", dict.fromkeys(("a.jpg", "b.jpg"), jpeg[: len(jpeg) * 9 // 10] + b"\xff\xd9"))
    output_of(FAILING, tmp_path / "images")
