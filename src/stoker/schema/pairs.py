"""The layouts of an image and its label: the Cloud Storage notebook's one-hot records, and TFDS's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.schema.schema import one_hot, stored_label
from stoker.types import FeatureSpec, SchemaInfo

if TYPE_CHECKING:
    from stoker.schema.schema import Sample
    from stoker.types import Features, ImageEncoding

_ONE_BYTES = FeatureSpec("bytes", 1)


@dataclass(frozen=True, slots=True)
class DogsSchema:
    """Preset ``dogs-onehot``: ``image`` is a JPEG, ``label`` a list of int64, one for each class, of zeros and a 1."""

    label_base: int = 0

    def __post_init__(self) -> None:
        if self.label_base != 0:
            raise ConfigError("--label-base 1 has no meaning for one-hot labels; leave it out, or use --preset tfds")

    @property
    def stores(self) -> ImageEncoding:
        """JPEG files."""
        return "jpeg"

    def info(self, classes: int) -> SchemaInfo:
        """Return the two keys."""
        return SchemaInfo(
            preset="dogs-onehot",
            features={"image": _ONE_BYTES, "label": FeatureSpec("int64", classes)},
            image_key="image",
            label_key="label",
            filename_key=None,
            label_base=0,
            label_encoding="one-hot",
        )

    def to_features(self, sample: Sample) -> Features:
        """Return the two features of one record."""
        return {"image": ("bytes", [sample.image]), "label": ("int64", one_hot(sample))}


@dataclass(frozen=True, slots=True)
class TfdsSchema:
    """Preset ``tfds``: ``image``, ``label`` and ``file_name``, as TensorFlow Datasets names them.

    Attributes:
        label_base: Number of the first class: 0, which is what a ``ClassLabel`` means, or 1.
    """

    label_base: int = 0

    def __post_init__(self) -> None:
        check_range("--label-base", self.label_base, 0, 1)

    @property
    def stores(self) -> ImageEncoding:
        """JPEG files."""
        return "jpeg"

    def info(self, classes: int) -> SchemaInfo:  # noqa: ARG002 - no length depends on it
        """Return the three keys."""
        return SchemaInfo(
            preset="tfds",
            features={"file_name": _ONE_BYTES, "image": _ONE_BYTES, "label": FeatureSpec("int64", 1)},
            image_key="image",
            label_key="label",
            filename_key="file_name",
            label_base=self.label_base,
        )

    def to_features(self, sample: Sample) -> Features:
        """Return the three features of one record."""
        return {
            "file_name": ("bytes", [sample.filename]),
            "image": ("bytes", [sample.image]),
            "label": ("int64", [stored_label(sample, self.label_base)]),
        }
