"""Images that a program has in records of its own, for the core, which otherwise reads files.

The core asks for as many bytes as are listed. Of an array, of a PIL image, or of a record that nobody has read yet,
there is no such number: it gets a token in the place of a file. That is of no format that the core knows, so it asks
for its pixels, as it does for files that Pillow decodes.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.errors import ImageError, SourceError
from stoker.loader.read_ahead import NumberedFiles
from stoker.recipe import Recipe, convert, decode_as_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from stoker.types import Mode

_MARK = b"\0stoker\0"
_SECRET_BYTES, _NUMBER_BYTES = 16, 8
_RGB = 3


class GivenImages(NumberedFiles):
    """The images of one dataset. Safe from any thread; it holds nothing of the core.

    Args:
        load: Gives the bytes or the pixels of an image by its number.
        sizes: int64 (N,): bytes of each; -1 where they are not known.

    Attributes:
        sizes: The same, with those of tokens.
        token: What its tokens begin with. No file can be made to begin so.
    """

    def __init__(self, load: Callable[[int], bytes | NDArray[Any]], sizes: NDArray[np.int64]) -> None:
        super().__init__(len(sizes))
        self._load = load
        self._has_size = sizes >= 0
        self.token = _MARK + os.urandom(_SECRET_BYTES)
        self.sizes = np.where(self._has_size, sizes, len(self.token) + _NUMBER_BYTES)

    def read(self, number: int, offset: int, length: int) -> bytes:
        """Return the bytes of an image, or its token. See `NumberedFiles.read`."""
        number -= self.first
        if not self._has_size[number]:
            return self.token + number.to_bytes(_NUMBER_BYTES, "little")
        try:
            data = self._load(number)
        except SourceError as error:
            raise OSError(errno.EIO, str(error)) from error
        if not isinstance(data, bytes) or len(data) != length:
            raise OSError(errno.EIO, "its image is another one than when the records were listed; do not change them")
        return data[offset:]

    def as_file(self, data: bytes) -> bytes:
        """Return the file that a token stands for, pixels as a PNG; other bytes as they are."""
        image = self._image(data)
        return image if isinstance(image, bytes) else convert(image, Recipe()).data

    def pixels(self, token: bytes, max_pixels: int, mode: Mode) -> tuple[NDArray[Any], int]:
        """Return the pixels that a token stands for, as `stoker.recipe.decode_as_stored` does those of its file."""
        image = self._image(token)
        if isinstance(image, bytes):
            return decode_as_stored(image, max_pixels, mode)
        if mode == "RGB" and image.dtype == np.uint8 and image.ndim == _RGB and image.shape[2] == _RGB:
            Recipe(max_pixels=max_pixels).check_pixels(image.shape[1], image.shape[0])
            return np.ascontiguousarray(image), 1
        return decode_as_stored(convert(image, Recipe()).data, max_pixels, mode)

    def _image(self, data: bytes) -> bytes | NDArray[Any]:
        if not data.startswith(self.token):
            return data
        try:
            return self._load(int.from_bytes(data[len(self.token) :], "little"))
        except (SourceError, OSError) as error:
            raise ImageError(str(error)) from error


def converter(given: Iterable[GivenImages], max_pixels: int, mode: Mode) -> Callable[[bytes], tuple[NDArray[Any], int]]:
    """Return what makes pixels of what the core does not decode, tokens and other formats, with the orientation."""
    by_token = {images.token: images for images in given}

    def pixels(data: bytes) -> tuple[NDArray[Any], int]:
        images = by_token.get(data[: len(_MARK) + _SECRET_BYTES])
        return decode_as_stored(data, max_pixels, mode) if images is None else images.pixels(data, max_pixels, mode)

    return pixels
