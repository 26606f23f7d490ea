"""Pictures for people: images scaled to fit, with boxes and masks drawn on them, and the HTML of notebooks.

The HTML stands alone, in the colours of the notebook. Classes build their `_repr_html_` from its parts.
"""

from __future__ import annotations

import base64
import html
import io
import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from stoker import _native
from stoker.errors import ConfigError, StokerError
from stoker.format import BACKGROUND, ClassLabel
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.transforms import Output
    from stoker.types import Field, Mode, SchemaInfo


_BOX_COLOR, _BOX_SHADE = (255, 190, 60), (0, 0, 0)
_BOX_FONT_SIZE, _MAX_BOX_NAME = 11, 24
_GROUND, _SQUARES = (155, 205), 24  # squares under a transparent image: greys, and number along the longer side
_MASK_SHARE = 0.6  # of the colours of a mask over the image
_GOLDEN = 0.618034  # of the circle of hues, between one class id and the next
_MAX_TEXT = 120
_MAX_BOXES = 1000  # a picture shows no more, whatever a record claims
_MAX_ENLARGEMENT = 4.0  # an image of 32 pixels would be blown up to a blur


_SIDE = 112
NOTEBOOK_SIDE = 2 * _SIDE
"""Side of the square that a picture in a notebook is fitted into: sharp on a dense screen."""
NOTEBOOK_PIXELS = 2**25
"""Larger images are not worth decoding for a small picture."""
_MAX_SAMPLES = 24

_DIM = "opacity:.65"
_TEXT = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5"
_ROW = "display:flex;flex-wrap:wrap;gap:12px;margin-top:8px"
_FIGURE = f"margin:0;width:{_SIDE}px;font-size:12px;line-height:1.35;overflow:hidden"
_SQUARE = f"width:{_SIDE}px;height:{_SIDE}px;overflow:hidden"
_DASHED = "box-sizing:border-box;border:1px dashed;border-radius:6px;padding:6px"
_IMAGE = f"display:block;max-width:{_SIDE}px;max-height:{_SIDE}px;border-radius:6px;margin:0"
_LINE = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap"


def fitted_size(columns: int, rows: int, width: int, height: int) -> tuple[int, int]:
    """Return width and height of an image made as large as fits, its aspect kept; a small one is not blown up."""
    scale = min(width / columns, height / rows, _MAX_ENLARGEMENT)
    return max(1, round(columns * scale)), max(1, round(rows * scale))


def fit(pixels: NDArray[np.uint8], width: int, height: int) -> Image.Image:
    """Return an image, uint8 (H, W, 3), as large as fits into ``width`` x ``height`` pixels, its aspect kept."""
    rows, columns = pixels.shape[:2]
    size = fitted_size(columns, rows, width, height)
    return Image.fromarray(_native.resize(pixels, *size, "lanczos" if size[0] < columns else "bicubic"))


