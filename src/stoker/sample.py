"""A tree of artificial photographs with the shape of ImageNet, made without any download.

::

    DIR/train/n01440764/n01440764_17.JPEG
    DIR/validation/n01440764/ILSVRC2012_val_00000001.JPEG
    DIR/bounding_boxes/n01440764/n01440764_17.xml
    DIR/synsets.txt, DIR/imagenet_metadata.txt, DIR/sample.json

A codec spends on these files what it spends on photographs: sizes, qualities and subsampling come as often as in
ImageNet, the amplitude of every texture falls with about the inverse of its spatial frequency, and there are edges.
"""

from __future__ import annotations

import dataclasses
import io
import json
from bisect import bisect
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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

_T = TypeVar("_T")

ODD = {
    "greyscale": "a greyscale JPEG",
    "cmyk": "a CMYK JPEG",
    "progressive": "a progressive JPEG",
    "png": "a PNG named .JPEG",
    "exif": "a JPEG with EXIF orientation 6",
    "restart": "a JPEG with restart markers",
    "rgb": "a JPEG stored as RGB, without YCbCr",
}
"""Kinds of image files that are right but unusual."""
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
_TILE, _TILES = 256, 3  # rows and columns of a field of texture; fields of a kind
_FINE_SLOPES = (0.9, 1.05)
_NOISE_PIXELS = 2**19
_FORM = 5  # increase it when the same spec is to give other files


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """What a sample tree holds: the same bytes for the same spec, on one machine with the same NumPy and Pillow.

    One file of each odd kind replaces an ordinary training image, as far as there are some. Damaged files come after
    them.
    """

    classes: int = 10  # number of classes
    images_per_class: int = 30  # training images of each class
    validation_per_class: int = 6  # validation images of each class
    seed: int = 17  # of everything random
    damaged: bool = False  # whether damaged files are put among the others

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
    oddities: dict[str, str]  # path below the tree -> what is odd about it, of files that are right but unusual
    damaged: dict[str, str]  # path below the tree -> what is wrong with it
    is_new: bool  # false when the very same tree existed already


@dataclass(frozen=True, slots=True)
class _File:
    """One image file to make; ``number`` counts all of them and seeds what is random about it."""

    number: int
    path: str  # below the tree
    class_id: int
    kind: str | None  # what is unusual about it: of `ODD`, of `DAMAGED`, or that its annotation is noisy
    boxes_path: str | None


