"""Transforms refuse settings that no image could be shown with, and say which."""

from __future__ import annotations

import dataclasses
import math
import typing

import numpy as np
import pytest

import stoker
from small_cases import each
from stoker.errors import ConfigError

EVERY = [
    stoker.RandomResizedCrop, stoker.CenterCrop, stoker.Resize, stoker.TopLeft, stoker.RawTensor, stoker.ObjectCrops,
]  # fmt: skip
MIRRORED = [kind for kind in EVERY if kind is not stoker.CenterCrop]
RESAMPLED = [kind for kind in EVERY if kind not in (stoker.TopLeft, stoker.RawTensor)]


@pytest.mark.parametrize("kind", EVERY)
def test_a_size_is_a_side_or_height_and_width(kind: type) -> None:
    assert kind(8).native().shape == (8, 8)
    assert kind((5, 9)).native().shape == (5, 9)
    assert kind(np.int64(8)).native().shape == kind([8, 8]).native().shape == (8, 8)
    for size in (0, -1, 2**16 + 1, (4, 0), (0, 4), 8.0, (8, 8.5), (8, 8, 3), None, "8"):
        with pytest.raises(ConfigError, match="size"):
            kind(size)


@each("kind", MIRRORED)
@each("hflip", [-0.1, 1.1, math.nan, None, "0.5"])
def test_a_probability_is_between_0_and_1(kind: type, hflip: float) -> None:
    with pytest.raises(ConfigError, match="hflip"):
        kind(8, hflip=hflip)


@pytest.mark.parametrize("kind", MIRRORED)
def test_changes_of_colours_are_a_color_jitter(kind: type) -> None:
    with pytest.raises(ConfigError, match=r"color_jitter is 0\.4; it must be a stoker\.ColorJitter"):
        kind(8, color_jitter=0.4)


@pytest.mark.parametrize("kind", RESAMPLED)
def test_a_filter_is_one_that_there_is(kind: type) -> None:
    with pytest.raises(ConfigError, match=r"'sinc'; it must be 'nearest'"):
        kind(8, filter="sinc")


@pytest.mark.parametrize(
    "settings",
    [
        {"scale": (0.0, 1.0)}, {"scale": (0.5, 0.4)}, {"scale": (0.5, 1.1)}, {"scale": (math.nan, 1.0)},
        {"ratio": (0.0, 1.0)}, {"ratio": (0.001, 1.0)}, {"ratio": (1.0, 101.0)}, {"scale": 0.5},
        {"scale": (0.1, 0.2, 0.3)}, {"ratio": ("1", "2")},
    ],
)  # fmt: skip
def test_bounds_of_random_crops_grow_inside_their_limits(settings: dict[str, tuple[float, float]]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        stoker.RandomResizedCrop(8, **settings)


def test_the_shorter_side_of_a_centre_crop_holds_the_crop() -> None:
    stoker.CenterCrop((8, 10), resize=10)
    with pytest.raises(ConfigError, match="resize"):
        stoker.CenterCrop((8, 10), resize=9)
    with pytest.raises(ConfigError, match=r"^size is 288, and .* resized to 256, .* give resize=288 or more"):
        stoker.CenterCrop(288)


@pytest.mark.parametrize("kind", [*EVERY, stoker.ColorJitter, stoker.Output])
def test_the_types_of_settings_can_be_asked_for(kind: type) -> None:
    assert set(typing.get_type_hints(kind)) >= {field.name for field in dataclasses.fields(kind)}