def visible(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an image of any mode, (H, W, C), in visible colours: uint8 (H, W, 3).

    Grey of 16 bits is stretched, so that its darkest pixel is black and its brightest white: otherwise an image that
    uses 12 of them would look black. Transparent pixels show a chequered ground.
    """
    if pixels.dtype == np.uint16:
        low, high = int(pixels.min(initial=0xFFFF)), int(pixels.max(initial=0))
        pixels = ((pixels.astype(np.float64) - low) * (255 / max(1, high - low))).round().astype(np.uint8)
    if pixels.shape[2] == 1:
        return np.ascontiguousarray(pixels.repeat(3, 2))
    if pixels.shape[2] == 3:
        return pixels
    rows, columns = pixels.shape[:2]
    square = max(1, max(rows, columns) // _SQUARES)
    even = (np.arange(rows)[:, None] // square + np.arange(columns) // square) % 2
    ground, alpha = np.where(even, *_GROUND)[:, :, None], pixels[:, :, 3:] / 255
    return np.ascontiguousarray((pixels[:, :, :3] * alpha + ground * (1 - alpha)).round().astype(np.uint8))


def usable_boxes(boxes: Sequence[Box]) -> list[Box]:
    """Return annotated boxes clamped to the image; those that are empty or not finite are left out."""
    usable = []
    for box in boxes[:_MAX_BOXES]:
        if all(map(math.isfinite, box.corners)):
            xmin, ymin, xmax, ymax = (min(1.0, max(0.0, value)) for value in box.corners)
            if xmin < xmax and ymin < ymax:
                usable.append(Box(xmin, ymin, xmax, ymax, box.label))
    return usable


def box_classes(schema: SchemaInfo, classes: Sequence[ClassLabel]) -> Sequence[ClassLabel]:
    """Return the classes of boxes, by label: their own, or else those of the images."""
    if not schema.box_names:
        return classes
    return [ClassLabel(BACKGROUND, "")] * schema.label_base + [ClassLabel(name, "") for name in schema.box_names]


@cache
def _box_font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(_BOX_FONT_SIZE)


def draw_boxes(picture: Image.Image, boxes: Iterable[Box], classes: Sequence[ClassLabel] = ()) -> None:
    """Draw boxes, in fractions of the picture, onto it, and the names of their classes."""
    draw = ImageDraw.Draw(picture)
    for box in boxes:
        left, right = round(box.xmin * (picture.width - 1)), round(box.xmax * (picture.width - 1))
        top, bottom = round(box.ymin * (picture.height - 1)), round(box.ymax * (picture.height - 1))
        # The dark line around the bright one keeps a box visible on any image.
        draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=_BOX_SHADE)
        draw.rectangle((left, top, right, bottom), outline=_BOX_COLOR, width=2)
        if box.label is not None and 0 <= box.label < len(classes):
            name = displayable(class_title(classes, box.label))[:_MAX_BOX_NAME]
            # Above the box, or inside of it where there is no space.
            corner = (left + 2, top - _BOX_FONT_SIZE - 3 if top > _BOX_FONT_SIZE + 3 else top + 2)
            font = _box_font()
            draw.rectangle(draw.textbbox(corner, name, font=font), fill=_BOX_COLOR)
            draw.text(corner, name, font=font, fill=_BOX_SHADE)


def draw_pixel_boxes(picture: Image.Image, extent: tuple[int, int], corners: NDArray[Any]) -> None:
    """Draw boxes, (T, 4) in pixels of an image of this width and height, onto its picture."""
    width, height = extent
    draw_boxes(picture, [Box(*box) for box in (corners.astype(float) / (width, height, width, height)).tolist()])


def draw_mask(picture: Image.Image, ids: NDArray[Any]) -> None:
    """Draw a mask of class ids, (H, W), onto a picture of the same image: a colour for each id but 0."""
    rows, columns = (
        ((np.arange(side) + 0.5) * (many / side)).astype(np.int64)
        for side, many in zip((picture.height, picture.width), ids.shape, strict=True)
    )
    small = ids[rows[:, None], columns]
    hues = small.astype(np.float64)[:, :, None] * _GOLDEN + np.arange(3) / 3
    colors = 127.5 + 127.5 * np.cos(2 * np.pi * hues)
    share = np.where(small == 0, 0.0, _MASK_SHARE)[:, :, None]
    blended = np.asarray(picture) * (1 - share) + colors * share
    picture.paste(Image.fromarray(blended.round().astype(np.uint8)))


def first_mask(fields: Mapping[str, Field]) -> str | None:
    """Return the name of the mask that is drawn over images; None without one."""
    return next((name for name, field in fields.items() if field.form().kind == "mask"), None)


def cut(text: str) -> str:
    """Return as much of a text as is shown below a picture."""
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"


def data_uri(picture: Image.Image) -> str:
    """Return a picture as a URI that holds its JPEG, for pages that must stand alone."""
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"


def displayable(text: str) -> str:
    """Return text that any page and font can show: what is not printable, such as a stray byte, is replaced."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def class_title(classes: Sequence[ClassLabel], label: int) -> str:
    """Return what a class is called: its first words, else its name, else its number."""
    if not 0 <= label < len(classes):
        return f"label {label}" if label >= 0 else "no label"
    return classes[label].text.split(",")[0].strip() or classes[label].name


def original_pixels(image: NDArray[Any], output: Output | None, mode: Mode = "RGB") -> NDArray[np.uint8]:
    """Return one image of a batch for people, its `Output` undone; without an `Output`, floats are stretched."""
    if _channels_are_first(image, output, mode):
        image = image.transpose(1, 2, 0)
    if image.dtype in (np.uint8, np.uint16):
        return visible(np.ascontiguousarray(image))
    values, wide = image.astype(np.float64), output is not None and mode == "I;16"
    if output is None:
        low, high = np.nanmin(values), np.nanmax(values)
        values = (values - low) / (high - low or 1.0)
    else:
        values = values * (output.std or 1.0) + (output.mean or 0.0)
    most = 0xFFFF if wide else 0xFF
    pixels = np.clip(np.nan_to_num(values) * most, 0, most).round().astype(np.uint16 if wide else np.uint8)
    return visible(np.ascontiguousarray(pixels))


def _channels_are_first(image: NDArray[Any], output: Output | None, mode: Mode) -> bool:
    """Without an output, guess: prefer three channels to one or four, and the last axis to the first."""
    wanted = [(axis, count) for count in (3, 1, 4) for axis in (2, 0)]
    if output is not None:
        axis = 2 if output.layout == "NHWC" else 0
        wanted = [(axis, output.shape(1, 1, mode)[axis])]
    for axis, count in wanted:
        if image.ndim == 3 and image.shape[axis] == count:
            return axis == 0
    counts = " or ".join(str(count) for count in dict.fromkeys(count for _, count in wanted))
    raise ConfigError(f"an image of shape {image.shape} does not have an axis of {counts} channels where it should be")


def corners_of(boxes: Any, row: int) -> NDArray[np.float64]:
    """Return the corners of one sample of `stoker.Boxes` or `stoker.PaddedBoxes`, float64 (T, 4); else none."""
    if hasattr(boxes, "offsets"):
        return np.asarray(boxes.corners, np.float64)[int(boxes.offsets[row]) : int(boxes.offsets[row + 1])]
    if hasattr(boxes, "counts"):
        return np.asarray(boxes.corners[row], np.float64)[: int(boxes.counts[row])]
    return np.empty((0, 4))


def escaped(value: object) -> str:
    """Return text that any page can hold, whatever is in it."""
    return html.escape(displayable(str(value)))


def notebook_block(title: str, facts: Iterable[str], figures: Iterable[str] = ()) -> str:
    """Return the HTML of an object: its title, as HTML, lines of text, and pictures from `notebook_figure`."""
    lines = "".join(f"<div style='{_DIM}'>{escaped(fact)}</div>" for fact in facts)
    strip = "".join(figures)
    row = f"<div style='{_ROW}'>{strip}</div>" if strip else ""
    return f"<div style='{_TEXT}'><div>{title}</div>{lines}{row}</div>"


def notebook_figure(picture: Image.Image | str, lines: Sequence[str]) -> str:
    """Return the HTML of a picture, or of the reason why there is none, with lines of text below."""
    if isinstance(picture, str):
        body = f"<div style='{_SQUARE};{_DASHED};{_DIM}'>{escaped(picture[:90])}</div>"
    else:
        image = f"<img src='{data_uri(picture)}' style='{_IMAGE}' alt='{escaped(lines[0])}'>"
        body = f"<div style='{_SQUARE};display:flex;align-items:center;justify-content:center'>{image}</div>"
    styles = [_LINE, *[f"{_LINE};{_DIM}"] * (len(lines) - 1)]
    text = "".join(f"<div style='{style}'>{escaped(line)}</div>" for style, line in zip(styles, lines, strict=True))
    return f"<figure style='{_FIGURE}' title='{escaped(' '.join(lines))}'>{body}{text}</figure>"


def notebook_batch(batch: Any) -> str:
    """Return the HTML of the first images of a batch, or of an object with its fields in arrays that NumPy can read."""
    title = f"<b>{escaped(repr(batch)[1:-1])}</b>"
    more = len(batch) - min(len(batch), _MAX_SAMPLES)
    try:
        figures = [sample_figure for row in range(len(batch) - more) for sample_figure in _sample_figures(batch, row)]
    except (StokerError, TypeError, ValueError, IndexError) as error:  # a field was replaced by something else
        return notebook_block(title, [f"cannot be shown: {error}"])
    return notebook_block(title, [f"the first {_MAX_SAMPLES}; {more:,} more"] if more else [], figures)


def _sample_figures(batch: Any, row: int) -> list[str]:
    parts = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    boxes = batch.boxes if isinstance(batch.boxes, tuple) else (batch.boxes,) * len(parts)
    lines = [
        class_title(batch.origin.classes if batch.origin else (), int(batch.labels[row])),
        f"#{int(batch.indices[row])}" + ("" if batch.valid[row] else ", repeated"),
    ]
    listed = [value[row] for value in batch.fields.values() if isinstance(value, list)]
    lines += [cut(value) for value in listed if isinstance(value, str)]
    how = (batch.origin.output, batch.origin.mode) if batch.origin else (None,)
    figures = []
    masks = batch.fields.get(batch.origin.mask) if batch.origin else None
    masks = masks if isinstance(masks, tuple) else (masks,) * len(parts)
    for images, annotated, mask in zip(parts, boxes, masks, strict=True):
        pixels = original_pixels(np.asarray(images[row]), *how)
        picture = fit(pixels, NOTEBOOK_SIDE, NOTEBOOK_SIDE)
        if mask is not None:
            draw_mask(picture, np.asarray(mask[row]))
        draw_pixel_boxes(picture, (pixels.shape[1], pixels.shape[0]), corners_of(annotated, row))
        figures.append(notebook_figure(picture, lines))
    return figures
