"""The settings of a recipe, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from stoker.config import check_range
from stoker.errors import ConfigError, ImageTooLargeError

MAX_SIDE_PX = 65_500
"""Longest side that a JPEG file can have (libjpeg's limit)."""

ResizeMode = Literal["short", "long", "max", "exact", "square"]
Filter = Literal["box", "bilinear", "bicubic", "lanczos"]
Subsampling = Literal["4:2:0", "4:4:4"]
FILTERS: tuple[Filter, ...] = ("box", "bilinear", "bicubic", "lanczos")


@dataclass(frozen=True, slots=True)
class Resize:
    """A size for the stored image.

    ==========  ====================================================================================
    mode        meaning
    ==========  ====================================================================================
    ``short``   the shorter side becomes ``width`` pixels, up or down; the aspect is kept
    ``long``    the longer side becomes ``width`` pixels, up or down; the aspect is kept
    ``max``     no side is longer than ``width``; an image that fits is left alone, byte for byte
    ``exact``   ``width`` x ``height``; the image is stretched
    ``square``  the largest centred square is cut out and becomes ``width`` x ``width``
    ==========  ====================================================================================

    The other side of a kept aspect is rounded to the nearest pixel, halves upwards, and is at least 1.

    Attributes:
        mode: See above.
        width: Pixels.
        height: Pixels; equal to ``width`` except with ``exact``.
    """

    mode: ResizeMode
    width: int
    height: int

    def __post_init__(self) -> None:
        check_range("the size of --resize", self.width, 1, MAX_SIDE_PX)
        check_range("the size of --resize", self.height, 1, MAX_SIDE_PX)
        if self.mode != "exact" and self.width != self.height:
            raise ConfigError(f"--resize {self.mode} takes one number, not {self.width}x{self.height}")

    def target(self, width: int, height: int) -> tuple[int, int]:
        """Return the stored (width, height) of an image that has ``width`` x ``height`` pixels."""
        if self.mode in ("exact", "square"):
            return self.width, self.height
        long, short = max(width, height), min(width, height)
        if self.mode == "max" and long <= self.width:
            return width, height
        reference = short if self.mode == "short" else long
        return _scaled(width, self.width, reference), _scaled(height, self.width, reference)

    def __str__(self) -> str:
        size = f"{self.width}x{self.height}" if self.mode == "exact" else str(self.width)
        return f"{self.mode}:{size}"


def _scaled(side: int, numerator: int, denominator: int) -> int:
    return max(1, (2 * side * numerator + denominator) // (2 * denominator))


@dataclass(frozen=True, slots=True)
class Encode:
    """How pixels become a JPEG: baseline, with optimised Huffman tables.

    Attributes:
        quality: 1..100 on libjpeg's scale.
        subsampling: Of the chroma planes.
    """

    quality: int = 90
    subsampling: Subsampling = "4:2:0"

    def __post_init__(self) -> None:
        check_range("the quality of --encode", self.quality, 1, 100)

    def __str__(self) -> str:
        return f"jpeg:{self.quality}:{self.subsampling.replace(':', '')}"


LOSSLESS_ENOUGH = Encode(100, "4:4:4")
"""For images that a reader of JPEG could not read as they are: nothing is thrown away that a JPEG can hold."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What happens to every image.

    Without ``resize`` (*keep*), the bytes of a JPEG that any reader can decode to RGB are stored unchanged; everything
    else is decoded and stored as JPEG at quality 100 without chroma subsampling. With ``resize``, every image is
    decoded, resized and encoded with ``encode`` (except the ones that ``max`` leaves alone).

    Attributes:
        resize: Size to store; None keeps it.
        encode: JPEG settings after a resize.
        filter: Resampling filter. Bicubic by default: with antialiasing it keeps more detail than bilinear (which
            blurs twice when the training view is resized again) and costs less and rings less than lanczos.
        check: What is done to trust bytes that are kept: ``header`` walks all markers to the end of the image,
            ``decode`` decodes every pixel.
        exif: ``keep`` stores the pixels as they are stored; ``apply`` turns them as the EXIF orientation says.
        max_pixels: An image with more is rejected before memory is taken for it.
    """

    resize: Resize | None = None
    encode: Encode = field(default_factory=Encode)
    filter: Filter = "bicubic"
    check: Literal["header", "decode"] = "header"
    exif: Literal["keep", "apply"] = "keep"
    max_pixels: int = 2**27

    def __post_init__(self) -> None:
        check_range("--max-pixels", self.max_pixels, 1, 2**32)
        if self.filter not in FILTERS:
            raise ConfigError(f"filter {self.filter!r} is unknown; use one of {', '.join(FILTERS)}")

    @property
    def pixel_encode(self) -> Encode:
        """The JPEG settings for an image whose bytes are not kept."""
        return LOSSLESS_ENOUGH if self.resize is None else self.encode

    def check_pixels(self, width: int, height: int) -> None:
        """Refuse an image before memory is taken for it.

        Raises:
            ImageTooLargeError: It has more than ``max_pixels``.
        """
        if width * height > self.max_pixels:
            message = f"{width}x{height} pixels are more than the limit of {self.max_pixels}; raise --max-pixels"
            raise ImageTooLargeError(message)

    def resolved(self) -> dict[str, Any]:
        """Return every setting that has a meaning for this recipe, for the manifest and the journal."""
        if self.resize is None:
            kind: dict[str, Any] = {"kind": "keep"}
        else:
            kind = {"kind": "resize", "resize": str(self.resize), "filter": self.filter}
        return kind | {
            "encode": str(self.pixel_encode),
            "check": self.check,
            "exif": self.exif,
            "max_pixels": self.max_pixels,
        }

    def __str__(self) -> str:
        return "keep" if self.resize is None else f"{self.resize} {self.encode}"
