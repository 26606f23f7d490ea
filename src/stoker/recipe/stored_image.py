"""Converts a source file to a stored image, and its mask, a class for each pixel, with the geometry of the image."""

from __future__ import annotations

import atexit
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from stoker import _native
from stoker.errors import ConfigError, ImageError, ImageTooLargeError, StokerError
from stoker.recipe.geometry import Geometry, centre_square, object_corners, turn, turn_corners, window_of
from stoker.recipe.image_formats import (
    FORMATS,
    NATIVE_FORMATS,
    SNIFF_BYTES,
    as_image_error,
    decode_with_pillow,
    dimensions,
    encode_png,
    encode_webp,
    is_lossy_webp,
    is_whole_png,
    loaded,
    mode_among,
    orientation,
    own_mode,
    resize_with_pillow,
    sniff,
)
from stoker.recipe.recipe import KEPT_FORMATS, JpegEncode, PngEncode, RawEncode, Recipe, WebpEncode
from stoker.types import Filter as ResizeFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from PIL import Image

    from stoker.recipe.geometry import Corners, Pixels
    from stoker.recipe.recipe import Encode, Recipe
    from stoker.types import Box, Exif, Mode, StoredFormat, TensorOrder


Method = Literal["kept", "encoded"]
"""``kept``: stored byte for byte, or by the recipe *restart* transcoded without loss. ``encoded``: made from pixels."""

_PLAIN_COLORS = frozenset({"grey", "ycbcr", "rgb"})
_TF1_FILTERS = {"tf1-align-corners": True, "tf1-legacy": False}
_NATIVE_FILTERS = frozenset(get_args(ResizeFilter))
_NAMES = {"jpeg": "JPEG", "png": "PNG", "webp": "WebP", "raw": "tensor"}
_LA_CHANNELS = 2
_SWAPS_SIDES = 5  # as all EXIF orientations above it do
_RECIPES = 16  # a process has one, and tests a few


@dataclass(frozen=True, slots=True)
class Storing:
    """How a recipe stores a source image."""

    # kind of the source image: its format; ``cmyk jpeg`` or ``arithmetic jpeg``; ``turned jpeg``, ``turned png`` and
    # so on if it would be kept but for its EXIF orientation; or ``pixels``
    source: str
    format: StoredFormat  # of the stored image
    method: Method  # how the stored image is made

    @property
    def converted(self) -> str | None:
        """``source``, where the stored image is of another kind; None otherwise."""
        same = self.source == self.format or (self.source, self.format) == ("jpeg", "raw") or self.source == "pixels"
        return None if same else self.source


@dataclass(frozen=True, slots=True)
class StoredImage:
    """The image as it goes into a record."""

    data: bytes  # an image file, or pixels. If it is kept, the very bytes of the source
    width: int  # columns of pixels in ``data``
    height: int  # rows of pixels in ``data``
    storing: Storing = field(default_factory=lambda: Storing("jpeg", "jpeg", "kept"))  # how it was made
    geometry: Geometry = field(default_factory=Geometry)  # where it lies in the source image; moves boxes
    order: TensorOrder = "HWC"  # order of the axes where ``data`` is pixels: uint8, ``height * width * 3`` of them
    # columns and rows of pixels in the source, before it was turned or cropped; of a TIFF after Pillow has turned it
    source_size: tuple[int, int] = (0, 0)

    @property
    def upright_size(self) -> tuple[int, int]:
        """Columns and rows of pixels in the source, turned as the stored image is."""
        width, height = self.source_size
        return (height, width) if self.geometry.orientation >= _SWAPS_SIDES else (width, height)


@dataclass(frozen=True, slots=True)
class _Header:
    """Facts in the header of a source image that decide how it is stored."""

    kind: str  # its format
    # what keeps it from being a JPEG that every reader can decode to RGB; None if nothing does
    foreign: str | None = None
    width: int = 0  # columns of pixels in the file; like ``height`` 0 where nothing depends on it
    height: int = 0  # rows of pixels in the file
    orientation: int = 1  # EXIF orientation that is to be applied; 1 for none, and where nothing depends on it
    is_lossy: bool = False  # whether it is a JPEG, or a lossy WebP without alpha
    is_grey: bool = False  # whether it is a grey JPEG


