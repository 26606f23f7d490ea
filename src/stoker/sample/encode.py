"""How the files of a sample tree are encoded: the usual ones, the odd ones a real set has, and damaged ones."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from PIL import Image

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ORIENTATION_TAG = 274
_MODES = {"greyscale": "L", "cmyk": "CMYK"}
_OPTIONS: dict[str, dict[str, Any]] = {
    "progressive": {"progressive": True},
    "restart": {"restart_marker_rows": 1},
    "rgb": {"keep_rgb": True},
}

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


def encode_usual(pixels: NDArray[np.uint8], quality: int, subsampling: str) -> bytes:
    """Return a baseline JPEG."""
    return _save(Image.fromarray(pixels), quality=quality, subsampling=subsampling)


def encode_odd(kind: str, pixels: NDArray[np.uint8], quality: int) -> bytes:
    """Return a file that is right but unusual; ``kind`` is a key of `ODD`."""
    image = Image.fromarray(pixels)
    if kind == "png":
        return _save(image, format="PNG")
    if kind == "exif":
        exif = Image.Exif()
        exif[_ORIENTATION_TAG] = 6
        # Stored on its side, so that a reader who turns it sees it upright.
        return _save(image.transpose(Image.Transpose.ROTATE_90), quality=quality, exif=exif.tobytes())
    if kind in _MODES:
        return _save(image.convert(_MODES[kind]), quality=quality)
    return _save(image, quality=quality, **_OPTIONS[kind])


def damage(kind: str, whole: bytes) -> bytes:
    """Return a damaged file made from a whole JPEG; ``kind`` is a key of `DAMAGED`."""
    if kind == "truncated":
        return whole[: len(whole) * 6 // 10]
    if kind == "empty":
        return b""
    if kind == "text":
        return b"This is no picture, whatever its name says.\n"
    if kind == "huge":
        frame = whole.index(b"\xff\xc0")
        return whole[: frame + 5] + (60_000).to_bytes(2, "big") * 2 + whole[frame + 9 :]
    middle = len(whole) // 2
    # Restart markers in a file that has none: no decoder can take them for picture data.
    return whole[:middle] + b"\xff\xd3" * 16 + whole[middle + 32 :]


def _save(image: Image.Image, *, format: str = "JPEG", **options: object) -> bytes:  # noqa: A002 - Pillow's name
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()
