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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from stoker.config import available_cpus
from stoker.errors import DestinationError
from stoker.sample.annotation import NOISY, format_annotation, format_noisy_annotation
from stoker.sample.encode import DAMAGED, ODD, damage, encode_odd, encode_usual
from stoker.sample.photo import make_photo
from stoker.sample.spec import SampleReport, SampleSpec
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from stoker.types import Progress

_T = TypeVar("_T")
_MARK_NAME = "sample.json"
_NOISY_KIND = "annotation"
_FORM = 1  # raise it when the same spec is to give other files
# Sizes (width, height) and how often they come, in per cent. Most photographs of ImageNet have a longer side of 500.
_SIZES = {
    (500, 375): 42,
    (375, 500): 13,
    (500, 333): 14,
    (333, 500): 6,
    (500, 334): 4,
    (500, 376): 3,
    (500, 400): 4,
    (500, 500): 3,
    (640, 480): 6,
    (200, 150): 4,
    (1600, 1200): 1,
}
_SUBSAMPLINGS = {"4:4:4": 76, "4:2:0": 20, "4:2:2": 4}
_QUALITIES = {90: 8, 92: 8, 93: 6, 94: 10, 95: 6, 96: 62}
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

    def paths(self) -> list[Path]:
        """The files that come of it."""
        return [self.path] if self.boxes_path is None else [self.path, self.boxes_path]


def make_sample(directory: str | Path, spec: SampleSpec, progress: Progress | None = None) -> SampleReport:
    """Make a sample tree, on as many threads as there are CPUs.

    Args:
        directory: Where; created if missing. If it holds the very same sample already, nothing is done.
        spec: What it holds.
        progress: Told after every image, from the calling thread.

    Raises:
        DestinationError: The directory holds something else.
        OSError: It cannot be written. What was written stays; nothing more is begun.
    """
    root = Path(directory)
    files = _files(root, spec)
    if _holds(root, spec, files):
        return _report(root, files, made=False)
    try:
        _write(root, spec, files, progress)
    except (OSError, KeyboardInterrupt) as error:
        error.add_note(f"the sample in {root} is not finished: remove it before you make it again")
        raise
    return _report(root, files, made=True)


def _write(root: Path, spec: SampleSpec, files: list[_File], progress: Progress | None) -> None:
    for folder in {path.parent for file in files for path in file.paths()}:
        folder.mkdir(parents=True, exist_ok=True)
    written = 0
    with stoppable_pool(available_cpus(), "stoker-draw") as pool:
        # Left early, after Ctrl-C or on a full disk, map() cancels what was not begun.
        for done, size in enumerate(pool.map(lambda file: _make(file, spec.seed), files), 1):
            written += size
            if progress is not None:
                progress(done=done, total=len(files), size_bytes=written, rejects=0)
    for name, text in _lists(spec).items():
        (root / name).write_text(text)
    (root / _MARK_NAME).write_text(_mark(spec, files))  # last: a tree that has it is whole


def _holds(root: Path, spec: SampleSpec, files: list[_File]) -> bool:
    """Whether the tree is there already; refuses a directory that holds something else."""
    if not root.exists():
        return False
    if not root.is_dir():
        raise DestinationError(f"{root} is a file; name another directory", path=str(root))
    found = {path for path in root.rglob("*") if not path.is_dir()}
    mark = root / _MARK_NAME
    if mark not in found:
        if not any(root.iterdir()):
            return False
        what = "something else, or a sample that was not finished"
    else:
        expected = {mark, *(root / name for name in _lists(spec)), *(path for file in files for path in file.paths())}
        if found == expected and mark.read_text(errors="replace") == _mark(spec, files):
            return True
        what = "a sample of other settings, or one that was changed"
    raise DestinationError(f"{root} holds {what}; name another directory, or remove it", path=str(root))


def _lists(spec: SampleSpec) -> dict[str, str]:
    """Return the text files beside the images, by name."""
    synsets = spec.synsets()
    return {
        "synsets.txt": "".join(f"{wnid}\n" for wnid, _ in synsets),
        "imagenet_metadata.txt": "".join(f"{wnid}\t{text}\n" for wnid, text in synsets),
    }