def make_sample(directory: str | Path, spec: SampleSpec, progress: Progress | None = None) -> SampleReport:
    """Make a sample tree, whole or not at all; nothing is done if the directory holds the very same sample already.

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
    """Return every image file; the first training image of each class, then the second ..., are the unusual ones."""
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
    """Whether the tree exists already; refuses a directory that holds something else."""
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
        # After Ctrl-C or on a full disk map() cancels what was not begun.
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
    """Return what identifies this sample: its settings and the bytes of its images, which must exist."""
    fields = {"form": _FORM, **dataclasses.asdict(spec), "size_bytes": _size_bytes(root, files)}
    return json.dumps(fields, indent=1) + "\n"


def _size_bytes(root: Path, files: list[_File]) -> int:
    return sum((root / file.path).stat().st_size for file in files)


def _make(root: Path, file: _File, seed: int) -> int:
    """Write one image and its boxes; return the bytes of the image."""
    rng = np.random.default_rng((seed, file.number))
    width, height = _choose(_SIZES, rng)
    quality = _choose(_QUALITIES, rng)
    pixels, boxes = paint(width, height, file.class_id, (seed, file.number, 1))
    if file.kind in ODD:
        data = encode_odd(file.kind, pixels, quality)
    else:
        data = _native.encode_jpeg(pixels, quality, _choose(_SUBSAMPLINGS, rng), optimize=False)
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


def _choose(weights: dict[_T, int], rng: np.random.Generator) -> _T:
    ends = list(accumulate(weights.values()))
    return list(weights)[bisect(ends, rng.integers(ends[-1]))]


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
    """Return a file that is right but unusual; ``kind`` is a key of `ODD`."""
    image = Image.fromarray(pixels)
    if kind == "png":
        return _encode(image, kind="PNG")
    if kind == "exif":
        exif = Image.Exif()
        exif[274] = 6  # orientation: stored on its side, so that a reader who turns it sees it upright
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
    """Return a damaged file made from a whole JPEG; ``kind`` is a key of `DAMAGED`."""
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
    """Paint one to three objects of a class in a landscape, RGB (height, width, 3), and return their boxes, too.

    The class decides shape, colour and pattern of its objects, never the landscape; the seed all the rest.
    """
    rng = np.random.default_rng(seed)
    size = width, height
    width, height = (width + 1) // 2, (height + 1) // 2  # enlarged in the end, which takes less time than to paint
    image, horizon, detail = _landscape(width, height, rng)
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
    light = (rng.uniform(-0.6, 0.6), -0.55, 0.6)  # right, down, out of the picture
    boxes = [_paint_object(image, circle, class_id, light, detail, rng) for circle in sorted(circles)]
    pixels = _enlarged(image, *size) + rng.uniform(1.1, 3.8) * _noise(size[1], size[0], rng)
    return np.clip(pixels, 0, 255, out=pixels).astype(np.uint8), boxes


def _enlarged(image: Plane, width: int, height: int) -> NDArray[np.uint8]:
    interleaved = np.clip(image, 0, 255).astype(np.uint8).transpose(1, 2, 0).copy()
    return _native.resize(interleaved, width, height, "bicubic")


@cache
def _noises() -> Plane:
    """Return normal numbers, float32 (_NOISE_PIXELS, 3), of which every image has its own run."""
    normal = np.random.default_rng(_FORM).standard_normal((_NOISE_PIXELS, 4), np.float32)
    return normal[:, :3] + normal[:, 3:]  # the last is grey


def _noise(height: int, width: int, rng: np.random.Generator) -> Plane:
    start, count = rng.integers(_NOISE_PIXELS // 2), height * width
    run = _noises()[start : start + count]
    return (run if len(run) == count else np.resize(run, (count, 3))).reshape(height, width, 3)


@cache
def _tile(number: int, slope: float, stretch: float) -> Plane:
    """Return a periodic random field (_TILE, _TILE), mean 0, deviation 1, amplitude ``frequency ** -slope``."""
    spectrum = np.fft.rfft2(np.random.default_rng((_FORM, number)).standard_normal((_TILE, _TILE), np.float32))
    frequency = np.hypot(stretch * np.fft.fftfreq(_TILE)[:, None], np.fft.rfftfreq(_TILE))
    frequency[0, 0] = np.inf
    return _normalized(np.fft.irfft2(spectrum * frequency**-slope).astype(np.float32))


@cache
def _ground_tile(number: int, slope: float) -> Plane:
    """Return a tile seen in perspective from above its middle, float32 (_TILE, _TILE), the farthest row first."""
    near = _nearness(_TILE)[:, None]
    down = _reflected(np.cumsum(0.4 * near**-1.7).astype(np.intp)[:, None])
    across = _reflected(((np.arange(_TILE) - _TILE / 2) / near).astype(np.intp))
    seen: Plane = _tile(number, slope, 1.0)[down, across]
    return seen


def _nearness(rows: int) -> Plane:
    """Return how near each row of the ground is: 1 is at the lower edge of the picture."""
    return np.linspace(0.06, 1, rows, dtype=np.float32)


def _texture(height: int, width: int, slope: float, rng: np.random.Generator, stretch: float = 1.0) -> Plane:
    """Return a random window (height, width) of a tile, turned over or not."""
    tile = _tile(int(rng.integers(_TILES)), slope, stretch)
    (top, left), (down, across) = rng.integers(_TILE, size=2), 1 - 2 * rng.integers(2, size=2)
    rows, columns = (top + down * np.arange(height)) % _TILE, (left + across * np.arange(width)) % _TILE
    window: Plane = tile.take(rows, 0).take(columns, 1)
    return window


def _ground(height: int, width: int, slope: float, rng: np.random.Generator) -> Plane:
    """Return a ground tile at a height, and a random window (height, width) of its columns."""
    tile = _ground_tile(int(rng.integers(_TILES)), slope)
    columns = _reflected(rng.integers(2 * _TILE) + np.arange(width))
    return tile.take(np.arange(height) * _TILE // height, 0).take(columns, 1)


def _normalized(field: Plane) -> Plane:
    field = field - field.mean()
    return field / max(float(field.std()), 1e-6)


def _landscape(width: int, height: int, rng: np.random.Generator) -> tuple[Plane, float, float]:
    """Return RGB, float32 (3, height, width), the horizon as a fraction of the height, the strength of textures."""
    mood = np.array(_MOODS[rng.integers(len(_MOODS))], np.float32) + rng.normal(0, 7, (4, 3)).astype(np.float32)
    mood = mood[:, :, None, None]
    detail = float(rng.lognormal(-0.1, 0.42))
    horizon = float(rng.uniform(0.34, 0.56))
    top = round(horizon * height)
    image = np.empty((3, height, width), np.float32)
    rows = np.arange(top, dtype=np.float32)[:, None]

    sky = mood[0] + rows / top * (mood[1] - mood[0])
    clouds = _texture(top, width, 1.65, rng, stretch=0.45)
    sky = sky + 0.8 * _step(0.5 * (clouds - rng.uniform(-0.4, 1.6))) * (235 + 14 * clouds - sky)

    slope = float(rng.choice(_FINE_SLOPES))
    for nearness in (0.0, 0.5, 1.0):
        skyline = _normalized(_texture(1, width, 1.9, rng, stretch=0.4))
        rise = (0.17 - 0.13 * nearness) * rng.uniform(0.7, 1.3) - 0.04 * skyline
        first = min(top, max(0, int((horizon - rise.max()) * height) - 8))  # above, the sky is nearly as it was
        behind = sky[:, first:]
        cover = _step(rows[first:] - (horizon - rise) * height)
        surface = detail * (4 + 12 * nearness) * _coloured(_texture(top - first, width, slope, rng))
        behind += cover * (mood[2] + (1 - nearness) * 0.6 * (mood[1] - mood[2]) + surface - behind)
    image[:, :top] = sky

    near = _nearness(height - top)[:, None]
    patches = 12 * _texture(height - top, width, 1.9, rng, stretch=0.4)
    relief = detail * 19 * (0.3 + 0.7 * near) * _coloured(_ground(height - top, width, slope, rng))
    image[:, top:] = mood[3] * (1.06 - 0.16 * near) + patches + relief
    return image, horizon, detail


def _coloured(field: Plane) -> Plane:
    # The same field turned round looks like another one: colour varies less than brightness, and elsewhere.
    warmth = 0.4 * field[::-1, ::-1]
    return np.array((field + warmth, field, 0.85 * field - warmth))


def _reflected(positions: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return positions on an axis without end as those on a side of a tile, which turns back at both ends."""
    positions = positions % (2 * _TILE)
    return np.minimum(positions, 2 * _TILE - 1 - positions)


