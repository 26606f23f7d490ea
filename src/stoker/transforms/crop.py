"""Crops and resizes: frozen descriptions, carried out by the native core.

Every transform gives the pixels that Pillow gives for the whole image decoded, cropped, then resized; the filter's
antialiasing is Pillow's. Sizes are pixels; a single number is both height and width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker import _native
from stoker.config import check_range, without_address
from stoker.errors import ConfigError
from stoker.transforms.color import ColorJitter, check_jitter, jitter_spec
from stoker.transforms.settings import (
    MAX_SIDE,
    Filter,
    Size,
    check_bounds,
    check_filter,
    check_probability,
    extent,
    short_text,
)

if TYPE_CHECKING:
    from stoker.types import Mode

_MAX_TRANSFORMS = 64


def _check(size: Size, hflip: float, color_jitter: ColorJitter | None, resampling: Filter = "nearest") -> None:
    """Refuse settings out of range, of a transform that may mirror an image and change its colours."""
    extent(size)
    check_probability("hflip", hflip)
    check_jitter(color_jitter)
    check_filter(resampling)


def _spec(
    kind: str, size: Size, hflip: float, color_jitter: ColorJitter | None, resampling: Filter = "nearest"
) -> _native.TransformSpec:
    """Return the core's form of a transform that has no other settings than these."""
    height, width = extent(size)
    jitter = jitter_spec(color_jitter)
    return _native.TransformSpec(kind=kind, width=width, height=height, filter=resampling, hflip=hflip, jitter=jitter)


@dataclass(frozen=True, slots=True)
class RandomResizedCrop:
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
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    hflip: float = 0.0
    filter: Filter = "bilinear"
    color_jitter: ColorJitter | None = None

    __repr__ = short_text

    def __post_init__(self) -> None:
        _check(self.size, self.hflip, self.color_jitter, self.filter)
        check_bounds("scale", self.scale, 0.0, 1.0)
        check_bounds("ratio", self.ratio, 0.0, 100.0)
        if self.ratio[0] < 1 / 100:
            raise ConfigError(f"ratio is {self.ratio}; it must not be below 1/100")

    def native(self) -> _native.TransformSpec:
        """Return the core's form of this transform."""
        height, width = extent(self.size)
        return _native.TransformSpec(
            kind="random_resized_crop",
            width=width,
            height=height,
            filter=self.filter,
            hflip=self.hflip,
            scale=self.scale,
            ratio=self.ratio,
            log_ratio=(math.log(self.ratio[0]), math.log(self.ratio[1])),
            jitter=jitter_spec(self.color_jitter),
        )


@dataclass(frozen=True, slots=True)
class CenterCrop:
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
    resize: int = 256
    filter: Filter = "bilinear"

    __repr__ = short_text

    def __post_init__(self) -> None:
        longest, resize = max(extent(self.size)), check_range("resize", self.resize, 1, MAX_SIDE)
        if resize < longest:
            message = (
                f"size is {self.size!r}, and before the crop the shorter side is resized to {resize}, which is less"
            )
            raise ConfigError(f"{message}; give resize={longest} or more, such as resize={longest * 8 // 7}")
        check_filter(self.filter)

    def native(self) -> _native.TransformSpec:
        """Return the core's form of this transform."""
        height, width = extent(self.size)
        return _native.TransformSpec(
            kind="center_crop", width=width, height=height, filter=self.filter, resize=self.resize
        )


@dataclass(frozen=True, slots=True)
class Resize:
    """The whole image, stretched to a size; its aspect ratio is not kept.

    Attributes:
        size: Height and width of the result.
        hflip: Probability of a left-right mirror image.
        filter: Resampling filter.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """

    size: Size
    hflip: float = 0.0
    filter: Filter = "bilinear"
    color_jitter: ColorJitter | None = None

    __repr__ = short_text

    def __post_init__(self) -> None:
        _check(self.size, self.hflip, self.color_jitter, self.filter)

    def native(self) -> _native.TransformSpec:
        """Return the core's form of this transform."""
        return _spec("resize", self.size, self.hflip, self.color_jitter, self.filter)


@dataclass(frozen=True, slots=True)
class TopLeft:
    """The top left corner of the image, as it is stored: nothing is resampled.

    An image that is smaller than ``size`` is an `stoker.errors.ImageError` that says both sizes.

    Attributes:
        size: Height and width of the result.
        hflip: Probability of a left-right mirror image.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """

    size: Size
    hflip: float = 0.0
    color_jitter: ColorJitter | None = None

    __repr__ = short_text

    def __post_init__(self) -> None:
        _check(self.size, self.hflip, self.color_jitter)

    def native(self) -> _native.TransformSpec:
        """Return the core's form of this transform."""
        return _spec("top_left", self.size, self.hflip, self.color_jitter)


@dataclass(frozen=True, slots=True)
class RawTensor:
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

    size: Size
    hflip: float = 0.0
    color_jitter: ColorJitter | None = None

    __repr__ = short_text

    def __post_init__(self) -> None:
        _check(self.size, self.hflip, self.color_jitter)

    def native(self) -> _native.TransformSpec:
        """Return the core's form of this transform."""
        return _spec("exact", self.size, self.hflip, self.color_jitter)


ImageTransform = RandomResizedCrop | CenterCrop | Resize | TopLeft | RawTensor
"""A transform of a whole image."""


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
    return [one.native() for one in transform.transforms] if isinstance(transform, MultiCrop) else [transform.native()]


@dataclass(frozen=True, slots=True)
class ObjectCrops:
    """Every annotated object, cut out and resized; its aspect ratio is not kept.

    A loader with this transform has one sample for each object, and one for each image without any, of which it shows
    all. The cut is the smallest rectangle of whole pixels around the box, clipped to the image: left and top edges are
    rounded down, right and bottom edges up.

    Attributes:
        size: Height and width of the result.
        hflip: Probability of a left-right mirror image.
        filter: Resampling filter.
        color_jitter: Random changes of the colours; None for none.

    Raises:
        ConfigError: A value is out of range.
    """

    size: Size
    hflip: float = 0.0
    filter: Filter = "bilinear"
    color_jitter: ColorJitter | None = None

    __repr__ = short_text

    def __post_init__(self) -> None:
        _check(self.size, self.hflip, self.color_jitter, self.filter)

    def native(self) -> _native.TransformSpec:
        """Return the core's form of this transform."""
        return _spec("object_crop", self.size, self.hflip, self.color_jitter, self.filter)


Transform = ImageTransform | ObjectCrops | MultiCrop
"""Any transform of a loader."""


def check_colors(transform: Transform, mode: Mode) -> None:
    """Refuse changes of colour where the pixels of a mode have none that Pillow would change.

    Raises:
        ConfigError: The transform has a `ColorJitter`, and the mode is ``RGBA`` or ``I;16``.
    """
    for one in transform.transforms if isinstance(transform, MultiCrop) else (transform,):
        jitter = None if isinstance(one, CenterCrop) else one.color_jitter
        if jitter is not None and mode in ("RGBA", "I;16"):
            message = f"color_jitter is {jitter!r}, but the dataset was opened with mode={mode!r}"
            raise ConfigError(f"{message}; omit it, or open with mode='RGB' or 'L'")
