"""Transforms: which crop of an image the model sees, resized to what and in which colours; and its form, `Output`.

Every transform gives the pixels that Pillow gives for the whole image decoded, cropped, then resized; the filter's
antialiasing is Pillow's. Sizes are pixels; a single number is both height and width.

An operation is declared here, as a class whose fields are its settings, and implemented in the file of its name in
``src/native/core/operations``. The core gets all settings by name, so bindings know none of them. An operation that
draws at random has a number in ``RandomOp`` (``philox.h``). Slow references are in ``tests/reference/transform.py`` and
``colors.py``.
"""

from __future__ import annotations

import functools
import math
import sys
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, replace
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from stoker import _native
from stoker.config import check_range, check_share, without_address
from stoker.declare import Instance, Range, Settings
from stoker.errors import ConfigError
from stoker.habits import PIXELS, answer_as_transform, did_you_mean
from stoker.types import Filter, Mode

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MAX_TRANSFORMS = 64
MAX_SIDE = 1 << 16
"""The most pixels that a side of a result may have."""


def short_text(settings: DataclassInstance) -> str:
    """Return an object of settings as a person would type it, without default values."""
    parts = []
    for position, setting in enumerate(fields(settings)):
        value = getattr(settings, setting.name)
        if setting.default is MISSING or value != setting.default:
            parts.append(f"{value!r}" if position == 0 else f"{setting.name}={value!r}")
    return f"{type(settings).__name__}({', '.join(parts)})"


def extent(size: Size) -> tuple[int, int]:
    """Return (height, width) of a size."""
    sides = (size, size) if isinstance(size, int | Real) else size
    try:
        height, width = () if isinstance(sides, str) else sides
    except (TypeError, ValueError):
        raise ConfigError(f"size is {size!r}; it must be a number of pixels, or (height, width)") from None
    return check_range("size (height)", height, 1, MAX_SIDE), check_range("size (width)", width, 1, MAX_SIDE)


def _check_size(_: str, size: Size) -> Size:
    extent(size)
    return size


def _check_bounds(name: str, bounds: tuple[float, float], *, most: float, least: Fraction) -> tuple[float, float]:
    try:
        low, high = bounds
        fits = 0 < low <= high <= most  # also false for NaN
    except (TypeError, ValueError):
        fits = False
    if not fits:
        message = f"{name} is {bounds!r}; it must be two numbers, the smallest and the largest"
        raise ConfigError(f"{message}, above 0 and at most {most}")
    if low < least:
        raise ConfigError(f"{name} is {bounds}; it must not be below {least}")
    return bounds


def _check_jitter(name: str, jitter: Jitter, *, neutral: float, least: float, most: float, allowed: str) -> Jitter:
    try:
        low, high = jitter if isinstance(jitter, tuple) else (max(least, neutral - jitter), neutral + jitter)
        fits = least <= low <= high <= most  # also false for NaN
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ConfigError(f"{name} is {jitter!r}; it must be {allowed}")
    return jitter


Size = Annotated[int | tuple[int, int], _check_size]
"""A side, or height and width, in pixels."""

Side = Annotated[int, Range(1, MAX_SIDE)]
"""A side in pixels."""

Probability = Annotated[float, check_share]

Shares = Annotated[tuple[float, float], functools.partial(_check_bounds, most=1, least=Fraction(0))]
"""The smallest and the largest share of an area."""

Ratios = Annotated[tuple[float, float], functools.partial(_check_bounds, most=100, least=Fraction(1, 100))]
"""The smallest and the largest width over height."""

Jitter = float | tuple[float, float]
"""How far a factor may be from its neutral value, or its smallest and largest value."""

Factors = Annotated[
    Jitter,
    functools.partial(
        _check_jitter,
        neutral=1.0,
        least=0.0,
        most=sys.float_info.max,
        allowed="a number of at least 0, or the smallest and the largest factor: (0.6, 1.4)",
    ),
]
Shifts = Annotated[
    Jitter,
    functools.partial(
        _check_jitter,
        neutral=0.0,
        least=-0.5,
        most=0.5,
        allowed="a number from 0 to 0.5, or the smallest and the largest shift from -0.5 to 0.5: (-0.1, 0.1)",
    ),
]


class Operation(Settings):
    """An operation on pixels: a frozen dataclass, whose fields are its settings; the core has one of the same name."""

    modes: ClassVar[tuple[Mode, ...]] = ("RGB", "L", "RGBA", "I;16")  # modes that it supports

    __repr__ = short_text

    def operations(self) -> dict[str, Operation]:
        """Return the operations among the settings, which are applied to the result."""
        return {name: value for name, value in self.values().items() if isinstance(value, Operation)}

    def native_settings(self) -> tuple[str, dict[str, str | list[float]]]:
        """Return name and own settings of the operation as the core takes them: words, and numbers in lists."""
        return type(self).__name__, {
            name: value
            if isinstance(value, str)
            else [float(each) for each in ((value,) if isinstance(value, Real) else value)]
            for name, value in self.values().items()
            if value is not None and not isinstance(value, Operation)
        }


