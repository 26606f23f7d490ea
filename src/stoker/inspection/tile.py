"""One tile of a contact sheet: an image as it is in the record, and what the record says about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

from stoker.feed.thumbnails import boxes_of, draw_boxes, fit, fitted_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.feed import Sample
    from stoker.records.labels import ClassLabel

PICTURE = 240
"""Side of the square that an image is fitted into, in pixels."""
_MARGIN = 10
_CAPTION = 76
TILE_WIDTH = PICTURE + 2 * _MARGIN
TILE_HEIGHT = PICTURE + 2 * _MARGIN + _CAPTION

Color = tuple[int, int, int]

BACKGROUND = (24, 25, 28)
BRIGHT = (236, 237, 240)
DIM = (140, 144, 153)
_CARD = (37, 39, 44)
_WELL = (29, 31, 35)
_DAMAGED_CARD = (66, 30, 32)
_DAMAGED_TEXT = (255, 150, 140)
_RADIUS = 8

TITLE = ImageFont.load_default(26)
TEXT = ImageFont.load_default(15)
_NAME = ImageFont.load_default(16)
_SMALL = ImageFont.load_default(13)


def draw_sample(sample: Sample, classes: Sequence[ClassLabel], *, boxes: bool) -> Image.Image:
    """Return the tile of one sample: the image with its aspect kept, class and text below.

    Raises:
        ImageError: The image cannot be decoded.
    """
    pixels = sample.decode()
    height, width = pixels.shape[:2]
    picture = fit(pixels, PICTURE, PICTURE)
    annotated = list(boxes_of(sample)) if boxes else []
    draw_boxes(picture, annotated)
    title, subtitle = _class_lines(sample.label, classes)
    detail = f"{width} x {height}"
    if annotated:
        detail += f"  ·  {len(annotated)} box" + ("es" if len(annotated) > 1 else "")
    return draw_picture(picture, (title, subtitle, detail), sample.key)


def draw_picture(picture: Image.Image, lines: tuple[str, str, str], key: int | None = None) -> Image.Image:
    """Return a tile with a picture of at most `PICTURE` pixels a side, three lines of text, and a sample's number."""
    drawn, draw = _card(_CARD)
    well = (_MARGIN, _MARGIN, _MARGIN + PICTURE - 1, _MARGIN + PICTURE - 1)
    draw.rounded_rectangle(well, _RADIUS, _WELL)
    left, top = (_MARGIN + (PICTURE - side) // 2 for side in picture.size)
    drawn.paste(picture, (left, top), _rounded(picture.size))
    _caption(draw, lines, key, BRIGHT)
    return drawn


def picture_place(extent: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return left, top, width and height of the picture in the tile of an image of this width and height."""
    width, height = fitted_size(*extent, PICTURE, PICTURE)
    return _MARGIN + (PICTURE - width) // 2, _MARGIN + (PICTURE - height) // 2, width, height


def draw_damaged(key: int, problem: str) -> Image.Image:
    """Return the tile of a sample that cannot be shown: it says why."""
    drawn, draw = _card(_DAMAGED_CARD)
    draw.text((_MARGIN + 4, _MARGIN + 4), "damaged", font=TITLE, fill=_DAMAGED_TEXT)
    top, step = _MARGIN + 44, 17
    for line in wrapped(problem, _SMALL, PICTURE - 8, (PICTURE - 44) // step):
        draw.text((_MARGIN + 4, top), line, font=_SMALL, fill=BRIGHT)
        top += step
    _caption(draw, ("cannot be shown", "", ""), key, _DAMAGED_TEXT)
    return drawn


def fitted(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int) -> str:
    """Return ``text`` in one line, cut to a width in pixels with an ellipsis where it is too long."""
    line = _drawable(text[:400])
    if len(line) == len(text) and font.getlength(line) <= width:
        return line
    while line and font.getlength(line + "…") > width:
        line = line[:-1]
    return line.rstrip() + "…"


def _drawable(text: str) -> str:
    """Return text without what a font cannot draw, such as the stray bytes of a name."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _card(color: tuple[int, int, int]) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    drawn = Image.new("RGB", (TILE_WIDTH, TILE_HEIGHT), BACKGROUND)
    draw = ImageDraw.Draw(drawn)
    draw.rounded_rectangle((0, 0, TILE_WIDTH - 1, TILE_HEIGHT - 1), _RADIUS + 4, color)
    return drawn, draw


def _rounded(size: tuple[int, int]) -> Image.Image:
    """Return a mask with round corners, drawn large and shrunk, so that the corners are smooth."""
    large = Image.new("L", (size[0] * 3, size[1] * 3), 0)
    ImageDraw.Draw(large).rounded_rectangle((0, 0, large.width - 1, large.height - 1), _RADIUS * 3, 255)
    return large.resize(size, Image.Resampling.BOX)


def _class_lines(label: int, classes: Sequence[ClassLabel]) -> tuple[str, str]:
    """Return the first phrase that describes a class, and its name and id; the name instead where it has no text."""
    if not 0 <= label < len(classes):
        return f"label {label}" if label >= 0 else "no label", ""
    known = classes[label]
    phrase = known.text.split(",")[0].strip()
    return (phrase, f"{known.name}  ·  label {label}") if phrase else (known.name, f"label {label}")


def _caption(draw: ImageDraw.ImageDraw, lines: tuple[str, str, str], key: int | None, color: Color) -> None:
    """Write three lines below the image, and the number of the sample to the right of the last."""
    left, top, width = _MARGIN + 2, PICTURE + 2 * _MARGIN - 1, PICTURE - 4
    draw.text((left, top), fitted(lines[0], _NAME, width), font=_NAME, fill=color)
    draw.text((left, top + 25), fitted(lines[1], _SMALL, width), font=_SMALL, fill=DIM)
    number = "" if key is None else f"#{key}"
    draw.text((left + width, top + 45), number, font=_SMALL, fill=DIM, anchor="ra")
    room = width - PICTURE // 20 - int(_SMALL.getlength(number))
    draw.text((left, top + 45), fitted(lines[2], _SMALL, room), font=_SMALL, fill=DIM)


def wrapped(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int, lines: int) -> list[str]:
    """Return ``text`` broken into lines of a width in pixels; words that are too long, such as paths, are cut."""
    made: list[str] = []
    line = ""
    for word in _drawable(text[:1000]).split(" "):
        if line and font.getlength(f"{line} {word}") <= width:
            line = f"{line} {word}"
            continue
        if line:
            made.append(line)
        line = word
        while font.getlength(line) > width:
            cut = next(end for end in range(len(line) - 1, 0, -1) if font.getlength(line[:end]) <= width)
            made.append(line[:cut])
            line = line[cut:]
    made.append(line)
    return made if len(made) <= lines else [*made[: lines - 1], "…"]
