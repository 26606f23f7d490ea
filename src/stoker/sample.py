"""Makes artificial photographs in the folders and formats of ImageNet, without any download.

::

    DIR/train/n01440764/n01440764_17.JPEG
    DIR/validation/n01440764/ILSVRC2012_val_00000001.JPEG
    DIR/bounding_boxes/n01440764/n01440764_17.xml
    DIR/synsets.txt, DIR/imagenet_metadata.txt, DIR/sample.json

Codecs take as long for these files as for photographs: sizes, qualities and subsampling are as frequent as in ImageNet,
the amplitude of textures falls about with the inverse of their spatial frequency, and there are edges.
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from stoker import _native
from stoker.config import available_cpus, check_range
from stoker.errors import ConfigError, DestinationError
from stoker.progress import Tally
from stoker.storage import check_directory, folder_at_once, stoppable_pool
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stoker.types import Progress

    Plane = NDArray[np.floating]

ODD = {
    "greyscale": "a greyscale JPEG",
    "cmyk": "a CMYK JPEG",
    "progressive": "a progressive JPEG",
    "png": "a PNG named .JPEG",
    "exif": "a JPEG with EXIF orientation 6",
    "restart": "a JPEG with restart markers",
    "rgb": "a JPEG stored as RGB, without YCbCr",
}
"""Kinds of image files that are valid but unusual."""
DAMAGED = {
    "truncated": "a JPEG cut off after 60 % of its bytes",
    "empty": "a file of zero bytes",
    "text": "text named .jpg",
    "corrupt": "a JPEG with a run of changed bytes in the middle",
    "huge": "a JPEG whose header claims 60,000 x 60,000 pixels",
}
"""Kinds of image files that cannot be used."""
_NOISY = "annotation"
_NOISE = "an annotation with swapped corners, out-of-range coordinates and no file name"

# Synsets of ImageNet, their words, and the colour of their objects. Further classes get ids above every real one.
_SYNSETS = (
    ("n01440764", "tench, Tinca tinca", (138, 142, 66)),
    ("n01530575", "brambling, Fringilla montifringilla", (228, 122, 48)),
    ("n01641577", "bullfrog, Rana catesbeiana", (82, 156, 56)),
    ("n01773549", "barn spider, Araneus cavaticus", (112, 70, 46)),
    ("n01882714", "koala, koala bear, kangaroo bear, native bear, Phascolarctos cinereus", (150, 152, 162)),
    ("n02007558", "flamingo", (244, 120, 142)),
    ("n02099601", "golden retriever", (218, 164, 82)),
    ("n02281406", "sulphur butterfly, sulfur butterfly", (240, 216, 48)),
    ("n02504458", "African elephant, Loxodonta africana", (92, 112, 140)),
    ("n03028079", "church, church building", (182, 62, 50)),
)
_FIRST_FURTHER_ID = 20_000_000
# Sky above, sky at the horizon, hills, ground.
_MOODS = (
    ((64, 118, 190), (192, 214, 232), (74, 104, 84), (108, 128, 64)),  # summer
    ((58, 62, 112), (244, 184, 126), (78, 64, 82), (98, 82, 64)),  # dusk
    ((158, 166, 174), (212, 214, 214), (108, 116, 104), (124, 120, 92)),  # overcast
    ((86, 146, 206), (228, 218, 196), (172, 122, 90), (206, 168, 118)),  # desert
    ((112, 152, 204), (218, 226, 238), (110, 126, 150), (208, 214, 224)),  # snow
    ((112, 146, 184), (224, 220, 208), (146, 96, 60), (158, 110, 58)),  # autumn
    ((150, 190, 204), (250, 226, 206), (116, 114, 136), (146, 148, 96)),  # morning
)
# Sizes (width, height), subsampling and quality, and how often they occur, in per cent, as in ImageNet.
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
_GREY_EVERY = 50
_TILE, _TILES = 256, 5  # rows and columns of a texture; number of textures of each slope
_SLOPES = (0.9, 1.05)  # of textures
_FORM = 6  # increase it when a change makes other files for the same spec


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """Settings of a sample. The same spec gives the same bytes on one machine with the same NumPy and Pillow.

    One file of each odd kind replaces an ordinary training image, if there are enough. Damaged files come after them.
    """

    classes: int = 10  # number of classes
    images_per_class: int = 30  # training images of each class
    validation_per_class: int = 6  # validation images of each class
    seed: int = 17  # of all random choices
    damaged: bool = False  # whether there are damaged files among the others

    def __post_init__(self) -> None:
        check_range("--classes", self.classes, 1, 10_000)
        check_range("--images", self.images_per_class, 1, 100_000)
        check_range("--validation", self.validation_per_class, 0, 100_000)
        check_range("--seed", self.seed, 0, 2**63)
        images, least = self.classes * self.images_per_class, len(ODD) + len(DAMAGED) + 1
        if self.damaged and images < least:
            message = f"{images} training images are too few for every kind of damage; it takes {least}"
            raise ConfigError(f"{message}: ask for more classes or more images of each")

    def synsets(self) -> list[tuple[str, str]]:
        """Return the id and the words of every class, in the order of the ids."""
        further = range(len(_SYNSETS), self.classes)
        real = [(wnid, words) for wnid, words, _ in _SYNSETS[: self.classes]]
        return [*real, *((f"n{_FIRST_FURTHER_ID + i}", f"artificial class {i}") for i in further)]


@dataclass(frozen=True, slots=True)
class SampleReport:
    """What was made."""

    images: int  # image files, including damaged ones
    size_bytes: int
    oddities: dict[str, str]  # path below the tree -> what is odd about the file, for files that are valid but unusual
    damaged: dict[str, str]  # path below the tree -> what is wrong with the file
    is_new: bool  # false if the same sample existed already


@dataclass(frozen=True, slots=True)
class _File:
    """An image file to make; ``number`` counts all files and seeds its random choices."""

    number: int
    path: str  # below the tree
    class_id: int
    kind: str | None  # what is unusual about it: a key of `ODD` or `DAMAGED`, or `_NOISY`
    boxes_path: str | None


def make_sample(directory: str | Path, spec: SampleSpec, progress: Progress | None = None) -> SampleReport:
    """Make a sample, completely or not at all; nothing is done if the directory holds the same sample already.

    ``progress`` is called after every image, from the calling thread.
    """
    root, files = Path(directory), _files(spec)
    is_new = not _holds(root, spec, files)
    if is_new:
        with folder_at_once(root) as folder:
            _write(folder, spec, files, progress)
    oddities = {file.path: ODD[file.kind] for file in files if file.kind in ODD}
    damaged = {file.path: DAMAGED[file.kind] for file in files if file.kind in DAMAGED}
    noisy = {file.boxes_path: _NOISE for file in files if file.kind == _NOISY and file.boxes_path is not None}
    return SampleReport(len(files), _size_bytes(root, files), oddities, damaged | noisy, is_new)


def _files(spec: SampleSpec) -> list[_File]:
    """Return every image file; unusual are the first training image of each class, then the second, and so on."""
    kinds = [*ODD, *([*DAMAGED, _NOISY] if spec.damaged else [])]
    images = [(i, class_id) for i in range(spec.images_per_class) for class_id in range(spec.classes)]
    unusual = dict(zip(images, kinds, strict=False))
    files: list[_File] = []

    def add(folder: str, wnid: str, name: str, class_id: int, kind: str | None) -> None:
        # An image with an orientation is stored on its side, where boxes would not fit.
        boxed = kind != "exif" and (len(files) * 0.61803398875 % 1 < _BOXED_SHARE or kind == _NOISY)
        boxes = f"bounding_boxes/{wnid}/{Path(name).stem}.xml" if boxed else None
        files.append(_File(len(files), f"{folder}/{wnid}/{name}", class_id, kind, boxes))

    for class_id, (wnid, _) in enumerate(spec.synsets()):
        for i in range(spec.images_per_class):
            grey = (class_id * spec.images_per_class + i) % _GREY_EVERY == _GREY_EVERY - 1
            kind = unusual.get((i, class_id), "greyscale" if grey else None)
            add("train", wnid, f"{wnid}_{17 + 13 * i}{'.jpg' if kind == 'text' else '.JPEG'}", class_id, kind)
    for i in range(spec.validation_per_class):
        for class_id, (wnid, _) in enumerate(spec.synsets()):
            add("validation", wnid, f"ILSVRC2012_val_{i * spec.classes + class_id + 1:08d}.JPEG", class_id, None)
    return files


def _holds(root: Path, spec: SampleSpec, files: list[_File]) -> bool:
    """Return whether the sample exists already; refuse a directory that holds something else."""
    check_directory(root)
    if not root.exists() or not any(root.iterdir()):
        return False
    what = "something else"
    if (root / "sample.json").is_file():
        present = {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}
        expected = {*_paths(files), *_lists(spec), "sample.json"}
        if present == expected and (root / "sample.json").read_text(errors="replace") == _mark(root, spec, files):
            return True
        what = "a sample of other settings, or one that was changed"
    raise DestinationError(f"{root} holds {what}; name another directory, or remove it", path=str(root))


def _write(root: Path, spec: SampleSpec, files: list[_File], progress: Progress | None) -> None:
    for folder in {(root / path).parent for path in _paths(files)}:
        folder.mkdir(parents=True, exist_ok=True)
    tally = Tally(len(files), progress)
    with stoppable_pool(available_cpus(), "stoker-draw") as pool:
        # After Ctrl-C or on a full disk map() cancels files that were not begun.
        for size in pool.map(lambda file: _make(root, file, spec.seed), files):
            tally.advanced(1, size, 0)
    for name, text in _lists(spec).items():
        (root / name).write_text(text)
    (root / "sample.json").write_text(_mark(root, spec, files))


def _paths(files: list[_File]) -> set[str]:
    return {path for file in files for path in (file.path, file.boxes_path) if path is not None}


def _lists(spec: SampleSpec) -> dict[str, str]:
    return {
        "synsets.txt": "".join(f"{wnid}\n" for wnid, _ in spec.synsets()),
        "imagenet_metadata.txt": "".join(f"{wnid}\t{words}\n" for wnid, words in spec.synsets()),
    }


def _mark(root: Path, spec: SampleSpec, files: list[_File]) -> str:
    """Return a text that identifies this sample: its settings and the bytes of its images, which must exist."""
    fields = {"form": _FORM, **dataclasses.asdict(spec), "size_bytes": _size_bytes(root, files)}
    return json.dumps(fields, indent=1) + "\n"


def _size_bytes(root: Path, files: list[_File]) -> int:
    return sum((root / file.path).stat().st_size for file in files)


def _make(root: Path, file: _File, seed: int) -> int:
    """Write one image and its boxes; return the bytes of the image."""
    chance = random.Random(f"{file.number} {seed}")  # noqa: S311 - pictures are not a secret
    width, height = chance.choices(list(_SIZES), list(_SIZES.values()))[0]
    quality = chance.choices(list(_QUALITIES), list(_QUALITIES.values()))[0]
    subsampling = chance.choices(list(_SUBSAMPLINGS), list(_SUBSAMPLINGS.values()))[0]
    pixels, boxes = paint(width, height, file.class_id, (seed, file.number, 1))
    if file.kind in ODD:
        data = encode_odd(file.kind, pixels, quality)
    else:
        data = _native.encode_jpeg(pixels, quality, subsampling, optimize=False)
    if file.kind in DAMAGED:
        data = damage(file.kind, data)
    path = root / file.path
    path.write_bytes(data)
    if file.boxes_path is not None:
        name, scale = path.stem, (width, height, width, height)
        corners = [tuple(map(round, np.multiply(b.corners, scale).tolist())) for b in boxes]
        if file.kind == _NOISY:
            name, corners = "%s", [(width + 40, height // 2, width // 4, -7)]
        (root / file.boxes_path).write_bytes(_annotation(path.parent.name, name, (width, height), corners))
    return len(data)


def _annotation(wnid: str, name: str, size: tuple[int, int], corners: Sequence[tuple[int, ...]]) -> bytes:
    objects = "".join(
        f"\t<object>\n\t\t<name>{wnid}</name>\n\t\t<difficult>0</difficult>\n\t\t<bndbox>\n"
        f"\t\t\t<xmin>{xmin}</xmin>\n\t\t\t<ymin>{ymin}</ymin>\n\t\t\t<xmax>{xmax}</xmax>\n\t\t\t<ymax>{ymax}</ymax>\n"
        "\t\t</bndbox>\n\t</object>\n"
        for xmin, ymin, xmax, ymax in corners
    )
    return (
        f"<annotation>\n\t<folder>{wnid}</folder>\n\t<filename>{name}</filename>\n"
        f"\t<size>\n\t\t<width>{size[0]}</width>\n\t\t<height>{size[1]}</height>\n\t\t<depth>3</depth>\n\t</size>\n"
        f"\t<segmented>0</segmented>\n{objects}</annotation>\n"
    ).encode()


def _encode(image: Image.Image, *, kind: str = "JPEG", **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def encode_odd(kind: str, pixels: NDArray[np.uint8], quality: int) -> bytes:
    """Return a file that is valid but unusual; ``kind`` is a key of `ODD`."""
    image = Image.fromarray(pixels)
    if kind == "png":
        return _encode(image, kind="PNG")
    if kind == "exif":
        exif = Image.Exif()
        exif[274] = 6  # orientation: stored on its side, and upright in readers that turn it
        return _encode(image.transpose(Image.Transpose.ROTATE_90), quality=quality, exif=exif.tobytes())
    if kind in ("greyscale", "cmyk"):
        return _encode(image.convert("L" if kind == "greyscale" else "CMYK"), quality=quality)
    options: dict[str, dict[str, Any]] = {
        "progressive": {"progressive": True},
        "restart": {"restart_marker_rows": 1},
        "rgb": {"keep_rgb": True},
    }
    return _encode(image, quality=quality, **options[kind])


def damage(kind: str, whole: bytes) -> bytes:
    """Return a damaged file, made from an intact JPEG; ``kind`` is a key of `DAMAGED`."""
    if kind == "truncated":
        return whole[: len(whole) * 6 // 10]
    if kind == "empty":
        return b""
    if kind == "text":
        return b"This is text, whatever its name says.\n"
    if kind == "huge":
        frame = whole.index(b"\xff\xc0")
        return whole[: frame + 5] + (60_000).to_bytes(2, "big") * 2 + whole[frame + 9 :]
    middle = len(whole) // 2
    # Restart markers in a file that has none: no decoder can take them for image data.
    return whole[:middle] + b"\xff\xd3" * 16 + whole[middle + 32 :]


def paint(width: int, height: int, class_id: int, seed: Sequence[int]) -> tuple[NDArray[np.uint8], list[Box]]:
    """Paint one to three objects of a class in a landscape; return uint8 RGB (height, width, 3) and their boxes.

    The class decides shape, colour and stripes of its objects, but not the landscape; the seed decides all the rest.
    """
    rng = np.random.default_rng(seed)
    size = width, height
    width, height = (width + 1) // 2, (height + 1) // 2  # enlarging it in the end is faster than painting it
    image, horizon = _landscape(width, height, rng)
    circles: list[tuple[float, float, float]] = []  # foot, centre and radius in pixels
    wanted = rng.integers(1, 4)
    for _ in range(12):
        foot = rng.uniform(horizon + 0.14, 0.97)
        radius = min(width, height) * rng.uniform(0.1, 0.13) * (1 + 2 * (foot - horizon) / (1 - horizon))
        x, y = rng.uniform(radius, width - radius), foot * height - radius
        if all(np.hypot(x - x2, y - (foot2 - r2)) > 0.9 * (radius + r2) for foot2, x2, r2 in circles):
            circles.append((foot * height, x, radius))
        if len(circles) == wanted:
            break
    light = rng.uniform(-0.6, 0.6)
    boxes = [_paint_object(image, circle, class_id, light, rng) for circle in sorted(circles)]
    noise = _texture(size[1], 3 * size[0], 0, rng).reshape(size[1], size[0], 3)
    pixels = _enlarged(image, *size) + rng.uniform(1.5, 5) * noise
    return np.clip(pixels, 0, 255, out=pixels).astype(np.uint8), boxes


def _enlarged(image: Plane, width: int, height: int) -> NDArray[np.uint8]:
    interleaved = np.clip(image, 0, 255).astype(np.uint8).transpose(1, 2, 0).copy()
    return _native.resize(interleaved, width, height, "bicubic")


@cache
def _tile(number: int, slope: float) -> Plane:
    """Return a periodic random field (_TILE, _TILE), mean 0, deviation 1, amplitude ``frequency ** -slope``."""
    spectrum = np.fft.rfft2(np.random.default_rng((_FORM, number)).standard_normal((_TILE, _TILE), np.float32))
    frequency = np.hypot(np.fft.fftfreq(_TILE)[:, None], np.fft.rfftfreq(_TILE))
    spectrum[0, 0], frequency[0, 0] = 0, 1
    field: Plane = np.fft.irfft2(spectrum * frequency**-slope).astype(np.float32)
    return field / float(field.std())


def _texture(height: int, width: int, slope: float, rng: np.random.Generator) -> Plane:
    """Return a random window (height, width) of a tile, flipped at random."""
    (top, left), (down, across) = rng.integers(_TILE, size=2), 1 - 2 * rng.integers(2, size=2)
    rows, columns = (top + down * np.arange(height)) % _TILE, (left + across * np.arange(width)) % _TILE
    window: Plane = _tile(int(rng.integers(_TILES)), slope).take(rows, 0).take(columns, 1)
    return window


def _landscape(width: int, height: int, rng: np.random.Generator) -> tuple[Plane, float]:
    """Return RGB, float32 (3, height, width), and the horizon as a fraction of the height."""
    mood = np.array(_MOODS[rng.integers(len(_MOODS))], np.float32) + rng.normal(0, 7, (4, 3)).astype(np.float32)
    sky, haze, hills, ground = mood[:, :, None, None]
    horizon, detail = rng.uniform(0.3, 0.6), rng.lognormal(-0.1, 0.42)
    rows = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    clouds = _texture(height, width, 1.65, rng)
    image = sky + rows / horizon * (haze - sky) + 30 * np.maximum(clouds - rng.uniform(-0.5, 1), 0)
    skyline = horizon - rng.uniform(0.03, 0.2) + 0.06 * _texture(1, width, 1.9, rng)
    for colour, edge, strength in ((hills, skyline, 8), (ground, horizon, 16)):
        field = _texture(height, width, rng.choice(_SLOPES), rng)
        warmth = 0.4 * field[::-1, ::-1]  # the same field, rotated, looks like another
        surface = colour + detail * strength * np.array((field + warmth, field, 0.85 * field - warmth))
        image += _step((rows - edge) * height) * (surface - image)
    return image, horizon


def _step(distance: Plane) -> Plane:
    """Return 0 below zero and 1 above, with a ramp between."""
    step: Plane = np.clip(0.5 + 0.8 * distance, 0, 1)
    return step


def _paint_object(
    image: Plane, circle: tuple[float, float, float], class_id: int, light: float, rng: np.random.Generator
) -> Box:
    """Paint a rounded object and its shadow over the image, and return the box of the object."""
    foot, centre, radius = circle
    height, width = image.shape[1:]
    left, right = max(0, int(centre - 2 * radius)), min(width, int(centre + 2 * radius) + 1)
    top, bottom = max(0, int(foot - 2.1 * radius)), min(height, int(foot + 0.6 * radius) + 1)
    x = ((np.arange(left, right) - centre) / radius).astype(np.float32)[None, :]
    y = ((np.arange(top, bottom) - foot) / radius + 1).astype(np.float32)[:, None]
    part = image[:, top:bottom, left:right]
    part *= 1 - 0.55 * np.exp(-1.5 * (x + 0.4 * light) ** 2 - (4 * (y - 0.97)) ** 2)

    corners, depth = ((1, 0.0), (5, 0.34), (3, 0.26), (4, 0.22), (8, 0.18))[class_id % 5]
    angle = np.arctan2(x, y) + rng.normal(0, 0.2)
    reach = np.hypot(x, y) / (1 - depth * (0.5 - 0.5 * np.cos(corners * angle)))
    cover = _step((1 - reach) * radius)
    facing = np.clip(x * light - 0.55 * y + 0.6 * np.sqrt(np.clip(1 - reach**2, 0, 1)), 0, 1)
    across = x * math.cos(class_id) + y * math.sin(class_id)
    stripes = _step(2.5 * np.sin((6 + class_id % 3 * 3) * across))
    paint = _colour(class_id)[:, None, None]
    second = 0.4 * paint if paint.mean() > 140 else 255 - 0.4 * (255 - paint)
    lit = (0.42 + 0.75 * facing) * (1 + 0.08 * _texture(bottom - top, right - left, _SLOPES[0], rng))
    part += cover * ((paint + stripes * (second - paint)) * lit + 105 * facing**12 - part)

    columns, rows = left + np.flatnonzero((cover > 0.5).any(0)), top + np.flatnonzero((cover > 0.5).any(1))
    return Box(columns[0] / width, rows[0] / height, (columns[-1] + 1) / width, (rows[-1] + 1) / height)


def _colour(class_id: int) -> Plane:
    if class_id < len(_SYNSETS):
        return np.array(_SYNSETS[class_id][2], np.float32)
    turn = class_id * 0.61803398875 % 1.0 - np.arange(3) / 3  # hues a golden angle apart
    return (134 + 86 * np.cos(2 * np.pi * turn)).astype(np.float32)
