"""One batch: its pixels, labels and indices, its boxes, and the fields of its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Never, cast

import numpy as np

from stoker import _native
from stoker.config import check_range, check_share
from stoker.errors import ExampleError, record_error
from stoker.fields import Padded, Ragged
from stoker.habits import BATCHES, no_attribute
from stoker.loader.pictures import notebook_batch
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from stoker.format import ClassLabel
    from stoker.order import Position
    from stoker.transforms import Output
    from stoker.types import BatchForm, Mode


ColumnForm = Literal["values", "bytes", "str"]

Where = tuple[str, int, int]
"""File, number of the record in it, and its first byte."""

NativeColumn = tuple["NDArray[Any]", "NDArray[np.int64]"] | list[str] | list[bytes]
"""Values (T,) and offsets (B + 1,) of one field, as the core gives them; for bytes and text, a list of B values."""

_OBJECTS: dict[str, ColumnForm] = {"text": "str", "bytes": "bytes", "json": "bytes"}
"""Kinds of fields that the core gives as a list, and the type of its items."""

_SHOWN = 120  # characters of an error of JSON, which may name a key of any length

NativeBoxes = tuple["NDArray[np.float32]", "NDArray[np.int64]", "NDArray[np.int32]", "NDArray[np.int64]"]
"""Corners (4 T,), labels (T,), objects (T,) and offsets (B + 1,), as the core gives them."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of a batch, end to end: those of sample ``i`` are rows ``offsets[i]`` to ``offsets[i + 1]``.

    ========  =================  =====================================================================
    field     dtype and shape    meaning
    ========  =================  =====================================================================
    corners   float32 (T, 4)     xmin, ymin, xmax, ymax in pixels of the transform's result, inside it
    labels    int64 (T,)         class of each object, or that of its image if records store none for it
    objects   int32 (T,)         number of each box among those of its sample, in stored order
    offsets   int64 (B + 1,)     where the boxes of each sample begin
    ========  =================  =====================================================================
    """

    corners: NDArray[np.float32]
    labels: NDArray[np.int64]
    objects: NDArray[np.int32]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PaddedBoxes:
    """The boxes of a batch padded to ``M`` boxes per sample, in stored order.

    ========  =================  =====================================================================
    field     dtype and shape    meaning
    ========  =================  =====================================================================
    corners   float32 (B, M, 4)  xmin, ymin, xmax, ymax in pixels of the transform's result; padded with 0
    labels    int64 (B, M)       class of each object; padded with -1
    objects   int32 (B, M)       number of each box among those of its sample; padded with -1
    counts    int64 (B,)         number of boxes of each sample; above M, the last ones are left out
    ========  =================  =====================================================================
    """

    corners: NDArray[np.float32]
    labels: NDArray[np.int64]
    objects: NDArray[np.int32]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BoxOutput:
    """How batches hold boxes.

    Boxes are cropped, scaled, clipped and mirrored as the pixels are. A box without area in the result is omitted, as
    is one of 1/1024 pixel or less of the image or of the result: corners are stored in float32.

    Attributes:
        pad_to: Number of boxes per sample in `PaddedBoxes`, 1 to 65,536; None for `Boxes` of any number.
        min_visible: A box with less than this share of its area in the result is omitted, 0 to 1.

    Raises:
        ConfigError: A value is out of range.
    """

    pad_to: int | None = None
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        if self.pad_to is not None:
            check_range("pad_to", self.pad_to, 1, 1 << 16)
        check_share("min_visible", self.min_visible)

    def form(self, native: NativeBoxes) -> Boxes | PaddedBoxes:
        """Return boxes of the core as `Boxes` or `PaddedBoxes`."""
        corners, labels, objects, offsets = native
        corners = corners.reshape(-1, 4)
        if self.pad_to is None:
            return Boxes(corners, labels, objects, offsets)
        corners, labels, objects = padded(offsets, self.pad_to, [(corners, 0), (labels, -1), (objects, -1)])
        return PaddedBoxes(corners, labels, objects, np.diff(offsets))


NO_BOXES: NativeBoxes = (
    np.empty(0, np.float32),
    np.empty(0, np.int64),
    np.empty(0, np.int32),
    np.zeros(1, np.int64),
)
"""The boxes of a batch without samples."""


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """What a notebook needs to show a batch."""

    output: Output  # type, layout and scale of its pixels
    mode: Mode  # channels and depth of the pixels before that
    classes: tuple[ClassLabel, ...]  # name and text of each class, by label; empty where unknown
    mask: str | None = None  # name of the field that is drawn over the images; None without one


@dataclass(frozen=True, slots=True)
class Batch:
    """One rank's share of one step.

    ========  ==================  =====================================================================
    field     dtype and shape     meaning
    ========  ==================  =====================================================================
    images    uint8 (B, H, W, C)  C-contiguous, host memory; as the loader's ``output`` says. C is 3 in mode RGB,
                                  1 in L, 4 in RGBA; I;16 is uint16 (B, H, W, 1).
                                  With `stoker.MultiCrop` a tuple of arrays, one for each transform
    labels    int64 (B,)          as stored in the records; -1 for no label
    indices   uint64 (B,)         index of each sample in its split; survives any change of topology. Of objects
                                  (`stoker.ObjectCrops`), images are ``np.searchsorted(ends, indices, "right")``
                                  with ``ends = np.maximum(dataset.whole.object_counts, 1).cumsum()``
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
        return notebook_batch(self)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.images, self.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, key: object) -> Never:
        raise TypeError(f"stoker.Batch is no dict and no tuple: {BATCHES['[]']}")

    __getattr__ = no_attribute("stoker.Batch", BATCHES)


