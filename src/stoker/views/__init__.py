"""What the model sees of an image: which crop, resized to what."""

from stoker.views.as_stored import RawTensor, TopLeft
from stoker.views.color import ColorJitter
from stoker.views.multi import ImageView, MultiView, native_views
from stoker.views.objects import ObjectCrops
from stoker.views.output import Output
from stoker.views.settings import Filter, Size
from stoker.views.view import CenterCrop, RandomResizedCrop, Resize

View = ImageView | ObjectCrops | MultiView
"""Any of them."""

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Filter",
    "ImageView",
    "MultiView",
    "ObjectCrops",
    "Output",
    "RandomResizedCrop",
    "RawTensor",
    "Resize",
    "Size",
    "TopLeft",
    "View",
    "native_views",
]
