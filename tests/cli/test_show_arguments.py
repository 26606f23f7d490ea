"""Transforms and epochs as people type them after ``stoker show``."""

from __future__ import annotations

import pytest

import stoker
from small_cases import each
from stoker.cli.show import NAMED_TRANSFORMS, parse_epochs, parse_transforms
from stoker.errors import ConfigError
from transforms.cases import EACH, of_image


@each("transform", [*NAMED_TRANSFORMS.values(), *(of_image(case, 8, 9) for case in EACH)])
def test_a_transform_can_be_typed_as_it_shows_itself(transform: object) -> None:
    assert parse_transforms(repr(transform)) == (transform,)


@each(
    "text",
    [
        "", "train,,eval", "nonsense", "RandomResizedCrop", "RandomResizedCrop()", "RandomResizedCrop(0)",
        "RandomResizedCrop(2**80)", "MultiCrop(train)", "CenterCrop(**{})", "ColorJitter(0.4)",
        "__import__('os').system('true')", "Resize(8).native()", "(" * 300, "3", "Resize('a')", "train" + " " * 3000,
    ],
)  # fmt: skip
def test_other_texts_are_errors_that_say_what_to_type(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_transforms(text)


def test_transforms_with_a_name_stand_beside_others() -> None:
    named = NAMED_TRANSFORMS["train"], NAMED_TRANSFORMS["eval"], stoker.Resize(32, hflip=1.0)
    assert parse_transforms("train,eval,Resize(32,hflip=1.0)") == named


def test_epochs() -> None:
    assert parse_epochs("0-3") == (0, 1, 2, 3)
    assert parse_epochs("7, 0,5-6") == (7, 0, 5, 6)
    for text in ("", "a", "3-1", "-1", "0-999999999999", "1,,2", "0-40"):
        with pytest.raises(ConfigError):
            parse_epochs(text)
