"""What stands for the values of a record: other values, another digest."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native, fields
from stoker.types import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LONG_BYTES = 4096


def digest_of(value: Any) -> bytes:
    """Return 32 bytes that change with a value, whatever it is: of an image the bytes or pixels, of a path its text.

    Of long values their CRC-32C is in it, not they themselves.
    """
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.digest()


def image_digest(data: bytes | NDArray[Any]) -> bytes:
    """Return 16 bytes that only equal files have, or equal pixels of the same shape and type."""
    if isinstance(data, bytes):
        return hashlib.sha256(data).digest()[:16]
    digest = hashlib.sha256(f"{data.dtype}{data.shape}".encode())
    digest.update(np.ascontiguousarray(data).data)
    return digest.digest()[:16]


def _add(digest: Any, value: Any) -> None:
    """Add a value to a digest, after its type and length, so that different values never look alike."""
    if isinstance(value, Mapping):
        digest.update(b"m%d " % len(value))
        for name in sorted(value, key=str):
            _add(digest, str(name))
            _add(digest, value[name])
    elif isinstance(value, (list, tuple)):
        digest.update(b"l%d " % len(value))
        for item in value:
            _add(digest, item)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _add_bytes(digest, b"b", bytes(value))
    elif isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        _add_bytes(digest, b"s", data)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        _add_bytes(digest, f"a{value.dtype.str}{value.shape} ".encode(), value.tobytes())
    elif fields.is_pil_image(value):
        _add_pixels(digest, value)
    elif value is None or isinstance(value, (bool, int, float, np.generic, Box)):
        text = f"{type(value).__name__} {value!r}".encode()
        digest.update(b"n%d " % len(text) + text)
    else:  # no field takes it
        name = f"{type(value).__module__}.{type(value).__qualname__}".encode()
        digest.update(b"t%d " % len(name) + name)


def _add_bytes(digest: Any, kind: bytes, data: bytes) -> None:
    digest.update(kind + b"%d " % len(data))
    # SHA-256 of an image would take as long as storing it.
    digest.update(data if len(data) <= _LONG_BYTES else _native.crc32c(data).to_bytes(4, "little"))


def _add_pixels(digest: Any, image: Any) -> None:
    digest.update(f"i{image.mode}{image.size} ".encode())
    with contextlib.suppress(OSError, SyntaxError, ValueError):  # of a file that is damaged
        _add_bytes(digest, b"p", image.tobytes())
        if image.mode in ("P", "PA"):
            _add(digest, [image.getpalette(None), image.info.get("transparency")])
