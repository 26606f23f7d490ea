"""Views of annotated objects instead of whole images."""

from __future__ import annotations

from dataclasses import dataclass

from stoker import _native
from stoker.views.color import ColorJitter, jitter_spec
from stoker.views.settings import Filter, Size, check_filter, check_probability, extent, short_text


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
        extent(self.size)
        check_probability("hflip", self.hflip)
        check_filter(self.filter)

    def native(self) -> _native.ViewSpec:
        """Return the core's form of this view."""
        height, width = extent(self.size)
        return _native.ViewSpec(
            kind="object_crop",
            width=width,
            height=height,
            filter=self.filter,
            hflip=self.hflip,
            jitter=jitter_spec(self.color_jitter),
        )
