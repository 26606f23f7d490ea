"""What the model sees of an image: which crop, resized to what."""

from __future__ import annotations

from stoker.transforms.color import ColorJitter
from stoker.transforms.crop import (
    CenterCrop,
    ImageTransform,
    MultiCrop,
    ObjectCrops,
    RandomResizedCrop,
    RawTensor,
    Resize,
    TopLeft,
    Transform,
    native_transforms,
)
from stoker.transforms.output import Output
from stoker.transforms.settings import Filter, Size

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Filter",
    "ImageTransform",
    "MultiCrop",
    "ObjectCrops",
    "Output",
    "RandomResizedCrop",
    "RawTensor",
    "Resize",
    "Size",
    "TopLeft",
    "Transform",
    "native_transforms",
]