def _mark(spec: SampleSpec, files: list[_File]) -> str:
    """Return what says which sample this is: its settings and the size of its images, which must be there."""
    size_bytes = sum(file.path.stat().st_size for file in files)
    return json.dumps({"form": _FORM, **dataclasses.asdict(spec), "size_bytes": size_bytes}, indent=1) + "\n"


def _files(root: Path, spec: SampleSpec) -> list[_File]:
    """Return every image file; the first training image of each class, then the second ..., are the unusual ones."""
    synsets = spec.synsets()
    damaged = [*DAMAGED, _NOISY_KIND] if spec.damaged else []
    special = [*((kind, None) for kind in ODD), *((None, kind) for kind in damaged)]
    places = [(i, c) for i in range(spec.images_per_class) for c in range(spec.classes)]
    unusual = dict(zip(places, special, strict=False))
    files: list[_File] = []
    for class_id, (wnid, _) in enumerate(synsets):
        for i in range(spec.images_per_class):
            odd, broken = unusual.get((i, class_id), (None, None))
            grey = (class_id * spec.images_per_class + i) % _GREY_EVERY == _GREY_EVERY - 1
            odd = "greyscale" if grey and not broken and not odd else odd
            name = f"{wnid}_{17 + 13 * i}" + (".jpg" if broken == "text" else ".JPEG")
            files.append(_file(root / "train" / wnid / name, class_id, len(files), (odd, broken)))
    for i in range(spec.validation_per_class):
        for class_id, (wnid, _) in enumerate(synsets):
            name = f"ILSVRC2012_val_{i * spec.classes + class_id + 1:08d}.JPEG"
            files.append(_file(root / "validation" / wnid / name, class_id, len(files), (None, None)))
    return files


def _file(path: Path, class_id: int, number: int, unusual: tuple[str | None, str | None]) -> _File:
    wnid = path.parent.name
    boxed = number * 0.61803398875 % 1 < _BOXED_SHARE or unusual[1] == _NOISY_KIND
    if unusual[0] == "exif":  # its stored picture lies on its side, where the boxes would not fit
        boxed = False
    boxes_path = path.parents[2] / "bounding_boxes" / wnid / f"{path.stem}.xml" if boxed else None
    return _File(number, path, wnid, class_id, *unusual, boxes_path)


def _make(file: _File, seed: int) -> int:
    """Write one image and its boxes; return its bytes."""
    rng = np.random.default_rng((seed, file.number))
    width, height = _choose(_SIZES, rng)
    quality = _choose(_QUALITIES, rng)
    photo = make_photo(width, height, file.class_id, (seed, file.number, 1))
    if file.odd:
        data = encode_odd(file.odd, photo.pixels, quality)
    else:
        data = encode_usual(photo.pixels, quality, _choose(_SUBSAMPLINGS, rng))
    if file.damage in DAMAGED:
        data = damage(file.damage, data)
    file.path.write_bytes(data)
    if file.boxes_path is not None:
        if file.damage == _NOISY_KIND:
            annotation = format_noisy_annotation(file.wnid, (width, height))
        else:
            annotation = format_annotation(file.wnid, file.path.stem, (width, height), photo.boxes)
        file.boxes_path.write_bytes(annotation)
    return len(data)


def _choose(weights: dict[_T, int], rng: np.random.Generator) -> _T:
    """Return a key at random, each as often as its weight says."""
    at = int(rng.choice(len(weights), p=np.array(list(weights.values())) / sum(weights.values())))
    return list(weights)[at]


def _report(root: Path, files: list[_File], *, made: bool) -> SampleReport:
    def below(path: Path) -> str:
        return path.relative_to(root).as_posix()

    damaged = {below(file.path): DAMAGED[file.damage] for file in files if file.damage in DAMAGED}
    noisy = {below(f.boxes_path): NOISY for f in files if f.boxes_path is not None and f.damage == _NOISY_KIND}
    return SampleReport(
        images=len(files),
        size_bytes=sum(file.path.stat().st_size for file in files),
        oddities={below(file.path): ODD[file.odd] for file in files if file.odd},
        damaged=damaged | noisy,
        made=made,
    )
