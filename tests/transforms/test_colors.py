"""Colour jitter against Pillow, and the types and layouts of pixels against NumPy in double precision."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import stoker
from loader.shards import image, write_shards
from reference import colors, pictures, transform
from small_cases import each
from stoker.errors import ConfigError

DRAWS = st.builds(transform.Draws, st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
FACTORS = st.tuples(st.floats(0, 3), st.floats(0, 3)).map(lambda pair: tuple(sorted(pair)))
SHIFTS = st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)).map(lambda pair: tuple(sorted(pair)))
BOUNDS = st.fixed_dictionaries({}, optional={**dict.fromkeys(colors.OPERATIONS[:3], FACTORS), "hue": SHIFTS})
CHANNELS = st.tuples(*[st.floats(-4, 4)] * 3)
PILLOW_FUSES = platform.machine() in ("aarch64", "arm64")  # reference/colors.py
KEYS = stoker.RecordKeys("image/encoded", "image/class/label", 0)


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> stoker.Dataset:
    folder = tmp_path_factory.mktemp("colors")
    write_shards(folder, 12, 1)
    return stoker.open(folder, keys=KEYS)


@given(BOUNDS, DRAWS, st.integers(1, 30), st.integers(1, 30))
@settings(max_examples=300)
@pytest.mark.slow
def test_colours_are_those_of_pillow(bounds: dict, draws: transform.Draws, width: int, height: int) -> None:
    pixels = np.random.default_rng(draws.seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    jitter = stoker.ColorJitter(**bounds)
    native = stoker.RawTensor((height, width), color_jitter=jitter).native()
    numbers = draws.seed, draws.epoch, draws.sample
    steps = colors.plan(colors.bounds(jitter), draws)
    assert native.plan(width, height, *numbers)[-1] == steps
    picture, changed = Image.fromarray(pixels), native.apply(pixels, *numbers)
    assert (changed == np.asarray(colors.change(picture, steps))).all()
    if not PILLOW_FUSES:
        assert (changed == np.asarray(colors.change(picture, steps, Image.blend))).all()


@each("name", colors.OPERATIONS)
@each("factor", [-0.31, 0.07, 0.5, 1.7])
def test_every_eighth_value_of_every_channel(name: str, factor: float) -> None:
    if name == "hue":
        factor = max(-0.5, min(0.5, factor))
    elif factor < 0:
        factor = 0.0
    steps = np.concatenate([np.arange(0, 256, 8), [1, 127, 254, 255]]).astype(np.uint8)
    pixels = np.stack(np.meshgrid(steps, steps, steps), -1).reshape(len(steps), -1, 3)
    jitter = stoker.ColorJitter(**{name: (factor, factor)})
    native = stoker.RawTensor(pixels.shape[:2], color_jitter=jitter).native()
    picture, changed = Image.fromarray(pixels), native.apply(pixels, 0, 0, 0)
    assert (changed == np.asarray(colors.change(picture, [(name, factor)]))).all()
    by_pillow = np.asarray(colors.change(picture, [(name, factor)], Image.blend))
    assert np.abs(changed.astype(int) - by_pillow).max() <= (1 if PILLOW_FUSES else 0)


def test_single_numbers_are_bounds_around_no_change() -> None:
    def factors(**settings: float) -> list[float]:
        native = stoker.RawTensor(8, color_jitter=stoker.ColorJitter(**settings)).native()
        return [factor for key in range(300) for _, factor in native.plan(8, 8, 1, 2, key)[-1]]

    wide = factors(brightness=0.4)
    assert 0.6 <= min(wide) < 0.62
    assert 1.38 < max(wide) <= 1.4
    assert 0 <= min(factors(contrast=1.5)) < 0.05
    assert -0.1 <= min(factors(hue=0.1)) < -0.09
    assert factors(brightness=0, contrast=(1, 1), hue=0) == []


def test_each_transform_changes_colours_in_its_own_way(train: stoker.Dataset) -> None:
    jitter = stoker.ColorJitter(0.4, 0.4, 0.4, 0.1)
    chosen = stoker.MultiCrop(
        stoker.RandomResizedCrop(20, hflip=0.5, color_jitter=jitter),
        stoker.Resize(16, color_jitter=jitter),
        stoker.TopLeft(12, hflip=0.5, color_jitter=jitter),
        stoker.Resize(16),
    )
    with stoker.Loader(train, batch_size=12, transform=chosen, seed=9, threads=2) as loader:
        batch = next(iter(loader))
    for at, key in enumerate(batch.indices.tolist()):
        for number, (operation, images) in enumerate(zip(chosen.transforms, batch.images, strict=True)):
            draws = transform.Draws(9, 0, key, number)
            shown = transform.show(pictures.rgb(image(key)), operation, draws)
            assert (images[at] == shown).all()


@given(st.sampled_from(["float16", "float32"]), st.sampled_from(["NHWC", "NCHW"]), CHANNELS, CHANNELS)
@settings(max_examples=60)
def test_floats_are_rounded_once(train: stoker.Dataset, dtype: str, layout: str, mean: tuple, std: tuple) -> None:
    mean, std = tuple(min(channel, 1.0) for channel in mean), tuple(abs(channel) + 1e-6 for channel in std)
    chosen = stoker.Resize((9, 14))
    with stoker.Loader(train, batch_size=12, transform=chosen, threads=1) as loader:
        bytes_ = next(iter(loader)).images
    output = stoker.Output(dtype, layout, mean, std)
    with stoker.Loader(train, batch_size=12, transform=chosen, output=output, threads=1) as loader:
        images = next(iter(loader)).images
    with np.errstate(over="ignore"):
        expected = ((bytes_ / 255.0 - np.array(mean)) / np.array(std)).astype(dtype)
    if layout == "NCHW":
        expected = expected.transpose(0, 3, 1, 2)
    assert images.dtype == expected.dtype
    assert images.shape == expected.shape
    assert (images.view(f"u{images.itemsize}") == np.ascontiguousarray(expected).view(f"u{images.itemsize}")).all()


def test_bytes_in_planes_and_floats_without_mean(train: stoker.Dataset) -> None:
    chosen = stoker.MultiCrop(stoker.Resize((9, 14)), stoker.CenterCrop(7, 8))
    seen = {}
    for output in (stoker.Output(), stoker.Output(layout="NCHW"), stoker.Output("float32")):
        with stoker.Loader(train, batch_size=5, transform=chosen, output=output) as loader:
            seen[output] = next(iter(loader)).images
    plain, planes, floats = seen.values()
    for number in range(2):
        assert (planes[number] == plain[number].transpose(0, 3, 1, 2)).all()
        assert planes[number].flags.c_contiguous
        assert (floats[number] == (plain[number] / 255.0).astype(np.float32)).all()


@each(
    ("make", "message"),
    [
        (lambda: stoker.ColorJitter(brightness=-0.1), "brightness is -0.1"),
        (lambda: stoker.ColorJitter(contrast=(1.2, 0.8)), "contrast is"),
        (lambda: stoker.ColorJitter(saturation=float("nan")), "saturation is nan"),
        (lambda: stoker.ColorJitter(hue=0.6), "hue is 0.6"),
        (lambda: stoker.ColorJitter(hue=(-0.6, 0)), "hue is"),
        (lambda: stoker.ColorJitter(contrast=[0.5, 1.5]), "contrast is"),
        (lambda: stoker.ColorJitter((0.1, 0.2, 0.3)), "brightness is"),
        (lambda: stoker.ColorJitter(hue="red"), "hue is 'red'"),
        (lambda: stoker.Output("int8"), "dtype is 'int8'"),
        (lambda: stoker.Output("float32", "CHWN"), "layout is 'CHWN'"),
        (lambda: stoker.Output(mean=(0.5, 0.5, 0.5)), "mean and std need floats"),
        (lambda: stoker.Output("float32", std=(1.0, 0.0, 1.0)), "std is"),
        (lambda: stoker.Output("float16", mean=(1.0, float("inf"), 1.0)), "mean is"),
        (lambda: stoker.Output("float32", mean=(123.7, 116.3, 103.5), std=(58.4, 57.1, 57.4)), "divide .* by 255"),
        (lambda: stoker.RandomResizedCrop(8, hflip=True), "hflip is True; it must be a number"),
    ],
)
def test_senseless_settings_are_refused(make, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
