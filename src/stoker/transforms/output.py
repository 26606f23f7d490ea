"""What the pixels of batches are: their type, layout and scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from stoker import _native
from stoker.errors import ConfigError
from stoker.transforms.settings import short_text

PixelType = Literal["uint8", "float16", "float32"]
PixelLayout = Literal["NHWC", "NCHW"]
Channels = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Output:
    """Type, layout and scale of the pixels.

    Floats are ``(pixel / 255 - mean) / std``, computed in double precision and rounded once.

    Attributes:
        dtype: ``uint8``, ``float16`` or ``float32``.
        layout: ``NHWC``: the channels of a pixel side by side. ``NCHW``: one plane for each channel.
        mean: Of red, green and blue, in units of 0 to 1; floats only.
        std: Of red, green and blue, above 0; floats only.

    Raises:
        ConfigError: A value is unknown or out of range, or ``mean`` or ``std`` is given for uint8.
    """

    dtype: PixelType = "uint8"
    layout: PixelLayout = "NHWC"
    mean: Channels | None = None
    std: Channels | None = None

    __repr__ = short_text

    def __post_init__(self) -> None:
        for name, value, known in (("dtype", self.dtype, PixelType), ("layout", self.layout, PixelLayout)):
            if value not in get_args(known):
                raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(get_args(known))}")
        if self.dtype == "uint8" and (self.mean is not None or self.std is not None):
            raise ConfigError('mean and std need floats: say dtype="float32" or dtype="float16"')
        for name, channels, least in (("mean", self.mean, -math.inf), ("std", self.std, 0.0)):
            if channels is not None and not _are_channels(channels, least):
                kind = "numbers above 0" if least == 0.0 else "finite numbers"
                raise ConfigError(f"{name} is {channels!r}; it must be three {kind}, of red, green and blue")

    @property
    def numpy_dtype(self) -> np.dtype[np.uint8 | np.float16 | np.float32]:
        """Type of the values."""
        return np.dtype(self.dtype)

    def shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Return the shape of one image of a size."""
        return (height, width, 3) if self.layout == "NHWC" else (3, height, width)

    def native(self) -> _native.PixelFormat:
        """Return the core's form of it."""
        mean, std = self.mean or (0.0, 0.0, 0.0), self.std or (1.0, 1.0, 1.0)
        return _native.PixelFormat(dtype=self.dtype, layout=self.layout, mean=mean, std=std)


def _are_channels(values: object, least: float) -> bool:
    try:
        numbers = [float(number) for number in values]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return False
    return len(numbers) == 3 and all(least < number < math.inf for number in numbers)
