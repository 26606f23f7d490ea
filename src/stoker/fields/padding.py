"""Values of which samples have different numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stoker.config import check_range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stoker.types import BatchForm

_MAX_PADDING = 1 << 16


@dataclass(frozen=True, slots=True)
class Ragged:
    """Values of which samples have different numbers, end to end.

    Attributes:
        values: (T, ...): T is the number of all samples together.
        offsets: int64 (B + 1,): those of sample ``i`` are ``values[offsets[i] : offsets[i + 1]]``.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Padded:
    """Values of which samples have different numbers, as one array.

    Attributes:
        values: (B, M, ...): filled up with -1 for `Labels`, with 0 for an `Array`.
        counts: int64 (B,): how many each sample has; above M, the last ones are left out.
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]


def check_padding(pad_to: int | None) -> None:
    """Refuse a length to pad to that is out of range."""
    if pad_to is not None:
        check_range("pad_to", pad_to, 1, _MAX_PADDING)


def varying(form: BatchForm, pad_to: int | None) -> BatchForm:
    """Return a form for samples that have different numbers of values."""
    return replace(form, kind="ragged") if pad_to is None else replace(form, kind="padded", pad_to=pad_to)
