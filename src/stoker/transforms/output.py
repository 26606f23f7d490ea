"""What the pixels of batches are: their type, layout and scale."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from stoker import _native
from stoker.errors import ConfigError
from stoker.habits import PIXELS, did_you_mean
from stoker.transforms.operations import short_text

if TYPE_CHECKING:
    from stoker.types import Mode

PixelType = Literal["uint8", "uint16", "float16", "float32"]
PixelLayout = Literal["NHWC", "NCHW"]
Channels = tuple[float, ...]
"""A number for each channel of the mode."""

_LAYOUTS: dict[str, PixelLayout] = {
    **dict.fromkeys(("NHWC", "HWC", "CHANNELS_LAST"), "NHWC"),
    **dict.fromkeys(("NCHW", "CHW", "CHANNELS_FIRST"), "NCHW"),
}
"""What the layouts are called, in capital letters."""

_CHANNELS: dict[Mode, tuple[int, str]] = {
    "RGB": (3, "three numbers, of red, green and blue"),
    "L": (1, "one number, of grey"),
    "RGBA": (4, "four numbers, of red, green, blue and alpha"),
    "I;16": (1, "one number, of grey"),
}


@dataclass(frozen=True, slots=True)
class Output:
    """Type, layout and scale of the pixels.

    Floats are ``(pixel / 255 - mean) / std``, in mode ``I;16`` ``(pixel / 65535 - mean) / std``, computed in double
    precision and rounded once.

    Attributes:
        dtype: ``uint8``, ``uint16``, ``float16`` or ``float32``, by name or as the type of NumPy, PyTorch, TensorFlow
            or JAX. None: integers of the depth that the dataset's mode has, ``uint16`` for ``I;16`` and ``uint8`` for
            the others.
        layout: ``NHWC``: the channels of a pixel side by side. ``NCHW``: one plane for each channel. ``HWC`` and
            ``channels_last``, ``CHW`` and ``channels_first`` are other names.
        mean: A number for each channel of the mode, in units of 0 to 1, such as three of red, green and blue; floats
            only.
        std: The same, above 0; floats only.

    Raises:
        ConfigError: A value is unknown or out of range, or ``mean`` or ``std`` is given for integers.
    """

    dtype: PixelType | None = None
    layout: PixelLayout = "NHWC"
    mean: Channels | None = None
    std: Channels | None = None

    __repr__ = short_text

    def __post_init__(self) -> None:
        dtype, layout = _name_of_type(self.dtype), _LAYOUTS.get(str(self.layout).upper(), self.layout)
        for name, value, known in (("dtype", dtype, PixelType), ("layout", layout, PixelLayout)):
            if value not in get_args(known) and (name, value) != ("dtype", None):
                message = f"{name} is {value!r}; it must be one of {', '.join(get_args(known))}"
                hint = f"; use {PIXELS[str(value)]}" if str(value) in PIXELS else did_you_mean(value, get_args(known))
                raise ConfigError(f"{message}{hint}")
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "layout", layout)
        for name in ("mean", "std"):  # also of arrays and tensors
            with suppress(TypeError, ValueError):
                object.__setattr__(self, name, tuple(float(number) for number in getattr(self, name)))
        if self.dtype not in ("float16", "float32") and (self.mean is not None or self.std is not None):
            raise ConfigError('mean and std need floats: say dtype="float32" or dtype="float16"')
        for name, channels, least in (("mean", self.mean, -math.inf), ("std", self.std, 0.0)):
            if channels is not None and not _are_channels(channels, least):
                kind = "numbers above 0" if least == 0.0 else "finite numbers"
                example = "(0.5, 0.5, 0.5) of red, green and blue"
                raise ConfigError(f"{name} is {channels!r}; it must be {kind}, one for each channel, such as {example}")
        if self.mean is not None and min(self.mean) > 1.0:
            raise ConfigError(f"mean is {self.mean!r}, but pixels are 0 to 1; divide mean and std by 255")

    def for_mode(self, mode: Mode) -> Output:
        """Return the same with the type that is left out, as a loader of a dataset in a mode makes it.

        Args:
            mode: That of the dataset.

        Raises:
            ConfigError: The type does not hold the pixels of this mode, or ``mean`` or ``std`` are not as many numbers
                as it has channels.
        """
        integers: PixelType = "uint16" if mode == "I;16" else "uint8"
        if self.dtype in ("uint8", "uint16") and self.dtype != integers:
            message = f"dtype is {self.dtype!r}, but the dataset was opened with mode={mode!r}, whose integers are"
            raise ConfigError(f"{message} {integers}; omit it, or give dtype='float32' or 'float16'")
        count, named = _CHANNELS[mode]
        for name, channels in (("mean", self.mean), ("std", self.std)):
            if channels is not None and len(channels) != count:
                message = f"{name} is {channels!r}, but the dataset was opened with mode={mode!r}"
                raise ConfigError(f"{message}; give {named}")
        return replace(self, dtype=self.dtype or integers)

    def shape(self, height: int, width: int, mode: Mode = "RGB") -> tuple[int, int, int]:
        """Return the shape of one image of a size."""
        channels, _ = _CHANNELS[mode]
        return (height, width, channels) if self.layout == "NHWC" else (channels, height, width)

    def native(self, mode: Mode = "RGB") -> _native.PixelFormat:
        """Return the core's form of it.

        Raises:
            ConfigError: As `for_mode` does.
        """
        count, _ = _CHANNELS[mode]
        mean, std = self.mean or (0.0,) * count, self.std or (1.0,) * count
        dtype = self.for_mode(mode).dtype
        assert dtype is not None
        return _native.PixelFormat(dtype=dtype, layout=self.layout, mean=mean, std=std)


def _name_of_type(dtype: Any) -> Any:
    if dtype is None or isinstance(dtype, str):
        return dtype
    name = str(getattr(dtype, "name", "") or getattr(dtype, "__name__", "") or dtype)
    return name.removeprefix("torch.")


def _are_channels(values: object, least: float) -> bool:
    try:
        numbers = [float(number) for number in values]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return False
    return len(numbers) in {count for count, _ in _CHANNELS.values()} and all(
        least < number < math.inf for number in numbers
    )
