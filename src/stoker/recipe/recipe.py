"""The settings of a recipe, checked when they are made."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from stoker.config import check_range
from stoker.errors import ConfigError, ImageTooLargeError

if TYPE_CHECKING:
    from stoker.types import DecodeMode, TensorOrder


MAX_SIDE_PX = 65_500
"""Longest side that a JPEG file can have (libjpeg's limit)."""

ResizeMode = Literal["short", "long", "max", "exact", "square"]
Filter = Literal["nearest", "box", "bilinear", "bicubic", "lanczos", "tf1-align-corners", "tf1-legacy", "tf2-nearest"]
Check = Literal["header", "entropy", "decode"]
Subsampling = Literal["4:2:0", "4:4:4"]
FILTERS: tuple[Filter, ...] = get_args(Filter)
CHECKS: tuple[Check, ...] = get_args(Check)


@dataclass(frozen=True, slots=True)
class StoredSize:
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
class JpegEncode:
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


@dataclass(frozen=True, slots=True)
class RawEncode:
    """Pixels are stored as they are, three uint8 each.

    Attributes:
        order: ``HWC``: row after row of RGB pixels. ``CHW``: all of red, then green, then blue.
    """

    order: TensorOrder = "HWC"

    def __post_init__(self) -> None:
        if self.order not in ("HWC", "CHW"):
            raise ConfigError(f"order {self.order!r} is unknown; use HWC or CHW")

    def __str__(self) -> str:
        return f"raw:{self.order}"


LOSSLESS_ENOUGH = JpegEncode(100, "4:4:4")
"""For images that a reader of JPEG could not read as they are: nothing is thrown away that a JPEG can hold."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What happens to every image.

    Without ``resize`` (*keep*), the bytes of a JPEG that any reader can decode to RGB are stored unchanged; everything
    else is decoded and stored as JPEG at quality 100 without chroma subsampling. With ``resize``, every image is
    decoded, resized and encoded with ``encode`` (except the ones that ``max`` leaves alone). To store pixels, every
    image is decoded. With ``restart``, every stored JPEG has restart markers: without ``resize`` those that would be
    kept are transcoded without loss, with it all images are encoded, also those that ``max`` does not shrink.

    Attributes:
        resize: Size to store; None keeps it.
        encode: JPEG settings after a resize, or how pixels are stored.
        filter: Resampling filter. Bicubic by default: with antialiasing it keeps more detail than bilinear (which
            blurs twice when the training transform is resized again) and costs less and rings less than lanczos. All
            but the last three are Pillow's. ``tf1-align-corners`` and ``tf1-legacy`` are TensorFlow 1's
            ``resize_bilinear`` with and without ``align_corners``, cut down to uint8; ``tf2-nearest`` is
            TensorFlow 2's, which picks another neighbour than Pillow where a sample lies on an edge. They are for
            output that must equal an older program's.
        check: How a JPEG whose bytes are kept is checked: ``header`` walks all markers to the end of the image;
            ``entropy`` also decodes all entropy-coded data, without making pixels; ``decode`` decodes every pixel,
            which refuses the same files as ``entropy`` and takes longer.
        exif: ``keep`` stores the pixels as they are stored; ``apply`` turns them as the EXIF orientation says.
        max_pixels: An image with more is rejected before memory is taken for it.
        restart: Whether stored JPEGs have restart markers, so that a reader can cut out a part without decoding what
            lies before it. See `stoker._native.transcode_jpeg` for those whose pixels are kept.
        decode: ``exact``: as libjpeg's accurate integer decode, which Pillow has. ``fast``: as
            `stoker.Loader` does with ``decode="fast"``.
    """

    resize: StoredSize | None = None
    encode: JpegEncode | RawEncode = field(default_factory=JpegEncode)
    filter: Filter = "bicubic"
    check: Check = "header"
    exif: Literal["keep", "apply"] = "keep"
    max_pixels: int = 2**27
    restart: bool = False
    decode: DecodeMode = "exact"

    def __post_init__(self) -> None:
        check_range("--max-pixels", self.max_pixels, 1, 2**32)
        if self.restart and isinstance(self.encode, RawEncode):
            raise ConfigError(f"--recipe restart needs JPEG, but --encode {self.encode} stores pixels; choose one")
        if self.decode == "fast" and (self.resize is None or isinstance(self.encode, RawEncode)):
            raise ConfigError("--decode fast has no effect without --resize to JPEG; give both, or omit it")
        if self.filter not in FILTERS:
            raise ConfigError(f"filter {self.filter!r} is unknown; use one of {', '.join(FILTERS)}")

    @property
    def pixel_encode(self) -> JpegEncode | RawEncode:
        """What becomes of the pixels of an image whose bytes are not kept."""
        return LOSSLESS_ENOUGH if self.resize is None and isinstance(self.encode, JpegEncode) else self.encode

    def fixed_bytes(self) -> int | None:
        """Return how long every stored image is, if all are equally long."""
        if self.resize is None or self.resize.mode not in ("exact", "square") or isinstance(self.encode, JpegEncode):
            return None
        return self.resize.width * self.resize.height * 3

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
            kind: dict[str, Any] = {"kind": self._kind}
        else:
            kind = {"kind": "resize", "resize": str(self.resize), "filter": self.filter}
            kind |= ({"restart": True} if self.restart else {}) | ({"decode": "fast"} if self.decode == "fast" else {})
        return kind | {
            "encode": str(self.pixel_encode),
            "check": self.check,
            "exif": self.exif,
            "max_pixels": self.max_pixels,
        }

    @property
    def _kind(self) -> str:
        """What the recipe is called where nothing is resized."""
        if isinstance(self.encode, RawEncode):
            return "raw"
        return "restart" if self.restart else "keep"

    def __str__(self) -> str:
        if self.resize is None:
            return str(self.encode) if self._kind == "raw" else self._kind
        fast = " decode fast" if self.decode == "fast" else ""
        return f"{self.resize} {self.encode}{' restart' if self.restart else ''}{fast}"


_SUBSAMPLINGS: dict[str, Subsampling] = {"420": "4:2:0", "444": "4:4:4"}


def parse_resize(text: str) -> StoredSize | None:
    """Return the resize that a text stands for; None for ``off``.

    Args:
        text: ``short:256``, ``long:512``, ``max:512``, ``exact:300x200`` (width x height), ``square:300`` or ``off``.

    Raises:
        ConfigError: ``text`` is none of these.
    """
    if text == "off":
        return None
    found = re.fullmatch(r"([a-z]+):([0-9]{1,6})(?:x([0-9]{1,6}))?", text, re.ASCII)
    if found is None or found[1] not in get_args(ResizeMode) or (found[1] == "exact") != (found[3] is not None):
        message = "write short:256, long:512, max:512, exact:300x300, square:300 or off"
        raise ConfigError(f"--resize {text!r} is not understood; {message}")
    return StoredSize(cast("ResizeMode", found[1]), int(found[2]), int(found[3] or found[2]))


def parse_encode(text: str) -> JpegEncode | RawEncode:
    """Return the encoding that ``jpeg:90``, ``jpeg:90:420``, ``jpeg:90:444``, ``raw`` or ``raw:CHW`` stands for.

    Raises:
        ConfigError: ``text`` is none of these.
    """
    if found := re.fullmatch(r"raw(?::(HWC|CHW))?", text, re.ASCII):
        return RawEncode(cast("TensorOrder", found[1] or "HWC"))
    found = re.fullmatch(r"jpeg:([0-9]{1,3})(?::(420|444))?", text, re.ASCII)
    if found is None:
        raise ConfigError(f"--encode {text!r} is not understood; write jpeg:90, jpeg:90:444, raw or raw:CHW")
    return JpegEncode(int(found[1]), _SUBSAMPLINGS[found[2] or "420"])
