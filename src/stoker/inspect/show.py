"""``stoker show``: PNG sheets of random samples as they are stored, and of what a transform makes of them.

A sheet is a grid of tiles; a tile is a picture with three lines below it. Masks and extra images have tiles of
their own beside their image; with transforms, the first mask is drawn over all pictures instead. Text fields are in the
second line. A sample that cannot be read or decoded has a tile that says why. Memory: the sheet, and one sample.
"""

from __future__ import annotations

import io
import textwrap
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from stoker.config import available_cpus, check_range, format_count, format_some, refuse_ineffective
from stoker.errors import ConfigError, StokerError, format_where
from stoker.inspect.info import ranked
from stoker.loader import (
    BoxOutput,
    Feed,
    LoaderSettings,
    Objects,
    SampleEngine,
    box_classes,
    class_title,
    displayable,
    draw_boxes,
    draw_mask,
    draw_pixel_boxes,
    first_mask,
    fit,
    fitted_size,
    mask_of,
    open_main_split,
    texts_of,
    usable_boxes,
    visible,
)
from stoker.order import Step, random_sample
from stoker.storage import location
from stoker.transforms import ImageTransform, ObjectCrops, RandomResizedCrop

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stoker.format import ClassLabel, RecordKeys
    from stoker.loader import Dataset, Sample
    from stoker.sources import SourceOptions
    from stoker.types import Exif, Mode

    Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
    Color = tuple[int, int, int]
    Region = tuple[float, float, float, float]

SheetTransform = ImageTransform | ObjectCrops
"""A transform that a sheet can show."""

_MAX_TILES = 600  # a picture of about 50 megapixels
_COLUMNS, _MAX_COLUMNS = 6, 30
_MAX_OBJECTS = 3
_SHOWN_IDS = 12

# Pixels.
PICTURE = 240
_MARGIN = 10
_CAPTION = 76
TILE_WIDTH = PICTURE + 2 * _MARGIN
TILE_HEIGHT = PICTURE + 2 * _MARGIN + _CAPTION
_RADIUS = 8
_GAP, _HEADER, _TITLES = 20, 92, 64  # the last: titles of transforms and of their columns

BACKGROUND = (24, 25, 28)
_BRIGHT, _DIM = (236, 237, 240), (140, 144, 153)
_CARD, _WELL = (37, 39, 44), (29, 31, 35)
_DAMAGED_CARD, _DAMAGED_TEXT = (66, 30, 32), (255, 150, 140)
_COLUMN_COLORS = (
    (110, 168, 240),
    (98, 205, 160),
    (240, 128, 170),
    (178, 140, 255),
    (120, 220, 230),
    (235, 120, 80),
    (200, 215, 100),
    (220, 220, 225),
)

_TITLE_FONT, _TEXT_FONT = ImageFont.load_default(26), ImageFont.load_default(15)
_NAME_FONT, _SMALL_FONT = ImageFont.load_default(16), ImageFont.load_default(13)


@dataclass(frozen=True, slots=True)
class SheetSpec:
    """What to show: samples as they are stored, or with ``transforms`` a row for each sample."""

    split: str | None = None  # which split; None takes the only one, or train
    count: int | None = None  # how many samples; all of them when there are fewer. None: 24, or 6 with ``transforms``
    seed: int = 17  # decides which samples; also the seed of the loader whose pixels are shown
    per_row: int | None = None  # without ``transforms``: samples in a row; None: 6
    boxes: bool = True  # whether annotated boxes are drawn
    transforms: tuple[SheetTransform, ...] = ()  # what to show of each sample beside its stored image
    epochs: tuple[int, ...] | None = None  # with ``transforms``: which epochs; None: 0 to 3
    keys: RecordKeys | None = None  # keys of TFRecords of other origin
    source: SourceOptions | None = None  # options for images that are not built
    mode: Mode = "RGB"  # channels and depth, as `stoker.open` takes them
    exif: Exif | None = None  # whether images are turned upright, as `stoker.open` takes it

    def __post_init__(self) -> None:
        if self.transforms:
            refuse_ineffective({"per_row": self.per_row}, "with --transforms, which shows a row for each sample")
        else:
            advice = "give both, for example --transforms train,eval"
            refuse_ineffective({"epochs": self.epochs}, "without --transforms", advice)
        check_range("--count", self.samples, 1, _MAX_TILES)
        check_range("--per-row", _COLUMNS if self.per_row is None else self.per_row, 1, _MAX_COLUMNS)
        check_range("--seed", self.seed, 0, 2**63 - 1)
        columns = len(columns_of(self))
        if (tiles := self.samples * (1 + columns)) > _MAX_TILES:
            message = f"{self.samples} samples with {columns} transforms each are {tiles} pictures"
            raise ConfigError(f"{message}; show at most {_MAX_TILES}: fewer --count, --transforms or --epochs")

    @property
    def samples(self) -> int:
        """How many samples are shown at most."""
        if self.count is None:
            return 6 if self.transforms else 24
        return self.count


