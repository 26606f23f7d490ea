"""Views of annotated objects instead of whole images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.views.color import ColorJitter  # noqa: TC001 - programs ask for the types of settings
from stoker.views.mirrored import check_mirrored, mirrored_spec
from stoker.views.settings import Filter, Size, check_filter, short_text

if TYPE_CHECKING:
    from stoker import _native


@dataclass(frozen=True, slots=True)
class ObjectCrops:
    """Every annotated object, cut out and resized; its aspect ratio is not kept.

    A loader with this view has one sample for each object, and one for each image without any, of which it shows all.
    The cut is the smallest rectangle of whole pixels around the box, clipped to the image: left and top edges are
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
        check_mirrored(self)
        check_filter(self.filter)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        return mirrored_spec("object_crop", self, self.filter)
