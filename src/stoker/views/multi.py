"""Several views of one decode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import ConfigError
from stoker.views.as_stored import RawTensor, TopLeft
from stoker.views.view import CenterCrop, RandomResizedCrop, Resize

if TYPE_CHECKING:
    from stoker import _native
    from stoker.views.objects import ObjectCrops

ImageView = RandomResizedCrop | CenterCrop | Resize | TopLeft | RawTensor
"""A view of a whole image."""

MOST_VIEWS = 64


@dataclass(frozen=True, slots=True, init=False)
class MultiView:
    """Several views of every image, which is read and decoded once: multi-crop, or a pair to contrast.

    ``batch.images`` is then a tuple of arrays, one for each view, and ``batch.boxes`` one of boxes. Each view has
    random choices of its own; those of the first are what they would be without the others.

    Attributes:
        views: 1 to 64 views of whole images; their sizes may differ.

    Raises:
        ConfigError: There are none or too many, or one is no view of whole images.

    Example:
        >>> crops = MultiView(*[RandomResizedCrop(224)] * 2, *[RandomResizedCrop(96, scale=(0.05, 0.4))] * 6)
        >>> len(crops.views)
        8
    """

    views: tuple[ImageView, ...]

    def __init__(self, *views: ImageView) -> None:
        if not 1 <= len(views) <= MOST_VIEWS:
            raise ConfigError(f"MultiView has {len(views)} views; it must have 1 to {MOST_VIEWS}")
        for view in views:
            if not isinstance(view, ImageView):
                raise ConfigError(f"MultiView cannot hold {view!r}; it takes views of whole images")
        object.__setattr__(self, "views", views)

    def __repr__(self) -> str:
        return f"MultiView({', '.join(map(repr, self.views))})"


def native_views(view: ImageView | ObjectCrops | MultiView) -> list[_native.ViewSpec]:
    """Return the core's form of each view of one decode."""
    return [one.native() for one in view.views] if isinstance(view, MultiView) else [view.native()]
