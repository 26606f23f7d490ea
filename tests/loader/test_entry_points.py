"""Pixels of later epochs, in which decoding begins inside of images, against those of Pillow and of fresh loaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from reference import pictures, transform
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

SEED = 3
SIDES = 300, 240
KINDS = [{"subsampling": 0}, {"subsampling": 1}, {"subsampling": 2}, {"mode": "L"}, {"progressive": True}]
CROP = stoker.RandomResizedCrop(48, scale=(0.02, 0.2), hflip=0.5)


def photograph(number: int, seed: int) -> bytes:
    """A JPEG without restart markers, of one of the kinds."""
    small = Image.fromarray(np.random.default_rng(seed).integers(0, 256, (30, 40, 3), dtype=np.uint8))
    options = {"quality": 90, **KINDS[number % len(KINDS)]}
    image = small.resize(SIDES, Image.Resampling.BICUBIC).convert(options.pop("mode", "RGB"))
    return pictures.encode(image, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "photos", {f"things/{at}.jpg": photograph(at, at) for at in range(10)})


def epochs(source: Path, count: int, **settings: object) -> list[dict[int, np.ndarray]]:
    """The pixels of each sample in each epoch, by one loader."""
    with stoker.Loader(stoker.open(source), 4, transform=CROP, shuffle=True, seed=SEED, **settings) as loader:
        return [pixels_of(loader) for _ in range(count)]


def pixels_of(loader: stoker.Loader) -> dict[int, np.ndarray]:
    return {
        int(index): pixels.copy() for batch in loader for index, pixels in zip(batch.indices, batch.images, strict=True)
    }


@pytest.mark.parametrize("threads", [1, 4])
def test_every_epoch_has_the_pixels_of_pillow(folder: Path, threads: int) -> None:
    wholes = [pictures.rgb(path.read_bytes()) for path in sorted((folder / "things").iterdir())]
    for epoch, decoded in enumerate(epochs(folder, 6, threads=threads)):
        for index, pixels in decoded.items():
            wanted = transform.random_resized_crop(wholes[index], CROP, transform.Draws(SEED, epoch, index))
            assert (pixels == wanted).all(), (epoch, index)


@pytest.mark.parametrize("settings", [{"check": True}, {"check": False}, {"decode": "fast"}], ids=str)
def test_a_loader_that_begins_later_has_the_same_pixels(folder: Path, tmp_path: Path, settings: dict) -> None:
    stoker.build(folder, tmp_path / "dataset", shards=2)
    seen = epochs(tmp_path / "dataset", 5, **settings)
    dataset = stoker.open(tmp_path / "dataset")
    with stoker.Loader(dataset, 4, transform=CROP, shuffle=True, seed=SEED, **settings) as fresh:
        fresh.load_state_dict({**fresh.state_dict(), "epoch": 4})
        last = pixels_of(fresh)
    assert all((last[index] == pixels).all() for index, pixels in seen[4].items())


def test_a_file_that_is_changed_between_epochs_is_decoded_as_it_is_then(folder: Path) -> None:
    path = folder / "things" / "0.jpg"
    first, other = photograph(0, 0), photograph(0, 77)
    size = max(len(first), len(other)) + 4
    contents = [image[:2] + comment(size - len(image)) + image[2:] for image in (first, other)]
    assert len(contents[0]) == len(contents[1])
    path.write_bytes(contents[0])
    with stoker.Loader(stoker.open(folder), 4, transform=CROP, seed=SEED) as loader:
        for epoch in range(6):
            path.write_bytes(contents[epoch % 2])
            draws = transform.Draws(SEED, epoch, 0)
            wanted = transform.random_resized_crop(pictures.rgb(contents[epoch % 2]), CROP, draws)
            assert (pixels_of(loader)[0] == wanted).all(), epoch


def comment(size: int) -> bytes:
    """A segment of so many bytes that says nothing."""
    return b"\xff\xfe" + (size - 2).to_bytes(2, "big") + bytes(size - 4)
