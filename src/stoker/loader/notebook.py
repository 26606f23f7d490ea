"""What a notebook shows of a dataset, a sample, a loader or a batch: HTML that stands alone.

The classes build their own `_repr_html_` from these parts; nothing here knows them. Colours are those of the notebook.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.errors import StokerError
from stoker.loader.pictures import (
    class_title,
    corners_of,
    cut,
    data_uri,
    displayable,
    draw_mask,
    draw_pixel_boxes,
    fit,
    original_pixels,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from PIL import Image


_SIDE = 112
SIDE_PIXELS = 2 * _SIDE
"""Side of the square that a picture is fitted into: sharp on a dense screen."""
MAX_PIXELS = 2**25
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


def escaped(value: object) -> str:
    """Return text that any page can hold, whatever is in it."""
    return html.escape(displayable(str(value)))


def block(title: str, facts: Iterable[str], figures: Iterable[str] = ()) -> str:
    """Return the HTML of an object.

    Args:
        title: Its name, as HTML.
        facts: Lines of text below.
        figures: Pictures below these, from `figure`.
    """
    lines = "".join(f"<div style='{_DIM}'>{escaped(fact)}</div>" for fact in facts)
    strip = "".join(figures)
    row = f"<div style='{_ROW}'>{strip}</div>" if strip else ""
    return f"<div style='{_TEXT}'><div>{title}</div>{lines}{row}</div>"


def figure(picture: Image.Image | str, lines: Sequence[str]) -> str:
    """Return the HTML of a picture, or of the reason why there is none, with lines of text below."""
    if isinstance(picture, str):
        body = f"<div style='{_SQUARE};{_DASHED};{_DIM}'>{escaped(picture[:90])}</div>"
    else:
        image = f"<img src='{data_uri(picture)}' style='{_IMAGE}' alt='{escaped(lines[0])}'>"
        body = f"<div style='{_SQUARE};display:flex;align-items:center;justify-content:center'>{image}</div>"
    styles = [_LINE, *[f"{_LINE};{_DIM}"] * (len(lines) - 1)]
    text = "".join(f"<div style='{style}'>{escaped(line)}</div>" for style, line in zip(styles, lines, strict=True))
    return f"<figure style='{_FIGURE}' title='{escaped(' '.join(lines))}'>{body}{text}</figure>"


def batch_block(batch: Any) -> str:
    """Return the HTML of a batch, or of what has its fields, in arrays that NumPy can read.

    It has its first images with labels and boxes, whatever their type, layout and scale.
    """
    title = f"<b>{escaped(repr(batch)[1:-1])}</b>"
    more = len(batch) - min(len(batch), _MAX_SAMPLES)
    try:
        figures = [
            sample_figure for place in range(len(batch) - more) for sample_figure in _sample_figures(batch, place)
        ]
    except (StokerError, TypeError, ValueError, IndexError) as error:  # a field was replaced by something else
        return block(title, [f"cannot be shown: {error}"])
    return block(title, [f"the first {_MAX_SAMPLES}; {more:,} more"] if more else [], figures)


def _sample_figures(batch: Any, place: int) -> list[str]:
    parts = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    boxes = batch.boxes if isinstance(batch.boxes, tuple) else (batch.boxes,) * len(parts)
    lines = [
        class_title(batch.origin.classes if batch.origin else (), int(batch.labels[place])),
        f"#{int(batch.indices[place])}" + ("" if batch.valid[place] else ", fills up"),
    ]
    listed = [value[place] for value in batch.fields.values() if isinstance(value, list)]
    lines += [cut(value) for value in listed if isinstance(value, str)]
    how = (batch.origin.output, batch.origin.mode) if batch.origin else (None,)
    figures = []
    masks = batch.fields.get(batch.origin.mask) if batch.origin else None
    masks = masks if isinstance(masks, tuple) else (masks,) * len(parts)
    for images, annotated, mask in zip(parts, boxes, masks, strict=True):
        pixels = original_pixels(np.asarray(images[place]), *how)
        picture = fit(pixels, SIDE_PIXELS, SIDE_PIXELS)
        if mask is not None:
            draw_mask(picture, np.asarray(mask[place]))
        draw_pixel_boxes(picture, (pixels.shape[1], pixels.shape[0]), corners_of(annotated, place))
        figures.append(figure(picture, lines))
    return figures
