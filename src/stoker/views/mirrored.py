"""What views have in common that may mirror an image and change its colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from stoker import _native
from stoker.views.color import check_jitter, jitter_spec
from stoker.views.settings import check_probability, extent

if TYPE_CHECKING:
    from stoker.views.color import ColorJitter
    from stoker.views.settings import Filter, Size


class Mirrored(Protocol):
    """Such a view."""

    @property
    def size(self) -> Size:
        """Height and width of the result."""

    @property
    def hflip(self) -> float:
        """Probability of a left-right mirror image."""

    @property
    def color_jitter(self) -> ColorJitter | None:
        """Random changes of the colours."""


def check_mirrored(view: Mirrored) -> None:
    """Check the settings of these.

    Raises:
        ConfigError: A value is out of range.
    """
    extent(view.size)
    check_probability("hflip", view.hflip)
    check_jitter(view.color_jitter)


def mirrored_spec(kind: str, view: Mirrored, resampling: Filter) -> _native.ViewSpec:
    """Return the core's form of a view of that kind which has no settings but these and a filter."""
    height, width = extent(view.size)
    jitter = jitter_spec(view.color_jitter)
    return _native.ViewSpec(kind=kind, width=width, height=height, filter=resampling, hflip=view.hflip, jitter=jitter)
