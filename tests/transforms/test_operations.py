"""What holds of every operation on pixels: it is declared, it is carried out as its slow twin does, and modes agree."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PIL import Image

import stoker
from reference import pictures, transform
from repository.checkout import NATIVE
from small_cases import each
from stoker import _native
from stoker.declare import declared
from stoker.errors import ConfigError
from stoker.transforms import OPERATIONS, ColorJitter, Operation, check_operations

MODES = ("RGB", "L", "RGBA", "I;16")
JITTER = ColorJitter(0.4, (0.2, 1.9), 0.7, 0.1)

# Rows of settings, of which no setting may have the same value in all. A new operation or setting is seen here first.
CASES: dict[str, list[Operation]] = {
    "RandomResizedCrop": [
        stoker.RandomResizedCrop(24),
        stoker.RandomResizedCrop((7, 90), scale=(0.01, 0.02), ratio=(0.1, 10.0), hflip=0.5, filter="lanczos"),
        stoker.RandomResizedCrop(1, scale=(1.0, 1.0), ratio=(100.0, 100.0), filter="nearest", color_jitter=JITTER),
    ],
    "CenterCrop": [
        stoker.CenterCrop(24, 30),
        stoker.CenterCrop((9, 31), 64, "bicubic"),
        stoker.CenterCrop(1, 1, "box"),
    ],
    "Resize": [stoker.Resize(24), stoker.Resize((1, 70), hflip=0.5, filter="box", color_jitter=JITTER)],
    "TopLeft": [stoker.TopLeft(24), stoker.TopLeft((1, 37), hflip=0.5, color_jitter=JITTER)],
    "RawTensor": [stoker.RawTensor((31, 50)), stoker.RawTensor((31, 50), hflip=0.5), stoker.RawTensor(1, 1.0, JITTER)],
    "ObjectCrops": [stoker.ObjectCrops(24), stoker.ObjectCrops((3, 40), 0.5, "lanczos", JITTER)],
    "ColorJitter": [
        JITTER,
        ColorJitter((0.0, 0.0), 1.5, 3.0, (-0.5, 0.5)),
        ColorJitter((2.0, 3.0), (1.0, 1.0), 0.0, (0.5, 0.5)),
    ],
}
EACH = [case for cases in CASES.values() for case in cases]
SIZES = [(50, 31), (37, 64)]
"""Width and height of images."""


def shown(operation: Operation, width: int, height: int) -> stoker.transforms.ImageTransform:
    """The operation as a transform of such an image."""
    if isinstance(operation, ColorJitter):
        return stoker.RawTensor((height, width), color_jitter=operation)
    return operation  # type: ignore[return-value]


def test_every_operation_and_every_setting_has_cases() -> None:
    assert CASES.keys() == OPERATIONS.keys()
    for name, cases in CASES.items():
        for setting in declared(OPERATIONS[name]):
            values = {repr(getattr(case, setting.name)) for case in cases}
            assert len(values) > 1, f"no case of {name} changes {setting.name}"


@each("operation", EACH)
@each(("width", "height"), SIZES)
def test_pixels_are_those_of_the_slow_twin(operation: Operation, width: int, height: int) -> None:
    if isinstance(operation, stoker.RawTensor):
        height, width = operation.native().shape
    pixels = pictures.pixels(width, height, 5)
    chosen = shown(operation, width, height)
    for sample in range(20):
        draws = transform.Draws(11, 2, sample)
        applied = chosen.native().apply(pixels, draws.seed, draws.epoch, draws.sample)
        assert (applied == transform.show(Image.fromarray(pixels), chosen, draws)).all()


@each("operation", EACH)
def test_it_is_written_as_it_is_typed(operation: Operation) -> None:
    assert eval(repr(operation), dict(OPERATIONS)) == operation


@each("mode", MODES)
@each("operation", EACH)
def test_core_and_declaration_agree_on_modes(operation: Operation, mode: stoker.types.Mode) -> None:
    width, height = SIZES[0]
    if isinstance(operation, stoker.RawTensor):
        height, width = operation.native().shape
    chosen = shown(operation, width, height)
    image = pictures.encode(Image.fromarray(pictures.pixels(width, height, 1)), quality=90)

    def decode() -> None:
        which = np.zeros(1, np.uint64)
        _native.decode_loop(
            images=[image], indices=which, transform=chosen.native(), seed=0, epoch=0, threads=1, mode=mode
        )

    if all(mode in each.modes for each in chosen.operations().values()):
        check_operations(chosen, mode)
        decode()
        return
    with pytest.raises(ConfigError, match=re.escape(f"mode={mode!r}; omit it, or open with mode='RGB' or 'L'")):
        check_operations(chosen, mode)
    with pytest.raises(ConfigError, match=f"no meaning in mode {mode}"):
        decode()


def test_the_core_refuses_a_setting_that_it_does_not_know() -> None:
    for cases in CASES.values():
        chosen = shown(cases[0], 50, 31)
        name, settings = chosen.native_settings()
        _native.TransformSpec(name, settings)
        with pytest.raises(ConfigError, match=f"^{name}: there is no setting more$"):
            _native.TransformSpec(name, {**settings, "more": [1.0]})


def test_no_two_random_choices_have_one_number() -> None:
    header = (NATIVE / "core" / "order" / "philox.h").read_text(encoding="utf-8")
    (listed,) = re.findall(r"enum class RandomOp : uint32_t \{(.*?)\}", header, re.DOTALL)
    numbers = dict(re.findall(r"(k\w+) = (\d+)", listed))
    assert len(set(numbers.values())) == len(numbers) == listed.count("=")
    assert {name: int(number) for name, number in numbers.items()}.items() >= {
        ("kCrop", 1),
        ("kFlip", 2),
        ("kColor", 3),
        ("kUser", 4),
        ("kSubstitute", 5),
    }
