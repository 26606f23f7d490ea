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
from stoker.errors import ConfigError
from stoker.transforms import OPERATIONS, Operation, check_operations
from transforms.cases import EACH, MODES, of_image

EXTENT = (50, 31)
"""Width and height of an image."""


@each("operation", EACH)
@each("extent", [EXTENT, (37, 64)])
def test_pixels_are_those_of_the_slow_twin(operation: Operation, extent: tuple[int, int]) -> None:
    pixels = pictures.pixels(*extent, 5)
    chosen = of_image(operation, *extent)
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
    chosen = of_image(operation, *EXTENT)
    image = pictures.encode(Image.fromarray(pictures.pixels(*EXTENT, 1)), quality=90)

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
    for operation in EACH:
        name, settings = of_image(operation, *EXTENT).native_settings()
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
