"""Columns of an export to Parquet: their type for Arrow, and what the library ``datasets`` must know of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.errors import printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from stoker.types import ArrowColumn


def value_column(pa: ModuleType, dtype: str) -> ArrowColumn:
    """Return a column of plain values of a type that both call the same."""
    return pa.type_for_alias(dtype), {"dtype": dtype, "_type": "Value"}


def class_column(pa: ModuleType, names: Sequence[str] | None) -> ArrowColumn:
    """Return a column of ids of classes, with their names if there are any."""
    kind, feature = value_column(pa, "int64")
    return kind, {"names": [printable(name) for name in names], "_type": "ClassLabel"} if names else feature


def list_column(pa: ModuleType, column: ArrowColumn, length: int | None = None) -> ArrowColumn:
    """Return a column of lists of what another holds; ``length`` is -1 where it is said to differ."""
    kind, feature = column
    length_entry = {} if length is None else {"length": length}
    return pa.list_(kind, -1 if length is None else length), {"feature": feature, "_type": "List", **length_entry}


def box_column(pa: ModuleType, names: Sequence[str] | None) -> ArrowColumn:
    """Return a column of lists of boxes, whose classes have the names."""
    sides = {side: value_column(pa, "float32") for side in ("xmin", "ymin", "xmax", "ymax")}
    columns = {**sides, "label": class_column(pa, names)}
    kind = pa.struct([(key, kind) for key, (kind, _) in columns.items()])
    return list_column(pa, (kind, {key: feature for key, (_, feature) in columns.items()}))