@dataclass(frozen=True, slots=True)
class SheetReport:
    """A sheet that was written."""

    path: str  # the PNG
    width: int  # its width in pixels
    height: int  # its height in pixels
    split: str  # the split shown
    indices: tuple[int, ...]  # numbers of the samples in the split, in the order of the tiles
    formats: dict[str, int]  # how many of them have an image of which format, as `stoker.Sample.format` says
    damaged: dict[int, str]  # what is wrong with those that could not be shown, by number


def write_sheet(path: str | os.PathLike[str], out: str | os.PathLike[str], spec: SheetSpec) -> SheetReport:
    """Draw random samples of a dataset, the same for the same spec, and write them as one PNG, atomically.

    Transformed pictures have the pixels of a batch of `stoker.Loader` with the same transform, seed and epoch, as they
    are or enlarged by a whole factor; only pictures of more than 240 pixels are shrunk. Outlines in the stored image
    show where each column comes from.
    """
    if location(out).suffix.lower() != ".png":
        raise ConfigError(f"the sheet is a PNG, so the name {str(out)!r} must end in .png")
    dataset = open_main_split(path, spec.split, spec.keys, spec.source, spec.mode, spec.exif)
    if len(dataset) == 0:
        raise ConfigError(f"split {dataset.split} of {path} has no samples, so there is nothing to show")
    indices = random_sample(spec.samples, len(dataset), spec.seed).tolist()
    with ExitStack() as stack:
        applied = [
            stack.enter_context(SampleTransformer(dataset, transform, spec.seed)) for transform in spec.transforms
        ]
        objects = max((transformer.objects(index) for transformer in applied for index in indices), default=0)
        columns = columns_of(spec, min(_MAX_OBJECTS, objects))
        pictures = [] if spec.transforms else [name for name, field in dataset.fields.items() if field.is_image]
        tiles = 1 + len(columns) + len(pictures)  # of each sample
        if (count := len(indices) * tiles) > _MAX_TILES:
            message = f"{len(indices)} samples, each with {tiles - 1} more of masks and images, are {count} pictures"
            raise ConfigError(f"{message}; show at most {_MAX_TILES}: fewer --count")
        across = tiles * min(1 if spec.transforms else spec.per_row or max(1, _COLUMNS // tiles), len(indices))
        rows, header = -(-len(indices) * tiles // across), _HEADER + _TITLES * bool(spec.transforms)
        size = (_GAP + across * (TILE_WIDTH + _GAP), header + rows * (TILE_HEIGHT + _GAP) + _GAP)
        sheet = Image.new("RGB", size, BACKGROUND)
        _draw_header(sheet, dataset, spec, len(indices))
        if spec.transforms:
            _draw_titles(sheet, spec.transforms, columns)
        damaged = {}
        formats: Counter[str] = Counter()
        for number, index in enumerate(indices):
            try:
                sample = dataset[index]
                formats[sample.format] += 1
                drawn = _tiles(sample, dataset, applied, columns, boxes=spec.boxes)
                drawn += [_draw_field(sample, name, sample.field(name)) for name in pictures]
            except StokerError as error:
                damaged[index] = str(error)
                if error.path is None:  # an error of decoding does not know the path
                    damaged[index] = f"{format_where(*dataset.records.where(index))}: {error}"
                drawn = [draw_damaged(index, damaged[index])]
            for position, tile in enumerate(drawn, number * tiles):
                row, column = divmod(position, across)
                sheet.paste(tile, (_left_of(column), header + row * (TILE_HEIGHT + _GAP)))
    data = io.BytesIO()
    sheet.save(data, "PNG")
    location(out).write_atomically(data.getvalue())
    counts = ranked(formats)
    return SheetReport(str(out), sheet.width, sheet.height, dataset.split, tuple(indices), counts, damaged)


def _left_of(column: int) -> int:
    return _GAP + column * (TILE_WIDTH + _GAP)


def _draw_header(sheet: Image.Image, dataset: Dataset, spec: SheetSpec, shown: int) -> None:
    draw, width = ImageDraw.Draw(sheet), sheet.width - 2 * _GAP
    title = f"{location(dataset.path).resolve().name or dataset.path}  /  {dataset.split}"
    draw.text((_GAP, 18), fitted(title, _TITLE_FONT, width), font=_TITLE_FONT, fill=_BRIGHT)
    parts = [f"{shown} of {len(dataset):,} samples", format_count(len(dataset.shards), "shard")]
    if dataset.classes:
        parts.append(format_count(len(dataset.classes) - dataset.schema.label_base, "class"))
    if dataset.manifest is not None:
        parts.append(f"schema {dataset.manifest.schema.preset}")
    text = "   ·   ".join([*parts, f"seed {spec.seed}"])
    draw.text((_GAP, 56), fitted(text, _TEXT_FONT, width), font=_TEXT_FONT, fill=_DIM)


# Columns of a sheet of transforms.


@dataclass(frozen=True, slots=True)
class Column:
    """One picture of every sample: which transform, in which epoch, of which object; and the title above."""

    transform: int
    epoch: int
    object: int
    title: str


def columns_of(spec: SheetSpec, objects: int = _MAX_OBJECTS) -> list[Column]:
    """Return the columns of a sheet, from the left; for `ObjectCrops` one for each of ``objects``."""
    columns = []
    epochs = (0, 1, 2, 3) if spec.epochs is None else spec.epochs
    for number, transform in enumerate(spec.transforms):
        if isinstance(transform, ObjectCrops):
            columns += [Column(number, epochs[0], index, f"object {index + 1}") for index in range(objects)]
        elif is_random(transform):
            columns += [Column(number, epoch, 0, f"epoch {epoch}") for epoch in epochs]
        else:
            columns.append(Column(number, epochs[0], 0, "every epoch"))
    return columns


def is_random(transform: SheetTransform) -> bool:
    """Return whether a transform differs from epoch to epoch."""
    may_flip = 0.0 < transform.values().get("hflip", 0.0) < 1.0
    return isinstance(transform, RandomResizedCrop) or may_flip or bool(transform.operations())


def _color(number: int) -> Color:
    return _COLUMN_COLORS[number % len(_COLUMN_COLORS)]


def _tiles(
    sample: Sample, dataset: Dataset, applied: list[SampleTransformer], columns: list[Column], *, boxes: bool
) -> list[Image.Image]:
    pixels = visible(sample.decode())
    extent = (pixels.shape[1], pixels.shape[0])
    mask = first_mask(dataset.fields) if applied else None  # otherwise masks have tiles of their own
    ids = None if mask is None else mask_of(sample, mask, pixels)
    tiles = [draw_sample(sample, pixels, dataset.classes, boxes=boxes, mask=ids)]
    outlines = []
    for position, column in enumerate(columns):
        transformer = applied[column.transform]
        if column.object >= transformer.objects(sample.index):
            tiles.append(Image.new("RGB", (TILE_WIDTH, TILE_HEIGHT), BACKGROUND))
            continue
        transformed = transformer.apply(sample, extent, column.epoch, column.object)
        tiles.append(_draw_transformed(transformed, boxes=boxes))
        outlines.append((transformed.region, _color(position)))
    _outline(tiles[0], extent, outlines)
    return tiles


def _draw_titles(sheet: Image.Image, transforms: Sequence[SheetTransform], columns: list[Column]) -> None:
    """Write each transform above its columns, and the epoch or the object above each column."""
    draw = ImageDraw.Draw(sheet)
    draw.text((_GAP, _HEADER + 42), "as stored", font=_TEXT_FONT, fill=_DIM)
    for number, transform in enumerate(transforms):
        own = [position for position, column in enumerate(columns, 1) if column.transform == number]
        width = len(own) * (TILE_WIDTH + _GAP) - _GAP
        for line, text in enumerate(wrapped(repr(transform), _TEXT_FONT, width, 2) if own else ()):
            draw.text((_left_of(own[0]), _HEADER + 20 * line), text, font=_TEXT_FONT, fill=_BRIGHT)
    for position, column in enumerate(columns):
        left, top = _left_of(position + 1), _HEADER + 42
        draw.rounded_rectangle((left, top + 3, left + 12, top + 15), 3, _color(position))
        draw.text((left + 20, top), column.title, font=_TEXT_FONT, fill=_DIM)


# What a model sees.


@dataclass(frozen=True, slots=True)
class TransformedSample:
    """What a transform makes of one sample in one epoch."""

    pixels: NDArray[np.uint8]  # uint8 (H, W, 3): those of a batch of `stoker.Loader`, made visible to people
    mask: NDArray[Any] | None  # the first mask of the sample, (H, W), as the transform makes it; None without one
    boxes: NDArray[np.float32]  # float32 (T, 4): annotated objects: xmin, ymin, xmax, ymax in pixels of ``pixels``
    region: Region  # left, top, right and bottom of what it shows of the stored image, in pixels of that
    mirrored: bool  # whether left and right are exchanged
    colors: tuple[tuple[str, float], ...]  # changes of colour, in order: name and factor


class SampleTransformer(AbstractContextManager["SampleTransformer"]):
    """Applies a transform to single samples, with the engine of a loader. Use it in a ``with`` block.

    With `stoker.ObjectCrops` the first use of a dataset reads all of its annotations.
    """

    def __init__(self, dataset: Dataset, transform: SheetTransform, seed: int) -> None:
        self._transform = transform
        self._seed = seed
        boxes = BoxOutput() if dataset.has_boxes else None
        self._mask = first_mask(dataset.fields)
        fields = () if self._mask is None else (self._mask,)
        settings = LoaderSettings(
            transform=transform,
            boxes=boxes,
            fields=fields,
            seed=seed,
            threads=min(2, available_cpus()),
            prefetch=0,
            rank=0,
            world_size=1,
        )
        self._feed = Feed(dataset, settings)
        self._engine = SampleEngine(self._feed)

    def apply(self, sample: Sample, extent: tuple[int, int], epoch: int, object_: int = 0) -> TransformedSample:
        """Return what the transform makes of a sample, or of an object of it, whose image has this extent."""
        samples = self._feed.samples
        slot = samples.of_image(sample.index)[object_] if isinstance(samples, Objects) else sample.index
        self._engine.submit(Step(np.array([slot], np.uint64), np.ones(1, np.bool_), consumed=0), epoch)
        batch = self._engine.next()
        part = None
        if isinstance(self._transform, ObjectCrops) and sample.boxes:
            part = sample.boxes[object_].corners
        plan = self._transform.native().plan(*extent, self._seed, epoch, slot, part)
        crop, resized, window, mirrored, colors = plan
        across, down = (crop[2] - crop[0]) / resized[0], (crop[3] - crop[1]) / resized[1]
        left, top, right, bottom = window
        return TransformedSample(
            pixels=visible(batch.images[0]),
            mask=None if self._mask is None else batch.fields[self._mask][0],
            boxes=np.empty((0, 4), np.float32) if batch.boxes is None else batch.boxes.corners,
            region=(crop[0] + left * across, crop[1] + top * down, crop[0] + right * across, crop[1] + bottom * down),
            mirrored=mirrored,
            colors=tuple(colors),
        )

    def objects(self, index: int) -> int:
        """Return how many samples the transform makes of one image."""
        samples = self._feed.samples
        return len(samples.of_image(index)) if isinstance(samples, Objects) else 1

    def __exit__(self, *exception: object) -> None:
        self._engine.close()


# Tiles.


def draw_sample(
    sample: Sample,
    pixels: NDArray[np.uint8],
    classes: Sequence[ClassLabel],
    *,
    boxes: bool,
    mask: NDArray[Any] | None = None,
) -> Image.Image:
    """Return the tile of one sample with these pixels: the image with its aspect kept, class and text below."""
    height, width = pixels.shape[:2]
    picture = fit(pixels, PICTURE, PICTURE)
    if mask is not None:
        draw_mask(picture, mask)
    annotated = usable_boxes(sample.boxes) if boxes else []
    draw_boxes(picture, annotated, box_classes(sample.schema, classes))
    details = [f"{width} x {height}", sample.format, *([format_count(len(annotated), "box")] if annotated else [])]
    title, name = class_lines(sample.label, classes)
    return _draw_tile(picture, (title, "  ·  ".join(texts_of(sample)) or name, "  ·  ".join(details)), sample.index)


def _draw_field(sample: Sample, name: str, pixels: NDArray[Any]) -> Image.Image:
    """Return the tile of a mask, in colours over its image, or of an extra image."""
    ids = ""
    if sample.schema.fields[name].form().kind == "mask":
        image = sample.decode()
        pixels = mask_of(sample, name, image)
        ids = f"class ids {format_some(np.unique(pixels).tolist(), _SHOWN_IDS)}"
        picture = fit(visible(image), PICTURE, PICTURE)
        draw_mask(picture, pixels)
    else:
        picture = fit(visible(pixels), PICTURE, PICTURE)
    return _draw_tile(picture, (name, ids, f"{pixels.shape[1]} x {pixels.shape[0]}"))


def class_lines(label: int, classes: Sequence[ClassLabel]) -> tuple[str, str]:
    """Return the first phrase of the text of a class, and its name and id; without a text, its name, and its id."""
    if not 0 <= label < len(classes):
        return class_title(classes, label), ""
    entry = classes[label]
    phrase = entry.text.split(",")[0].strip()
    return (phrase, f"{entry.name}  ·  label {label}") if phrase else (entry.name, f"label {label}")


def draw_damaged(index: int, problem: str) -> Image.Image:
    """Return the tile of a sample that cannot be shown: it says why."""
    drawn, draw = _card(_DAMAGED_CARD)
    draw.text((_MARGIN + 4, _MARGIN + 4), "damaged", font=_TITLE_FONT, fill=_DAMAGED_TEXT)
    top, step = _MARGIN + 44, 17
    for line in wrapped(problem, _SMALL_FONT, PICTURE - 8, (PICTURE - 44) // step):
        draw.text((_MARGIN + 4, top), line, font=_SMALL_FONT, fill=_BRIGHT)
        top += step
    _caption(draw, ("cannot be shown", "", ""), index, _DAMAGED_TEXT)
    return drawn


def _draw_transformed(transformed: TransformedSample, *, boxes: bool) -> Image.Image:
    pixels = transformed.pixels
    factor = PICTURE // max(pixels.shape[:2])
    if factor < 1:
        picture = fit(pixels, PICTURE, PICTURE)
    else:
        picture = Image.fromarray(np.ascontiguousarray(pixels.repeat(factor, 0).repeat(factor, 1)))
    if transformed.mask is not None:
        draw_mask(picture, transformed.mask)
    if boxes:
        draw_pixel_boxes(picture, (pixels.shape[1], pixels.shape[0]), transformed.boxes)
    left, top, right, bottom = transformed.region
    colors = ", ".join(f"{name[0]} {factor:.2f}" for name, factor in transformed.colors)  # whole names would not fit
    part = f"{_length(right - left)} x {_length(bottom - top)} at {_length(left)}, {_length(top)}"
    return _draw_tile(picture, (part, "mirrored" if transformed.mirrored else "", colors))


def _length(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _outline(stored: Image.Image, extent: tuple[int, int], outlines: Sequence[tuple[Region, Color]]) -> None:
    """Outline on the tile of a stored image the regions that its other pictures show."""
    width, height = fitted_size(*extent, PICTURE, PICTURE)
    left, top = _MARGIN + (PICTURE - width) // 2, _MARGIN + (PICTURE - height) // 2
    draw = ImageDraw.Draw(stored)
    for region, color in outlines:
        across, down = (width - 1) / extent[0], (height - 1) / extent[1]
        corners = [round(edge * scale) for edge, scale in zip(region, (across, down) * 2, strict=True)]
        box = (left + corners[0], top + corners[1], left + corners[2], top + corners[3])
        draw.rectangle(box, outline=color, width=2)


def _draw_tile(picture: Image.Image, lines: tuple[str, str, str], index: int | None = None) -> Image.Image:
    """Return a tile with a picture of at most `PICTURE` pixels a side, three lines of text, and a sample's number."""
    drawn, draw = _card(_CARD)
    well = (_MARGIN, _MARGIN, _MARGIN + PICTURE - 1, _MARGIN + PICTURE - 1)
    draw.rounded_rectangle(well, _RADIUS, _WELL)
    left, top = (_MARGIN + (PICTURE - side) // 2 for side in picture.size)
    # A mask with round corners, drawn large and shrunk, so that the corners are smooth.
    mask = Image.new("L", (picture.width * 3, picture.height * 3), 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, mask.width - 1, mask.height - 1), _RADIUS * 3, 255)
    drawn.paste(picture, (left, top), mask.resize(picture.size, Image.Resampling.BOX))
    _caption(draw, lines, index, _BRIGHT)
    return drawn


def _card(color: Color) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    drawn = Image.new("RGB", (TILE_WIDTH, TILE_HEIGHT), BACKGROUND)
    draw = ImageDraw.Draw(drawn)
    draw.rounded_rectangle((0, 0, TILE_WIDTH - 1, TILE_HEIGHT - 1), _RADIUS + 4, color)
    return drawn, draw


def _caption(draw: ImageDraw.ImageDraw, lines: tuple[str, str, str], index: int | None, color: Color) -> None:
    """Write three lines below the image, and the number of the sample to the right of the last."""
    left, top, width = _MARGIN + 2, PICTURE + 2 * _MARGIN - 1, PICTURE - 4
    draw.text((left, top), fitted(lines[0], _NAME_FONT, width), font=_NAME_FONT, fill=color)
    draw.text((left, top + 25), fitted(lines[1], _SMALL_FONT, width), font=_SMALL_FONT, fill=_DIM)
    number = "" if index is None else f"#{index}"
    draw.text((left + width, top + 45), number, font=_SMALL_FONT, fill=_DIM, anchor="ra")
    free = width - PICTURE // 20 - int(_SMALL_FONT.getlength(number))
    draw.text((left, top + 45), fitted(lines[2], _SMALL_FONT, free), font=_SMALL_FONT, fill=_DIM)


def fitted(text: str, font: Font, width: int) -> str:
    """Return ``text`` in one line, cut to a width in pixels with an ellipsis where it is too long."""
    line = displayable(text[:400])
    if len(line) == len(text) and font.getlength(line) <= width:
        return line
    while line and font.getlength(line + "…") > width:
        line = line[:-1]
    return line.rstrip() + "…"


def wrapped(text: str, font: Font, width: int, lines: int) -> list[str]:
    """Return ``text`` broken into lines of about a width in pixels; words that are too long, such as paths, are cut."""
    letters = int(width / font.getlength("n"))
    rows = textwrap.wrap(displayable(text[:1000]), letters, max_lines=lines, placeholder=" …")
    return [fitted(row, font, width) for row in rows]