def batch_text(batch: Any) -> str:
    """Return one line about a `stoker.Batch`, or about an object with its fields."""
    images = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    shapes = " and ".join(f"{getattr(array, 'dtype', '?')} {tuple(getattr(array, 'shape', ()))}" for array in images)
    boxes = "" if batch.boxes is None else ", with boxes"
    fields = f", fields {', '.join(batch.fields)}" if batch.fields else ""
    position, where = batch.position, ""
    if position is not None:
        upto = f"epoch {position.epoch} up to sample {position.consumed:,}"
        where = f", {upto if position.consumed else f'the last of epoch {position.epoch - 1}'}"
    return f"<stoker.{type(batch).__name__} of {len(batch)}: images {shapes}{boxes}{fields}{where}>"


def padded(offsets: NDArray[np.int64], most: int, columns: Sequence[tuple[NDArray[Any], int]]) -> list[NDArray[Any]]:
    """Return columns of samples laid end to end as arrays (B, most, ...): padded, and further rows left out.

    The rows of each sample begin at its offset, int64 (B + 1,). Each column is a pair of values (T, ...) and padding.
    """
    counts = np.diff(offsets)
    sample = np.repeat(np.arange(len(counts)), counts)
    position = np.arange(len(sample)) - offsets[sample]
    fits = position < most
    to, arrays = (sample[fits], position[fits]), []
    for values, fill in columns:
        arrays.append(np.full((len(counts), most, *values.shape[1:]), fill, values.dtype))
        arrays[-1][to] = values[fits]
    return arrays


def plain_arrays(value: Any) -> Any:
    """Return boxes or fields of a batch as plain dicts, tuples, lists and arrays, for frameworks; copies nothing."""
    if isinstance(value, Mapping):
        return {name: plain_arrays(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain_arrays, value))
    if isinstance(value, Boxes | PaddedBoxes | Ragged | Padded):
        return {name: getattr(value, name) for name in type(value).__slots__}
    return value


def native_column(name: str, form: BatchForm) -> _native.FieldColumn:
    """Return the column in which the core collects a field without pixels."""
    return _native.FieldColumn(
        name,
        form.stored,
        form=_OBJECTS.get(form.kind, "values"),
        text=form.kind in ("text", "json"),
        fixed=form.fixed,
        group=form.group,
    )


def empty_column(form: BatchForm) -> NativeColumn:
    """Return the column of a batch without samples."""
    types = {"bytes": np.uint8, "float": np.float32, "int64": np.int64}
    return [] if form.kind in _OBJECTS else (np.empty(0, types[form.stored]), np.zeros(1, np.int64))


def batch_value(name: str, form: BatchForm, column: NativeColumn, where: Callable[[int], Where]) -> Any:
    """Return the values of a field, given its column from the core; ``where`` locates the record of a row."""

    def bad(row: int, problem: str) -> ExampleError:
        return record_error(ExampleError, where(row), f"feature {name!r} {problem}")

    if form.kind == "json":
        documents = []
        for row, text in enumerate(column):
            try:
                documents.append(parse_json(cast("bytes", text)))
            except ValueError as error:
                raise bad(row, f"is not JSON: {str(error)[:_SHOWN]}") from error
        return documents
    if isinstance(column, list):
        return column
    values, offsets = column
    if form.dtype == "bool" and (odd := np.flatnonzero(values > 1)).size:
        row = int(np.searchsorted(offsets, odd[0], "right")) - 1
        raise bad(row, f"holds the byte {values[odd[0]]}, and those of bool are 0 and 1")
    numbers = values.view(np.dtype(form.dtype).newbyteorder("<")).astype(form.dtype, copy=False)
    if form.kind == "dense":
        return numbers.reshape(len(offsets) - 1, *form.shape)
    numbers, offsets = numbers.reshape(-1, *form.shape), offsets // form.group
    if form.kind == "ragged":
        return Ragged(numbers, offsets)
    (numbers,) = padded(offsets, form.pad_to, [(numbers, form.fill)])
    return Padded(numbers, np.diff(offsets))


def value_of_sample(form: BatchForm, value: Any) -> Any:
    """Return one of `Sample.fields` in the form in which batches hold it; see `row_of`."""
    if form.is_plane or form.kind in ("text", "bytes", "json"):
        return value
    numbers = np.asarray(value, form.dtype)
    if form.kind != "padded":
        return numbers
    return padded(np.array([0, len(numbers)], np.int64), form.pad_to, [(numbers, form.fill)])[0][0]


def row_of(value: Any, row: int) -> Any:
    """Return the value of one sample from that of its batch; for padded values, without the count."""
    if isinstance(value, tuple):
        return tuple(row_of(each, row) for each in value)
    if isinstance(value, Ragged):
        return value.values[value.offsets[row] : value.offsets[row + 1]]
    return value.values[row] if isinstance(value, Padded) else value[row]
