"""Views of whole images that resize: frozen descriptions, carried out by the native core.

Every view gives the pixels that Pillow gives for the whole image decoded, cropped, then resized; the filter's
antialiasing is Pillow's. Sizes are pixels; a single number is both height and width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoker import _native
from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.views.color import ColorJitter, jitter_spec
from stoker.views.mirrored import check_mirrored, mirrored_spec
from stoker.views.settings import MAX_SIDE, Filter, Size, check_bounds, check_filter, extent, short_text


@dataclass(frozen=True, slots=True)
class RandomResizedCrop:
    """A random crop, resized: the usual training view, with the distribution of torchvision's class of that name.

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
        check_mirrored(self)
        check_bounds("scale", self.scale, 0.0, 1.0)
        check_bounds("ratio", self.ratio, 0.0, 100.0)
        if self.ratio[0] < 1 / 100:
            raise ConfigError(f"ratio is {self.ratio}; it must not be below 1/100")
        check_filter(self.filter)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        height, width = extent(self.size)
        return _native.ViewSpec(
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
    """The shorter side resized, then the centre cut out: the usual evaluation view.

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
        check_range("resize", self.resize, max(extent(self.size)), MAX_SIDE)
        check_filter(self.filter)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        height, width = extent(self.size)
        return _native.ViewSpec(kind="center_crop", width=width, height=height, filter=self.filter, resize=self.resize)


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
        check_mirrored(self)
        check_filter(self.filter)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        return mirrored_spec("resize", self, self.filter)
