"""The layouts that hold pixels instead of files: HPE's DLBS tensors and Hops' TinyImageNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.config import check_range
from stoker.schema.imagenet import image_class_info, shared_features
from stoker.schema.schema import one_hot, stored_label
from stoker.types import FeatureSpec, SchemaInfo

if TYPE_CHECKING:
    from stoker.schema.schema import Sample
    from stoker.types import Features, ImageEncoding

_ONE_BYTES, _ONE_INT64 = FeatureSpec("bytes", 1), FeatureSpec("int64", 1)
_DLBS_BYTES = ("class/synset", "class/text", "colorspace", "encoded", "filename", "format", "order")
_DLBS_INT64 = ("channels", "class/label", "height", "width")
_DLBS = {f"image/{key}": _ONE_BYTES for key in _DLBS_BYTES} | {f"image/{key}": _ONE_INT64 for key in _DLBS_INT64}


@dataclass(frozen=True, slots=True)
class DlbsSchema:
    """Preset ``dlbs``: the ten keys of the original and ``image/order``, which its documentation promises.

    Attributes:
        label_base: Number of the first class: 0 as in ``imagenet_labels.json``, or 1.
    """

    label_base: int = 0

    def __post_init__(self) -> None:
        check_range("--label-base", self.label_base, 0, 1)

    @property
    def stores(self) -> ImageEncoding:
        """Pixels."""
        return "raw"

    def info(self, classes: int) -> SchemaInfo:  # noqa: ARG002 - no key depends on it
        """Return the 11 keys."""
        return image_class_info("dlbs", _DLBS, self.label_base)

    def to_features(self, sample: Sample) -> Features:
        """Return the 11 features of one record."""
        return shared_features(sample, stored_label(sample, self.label_base), "tensor") | {
            "image/class/synset": ("bytes", [sample.class_name]),
            "image/class/text": ("bytes", [sample.class_text]),
            "image/order": ("bytes", [sample.order.encode()]),
        }


@dataclass(frozen=True, slots=True)
class TinySchema:
    """Preset ``tiny-imagenet``: the six keys of the Hops notebook, pixels in HWC order.

    ``label_one_hot`` is one byte for each class, 0 or 1; all are 0 for an image without a class, whose ``label`` is -1.

    Attributes:
        label_base: Number of the first class: 0 as the original writes it, or 1.
    """

    label_base: int = 0

    def __post_init__(self) -> None:
        check_range("--label-base", self.label_base, 0, 1)

    @property
    def stores(self) -> ImageEncoding:
        """Pixels."""
        return "raw"

    def info(self, classes: int) -> SchemaInfo:  # noqa: ARG002 - no length depends on it
        """Return the six keys."""
        return SchemaInfo(
            preset="tiny-imagenet",
            features={
                "channel": _ONE_INT64,
                "height": _ONE_INT64,
                "image_raw": _ONE_BYTES,
                "label": _ONE_INT64,
                "label_one_hot": _ONE_BYTES,
                "width": _ONE_INT64,
            },
            image_key="image_raw",
            label_key="label",
            filename_key=None,
            label_base=self.label_base,
            image_encoding="raw",
            height_key="height",
            width_key="width",
        )

    def to_features(self, sample: Sample) -> Features:
        """Return the six features of one record."""
        return {
            "channel": ("int64", [3]),
            "height": ("int64", [sample.height]),
            "image_raw": ("bytes", [sample.image]),
            "label": ("int64", [stored_label(sample, self.label_base)]),
            "label_one_hot": ("bytes", [bytes(one_hot(sample))]),
            "width": ("int64", [sample.width]),
        }
