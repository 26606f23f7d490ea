"""Boxes that have classes of their own, by the paths of their images."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class LabelledBoxes:
    """A `stoker.sources.BoxSource` that is in memory as a whole. Read-only; safe in any thread.

    Attributes:
        where: File they come from.
        rows: First row of the boxes of an image and the one behind its last, by `Item.path`.
        corners: float64 (M, 4): xmin, ymin, xmax, ymax as fractions.
        labels: int32 (M,): class of each box.
        damaged: What is wrong with the annotations of an image, by `Item.path`.
    """

    where: str
    rows: Mapping[bytes, tuple[int, int]]
    corners: NDArray[np.float64]
    labels: NDArray[np.int32]
    damaged: Mapping[bytes, str]

    def read(self, item_path: bytes, class_name: bytes) -> list[Box]:  # noqa: ARG002 - as every `BoxSource`
        """Return the boxes of an image, in the order of the file.

        Raises:
            SourceError: One of its annotations is damaged.
        """
        if item_path in self.damaged:
            raise SourceError(f"damaged annotation: {self.damaged[item_path]}", path=self.where)
        first, end = self.rows.get(item_path, (0, 0))
        corners, labels = self.corners[first:end].tolist(), self.labels[first:end].tolist()
        return [Box(x0, y0, x1, y1, label) for (x0, y0, x1, y1), label in zip(corners, labels, strict=True)]

    def counts(self, classes: int) -> list[int]:
        """Return how many boxes each of so many classes has."""
        return [int(count) for count in np.bincount(self.labels, minlength=classes)]

    def digest(self) -> bytes:
        """Return 32 bytes that change with any box."""
        digest = hashlib.sha256(repr((sorted(self.rows.items()), sorted(self.damaged.items()))).encode())
        digest.update(self.corners.astype("<f8").tobytes())
        digest.update(self.labels.astype("<i4").tobytes())
        return digest.digest()
