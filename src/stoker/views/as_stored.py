"""Views that resample nothing: pixels as they are stored."""

from __future__ import annotations

from dataclasses import dataclass

from stoker import _native
from stoker.views.color import ColorJitter, jitter_spec
from stoker.views.settings import Size, check_probability, extent, short_text


@dataclass(frozen=True, slots=True)
class TopLeft:
    """The top left corner of the image, as it is stored.

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
        extent(self.size)
        check_probability("hflip", self.hflip)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        height, width = extent(self.size)
        return _native.ViewSpec(
            kind="top_left",
            width=width,
            height=height,
            filter="nearest",
            hflip=self.hflip,
            jitter=jitter_spec(self.color_jitter),
        )


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
        extent(self.size)
        check_probability("hflip", self.hflip)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        height, width = extent(self.size)
        return _native.ViewSpec(
            kind="exact",
            width=width,
            height=height,
            filter="nearest",
            hflip=self.hflip,
            jitter=jitter_spec(self.color_jitter),
        )
