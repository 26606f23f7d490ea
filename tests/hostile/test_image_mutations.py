"""PNG and WebP changed at random: the core's verdicts and pixels are Pillow's, or differ where it says that they do."""

from __future__ import annotations

from random import Random

import pytest

from hostile.image_mutations import CHANGES, difference

pytestmark = pytest.mark.decodes("png", "webp")
FILES = {"png": 4000, "webp": 800}


@pytest.mark.parametrize("kind", CHANGES)
@pytest.mark.slow
def test_verdicts_and_pixels_are_those_of_pillow(kind: str) -> None:
    make, change = CHANGES[kind]
    seeds, random = make(), Random(18)
    for data in seeds:
        assert difference(data) is None
    for number in range(FILES[kind]):
        data = change(random.choice(seeds), random)
        assert difference(data) is None, (number, data.hex())