def convert(data: bytes | NDArray[Any], recipe: Recipe, crop: Box | None = None) -> StoredImage:
    """Return the stored form of one source image. Pure: the same input and recipe give the same result anywhere.

    ``data`` is an image file, or pixels: uint8 (H, W) or (H, W, C), where C is 1 for grey, 2 with alpha, 3 for RGB and
    4 with alpha; or uint16 (H, W) or (H, W, 1), grey. Pixels that are not RGB are treated as a PNG of them. ``crop`` is
    the part to store, in fractions of the image as it is in the file, before any EXIF orientation. Encoded PNG and WebP
    files are the same for the same version of Pillow.

    Raises:
        ImageError: It is not an image, or cannot be decoded without losing pixels.
        ImageTooLargeError: It has more pixels than the recipe allows.
    """
    if not isinstance(data, bytes):
        pixels = as_image(data)
        recipe.check_pixels(pixels.shape[1], pixels.shape[0])
        pixels = np.ascontiguousarray(pixels)
        if pixels.shape[2] == 3:
            return _convert_pixels(pixels, recipe, crop, 1, *_storing_of_pixels(recipe))
        image = convert(encode_png(pixels), recipe, crop)
        return replace(image, storing=replace(image.storing, source="pixels", method="encoded"))
    header = _look(data, recipe)
    storing, encode = _decide(header, recipe, crop)
    if storing.method == "kept":
        size = header.width, header.height
        return StoredImage(_kept(data, header.kind, recipe), *size, storing, source_size=size)
    if header.kind == "jpeg":
        return _convert_jpeg(data, header, recipe, crop, storing, encode)
    pixels, turned = _decode_other(data, header.kind, recipe, _modes(encode, recipe))
    return _convert_pixels(pixels, recipe, crop, turned if recipe.exif == "apply" else 1, storing, encode)


def decode(data: bytes, max_pixels: int, mode: Mode = "RGB", exif: Exif = "keep") -> NDArray[Any]:
    """Return the pixels of an image file of any format, turned upright if ``exif`` is ``apply``.

    They are uint8 (H, W, C), where C is 3 in mode RGB, 1 in L and 4 in RGBA, or uint16 (H, W, 1) in I;16.

    Raises:
        ImageError: The file is not an image, cannot be decoded without losing pixels, or has no form in this mode.
        ImageTooLargeError: It has more pixels than ``max_pixels``; no memory is taken for it.
    """
    if sniff(data) in NATIVE_FORMATS:
        return _native.decode_image(data, max_pixels=max_pixels, mode=mode, turns=exif == "apply")
    pixels, turned = decode_as_stored(data, max_pixels, mode)
    return turn(pixels, turned) if exif == "apply" else pixels


def decode_as_stored(data: bytes, max_pixels: int, mode: Mode = "RGB") -> tuple[NDArray[Any], int]:
    """Return the pixels of an image file as they are stored, and the EXIF orientation; as `decode` otherwise."""
    kind = sniff(data)
    if kind in NATIVE_FORMATS:
        return _native.decode_image(data, max_pixels=max_pixels, mode=mode), orientation(data, kind)
    if kind not in FORMATS:
        raise ImageError(not_an_image(kind, data))
    return decode_with_pillow(data, kind, partial(_refuse_more_pixels, max_pixels), mode)


def _refuse_more_pixels(limit: int, width: int, height: int) -> None:
    """Refuse an image as the core does, before memory is taken for it."""
    if width * height > limit:
        message = f"The image declares {width} x {height} pixels; the limit is {limit} (raise max_pixels to accept it)"
        raise ImageTooLargeError(message)


