"""Recipes: how a build resizes, encodes and checks images. Settings are checked when they are made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args

from stoker import _native
from stoker.config import check_range, option, refuse_ineffective
from stoker.errors import ConfigError, ImageTooLargeError

if TYPE_CHECKING:
    from stoker.types import DecodeMode, Exif, StoredFormat, TensorOrder


MAX_SIDE_PX = 65_500
"""Longest side that a JPEG file can have (libjpeg's limit)."""
KEPT_FORMATS = frozenset({"jpeg", "png", "webp"})
"""Formats whose files are kept as they are, if the readers take them."""

MAX_PIXELS = 2**27
"""Pixels of the largest image that is stored by default."""
_RGB = frozenset({"RGB"})

ResizeMode = Literal["short", "long", "max", "exact", "square"]
Filter = Literal["nearest", "box", "bilinear", "bicubic", "lanczos", "tf1-align-corners", "tf1-legacy", "tf2-nearest"]
Check = Literal["header", "entropy", "decode"]
Subsampling = Literal["4:2:0", "4:4:4"]
Tables = Literal["optimal", "standard"]
FILTERS: tuple[Filter, ...] = get_args(Filter)


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
    """

    mode: ResizeMode
    width: int
    height: int  # equal to the width except with ``exact``

    def __post_init__(self) -> None:
        check_range(f"the size of {option('resize')}", self.width, 1, MAX_SIDE_PX)
        check_range(f"the size of {option('resize')}", self.height, 1, MAX_SIDE_PX)

    def target(self, width: int, height: int) -> tuple[int, int]:
        """Return the stored (width, height) of an image that has ``width`` x ``height`` pixels."""
        return _native.stored_size(self.mode, (self.width, self.height), (width, height))

    def __str__(self) -> str:
        size = f"{self.width}x{self.height}" if self.mode == "exact" else str(self.width)
        return f"{self.mode}:{size}"


@dataclass(frozen=True, slots=True)
class JpegEncode:
    """How pixels become a baseline JPEG."""

    format: ClassVar[StoredFormat] = "jpeg"
    modes: ClassVar[frozenset[str]] = _RGB
    max_side: ClassVar[int] = MAX_SIDE_PX

    quality: int = 90  # 1..100 on libjpeg's scale
    subsampling: Subsampling = "4:2:0"  # of the chroma planes
    # ``optimal``: Huffman tables made for each image. ``standard``: those of the standard (annex K), as Pillow, OpenCV
    # and TensorFlow write them: the same pixels in about 3 % more bytes, in a fifth less time
    tables: Tables = "optimal"

    def __post_init__(self) -> None:
        check_range(f"the quality of {option('encode')}", self.quality, 1, 100)

    def __str__(self) -> str:
        tables = "" if self.tables == "optimal" else f":{self.tables}"
        return f"jpeg:{self.quality}:{self.subsampling.replace(':', '')}{tables}"


@dataclass(frozen=True, slots=True)
class RawEncode:
    """Pixels are stored as three uint8 each: row after row, or as ``CHW`` all of red, then green, then blue."""

    format: ClassVar[StoredFormat] = "raw"
    modes: ClassVar[frozenset[str]] = _RGB
    max_side: ClassVar[int] = 2**31 - 1

    order: TensorOrder = "HWC"

    def __str__(self) -> str:
        return f"raw:{self.order}"


@dataclass(frozen=True, slots=True)
class PngEncode:
    """Pixels become a PNG, without loss: RGB, and grey, alpha and 16-bit grey where the source has them."""

    format: ClassVar[StoredFormat] = "png"
    modes: ClassVar[frozenset[str]] = frozenset({"L", "LA", "RGB", "RGBA", "I;16"})
    max_side: ClassVar[int] = 2**31 - 1

    def __str__(self) -> str:
        return "png"


@dataclass(frozen=True, slots=True)
class WebpEncode:
    """How pixels become a WebP: RGB, with alpha where the source has it."""

    format: ClassVar[StoredFormat] = "webp"
    modes: ClassVar[frozenset[str]] = frozenset({"RGB", "RGBA"})
    max_side: ClassVar[int] = 16_383

    quality: int | None = None  # 0..100 on libwebp's scale; None loses nothing

    def __post_init__(self) -> None:
        if self.quality is not None:
            check_range(f"the quality of {option('encode')}", self.quality, 0, 100)

    def __str__(self) -> str:
        return f"webp:{'lossless' if self.quality is None else self.quality}"


Encode = JpegEncode | PngEncode | WebpEncode | RawEncode
"""How the pixels of an image that is not kept are stored. Each says its ``format``, the ``modes`` of Pillow that it can
hold, and its longest side ``max_side`` in pixels."""

BEST_JPEG = JpegEncode(100, "4:4:4")
"""For an image of which a JPEG must be made although its size does not change."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How every image is stored.

    Without ``resize`` and ``encode`` (*keep*), the bytes of every PNG, every WebP, and every JPEG that any reader can
    decode to RGB are stored unchanged. An image that cannot be kept becomes a PNG of the same pixels; only a JPEG or a
    lossy WebP that is turned, or stored in part, becomes a JPEG of quality 100 without chroma subsampling. With
    ``resize``, every image is decoded, resized and encoded (except the ones that ``max`` leaves alone): a JPEG or a
    lossy WebP as JPEG of quality 90, everything else as PNG. ``encode`` decides for all images instead; with ``png``
    and ``webp:lossless``, images that are PNG or WebP already are kept. With ``restart``, every stored JPEG has restart
    markers: without ``resize``, JPEGs that would be kept are transcoded without loss; with it they are encoded, even
    those that ``max`` does not shrink.
    """

    resize: StoredSize | None = None  # None keeps the size
    encode: Encode | None = None  # None chooses by the source
    # More detail than bilinear, which blurs twice when the training transform resizes again; rings less than lanczos
    filter: Filter = "bicubic"
    # Of kept images: ``header`` walks all markers or chunks to the end of the file; ``entropy`` also decodes all data,
    # without making pixels of a JPEG; ``decode`` decodes every pixel, which refuses the same files and takes longer
    check: Check = "header"
    exif: Exif = "keep"
    max_pixels: int = MAX_PIXELS
    restart: bool = False  # all data of every image are read then, whatever ``check`` says
    decode: DecodeMode = "exact"
    formats: frozenset[str] = KEPT_FORMATS  # what readers take; others become PNG if that is among them, else JPEG

    def __post_init__(self) -> None:
        if self.restart and self.encode is not None and not isinstance(self.encode, JpegEncode):
            stored = "pixels" if isinstance(self.encode, RawEncode) else "another format"
            message = f"{option('recipe')} restart needs JPEG, but {option('encode')} {self.encode} stores {stored}"
            raise ConfigError(f"{message}; choose one")
        if self.restart and self.encode is not None and self.resize is None:
            message = f"{option('recipe')} restart keeps all pixels without {option('resize')}"
            message += f", but {option('encode')} {self.encode} does not"
            raise ConfigError(f"{message}; give {option('resize')} too, or omit {option('encode')}")
        if self.resize is None or not isinstance(self.encode, JpegEncode | None):
            where = f"without {option('resize')} to JPEG"
            refuse_ineffective({"decode fast": self.decode == "fast"}, where, "give both, or omit it")

    def encode_of(self, *, is_lossy: bool, is_whole: bool) -> Encode:
        """Return how an image that is not kept is stored.

        A JPEG, or a lossy WebP without transparency, is lossy; an image is whole if all of its pixels are stored as
        they are in the file.
        """
        if self.encode is not None:
            return self.encode
        if "png" not in self.formats or (is_lossy and not is_whole):
            return BEST_JPEG if self.resize is None else JpegEncode()
        return PngEncode()

    def fixed_bytes(self) -> int | None:
        """Return the length of every stored image if all are equally long, otherwise None."""
        if self.resize is None or self.resize.mode not in ("exact", "square") or not isinstance(self.encode, RawEncode):
            return None
        return self.resize.width * self.resize.height * 3

    def check_pixels(self, width: int, height: int) -> None:
        """Refuse an image before memory is taken for it."""
        if width * height > self.max_pixels:
            # This text is in lists of rejects, which are the same for the command and for the function.
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
            "encode": self._encode_text(),
            "check": self.check,
            "exif": self.exif,
            "max_pixels": self.max_pixels,
        }

    def _encode_text(self) -> str:
        if self.encode is None and "png" in self.formats:
            return "auto"
        return str(self.encode_of(is_lossy=False, is_whole=False))

    @property
    def _kind(self) -> str:
        """Name of the recipe where nothing is resized."""
        if self.encode is not None:
            return "raw" if isinstance(self.encode, RawEncode) else "encode"
        return "restart" if self.restart else "keep"

    def __str__(self) -> str:
        if self.resize is None:
            return self._kind if self.encode is None else str(self.encode)
        encode = self._encode_text()
        words = [str(self.resize), *([encode] if encode != "auto" else []), *(["restart"] if self.restart else [])]
        return " ".join(words) + (" decode fast" if self.decode == "fast" else "")


_SUBSAMPLINGS: dict[str, Subsampling] = {"420": "4:2:0", "444": "4:4:4"}


def parse_resize(text: str) -> StoredSize | None:
    """Return the resize that a text stands for; None for ``off``.

    Texts are ``short:256``, ``long:512``, ``max:512``, ``exact:300x200`` (width x height), ``square:300`` and ``off``.
    """
    if text == "off":
        return None
    match = re.fullmatch(r"([a-z]+):([0-9]{1,6})(?:x([0-9]{1,6}))?", text, re.ASCII)
    if match is None or match[1] not in get_args(ResizeMode) or (match[1] == "exact") != (match[3] is not None):
        message = "write short:256, long:512, max:512, exact:300x300, square:300 or off"
        raise ConfigError(f"{option('resize')} {text!r} is not understood; {message}")
    return StoredSize(cast("ResizeMode", match[1]), int(match[2]), int(match[3] or match[2]))


def parse_encode(text: str) -> Encode:
    """Return the encoding that a text stands for.

    Texts are ``jpeg:90``, ``jpeg:90:420``, ``jpeg:90:444``, each also with ``:standard`` behind it, ``png``,
    ``webp:90``, ``webp:lossless``, ``raw`` and ``raw:CHW``.
    """
    if text == "png":
        return PngEncode()
    if match := re.fullmatch(r"raw(?::(HWC|CHW))?", text, re.ASCII):
        return RawEncode(cast("TensorOrder", match[1] or "HWC"))
    if match := re.fullmatch(r"webp:(?:([0-9]{1,3})|lossless)", text, re.ASCII):
        return WebpEncode(None if match[1] is None else int(match[1]))
    match = re.fullmatch(r"jpeg:([0-9]{1,3})(?::(420|444))?(:standard)?", text, re.ASCII)
    if match is None:
        message = "write jpeg:90, jpeg:90:444, jpeg:90:standard, png, webp:90, webp:lossless, raw or raw:CHW"
        raise ConfigError(f"{option('encode')} {text!r} is not understood; {message}")
    return JpegEncode(int(match[1]), _SUBSAMPLINGS[match[2] or "420"], "standard" if match[3] else "optimal")
