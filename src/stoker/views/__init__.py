"""What the model sees of an image: which crop, resized to what."""

from stoker.views.as_stored import RawTensor, TopLeft
from stoker.views.objects import ObjectCrops
from stoker.views.settings import Filter, Size
from stoker.views.view import CenterCrop, RandomResizedCrop, Resize

View = RandomResizedCrop | CenterCrop | Resize | TopLeft | RawTensor | ObjectCrops
"""Any of them."""

__all__ = [
    "CenterCrop",
    "Filter",
    "ObjectCrops",
    "RandomResizedCrop",
    "RawTensor",
    "Resize",
    "Size",
    "TopLeft",
    "View",
]