@dataclass(frozen=True, repr=False)
class ColorJitter(Operation):
    """Brightness, contrast, saturation and hue, each changed by a random factor, in a random order.

    The distribution is that of torchvision's class of that name, and the pixels are those that it gives for PIL images
    with the same factors. It is applied after crop, resize and flip.

    Attributes:
        brightness: A number ``b`` for factors from ``max(0, 1 - b)`` to ``1 + b``, or the two bounds. 0: no change.
        contrast: The same.
        saturation: The same.
        hue: A number ``h`` up to 0.5 for shifts from ``-h`` to ``h`` of the colour circle, or the two bounds.

    Raises:
        ConfigError: A value is out of range.
    """

    modes = ("RGB", "L")

    brightness: Factors = 0.0
    contrast: Factors = 0.0
    saturation: Factors = 0.0
    hue: Shifts = 0.0


ColorChange = Annotated[ColorJitter | None, Instance("a stoker.ColorJitter, or None")]


class GeometryOperation(Operation):
    """An operation that decides which pixels of an image are shown, and where; others are applied to its result."""

    def native(self) -> _native.TransformSpec:
        """Return the core's form of this transform."""
        followers = [operation.native_settings() for operation in self.operations().values()]
        return _native.TransformSpec(*self.native_settings(), followers)


@dataclass(frozen=True, repr=False)
class _Stretched(GeometryOperation):
    size: Size
    hflip: Probability = 0.0
    filter: Filter = "bilinear"
    color_jitter: ColorChange = None


@dataclass(frozen=True, repr=False)
class _AsStored(GeometryOperation):
    size: Size
    hflip: Probability = 0.0
    color_jitter: ColorChange = None


class ImageTransform(GeometryOperation):
    """A transform of a whole image."""


@dataclass(frozen=True, repr=False)
class RandomResizedCrop(ImageTransform):
    """A random crop, resized: the usual training transform, with the distribution of torchvision's class of that name.

    The crop of a sample is a pure function of (seed, epoch, sample): threads, ranks and batch sizes never change it.

    Attributes:
        size: Height and width of the result.
        scale: Smallest and largest share of the image's area, above 0 and at most 1.
        ratio: Smallest and largest width over height, above 0.
        hflip: Probability of a left-right mirror image.
        filter: Resampling filter.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """

    size: Size
    scale: Shares = (0.08, 1.0)
    ratio: Ratios = (3 / 4, 4 / 3)
    hflip: Probability = 0.0
    filter: Filter = "bilinear"
    color_jitter: ColorChange = None


@dataclass(frozen=True, repr=False)
class CenterCrop(ImageTransform):
    """The shorter side resized, then the centre cut out: the usual evaluation transform.

    Equal to torchvision's ``Resize(resize)`` followed by ``CenterCrop(size)`` on PIL images. Only the pixels that
    the centre depends on are decoded and resized.

    Attributes:
        size: Height and width of the result.
        resize: Length of the shorter side after the resize; at least the larger of height and width.
        filter: Resampling filter.

    Raises:
        ConfigError: A value is out of range.
    """

    size: Size
    resize: Side = 256
    filter: Filter = "bilinear"

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = max(extent(self.size))
        if self.resize < longest:
            message = f"size is {self.size!r}, and before the crop the shorter side is resized to {self.resize}, which"
            raise ConfigError(f"{message} is less; give resize={longest} or more, such as resize={longest * 8 // 7}")


@dataclass(frozen=True, repr=False)
class Resize(_Stretched, ImageTransform):
    """The whole image, stretched to a size; its aspect ratio is not kept.

    Attributes:
        size: Height and width of the result.
        hflip: Probability of a left-right mirror image.
        filter: Resampling filter.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """


@dataclass(frozen=True, repr=False)
class TopLeft(_AsStored, ImageTransform):
    """The top left corner of the image, as it is stored: nothing is resampled.

    An image that is smaller than ``size`` raises an `stoker.errors.ImageError` that says both sizes.

    Attributes:
        size: Height and width of the result.
        hflip: Probability of a left-right mirror image.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """


@dataclass(frozen=True, repr=False)
class RawTensor(_AsStored, ImageTransform):
    """The whole image, as it is stored: for records that all have one size.

    An image of another size raises an `stoker.errors.ImageError` that says both sizes. Pixels that are stored as such
    are copied, and nothing else is done.

    Attributes:
        size: Height and width of the result, and of every image.
        hflip: Probability of a left-right mirror image.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """


@dataclass(frozen=True, slots=True, init=False)
class MultiCrop:
    """Several transforms of every image, which is read and decoded once: multi-crop, or pairs for contrastive learning.

    ``batch.images`` is then a tuple of arrays, one for each transform, and ``batch.boxes`` a tuple of boxes. Each
    transform has random choices of its own; those of the first are what they would be without the others.

    Attributes:
        transforms: 1 to 64 transforms of whole images; their sizes may differ.

    Raises:
        ConfigError: There are none or too many, or one is not a transform of whole images.

    Example:
        >>> crops = MultiCrop(*[RandomResizedCrop(224)] * 2, *[RandomResizedCrop(96, scale=(0.05, 0.4))] * 6)
        >>> len(crops.transforms)
        8
    """

    transforms: tuple[ImageTransform, ...]

    def __init__(self, *transforms: ImageTransform) -> None:
        if not 1 <= len(transforms) <= _MAX_TRANSFORMS:
            raise ConfigError(f"MultiCrop has {len(transforms)} transforms; it must have 1 to {_MAX_TRANSFORMS}")
        for transform in transforms:
            if not isinstance(transform, ImageTransform):
                message = f"MultiCrop cannot hold {without_address(transform)}; give transforms of whole images"
                raise ConfigError(f"{message} one by one: MultiCrop(Resize(224), CenterCrop(96))")
        object.__setattr__(self, "transforms", transforms)

    def __repr__(self) -> str:
        return f"MultiCrop({', '.join(map(repr, self.transforms))})"


def native_transforms(transform: ImageTransform | ObjectCrops | MultiCrop) -> list[_native.TransformSpec]:
    """Return the core's form of each transform of one decode."""
    return (
        [part.native() for part in transform.transforms] if isinstance(transform, MultiCrop) else [transform.native()]
    )


@dataclass(frozen=True, repr=False)
class ObjectCrops(_Stretched):
    """Every annotated object, cut out and resized; its aspect ratio is not kept.

    A loader with this transform has one sample for each object, and one for each image without objects, which shows all
    of it. The label of a sample is that of its box, as in a build with ``crop_objects=True``; without a box, or a label
    of the box, it is that of the image, or -1 if boxes have classes of their own. The cut is the smallest rectangle of
    whole pixels around the box, clipped to the image: left and top edges are rounded down, right and bottom edges up.

    Attributes:
        size: Height and width of the result.
        hflip: Probability of a left-right mirror image.
        filter: Resampling filter.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """


Transform = ImageTransform | ObjectCrops | MultiCrop
"""Any transform of a loader."""


def check_operations(transform: Transform, mode: Mode) -> None:
    """Refuse operations that do not support a mode."""
    for part in transform.transforms if isinstance(transform, MultiCrop) else (transform,):
        for name, operation in part.operations().items():
            if mode not in operation.modes:
                message = f"{name} is {operation!r}, but the dataset was opened with mode={mode!r}"
                raise ConfigError(f"{message}; omit it, or open with mode={' or '.join(map(repr, operation.modes))}")


# The form of the pixels.

PixelType = Literal["uint8", "uint16", "float16", "float32"]
PixelLayout = Literal["NHWC", "NCHW"]
Channels = tuple[float, ...]
"""A number for each channel of the mode."""

_LAYOUTS: dict[str, PixelLayout] = {
    **dict.fromkeys(("NHWC", "HWC", "CHANNELS_LAST"), "NHWC"),
    **dict.fromkeys(("NCHW", "CHW", "CHANNELS_FIRST"), "NCHW"),
}
"""Names of the layouts, in capital letters."""

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
        if self.dtype not in ("float16", "float32") and (self.mean is not None or self.std is not None):
            raise ConfigError('mean and std need floats: say dtype="float32" or dtype="float16"')
        for name, least, kind in (("mean", -math.inf, "finite numbers"), ("std", 0.0, "numbers above 0")):
            given: Any = getattr(self, name)
            if given is None:
                continue
            channels: Channels = ()
            with suppress(TypeError, ValueError):  # also of arrays and tensors
                channels = tuple(float(number) for number in given)
            fits = all(least < number < math.inf for number in channels)
            if not fits or len(channels) not in {count for count, _ in _CHANNELS.values()}:
                example = "(0.5, 0.5, 0.5) of red, green and blue"
                message = f"{name} is {channels or given!r}; it must be {kind}, one for each channel, such as {example}"
                raise ConfigError(message)
            object.__setattr__(self, name, channels)
        if self.mean is not None and min(self.mean) > 1.0:
            raise ConfigError(f"mean is {self.mean!r}, but pixels are 0 to 1; divide mean and std by 255")

    def for_mode(self, mode: Mode) -> Output:
        """Return the same with a type if that was omitted, as a loader of a dataset in this mode uses it.

        Args:
            mode: Mode of the dataset.

        Raises:
            ConfigError: The type does not hold the pixels of this mode, or ``mean`` or ``std`` does not have a number
                for each of its channels.
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


OPERATIONS: dict[str, type[Operation]] = {
    each.__name__: each
    for each in (RandomResizedCrop, CenterCrop, Resize, TopLeft, RawTensor, ObjectCrops, ColorJitter)
}
"""Every operation by its name."""

for _settings in (*OPERATIONS.values(), Output):
    answer_as_transform(_settings)