def _decode_other(data: bytes, kind: str, recipe: Recipe, modes: frozenset[str]) -> tuple[Pixels, int]:
    """Return the pixels of a file that is not a JPEG, and, where the recipe applies it, its EXIF orientation."""
    if kind not in NATIVE_FORMATS:
        return decode_with_pillow(data, kind, recipe.check_pixels, modes)
    mode = mode_among(own_mode(data, kind), modes)
    pixels = decode(data, recipe.max_pixels, cast("Mode", "RGBA" if mode == "LA" else mode))
    if mode == "LA":
        pixels = np.ascontiguousarray(pixels[:, :, 2:])
    return pixels, orientation(data, kind) if recipe.exif == "apply" else 1


def _modes(encode: Encode, recipe: Recipe) -> frozenset[str]:
    """Return the modes that pixels to encode may have; TensorFlow 1's filters know only RGB."""
    return RawEncode.modes if recipe.resize is not None and recipe.filter in _TF1_FILTERS else encode.modes


def check(data: bytes | NDArray[Any], recipe: Recipe, crop: Box | None = None) -> Storing:
    """Return how `convert` would store an image; refuse what it would refuse, as far as that shows without encoding.

    For an image that is kept, and for every JPEG, the header and all markers or chunks are read, but their data only as
    the recipe's ``check`` says. All other images are decoded.
    """
    if not isinstance(data, bytes):
        pixels = as_image(data)
        recipe.check_pixels(pixels.shape[1], pixels.shape[0])
        return _storing_of_pixels(recipe)[0]
    header = _look(data, recipe)
    storing, _ = _decide(header, recipe, crop)
    if header.kind == "jpeg" or storing.method == "kept":
        _check_further(data, header.kind, recipe)
    elif header.kind in NATIVE_FORMATS:
        _native.check_image(data, recipe.max_pixels)
    else:
        decode_with_pillow(data, header.kind, recipe.check_pixels)
    return storing


def _look(data: bytes, recipe: Recipe) -> _Header:
    kind = sniff(data)
    if kind == "jpeg":
        info = _native.probe_jpeg(data)
        recipe.check_pixels(info.width, info.height)
        _native.check_jpeg(data)
        foreign = "arithmetic jpeg" if info.arithmetic else None
        if info.color not in _PLAIN_COLORS:
            foreign = f"{info.color} jpeg"
        turned = info.orientation if recipe.exif == "apply" else 1
        is_grey = info.color == "grey"
        return _Header(kind, foreign, info.width, info.height, turned, is_lossy=True, is_grey=is_grey)
    if kind not in FORMATS:
        raise ImageError(not_an_image(kind, data))
    if kind not in KEPT_FORMATS:
        return _Header(kind)
    width, height = dimensions(data, kind)
    recipe.check_pixels(width, height)
    turned = 1
    if recipe.exif == "apply":
        _open(data, kind, recipe)  # its errors say better than Pillow's what is wrong
        turned = orientation(data, kind)
    return _Header(kind, None, width, height, turned, is_lossy=kind == "webp" and is_lossy_webp(data))


def _decide(header: _Header, recipe: Recipe, crop: Box | None) -> tuple[Storing, Encode]:
    fits = crop is None and _keeps(header, recipe)
    if fits and header.foreign is None and header.orientation == 1:
        return Storing(header.kind, cast("StoredFormat", header.kind), "kept"), JpegEncode()
    is_whole = recipe.resize is None and crop is None and header.orientation == 1
    encode = recipe.encode_of(is_lossy=header.is_lossy, is_whole=is_whole)
    source = header.foreign or header.kind
    if fits and header.foreign is None and encode.format == header.kind:
        source = f"turned {header.kind}"
    return Storing(source, encode.format, "encoded"), encode


def _keeps(header: _Header, recipe: Recipe) -> bool:
    encode, resize = recipe.encode, recipe.resize
    if encode is None:
        keeps_format = header.kind in recipe.formats
    else:
        is_lossless = isinstance(encode, PngEncode) or encode == WebpEncode()
        keeps_format = encode.format == header.kind and (is_lossless or resize is not None)
    if resize is None or not keeps_format:
        return keeps_format
    if recipe.restart and header.kind == "jpeg":
        return False  # with markers to be written, what fits into `max` is encoded like the rest
    return resize.mode == "max" and resize.target(header.width, header.height) == (header.width, header.height)


