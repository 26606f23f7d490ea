"""What claims to be large takes at most 64 MiB above the bytes that are there, and little time, and never crashes.

The inputs are in ``lying_inputs.py``, which prints the table of all when it is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from hostile import lying_inputs
from hostile.lying_inputs import MIB, Lie, Server
from reference import pictures
from stoker.errors import CorruptRecordError, ImageError
from stoker.format import write_index
from stoker.recipe import Recipe, convert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MOST_BYTES = 64 * MIB
MOST_BYTES_A_PIXEL = 7.5  # two and a half times those of RGB
MOST_SECONDS = 5.0
LIES = lying_inputs.lies()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def test_there_are_many_kinds() -> None:
    assert len({lie.name for lie in LIES}) == len(LIES) >= 40


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
@pytest.mark.slow
def test_memory_follows_the_bytes_that_are_there(tmp_path: Path, server: Server, lie: Lie) -> None:
    lie.make(tmp_path)
    present = lying_inputs.bytes_present(tmp_path)
    assert lie.claims > 2 * (present + MOST_BYTES), "it claims nothing"
    for action in lie.actions:
        outcome = server.ask(action, tmp_path)
        assert outcome.status == 0, (action, outcome)
        assert outcome.is_refusal or outcome.is_right, (action, outcome)
        assert outcome.peak < present + MOST_BYTES + MOST_BYTES_A_PIXEL * lie.pixels, (action, outcome)
        assert outcome.seconds < MOST_SECONDS * (1 + present / MIB), (action, outcome)


BLANK = 4_000


def blank(suffix: str, mode: str = "RGB", **settings: Any) -> Callable[[], bytes]:
    """A file of pixels of one colour."""
    return lambda: pictures.encode(Image.new(mode, (BLANK, BLANK), 1), format=suffix.upper(), **settings)


@pytest.mark.parametrize(
    ("suffix", "make"),
    [
        ("gif", blank("gif", "L")),
        ("bmp", blank("bmp", "L")),
        ("tiff", blank("tiff", compression="tiff_deflate")),
        ("tiff", blank("tiff", compression="tiff_deflate", tiffinfo={278: BLANK})),
        ("tiff", blank("tiff", "1", compression="group4")),
        ("tiff", blank("tiff", "CMYK", compression="tiff_lzw")),
        ("png", blank("png", "1")),
        ("webp", blank("webp", lossless=True, method=0)),
    ],
    ids=["GIF", "BMP", "TIFF", "TIFF of one strip", "TIFF of fax", "TIFF of inks", "PNG", "WebP"],
)
@pytest.mark.slow
def test_memory_of_a_valid_image(tmp_path: Path, server: Server, suffix: str, make: Callable[[], bytes]) -> None:
    lying_inputs.source(tmp_path, f"blank.{suffix}", make())
    outcome = server.ask("build, resized", tmp_path)
    assert outcome.message == "0 rejects", outcome
    assert outcome.peak < 16 * MIB + MOST_BYTES_A_PIXEL * BLANK**2, outcome


@pytest.mark.parametrize("side", [4_096, lying_inputs.SIDE])
def test_every_check_gives_one_verdict(tmp_path: Path, server: Server, side: int) -> None:
    """A JPEG of 600 bytes that claims 134 million pixels: a reject of every build, and one message everywhere."""
    lie = lying_inputs.resized(lying_inputs.small_jpeg(), side, side)
    message = f"The JPEG is cut short: its header claims {side} x {side} pixels, which take at least "
    for recipe in (Recipe(), Recipe(check="entropy"), Recipe(check="decode"), Recipe(restart=True)):
        with pytest.raises(ImageError, match=message):
            convert(lie, recipe)
    lying_inputs.source(tmp_path, "lie.jpg", lie)
    assert server.ask("build", tmp_path).message.startswith(f"1 rejects: {message}")
    assert message in server.ask("open folder", tmp_path).message
    lying_inputs.shard_of(tmp_path, lying_inputs.record_of(lie))
    assert message in server.ask("open shards", tmp_path).message
    assert message in server.ask("verify shards", tmp_path).message


def test_a_long_record_that_is_there_is_read(tmp_path: Path) -> None:
    """Of a shard of 12 GiB nearly all of which is a hole, what was written is read, by its index."""
    first, last = (lying_inputs.record_of(lying_inputs.small_jpeg(mode)) for mode in ("L", "RGB"))
    size = 12 * lying_inputs.GIB
    hole = size - len(first) - len(last)
    pieces = -(-hole // (2**31 + 15))  # records of at most 2 GiB - 1 of payload
    sizes = [hole // pieces + (number < hole % pieces) for number in range(pieces)]
    shard = lying_inputs.sparse(tmp_path / "a.tfrecord", size, first, last)
    all_sizes = np.array([len(first), *sizes, len(last)], np.uint64)
    write_index(shard, np.column_stack([np.cumsum(all_sizes) - all_sizes, all_sizes]))
    opened = stoker.open(shard)
    assert len(opened) == pieces + 2
    assert opened[0].decode().shape == opened[len(opened) - 1].decode().shape == (16, 16, 3)
    with pytest.raises(CorruptRecordError, match="record 1 at byte"):
        opened[1]
