"""Fast decoding: close to the exact pixels, the same in every run, and refused where it has no meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from reference import pictures
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

KINDS = [
    {"subsampling": 0},
    {"subsampling": 1},
    {"subsampling": 2},
    {"subsampling": 2, "progressive": True},
    {"mode": "L"},
]


def photograph(width: int, height: int, seed: int) -> Image.Image:
    """Something with edges, areas and gradients, as photographs have; a wave of one pixel would be none."""
    small = Image.fromarray(np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8))
    image = small.resize((width, height), Image.Resampling.BICUBIC)
    image.paste((30, 90, 200), (width // 4, height // 3, width // 2, height // 2))
    return image


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photographs from 80 x 60 to 880 x 660 pixels."""
    root = tmp_path_factory.mktemp("photographs")
    (root / "things").mkdir()
    for i in range(15):
        image = photograph(80 + 57 * i, 60 + 43 * i, i).convert(KINDS[i % 5].get("mode", "RGB"))
        options = {name: value for name, value in KINDS[i % 5].items() if name != "mode"}
        (root / "things" / f"{i:02d}.jpg").write_bytes(pictures.encode(image, quality=92, **options))
    return root


def epoch(folder: Path, transform: stoker.transforms.Transform, **settings: object) -> dict[int, np.ndarray]:
    """The pixels of each sample."""
    with stoker.Loader(stoker.open(folder), transform=transform, **{"batch_size": 4, "seed": 5, **settings}) as loader:
        return {
            int(index): image.copy()
            for batch in loader
            for index, image in zip(batch.indices, batch.images, strict=True)
        }


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / max(1e-9, np.mean((a.astype(float) - b) ** 2))))


@pytest.mark.parametrize("size", [200, 100, 48, 24])
@pytest.mark.parametrize("kind", ["crop", "centre", "stretch"])
def test_fast_pixels_are_close_to_exact_ones(folder: Path, kind: str, size: int) -> None:
    transforms = {
        "crop": stoker.RandomResizedCrop(size, hflip=0.5),
        "centre": stoker.CenterCrop(size, size + size // 7),
        "stretch": stoker.Resize(size),
    }
    exact = epoch(folder, transforms[kind])
    fast = epoch(folder, transforms[kind], decode="fast")
    assert exact.keys() == fast.keys()
    quality = [psnr(exact[index], fast[index]) for index in exact]
    assert min(quality) > 26
    assert np.median(quality) > 38
    assert any((exact[index] != fast[index]).any() for index in exact)


def test_fast_pixels_are_the_same_for_any_threads_and_batches(folder: Path) -> None:
    transform = stoker.RandomResizedCrop(64, hflip=0.5)
    expected = epoch(folder, transform, decode="fast", threads=1, shuffle=True)
    other = epoch(folder, transform, decode="fast", threads=4, batch_size=7, shuffle=True)
    assert all((expected[index] == other[index]).all() for index in expected)


def test_several_transforms_share_one_shrunken_decode(folder: Path) -> None:
    transforms = stoker.MultiCrop(stoker.Resize(40), stoker.Resize(200))
    with stoker.Loader(stoker.open(folder), batch_size=15, transform=transforms, decode="fast") as loader:
        batch = next(iter(loader))
    exact = epoch(folder, stoker.Resize(40))
    assert min(psnr(exact[index], image) for index, image in enumerate(batch.images[0])) > 30


def test_pixels_that_are_only_copied_are_exact(folder: Path) -> None:
    exact = epoch(folder, stoker.TopLeft(60))
    fast = epoch(folder, stoker.TopLeft(60), decode="fast")
    assert all((exact[index] == fast[index]).all() for index in exact)


def test_another_word_and_a_cache_of_whole_images_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="decode is 'quick'; it must be 'exact' or 'fast'"):
        epoch(folder, stoker.Resize(8), decode="quick")
    with pytest.raises(ConfigError, match="keep='encoded'"):
        epoch(folder, stoker.Resize(8), decode="fast", cache=stoker.MemoryCache("1 MB", keep="decoded"))
    epoch(folder, stoker.Resize(8), decode="fast", cache=stoker.MemoryCache("1 MB"))