def _check_further(data: bytes, kind: str, recipe: Recipe) -> None:
    """Check an image that is kept as the recipe says; the markers of a JPEG have been walked already."""
    if kind not in NATIVE_FORMATS:
        decode_with_pillow(data, kind, recipe.check_pixels)
    elif recipe.check == "decode":
        _native.decode_image(data, max_pixels=recipe.max_pixels)
    elif recipe.check == "entropy":
        _native.check_image(data, recipe.max_pixels)
    elif kind != "jpeg":
        if recipe.restart or (kind == "png" and not is_whole_png(data)):
            _native.check_image(data, recipe.max_pixels)
        else:
            _open(data, kind, recipe)


def _open(data: bytes, kind: str, recipe: Recipe) -> None:
    """Refuse a PNG or a WebP that the core refuses as it opens it."""
    if kind in NATIVE_FORMATS:
        _native.decode_image(data, (0, 0, 1, 1), recipe.max_pixels)  # the first pixel costs little


def as_image(pixels: NDArray[Any], error: type[StokerError] = ImageError) -> Pixels:
    """Return an array that is an image as (H, W, C); any other raises ``error``."""
    shaped = pixels[:, :, None] if pixels.ndim == 2 else pixels
    channels = {"uint8": (1, 2, 3, 4), "uint16": (1,)}.get(pixels.dtype.name, ())
    if shaped.ndim != 3 or shaped.shape[2] not in channels or shaped.size == 0:
        message = f"an array of {pixels.dtype} of shape {pixels.shape} is not an image; pixels are uint8"
        message += " (height, width) or (height, width, 1 to 4 channels), or uint16 (height, width)"
        if pixels.ndim == 3 and pixels.shape[0] in (1, 3):
            message += "; to have channels last, give array.transpose(1, 2, 0)"
        if pixels.dtype.kind == "f":
            message += "; of values from 0 to 1, give (array * 255).round().astype('uint8')"
        raise error(message)
    return shaped


def _storing_of_pixels(recipe: Recipe) -> tuple[Storing, Encode]:
    encode = recipe.encode_of(is_lossy=False, is_whole=False)
    return Storing("pixels", encode.format, "encoded"), encode


