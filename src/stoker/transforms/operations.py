"""Crops, resizes and changes of colours: frozen descriptions, carried out by the native core.

Every transform gives the pixels that Pillow gives for the whole image decoded, cropped, then resized; the filter's
antialiasing is Pillow's. Sizes are pixels; a single number is both height and width.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Annotated, ClassVar

from stoker import _native
from stoker.config import check_range, check_share, without_address
from stoker.declare import Instance, Range, Settings
from stoker.errors import ConfigError
from stoker.types import Filter, Mode

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MAX_TRANSFORMS = 64
MAX_SIDE = 1 << 16
"""The most pixels that a side of a result may have."""


def short_text(settings: DataclassInstance) -> str:
    """Return an object of settings as it would be typed: without those that have their default values."""
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
    """An operation on pixels: a frozen dataclass, whose fields are its settings.

    The operation of the same name in ``src/native/core/operations`` carries it out.

    Attributes:
        modes: In which it has a meaning.
    """

    modes: ClassVar[tuple[Mode, ...]] = ("RGB", "L", "RGBA", "I;16")

    __repr__ = short_text

    def operations(self) -> dict[str, Operation]:
        """Return those among the settings: what follows on the result."""
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
    with the same factors. It comes after crop, resize and flip.

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
    """An operation that decides which pixels of an image are shown, and where; others follow on its result."""

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

    An image that is smaller than ``size`` is an `stoker.errors.ImageError` that says both sizes.

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

    An image of another size is an `stoker.errors.ImageError` that says both sizes. Of records that hold pixels, these
    are copied and nothing else is done.

    Attributes:
        size: Height and width of the result, and of every image.
        hflip: Probability of a left-right mirror image.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """


@dataclass(frozen=True, slots=True, init=False)
class MultiCrop:
    """Several transforms of every image, which is read and decoded once: multi-crop, or a pair to contrast.

    ``batch.images`` is then a tuple of arrays, one for each transform, and ``batch.boxes`` one of boxes. Each
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

    A loader with this transform has one sample for each object, and one for each image without any, of which it shows
    all. Its label is that of the box, as in a build with ``crop_objects=True``; without a box or a label of it that of
    the image, or -1 where boxes have classes of their own. The cut is the smallest rectangle of whole pixels around the
    box, clipped to the image: left and top edges are rounded down, right and bottom edges up.

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
    """Refuse operations where the pixels of a mode have nothing that Pillow would change."""
    for part in transform.transforms if isinstance(transform, MultiCrop) else (transform,):
        for name, operation in part.operations().items():
            if mode not in operation.modes:
                message = f"{name} is {operation!r}, but the dataset was opened with mode={mode!r}"
                raise ConfigError(f"{message}; omit it, or open with mode={' or '.join(map(repr, operation.modes))}")
