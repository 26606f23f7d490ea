"""What the model sees of an image: which crop, resized to what, in which colours.

An operation is declared here, as a class whose fields are its settings, and carried out by the file of its name in
``src/native/core/operations``. The core gets all settings by their names, so bindings know none of them. What draws at
random has a number in ``RandomOp`` (``philox.h``). The slow twins are in ``tests/reference/transform.py`` and
``colors.py``.
"""

from __future__ import annotations

from stoker.habits import answer_as_transform
from stoker.transforms.operations import (
    CenterCrop,
    ColorJitter,
    ImageTransform,
    MultiCrop,
    ObjectCrops,
    Operation,
    RandomResizedCrop,
    RawTensor,
    Resize,
    Size,
    TopLeft,
    Transform,
    check_operations,
    extent,
    native_transforms,
)
from stoker.transforms.output import Output

OPERATIONS: dict[str, type[Operation]] = {
    each.__name__: each
    for each in (RandomResizedCrop, CenterCrop, Resize, TopLeft, RawTensor, ObjectCrops, ColorJitter)
}
"""Every operation by its name."""

for _settings in (*OPERATIONS.values(), Output):
    answer_as_transform(_settings)

__all__ = [
    "OPERATIONS",
    "CenterCrop",
    "ColorJitter",
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
    "check_operations",
    "extent",
    "native_transforms",
]
