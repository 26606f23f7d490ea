"""Small source trees made with Pillow."""

from __future__ import annotations

import functools
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from stoker.builder import BuildOptions, BuildReport, BuildSettings, build_source, check_destination, open_source
from stoker.storage import location

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.storage import LocationLike


def pixels(seed: int, width: int = 40, height: int = 30) -> np.ndarray:
    """Smooth colours with a little noise, so that JPEGs are small and all different."""
    return _pixels(seed, width, height).copy()


@functools.lru_cache(1000)
def _pixels(seed: int, width: int, height: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (4, 5, 3), np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).astype(np.int16)
    return (smooth + rng.integers(-6, 7, smooth.shape)).clip(0, 255).astype(np.uint8)


def picture(
    seed: int = 0, kind: str = "JPEG", mode: str = "RGB", size: tuple[int, int] = (40, 30), **save: Any
) -> bytes:
    """The bytes of an image file."""
    out = io.BytesIO()
    Image.fromarray(pixels(seed, *size)).convert(mode).save(out, kind, **save)
    return out.getvalue()


def settings_for(source: Path | str, **settings: Any) -> BuildSettings:
    """Settings of a build: options, and what others would stand for, such as ``recipe``, ``schema`` and ``naming``."""
    others = ("recipe", "schema", "naming", "preferred_shards")
    given = {name: settings.pop(name) for name in others if name in settings}
    return replace(BuildOptions(**settings).settings(str(source)), **given)


def build(settings: BuildSettings, destination: LocationLike, *progress: Any, **more: Any) -> BuildReport:
    """Build with settings that are made already; the rest is as `build_source` has it."""
    target = location(destination)
    check_destination(target, settings.root)
    return build_source(open_source(settings, destination=target), settings, target, *progress, **more)


def write_tree(root: Path, classes: dict[str, int], *bad: str, seed: int = 0) -> Path:
    """Class folders with so many JPEGs each, and files that are no images."""
    for name, count in classes.items():
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):  # by itself: `power_cuts.py` finds no other module of tests
            (folder / f"{folder.name}_{number}.JPEG").write_bytes(picture(seed))
            seed += 1
    for path in bad:
        (root / path).write_bytes(b"no image")
    return root


def contents(directory: Path) -> dict[str, bytes]:
    """All files below a directory."""
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}
