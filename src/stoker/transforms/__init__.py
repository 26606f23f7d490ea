"""What the model sees of an image: which crop, resized to what, in which colours.

These are descriptions; `src/native/core/transforms` carries them out. A new setting goes into the description (`crop`),
`TransformSpec` and the plan (``transform.h``, ``transform.cpp``), the decoder (``transform_decoder.cpp``), what keeps
an image from being copied as it is stored (``is_copied_raw`` in ``sample_loader.cpp``) and the binding
(``bind/transforms.cpp``); a random one also into ``RandomOp`` (``philox.h``) and docs/explanation/determinism.md. Its
slow twin is in ``tests/reference/transform.py``, its row in docs/how-to/transforms.md; then ``make stub`` and ``make
api``.
"""

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
    check_operations,
    native_transforms,
)
from stoker.transforms.operation import Operation
from stoker.transforms.output import Output, check_mode
from stoker.transforms.settings import Filter, Size, check_filter, extent

OPERATIONS: dict[str, type[Operation]] = {
    each.__name__: each
    for each in (RandomResizedCrop, CenterCrop, Resize, TopLeft, RawTensor, ObjectCrops, ColorJitter)
}
"""Every operation by its name."""

__all__ = [
    "OPERATIONS",
    "CenterCrop",
    "ColorJitter",
    "Filter",
    "ImageTransform",
    "MultiCrop",
    "ObjectCrops",
    "Operation",
    "Output",
    "RandomResizedCrop",
    "RawTensor",
    "Resize",
    "Size",
    "TopLeft",
    "Transform",
    "check_filter",
    "check_mode",
    "check_operations",
    "extent",
    "native_transforms",
]