def _step(distance: Plane) -> Plane:
    """Return 0 below zero and 1 above, with a ramp between."""
    step: Plane = np.clip(0.5 + 0.8 * distance, 0, 1)
    return step


def _paint_object(
    image: Plane,
    circle: tuple[float, float, float],
    class_id: int,
    light: tuple[float, float, float],
    detail: float,
    rng: np.random.Generator,
) -> Box:
    """Paint a rounded object and its shadow over the image, and return the box of the object."""
    foot, centre, radius = circle
    height, width = image.shape[1:]

    def part(sides: float, above: float, below: float) -> tuple[Plane, Plane, Plane]:
        """Return the pixels so many radiuses around the foot, and where they are, seen from the centre."""
        left, right = max(0, int(centre - sides * radius)), min(width, int(centre + sides * radius) + 1)
        top, bottom = max(0, int(foot - above * radius)), min(height, int(foot + below * radius) + 1)
        x = ((np.arange(left, right) - centre) / radius).astype(np.float32)[None, :]
        y = ((np.arange(top, bottom) - foot) / radius + 1).astype(np.float32)[:, None]
        return image[:, top:bottom, left:right], x, y

    ground, x, y = part(2, 2.1, 0.8)
    ground *= 1 - 0.55 * np.exp(-1.5 * (x + 0.4 * light[0]) ** 2) * np.exp(-((4 * (y - 0.97)) ** 2))
    body, x, y = part(1.1, 2.1, 0.1)

    corners, depth = ((1, 0.0), (5, 0.34), (3, 0.26), (4, 0.22), (8, 0.18))[class_id % 5]
    distance = np.sqrt(x**2 + y**2)
    direction = (1j * x - y) / np.maximum(distance, 1e-6)
    turned = np.full_like(direction, np.exp(1j * corners * rng.normal(0, 0.2)))
    for _ in range(corners if depth else 0):
        turned *= direction
    reach = distance / (1 - depth * (0.5 - 0.5 * turned.real))
    cover = _step((1 - reach) * radius)
    out = np.sqrt(np.clip(1 - reach**2, 0.03, 1))
    facing = np.clip(x * light[0] + y * light[1] + out * light[2], 0, 1)
    highlight = np.clip(2 * facing * out - light[2], 0, 1)
    for _ in range(4):
        highlight *= highlight

    bands = 6 + class_id % 3 * 3
    bend_x, bend_y = np.arcsin(np.clip(x, -1, 1)), np.arcsin(np.clip(y, -1, 1))
    wave = (
        lambda: np.sin(bands * (0.8 * bend_x + 0.6 * bend_y)),  # stripes
        lambda: 2 * np.sin(bands * bend_x) * np.sin(bands * bend_y) - 0.7,  # spots
        lambda: np.sin(1.5 * bands * distance),  # rings
        lambda: np.sin(0.5 * bands * bend_x + 1.3 * np.sin(2 * bend_y)),  # patches
    )[class_id * 3 % 4]()
    paint = _colour(class_id)[:, None, None]
    second = 0.4 * paint if paint.mean() > 140 else 255 - 0.4 * (255 - paint)
    grain = 1 + 0.08 * detail * _texture(reach.shape[0], reach.shape[1], _FINE_SLOPES[0], rng)
    lit = (0.42 + 0.75 * facing) * grain
    colour = (paint + _step(2.5 * wave) * (second - paint)) * lit + 105 * highlight
    body += cover * (colour - body)

    columns = np.round(x[0, (cover > 0.5).any(0)] * radius + centre).astype(int)
    rows = np.round((y[(cover > 0.5).any(1), 0] - 1) * radius + foot).astype(int)
    return Box(columns[0] / width, rows[0] / height, (columns[-1] + 1) / width, (rows[-1] + 1) / height)


def _colour(class_id: int) -> Plane:
    if class_id < len(_SYNSETS):
        return np.array(_SYNSETS[class_id][2], np.float32)
    turn = class_id * 0.61803398875 % 1.0 - np.arange(3) / 3  # hues a golden angle apart
    return (134 + 86 * np.cos(2 * np.pi * turn)).astype(np.float32)
