"""The layouts of the ImageNet build scripts: Google's 15 keys, and the 9 that NVIDIA's version writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.config import check_range
from stoker.schema.schema import stored_label
from stoker.types import FeatureSpec, SchemaInfo

if TYPE_CHECKING:
    from stoker.schema.schema import Sample
    from stoker.types import Features, ImageEncoding

BOX_PREFIX = "image/object/bbox/"
_ONE_BYTES, _ONE_INT64 = FeatureSpec("bytes", 1), FeatureSpec("int64", 1)
_SHARED = {
    "image/channels": _ONE_INT64,
    "image/class/label": _ONE_INT64,
    "image/class/text": _ONE_BYTES,
    "image/colorspace": _ONE_BYTES,
    "image/encoded": _ONE_BYTES,
    "image/filename": _ONE_BYTES,
    "image/format": _ONE_BYTES,
    "image/height": _ONE_INT64,
    "image/width": _ONE_INT64,
}
_BOXES = {
    BOX_PREFIX + "label": FeatureSpec("int64", None),
    BOX_PREFIX + "xmax": FeatureSpec("float", None),
    BOX_PREFIX + "xmin": FeatureSpec("float", None),
    BOX_PREFIX + "ymax": FeatureSpec("float", None),
    BOX_PREFIX + "ymin": FeatureSpec("float", None),
}


@dataclass(frozen=True, slots=True)
class ImagenetSchema:
    """Preset ``imagenet``: the 15 keys of Google's script, read by most TensorFlow training code.

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
    def stores(self) -> ImageEncoding:
        """JPEG files."""
        return "jpeg"

    def info(self, classes: int) -> SchemaInfo:  # noqa: ARG002 - no key depends on it
        """Return the 15 keys."""
        features = _SHARED | _BOXES | {"image/class/synset": _ONE_BYTES}
        return image_class_info("imagenet", features, self.label_base, box_prefix=BOX_PREFIX)

    def to_features(self, sample: Sample) -> Features:
        """Return the 15 features of one record."""
        label = stored_label(sample, self.label_base)
        boxes = sample.boxes
        return shared_features(sample, label, "JPEG") | {
            "image/class/synset": ("bytes", [sample.class_name]),
            "image/class/text": ("bytes", [sample.class_text]),
            BOX_PREFIX + "label": ("int64", [label] * len(boxes)),
            BOX_PREFIX + "xmax": ("float", [box.xmax for box in boxes]),
            BOX_PREFIX + "xmin": ("float", [box.xmin for box in boxes]),
            BOX_PREFIX + "ymax": ("float", [box.ymax for box in boxes]),
            BOX_PREFIX + "ymin": ("float", [box.ymin for box in boxes]),
        }


@dataclass(frozen=True, slots=True)
class NvidiaSchema:
    """Preset ``imagenet-nvidia``: no boxes and no synset; ``image/class/text`` holds the synset.

    Attributes:
        label_base: Number of the first class: 1 as the original writes it, or 0.
    """

    label_base: int = 1

    def __post_init__(self) -> None:
        check_range("--label-base", self.label_base, 0, 1)

    @property
    def stores(self) -> ImageEncoding:
        """JPEG files."""
        return "jpeg"

    def info(self, classes: int) -> SchemaInfo:  # noqa: ARG002 - no key depends on it
        """Return the 9 keys."""
        return image_class_info("imagenet-nvidia", _SHARED, self.label_base)

    def to_features(self, sample: Sample) -> Features:
        """Return the 9 features of one record."""
        label = stored_label(sample, self.label_base)
        return shared_features(sample, label, "JPEG") | {"image/class/text": ("bytes", [sample.class_name])}


def image_class_info(
    preset: str, features: dict[str, FeatureSpec], label_base: int, *, box_prefix: str | None = None
) -> SchemaInfo:
    """Return the description of a layout that shares the ``image/...`` keys of Google's."""
    raw = "image/order" in features
    return SchemaInfo(
        preset=preset,
        features=dict(sorted(features.items())),
        image_key="image/encoded",
        label_key="image/class/label",
        filename_key="image/filename",
        label_base=label_base,
        image_encoding="raw" if raw else "jpeg",
        height_key="image/height" if raw else None,
        width_key="image/width" if raw else None,
        order_key="image/order" if raw else None,
        box_prefix=box_prefix,
    )


def shared_features(sample: Sample, label: int, image_format: str) -> Features:
    """Return the features that all layouts with ``image/...`` keys have, but for ``image/class/text``."""
    return {
        "image/channels": ("int64", [3]),
        "image/class/label": ("int64", [label]),
        "image/colorspace": ("bytes", [b"RGB"]),
        "image/encoded": ("bytes", [sample.image]),
        "image/filename": ("bytes", [sample.filename]),
        "image/format": ("bytes", [image_format.encode()]),
        "image/height": ("int64", [sample.height]),
        "image/width": ("int64", [sample.width]),
    }