def not_an_image(kind: str, data: bytes) -> str:
    """Return why a file is not read whose kind, by its first bytes, is not among `FORMATS`."""
    if kind == "empty":
        return "the file is empty"
    start = ascii(data[: SNIFF_BYTES // 2])[2:-1]
    if kind == "text":
        return f"not an image but text: it starts with '{start}'"
    if kind == "unknown":
        return f"not an image of a known format: it starts with '{start}'"
    return f"{kind} is not read; convert it to JPEG or PNG first"


def _convert_jpeg(
    data: bytes, header: _Header, recipe: Recipe, crop: Box | None, storing: Storing, encode: Encode
) -> StoredImage:
    turned = header.orientation
    corners = _part(header.width, header.height, recipe, crop, turned)
    geometry = Geometry(turned, window_of(corners, header.width, header.height, turned))
    unmade = StoredImage(b"", 0, 0, storing, geometry, source_size=(header.width, header.height))
    if isinstance(encode, JpegEncode) and _can_reencode(recipe, turned):
        # With exact decoding these are the bytes that decoding, resizing and encoding give one after another.
        width, height = _target_of(corners[2] - corners[0], corners[3] - corners[1], recipe, encode)
        stored = _storing_of(recipe, encode).reencode(data, corners, width, height)
        return replace(unmade, data=stored, width=width, height=height)
    part = turn_corners(corners, header.width, header.height, turned)
    pixels: Pixels = _native.decode_image(data, part, max_pixels=recipe.max_pixels, turns=turned != 1)
    if header.is_grey and "L" in _modes(encode, recipe):
        pixels = np.ascontiguousarray(pixels[:, :, :1])
    return _store(pixels, unmade, recipe, encode)


def _kept(data: bytes, kind: str, recipe: Recipe) -> bytes:
    if recipe.restart and kind == "jpeg":
        transcoded = _native.transcode_jpeg(data, recipe.max_pixels)
        if transcoded is not None:
            return transcoded
        _native.check_image(data, recipe.max_pixels)  # it cannot have markers, and nothing has checked it yet
    _check_further(data, kind, recipe)
    return data


def _can_reencode(recipe: Recipe, orientation: int) -> bool:
    return recipe.resize is not None and orientation == 1 and recipe.filter in _NATIVE_FILTERS


@lru_cache(_RECIPES)
def _storing_of(recipe: Recipe, encode: JpegEncode) -> _native.JpegStoring:
    resize = recipe.resize
    return _native.JpegStoring(
        size=None if resize is None else (resize.mode, (resize.width, resize.height)),
        filter=recipe.filter if recipe.filter in _NATIVE_FILTERS else "bicubic",
        quality=encode.quality,
        subsampling=encode.subsampling,
        restart=recipe.restart,
        optimize=encode.tables == "optimal",
        decode=recipe.decode,
        turns=recipe.exif == "apply",
        max_pixels=recipe.max_pixels,
    )


atexit.register(_storing_of.cache_clear)  # objects of the core that outlive the interpreter count as leaks


def plain_storing(recipe: Recipe) -> _native.JpegStoring | None:
    """Return the core's settings to make records of plain JPEGs in one call, as `convert` would; None if it cannot.

    A JPEG is plain if any reader decodes it to RGB and it need not be turned; see `stoker._native.build_records`.
    """
    encode = recipe.encode_of(is_lossy=True, is_whole=False)
    may_keep = recipe.resize is None or (recipe.resize.mode == "max" and not recipe.restart)
    if may_keep and recipe.check != "header":
        return None
    if recipe.resize is None:
        return _storing_of(recipe, JpegEncode()) if recipe.encode is None and not recipe.restart else None
    return _storing_of(recipe, encode) if isinstance(encode, JpegEncode) and _can_reencode(recipe, 1) else None


def _convert_pixels(
    pixels: Pixels, recipe: Recipe, crop: Box | None, orientation: int, storing: Storing, encode: Encode
) -> StoredImage:
    height, width = pixels.shape[:2]
    recipe.check_pixels(width, height)
    left, top, right, bottom = corners = _part(width, height, recipe, crop, orientation)
    part = np.ascontiguousarray(turn(pixels[top:bottom, left:right], orientation))
    geometry = Geometry(orientation, window_of(corners, width, height, orientation))
    unmade = StoredImage(b"", 0, 0, storing, geometry, source_size=(width, height))
    return _store(part, unmade, recipe, encode)


def _part(width: int, height: int, recipe: Recipe, crop: Box | None, orientation: int) -> Corners:
    left, top, right, bottom = (0, 0, width, height) if crop is None else object_corners(crop, width, height)
    if orientation == 1 and recipe.resize is not None and recipe.resize.mode == "square":
        x, y, right, bottom = centre_square(right - left, bottom - top)
        return left + x, top + y, left + right, top + bottom
    return left, top, right, bottom


def _store(pixels: Pixels, unmade: StoredImage, recipe: Recipe, encode: Encode) -> StoredImage:
    """Return the stored image, given the pixels of its part of the source, which are already turned."""
    geometry = unmade.geometry
    if recipe.resize is not None:
        if recipe.resize.mode == "square":
            pixels, window = _cut_square(pixels, geometry.window)
            geometry = replace(geometry, window=window)
        pixels = _resized(pixels, recipe, encode)
    height, width = pixels.shape[:2]
    image = replace(unmade, width=width, height=height, geometry=geometry)
    if isinstance(encode, RawEncode):
        axes = pixels if encode.order == "HWC" else np.ascontiguousarray(pixels.transpose(2, 0, 1))
        return replace(image, data=axes.tobytes(), order=encode.order)
    _check_sides(width, height, encode, ImageError)
    return replace(image, data=_encoded(pixels, encode, restart=recipe.restart))


def encode_pixels(pixels: NDArray[Any], encode: JpegEncode | PngEncode | WebpEncode) -> bytes:
    """Return an image file of an array that is an image; `ConfigError` where it does not hold such pixels."""
    rows = np.ascontiguousarray(as_image(pixels, ConfigError))
    height, width, channels = rows.shape
    _check_sides(width, height, encode, ConfigError)
    if not isinstance(encode, PngEncode):
        is_grey, fits = channels == 1, (1, 3) if isinstance(encode, JpegEncode) else (1, 3, 4)
        if channels not in fits or rows.dtype != np.uint8:
            message = f"{encode.format} does not hold {rows.dtype} pixels of {channels} channels"
            raise ConfigError(f"{message}; use png, or convert the pixels first")
        if is_grey:
            rows = rows[:, :, 0] if isinstance(encode, JpegEncode) else np.repeat(rows, 3, axis=2)
    return _encoded(rows, encode)


def _check_sides(width: int, height: int, encode: Encode, error: type[StokerError]) -> None:
    if max(width, height) > encode.max_side:
        fits = f"fit into a {_NAMES[encode.format]}, whose sides end at {encode.max_side}"
        raise error(f"{width}x{height} pixels do not {fits}")


def _encoded(pixels: Pixels, encode: JpegEncode | PngEncode | WebpEncode, *, restart: bool = False) -> bytes:
    if isinstance(encode, JpegEncode):
        optimize = encode.tables == "optimal"
        return _native.encode_jpeg(pixels, encode.quality, encode.subsampling, restart=restart, optimize=optimize)
    return encode_png(pixels) if isinstance(encode, PngEncode) else encode_webp(pixels, encode.quality)


def _cut_square(
    pixels: Pixels, window: tuple[float, float, float, float]
) -> tuple[Pixels, tuple[float, float, float, float]]:
    height, width = pixels.shape[:2]
    if width == height:
        return pixels, window
    left, top, right, bottom = centre_square(width, height)
    wide, high = window[2] - window[0], window[3] - window[1]
    inner = (
        window[0] + wide * left / width,
        window[1] + high * top / height,
        window[0] + wide * right / width,
        window[1] + high * bottom / height,
    )
    return pixels[top:bottom, left:right].copy(), inner


def _resized(pixels: Pixels, recipe: Recipe, encode: Encode) -> Pixels:
    height, width = pixels.shape[:2]
    target = _target_of(width, height, recipe, encode)
    if target == (width, height):
        return pixels
    if recipe.filter in _TF1_FILTERS:
        return _native.resize_tf1(pixels, *target, align_corners=_TF1_FILTERS[recipe.filter])
    if recipe.filter == "tf2-nearest":
        return pixels[_nearest(height, target[1])][:, _nearest(width, target[0])]
    if pixels.shape[2] == _LA_CHANNELS:  # the only mode that the core does not resize
        return resize_with_pillow(pixels, *target, recipe.filter)
    return _native.resize(pixels, *target, recipe.filter)


def _nearest(size: int, out: int) -> NDArray[np.intp]:
    """Return which of ``size`` pixels TensorFlow 2 takes for each of ``out``: the arithmetic is float32's."""
    at = (np.arange(out, dtype=np.float32) + np.float32(0.5)) * (np.float32(size) / np.float32(out))
    positions: NDArray[np.intp] = np.floor(at).astype(np.intp)
    return np.clip(positions, 0, size - 1)


def _target_of(width: int, height: int, recipe: Recipe, encode: Encode) -> tuple[int, int]:
    assert recipe.resize is not None
    target = recipe.resize.target(width, height)
    if target == (width, height):
        return target
    if max(target) > encode.max_side:
        message = f"{recipe.resize} would make {target[0]}x{target[1]} of {width}x{height} pixels"
        raise ImageError(f"{message}, and the sides of a {_NAMES[encode.format]} end at {encode.max_side}")
    recipe.check_pixels(*target)
    return target


# Masks.

MASK_FORMATS = ("png", "tiff", "bmp", "gif")
"""Formats that keep indices of palettes, or grey values, as they were written; others lose or scale values."""

_LOW_BITS = 8
_DEPTH_AT = 24  # byte of a PNG that says its bits


def mask_ids(data: bytes | Image.Image, check_size: Callable[[int, int], None]) -> NDArray[Any]:
    """Return the numbers in the pixels of a mask, a file or a PIL image: bool, uint8, uint16 or int32 (H, W).

    With a palette, these are its indices; with 1 bit, False and True. ``check_size`` is called with (width, height)
    before memory is taken, and raises to refuse; a TIFF may be turned later. `ImageError` if the format changes
    numbers, or if a pixel has several numbers.
    """
    if not isinstance(data, bytes):
        check_size(*data.size)
        with as_image_error("image"):
            return _ids_of(data)
    with loaded(data, _kind_of(data), check_size) as image:
        return _ids_of(image)


def is_coloured(data: bytes, check_size: Callable[[int, int], None]) -> bool:
    """Return whether the pixels of a mask are colours, not numbers. Otherwise as `mask_ids`."""
    with loaded(data, _kind_of(data), check_size) as image:
        return len(image.getbands()) > 2


def mask_colours(data: bytes, check_size: Callable[[int, int], None]) -> NDArray[np.uint8]:
    """Return the colours in the pixels of a mask, those of its palette if it has one: (H, W, 3); as `mask_ids`."""
    width, height = dimensions(data, _kind_of(data))
    check_size(width, height)
    return decode(data, width * height)


def _kind_of(data: bytes) -> str:
    kind = sniff(data)
    if kind not in MASK_FORMATS:
        why = ", which does not keep the numbers of its pixels," if kind in FORMATS or kind == "jpeg" else ""
        raise ImageError(f"a mask of kind {kind}{why} is not read; give one of {', '.join(MASK_FORMATS)}")
    return kind


def _is_numbered(image: Image.Image) -> bool:
    return image.mode in ("1", "L", "P", "I") or image.mode.startswith("I;16")


def _ids_of(image: Image.Image) -> NDArray[Any]:
    if not _is_numbered(image):
        message = f"its pixels are {image.mode}, but those of a mask are one number each: a palette, or grey"
        raise ImageError(f"{message}; give the class ids, not colours or fractions")
    ids = np.asarray(image)
    return ids.astype(np.uint16) if image.mode.startswith("I;16") else ids


def decode_mask(data: bytes, bits: int, max_pixels: int) -> NDArray[Any]:
    """Return the ids of a stored mask of 8 or 16 bits, which must be a grey PNG of as many: uint8 or uint16 (H, W)."""
    if not is_stored_mask(data, bits):
        raise ImageError(f"it is not a grey PNG of {bits} bits, as stored masks are")
    return decode(data, max_pixels, "L" if bits == _LOW_BITS else "I;16")[:, :, 0]


def is_stored_mask(data: bytes, bits: int) -> bool:
    """Return whether a file is a mask as records hold it: a grey PNG of that many bits. Its pixels are not decoded."""
    is_grey = sniff(data) == "png" and own_mode(data, "png") == ("L" if bits == _LOW_BITS else "I;16")
    return is_grey and data[_DEPTH_AT] == bits


def store_mask(ids: NDArray[Any], recipe: Recipe, image: StoredImage) -> bytes:
    """Return a mask, as large as its source image, as a grey PNG: turned, cut and resized as the image was."""
    pixels = turn(ids[:, :, None], image.geometry.orientation)
    if recipe.resize is not None and recipe.resize.mode == "square":
        pixels, _ = _cut_square(pixels, image.geometry.window)
    if pixels.shape[:2] != (image.height, image.width):
        pixels = _native.resize(np.ascontiguousarray(pixels), image.width, image.height, "nearest")
    return encode_png(pixels)
