"""The interface that every preset of features has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.types import Box, Features, ImageEncoding, SchemaInfo, TensorOrder


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything that is known about one stored image.

    Attributes:
        image: The stored file, or the stored pixels.
        width: Columns of pixels in ``image``.
        height: Rows of pixels in ``image``.
        order: Order of the axes where ``image`` is pixels.
        filename: Base name of the source file.
        label: Index of the class, before any label base; -1 for none.
        classes: How many classes there are.
        class_name: Name of the class folder; empty without a class.
        class_text: The class in words; empty when unknown.
        boxes: Annotated objects, in fractions of the stored image.
    """

    image: bytes
    width: int
    height: int
    order: TensorOrder
    filename: bytes
    label: int
    classes: int
    class_name: bytes
    class_text: bytes
    boxes: Sequence[Box]


class Schema(Protocol):
    """A preset: turns samples into features, and says what it writes. Immutable; safe in any thread."""

    @property
    def label_base(self) -> int:
        """Number of the first class."""

    @property
    def stores(self) -> ImageEncoding:
        """What the images in its records must be."""

    def info(self, classes: int) -> SchemaInfo:
        """Return what a reader needs to know, for a dataset of so many classes."""

    def to_features(self, sample: Sample) -> Features:
        """Return the features of one record."""


def stored_label(sample: Sample, label_base: int) -> int:
    """Return the number that a record holds for a sample's class: -1 for none, whatever the base."""
    return sample.label + label_base if sample.label >= 0 else -1


def one_hot(sample: Sample) -> list[int]:
    """Return a 1 at the place of the sample's class and 0 at all others; all zeros without a class."""
    return [int(label == sample.label) for label in range(sample.classes)]
