"""What the native core must know of a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker import _native

if TYPE_CHECKING:
    from stoker.types import SchemaInfo


def record_keys(schema: SchemaInfo) -> _native.RecordKeys:
    """Return where records of a layout hold what, in the core's form."""
    return _native.RecordKeys(
        image_key=schema.image_key,
        label_key=schema.label_key,
        source_key=schema.filename_key or "",
        label_encoding=schema.label_encoding,
        label_base=schema.label_base,
        image_encoding=schema.image_encoding,
        height_key=schema.height_key or "",
        width_key=schema.width_key or "",
        order_key=schema.order_key or "",
        box_prefix=schema.box_prefix or "",
    )
