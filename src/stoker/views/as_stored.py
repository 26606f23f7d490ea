"""Views that resample nothing: pixels as they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.views.color import ColorJitter  # noqa: TC001 - programs ask for the types of settings
from stoker.views.mirrored import check_mirrored, mirrored_spec
from stoker.views.settings import Size, short_text

if TYPE_CHECKING:
    from stoker import _native


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
        check_mirrored(self)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        return mirrored_spec("top_left", self, "nearest")


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
        check_mirrored(self)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        return mirrored_spec("exact", self, "nearest")
