"""The sample tree: which files there are, and writing them.

::

    DIR/train/n01440764/n01440764_17.JPEG
    DIR/validation/n01440764/ILSVRC2012_val_00000001.JPEG
    DIR/bounding_boxes/n01440764/n01440764_17.xml
    DIR/synsets.txt, DIR/imagenet_metadata.txt, DIR/sample.json
"""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stoker.config import available_cpus
from stoker.errors import DestinationError
from stoker.sample.annotation import format_annotation, format_noisy_annotation
from stoker.sample.encode import DAMAGED, ODD, damage, encode_odd, encode_usual
from stoker.sample.photo import make_photo
from stoker.sample.spec import SampleReport, SampleSpec

if TYPE_CHECKING:
    from stoker.types import Progress

_SPEC_NAME = "sample.json"
# Sizes (width, height) and how often they come; most photographs of ImageNet have a longer side of 500.
_SIZES = ((500, 375), (375, 500), (500, 333), (333, 500), (500, 400), (640, 480), (200, 150), (1024, 768))
_SIZE_SHARES = (0.44, 0.13, 0.15, 0.07, 0.09, 0.06, 0.04, 0.02)
_SUBSAMPLINGS = ("4:4:4", "4:2:0", "4:2:2")
_SUBSAMPLING_SHARES = (0.76, 0.20, 0.04)
_LOWEST_QUALITY, _HIGHEST_QUALITY = 90, 96
_BOXED_SHARE = 0.85
_GREY_EVERY = 50  # about two per cent, as in ImageNet


@dataclass(frozen=True, slots=True)
class _File:
    """One image file to make; ``number`` counts all of them and seeds what is random about it."""

    number: int
    path: Path
    wnid: str
    class_id: int
    odd: str | None
    damage: str | None
    boxes_path: Path | None


def make_sample(directory: str | Path, spec: SampleSpec, progress: Progress | None = None) -> SampleReport:
    """Make a sample tree.

    Args:
        directory: Where; created if missing. If it holds the very same sample already, nothing is done.
        spec: What it holds.
        progress: Told after every image.

    Raises:
        DestinationError: The directory holds something else.
        OSError: It cannot be written.
    """
    root = Path(directory)
    wanted = json.dumps(dataclasses.asdict(spec), indent=1) + "\n"
    if _holds(root, wanted):
        return _report(root, spec, made=False)
    files = _files(root, spec)
    for folder in {file.path.parent for file in files} | {f.boxes_path.parent for f in files if f.boxes_path}:
        folder.mkdir(parents=True, exist_ok=True)
    written = 0
    with ThreadPoolExecutor(available_cpus()) as pool:
        for done, size in enumerate(pool.map(lambda file: _make(file, spec.seed), files), 1):
            written += size
            if progress is not None:
                progress(done=done, total=len(files), size_bytes=written, rejects=0)
    synsets = spec.synsets()
    (root / "synsets.txt").write_text("".join(f"{wnid}\n" for wnid, _ in synsets))
    (root / "imagenet_metadata.txt").write_text("".join(f"{wnid}\t{text}\n" for wnid, text in synsets))
    (root / _SPEC_NAME).write_text(wanted)  # last: a tree that has it is whole
    return _report(root, spec, made=True)


def _holds(root: Path, wanted: str) -> bool:
    """Whether the tree is there already; refuses a directory that holds something else."""
    if not root.exists() or not any(root.iterdir()):
        return False
    mark = root / _SPEC_NAME
    if mark.is_file() and mark.read_text(errors="replace") == wanted:
        return True
    what = "a sample of other settings" if mark.is_file() else "something else, or a sample that was not finished"
    raise DestinationError(f"{root} holds {what}; name another directory, or remove it", path=str(root))


def _files(root: Path, spec: SampleSpec) -> list[_File]:
    """Return every image file; the first training images of a class after the other are the odd ones, then damaged."""
    synsets = spec.synsets()
    special = [*((kind, None) for kind in ODD), *((None, kind) for kind in DAMAGED if spec.damaged)]
    places = [(i, c) for i in range(spec.images_per_class) for c in range(spec.classes)]
    unusual = dict(zip(places, special, strict=False))
    files: list[_File] = []
    for class_id, (wnid, _) in enumerate(synsets):
        for i in range(spec.images_per_class):
            odd, broken = unusual.get((i, class_id), (None, None))
            grey = (class_id * spec.images_per_class + i) % _GREY_EVERY == _GREY_EVERY - 1
            odd = "greyscale" if grey and not broken and not odd else odd
            name = f"{wnid}_{17 + 13 * i}" + (".jpg" if broken == "text" else ".JPEG")
            files.append(_file(root, "train", name, class_id, wnid, len(files), (odd, broken)))
    for i in range(spec.validation_per_class):
        for class_id, (wnid, _) in enumerate(synsets):
            name = f"ILSVRC2012_val_{i * spec.classes + class_id + 1:08d}.JPEG"
            files.append(_file(root, "validation", name, class_id, wnid, len(files), (None, None)))
    return files


def _file(
    root: Path, split: str, name: str, class_id: int, wnid: str, number: int, unusual: tuple[str | None, str | None]
) -> _File:
    boxed = number * 0.61803398875 % 1 < _BOXED_SHARE
    boxes_path = root / "bounding_boxes" / wnid / f"{Path(name).stem}.xml" if boxed else None
    return _File(number, root / split / wnid / name, wnid, class_id, *unusual, boxes_path)


def _make(file: _File, seed: int) -> int:
    """Write one image and its boxes; return its bytes."""
    rng = np.random.default_rng((seed, file.number))
    width, height = (int(side) for side in rng.choice(_SIZES, p=_SIZE_SHARES))
    quality = int(rng.integers(_LOWEST_QUALITY, _HIGHEST_QUALITY + 1))
    photo = make_photo(width, height, file.class_id, (seed, file.number, 1))
    if file.odd:
        data = encode_odd(file.odd, photo.pixels, quality)
    else:
        data = encode_usual(photo.pixels, quality, str(rng.choice(_SUBSAMPLINGS, p=_SUBSAMPLING_SHARES)))
    if file.damage:
        data = damage(file.damage, data)
    file.path.write_bytes(data)
    if file.boxes_path and file.odd != "exif":  # whose stored picture lies on its side, where the boxes would not fit
        if file.damage:
            file.boxes_path.write_bytes(format_noisy_annotation(file.wnid, (width, height)))
        else:
            annotation = format_annotation(file.wnid, file.path.stem, (width, height), photo.boxes)
            file.boxes_path.write_bytes(annotation)
    return len(data)


def _report(root: Path, spec: SampleSpec, *, made: bool) -> SampleReport:
    files = _files(root, spec)
    return SampleReport(
        images=len(files),
        size_bytes=sum(file.path.stat().st_size for file in files),
        oddities={file.path.relative_to(root).as_posix(): ODD[file.odd] for file in files if file.odd},
        damaged={file.path.relative_to(root).as_posix(): DAMAGED[file.damage] for file in files if file.damage},
        made=made,
    )
