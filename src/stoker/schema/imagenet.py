"""The 15 keys of Google's ImageNet script, read by most TensorFlow training code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.config import check_range
from stoker.schema.schema import FeatureSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.schema.schema import Sample
    from stoker.types import Features

_BOX = "image/object/bbox/"
_FEATURES = {
    "image/channels": FeatureSpec("int64", 1),
    "image/class/label": FeatureSpec("int64", 1),
    "image/class/synset": FeatureSpec("bytes", 1),
    "image/class/text": FeatureSpec("bytes", 1),
    "image/colorspace": FeatureSpec("bytes", 1),
    "image/encoded": FeatureSpec("bytes", 1),
    "image/filename": FeatureSpec("bytes", 1),
    "image/format": FeatureSpec("bytes", 1),
    "image/height": FeatureSpec("int64", 1),
    _BOX + "label": FeatureSpec("int64", None),
    _BOX + "xmax": FeatureSpec("float", None),
    _BOX + "xmin": FeatureSpec("float", None),
    _BOX + "ymax": FeatureSpec("float", None),
    _BOX + "ymin": FeatureSpec("float", None),
    "image/width": FeatureSpec("int64", 1),
}


@dataclass(frozen=True, slots=True)
class ImagenetSchema:
    """Preset ``imagenet``.

    Height and width are those of the stored image. ``image/channels`` is 3 and ``image/colorspace`` is RGB for every
    record: they say what a reader gets that asks its decoder for RGB, also from a greyscale JPEG. A box carries the
    label of its image. ``image/class/text`` is empty when the class has no known text.

    Attributes:
        label_base: Number of the first class: 1 as Google writes it (0 is the background), or 0.
    """

    label_base: int = 1

    def __post_init__(self) -> None:
        check_range("--label-base", self.label_base, 0, 1)

    @property
    def preset(self) -> str:
        """Name of the preset."""
        return "imagenet"

    @property
    def features(self) -> Mapping[str, FeatureSpec]:
        """The 15 keys."""
        return _FEATURES

    @property
    def image_key(self) -> str:
        """Key of the JPEG."""
        return "image/encoded"

    @property
    def label_key(self) -> str:
        """Key of the class number."""
        return "image/class/label"

    @property
    def filename_key(self) -> str:
        """Key of the source file's base name."""
        return "image/filename"

    def to_features(self, sample: Sample) -> Features:
        """Return the 15 features of one record."""
        label = sample.label + self.label_base
        boxes = sample.boxes
        return {
            "image/channels": ("int64", [3]),
            "image/class/label": ("int64", [label]),
            "image/class/synset": ("bytes", [sample.class_name]),
            "image/class/text": ("bytes", [sample.class_text]),
            "image/colorspace": ("bytes", [b"RGB"]),
            "image/encoded": ("bytes", [sample.image]),
            "image/filename": ("bytes", [sample.filename]),
            "image/format": ("bytes", [b"JPEG"]),
            "image/height": ("int64", [sample.height]),
            _BOX + "label": ("int64", [label] * len(boxes)),
            _BOX + "xmax": ("float", [box.xmax for box in boxes]),
            _BOX + "xmin": ("float", [box.xmin for box in boxes]),
            _BOX + "ymax": ("float", [box.ymax for box in boxes]),
            _BOX + "ymin": ("float", [box.ymin for box in boxes]),
            "image/width": ("int64", [sample.width]),
        }
