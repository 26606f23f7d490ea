"""The native core checks its arguments by itself: whatever it is called with, it returns or raises."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import stoker
from hostile import native_arguments
from hostile.native_arguments import Sound
from programs import run_python
from small_cases import each
from stoker import _native
from stoker.errors import ConfigError, ImageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def sound(tmp_path: Path) -> Sound:
    return Sound(tmp_path)


@pytest.mark.slow
def test_every_function_with_arguments_that_nobody_has_checked(tmp_path: Path) -> None:
    """In a process of its own, whose last line names the call that ended it."""
    done = run_python(native_arguments.__file__, tmp_path, seconds=240, errors="replace")
    last = done.stdout.rstrip("\n").rpartition("\n")[2]
    assert (done.returncode, last[:10]) == (0, "all calls:"), last[:500] + "\n" + done.stderr[-2000:]


def test_every_function_is_called(sound: Sound) -> None:
    """A function that is new in the core needs a sound call in `native_arguments`."""
    classes = {name: value for name, value in vars(_native).items() if inspect.isclass(value)}
    functions = {name for name, value in vars(_native).items() if callable(value) and name not in classes}
    for name, value in classes.items():
        with pytest.raises(TypeError) as refused:  # each needs an argument, or cannot be made by its name
            value(object(), object())
        functions |= set() if "no constructor" in str(refused.value) else {name}
        functions |= {f"{name}.{own}" for own, method in vars(value).items() if own[0] != "_" and callable(method)}
    inherited = {"SampleCache.counts"}  # called as those of its two subclasses
    assert functions - inherited <= native_arguments.covered(sound)


CENTER = stoker.CenterCrop(8, 8).native_settings()[1]
CROP = stoker.RandomResizedCrop(8, hflip=0.5).native_settings()[1]


@each(
    "changed",
    [
        ("CenterCrop", CENTER | {"size": [8, 9]}),
        ("CenterCrop", CENTER | {"size": [16]}),
        ("CenterCrop", CENTER | {"resize": [0]}),
        ("CenterCrop", CENTER | {"resize": [8.5]}),
        ("CenterCrop", CENTER | {"resize": [2**31 - 1]}),
        ("CenterCrop", CENTER | {"size": [8, 0]}),
        ("CenterCrop", CENTER | {"size": [8, -5]}),
        ("CenterCrop", CENTER | {"size": [2**31 - 1, 8]}),
        ("CenterCrop", CENTER | {"size": [8, math.nan]}),
        ("CenterCrop", CENTER | {"hflip": [math.nan]}),
        ("CenterCrop", CENTER | {"hflip": [1.5]}),
        ("CenterCrop", CENTER | {"filter": "sinc"}),
        ("CenterCrop", CENTER | {"filter": [1]}),
        ("CenterCrop", CENTER | {"resize": "8"}),
        ("CenterCrop", CENTER | {"scale": [0.1, 1]}),
        ("Crop", CENTER),
        ("Resize", {"filter": "box"}),
        ("RandomResizedCrop", CROP | {"scale": [math.nan, 1.0]}),
        ("RandomResizedCrop", CROP | {"scale": [0.5, 1.5]}),
        ("RandomResizedCrop", CROP | {"scale": [-1.0, 1.0]}),
        ("RandomResizedCrop", CROP | {"scale": [0.5]}),
        ("RandomResizedCrop", CROP | {"ratio": [0.0, 1.0]}),
        ("RandomResizedCrop", CROP | {"ratio": [2.0, 1.0]}),
    ],
)
def test_a_transform_that_no_image_can_be_shown_with(changed: tuple[str, dict[str, Any]]) -> None:
    """A centre larger than the resized image was read beside the pixels, 512 of 256 with a crash."""
    for sound in (("CenterCrop", CENTER), ("RandomResizedCrop", CROP)):  # so that only what is changed is refused
        _native.TransformSpec(*sound)
    with pytest.raises(ConfigError):
        _native.TransformSpec(*changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"brightness": [math.nan, 1.0]}, {"hue": [0.0, 1e300]}, {"contrast": [1.0, 0.5]}, {"contrast": [-1.0]},
        {"saturation": []}, {"saturation": "x"}, {"sharpness": [1.0]},
    ],
)  # fmt: skip
def test_changes_of_colour_that_there_are_not(changed: dict[str, Any]) -> None:
    sound = stoker.ColorJitter(0.0, (0.5, 1.5), 0.5, 0.1).native_settings()[1]
    _native.TransformSpec("Resize", {"size": [8]}, [("ColorJitter", sound)])
    with pytest.raises(ConfigError, match="ColorJitter: "):
        _native.TransformSpec("Resize", {"size": [8]}, [("ColorJitter", sound | changed)])


def test_settings_of_an_engine_that_memory_cannot_hold(sound: Sound) -> None:
    """8 x 8 x 3 x 2**58 bytes are 0 in 64 bits: the batch was written beside a buffer of nothing."""
    for changed in (
        {"batch_size": 2**58},
        {"batch_size": 0},
        {"threads": 0},
        {"threads": 2**63},
        {"transforms": []},
        {"transforms": [sound.transform()] * 65},
        {"boxes": math.nan},
        {"format": _native.PixelFormat(dtype="float32", std=[1.0, 0.0, 1.0])},
        {"format": _native.PixelFormat(dtype="float16", mean=[math.nan, 0.0, 1.0])},
    ):
        with pytest.raises(ConfigError):
            sound.engine(**changed)


def test_a_batch_of_another_engine_is_not_filled(sound: Sound) -> None:
    """Its images may be smaller than what would be written over them."""
    large = sound.engine(transforms=[_native.TransformSpec("Resize", {"size": [999]})])
    with pytest.raises(ConfigError, match="another engine"):
        large.replace(sound.finished(), 0, 0, -1, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda _: _native.TransformSpec("RandomResizedCrop", CROP).plan(-5, 5, 0, 0, 0),
        lambda _: _native.Concatenation([(None, 0)]),
        lambda sound: _native.Concatenation([(sound.source(), -(2**63))]),
        lambda sound: sound.records().set_remote(sound.reader(), 2**63 - 1),
        lambda sound: sound.files().set_remote(sound.reader(), -1),
        lambda _: _native.resize_tf1(np.zeros((1, 1, 3), np.uint8), 2**24 + 1, 1, align_corners=True),
        lambda sound: _native.decode_loop(
            images=[], indices=np.zeros(0, np.uint64), transform=sound.transform(), seed=0, epoch=0, threads=2**40
        ),
        lambda _: _native.JpegStoring(filter="box", quality=90, subsampling="4:4:4", max_pixels=2**64 - 1).reencode(
            native_arguments.jpeg(), (0, 0, 24, 20), 2**30, 1
        ),
    ],
)
def test_what_else_is_refused(sound: Sound, call: Callable[[Sound], object]) -> None:
    with pytest.raises(ConfigError):
        call(sound)


@pytest.mark.parametrize(("column", "value"), [(0, -5), (1, 2**63 - 1), (1, -5), (2, -5), (4, -5), (4, 9)])
def test_ranges_that_no_file_has(column: int, value: int) -> None:
    """Offsets, lengths and uses whose sums wrap around."""
    columns = [np.array(values) for values in native_arguments.range_columns()[:5]]
    pieces = native_arguments.range_columns()[5]
    columns[column][-1] = value
    ranges = _native.RemoteRanges(100)
    with pytest.raises(ConfigError):
        ranges.expect(*columns, pieces, 2)
    many = (pieces[0], pieces[1], np.full(2, 2**63 - 1))
    with pytest.raises(ConfigError, match="more uses"):
        ranges.expect(*native_arguments.range_columns()[:5], many, 2)


def test_labels_of_a_list_that_claims_more_records_than_there_are(sound: Sound) -> None:
    """Eight bytes each for 2**40 records were taken, and filled, before the first of them was read."""
    records = _native.RecordSet()
    records.add_listed(sound.shard, sound.index, 2**40, sound.bytes)
    with pytest.raises(Exception, match="cannot list 1099511627776 records"):
        records.labels("h", False, 0, 1)


def test_an_image_too_long_for_a_centre() -> None:
    with pytest.raises(ImageError, match="too long and narrow"):
        _native.TransformSpec("CenterCrop", CENTER | {"resize": [65536]}).plan(1, 65535, 0, 0, 0)
