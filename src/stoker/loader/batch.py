"""One batch: pixels, labels and indices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from stoker.format import ClassLabel
    from stoker.loader.position import Position
    from stoker.transforms import Output
    from stoker.types import Mode


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """What a notebook needs to show a batch.

    Attributes:
        output: What was made of the pixels.
        mode: Their channels and depth before that.
        classes: Name and text of each class, by label; empty where unknown.
        mask: Name of the field that is drawn over the images; None without one.
    """

    output: Output
    mode: Mode
    classes: tuple[ClassLabel, ...]
    mask: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """One rank's share of one step.

    ========  ==================  =====================================================================
    field     dtype and shape     meaning
    ========  ==================  =====================================================================
    images    uint8 (B, H, W, C)  C-contiguous, host memory; as the loader's ``output`` says. C is 3 in mode RGB,
                                  1 in L, 4 in RGBA; I;16 is uint16 (B, H, W, 1).
                                  With `stoker.MultiCrop` a tuple of arrays, one for each transform
    labels    int64 (B,)          as stored in the records; -1 where there is none
    indices   uint64 (B,)         index of each sample in its split; survives any change of topology
    valid     bool (B,)           false for samples that are repeated to fill the last batch of an epoch
    seeds     uint64 (B,)         a random number of each sample in this epoch, for transforms of your own
    position  Position            where the loader is after this batch, the same on every rank; after the last
                                  one of an epoch at the start of the next
    boxes     Boxes, PaddedBoxes  of the samples, as the loader's ``boxes`` says; with `stoker.MultiCrop` a
                                  tuple, one for each transform; None without that setting
    fields    dict                of the samples, as the loader's ``fields`` says; see docs/how-to/fields.md
    origin    BatchOrigin         how a notebook shows it
    ========  ==================  =====================================================================

    The arrays belong to the caller: Stoker never writes them again, and the memory of the images returns to the
    loader's pool when the last reference to them dies. ``images, labels = batch`` unpacks the two that a training
    step needs.
    """

    images: Any
    labels: NDArray[np.int64]
    indices: NDArray[np.uint64]
    valid: NDArray[np.bool_]
    seeds: NDArray[np.uint64]
    position: Position
    boxes: Any = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    origin: BatchOrigin | None = None

    def __repr__(self) -> str:
        return batch_text(self)

    def _repr_html_(self) -> str:
        from stoker.loader.notebook import batch_block  # noqa: PLC0415 - only notebooks need it

        return batch_block(self)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.images, self.labels))

    def __len__(self) -> int:
        return len(self.labels)


def batch_text(batch: Any) -> str:
    """Return a `stoker.Batch`, or what has its fields, in one line."""
    images = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    shapes = " and ".join(f"{getattr(array, 'dtype', '?')} {tuple(getattr(array, 'shape', ()))}" for array in images)
    boxes = "" if batch.boxes is None else ", with boxes"
    fields = f", fields {', '.join(batch.fields)}" if batch.fields else ""
    position, where = batch.position, ""
    if position is not None:
        upto = f"epoch {position.epoch} up to sample {position.consumed:,}"
        where = f", {upto if position.consumed else f'the last of epoch {position.epoch - 1}'}"
    return f"<stoker.{type(batch).__name__} of {len(batch)}: images {shapes}{boxes}{fields}{where}>"
