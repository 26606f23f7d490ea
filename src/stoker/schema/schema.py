"""The interface that every preset of features has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stoker.types import Box, FeatureKind, Features


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """What a reader may expect under one key.

    Attributes:
        kind: Type of the values.
        length: How many there are; None when it differs from record to record, down to none.
    """

    kind: FeatureKind
    length: int | None


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything that is known about one stored image.

    Attributes:
        image: The stored file.
        width: Columns of pixels in ``image``.
        height: Rows of pixels in ``image``.
        filename: Base name of the source file.
        label: Index of the class in the sorted class names, before any label base.
        class_name: Name of the class folder.
        class_text: The class in words; empty when unknown.
        boxes: Annotated objects, in fractions of the stored image.
    """

    image: bytes
    width: int
    height: int
    filename: bytes
    label: int
    class_name: bytes
    class_text: bytes
    boxes: Sequence[Box]


class Schema(Protocol):
    """A preset: turns samples into features, and says what it writes. Immutable; safe in any thread."""

    @property
    def preset(self) -> str:
        """Name of the preset, as in the manifest."""

    @property
    def label_base(self) -> int:
        """Number of the first class."""

    @property
    def features(self) -> Mapping[str, FeatureSpec]:
        """Every key that a record has."""

    @property
    def image_key(self) -> str:
        """Key of the image."""

    @property
    def label_key(self) -> str:
        """Key of the class number."""

    @property
    def filename_key(self) -> str | None:
        """Key of the source file's name, if the preset stores it."""

    def to_features(self, sample: Sample) -> Features:
        """Return the features of one record."""
