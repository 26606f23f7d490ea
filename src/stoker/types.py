"""The few values that every room speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

FeatureKind = Literal["bytes", "int64", "float"]
Feature = tuple[FeatureKind, list[bytes] | list[int] | list[float]]
"""One feature of a ``tf.train.Example``: its kind and its values."""

Features = dict[str, Feature]


@dataclass(frozen=True, slots=True)
class Box:
    """An annotated object, in fractions of the stored image's width and height (0..1).

    Attributes:
        xmin: Left edge.
        ymin: Top edge.
        xmax: Right edge, greater than ``xmin``.
        ymax: Bottom edge, greater than ``ymin``.
    """

    xmin: float
    ymin: float
    xmax: float
    ymax: float


@dataclass(frozen=True, slots=True)
class Reject:
    """A source item that is not in the dataset, and why.

    Attributes:
        key: Path of the item below the source root, with forward slashes.
        split: Split it would have been in.
        reason: One sentence for a person.
    """

    key: str
    split: str
    reason: str


class Progress(Protocol):
    """Receives how far a long job is. Called from one thread, as often as the job likes."""

    def __call__(self, *, done: int, total: int, size_bytes: int, rejects: int) -> None:
        """Report.

        Args:
            done: Items finished so far, the rejected ones included.
            total: Items there are.
            size_bytes: Bytes processed so far.
            rejects: Items rejected so far.
        """
