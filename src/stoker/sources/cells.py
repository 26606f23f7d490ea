"""Values of extra fields that a table or a list says of images: the column ``cells`` of its items."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from stoker.errors import SourceError
from stoker.fields import from_json
from stoker.sources.colour_masks import ColouredMask
from stoker.sources.columns import chunks
from stoker.sources.drawn_masks import CocoMask, YoloMask
from stoker.storage import join

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stoker.sources.columns import Blobs
    from stoker.sources.drawn_masks import DrawnMask
    from stoker.sources.items import ItemTable
    from stoker.types import Field


DRAWN: Mapping[str, type[DrawnMask]] = {kind.name: kind for kind in (CocoMask, YoloMask, ColouredMask)}
"""What masks are drawn of, by its name in saved listings."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """How the values of items are read from their column ``cells``. Read-only; safe in any thread.

    It has a JSON list of the values of some columns, each as the source has it: text that stands for a number or a
    truth value is text. It may be shorter than the columns are many; what is not there, and an empty text that is no
    text field's, is missing; with ``fills`` it is an empty text in a text field, and not a number in a `Float`.

    Attributes:
        columns: What each column is: a name and a field; None where it is not used.
        fills: See above.
        drawn: A name of `DRAWN` and what its ``of_cell`` needs beside the value of a mask; None where masks are paths.
    """

    columns: tuple[tuple[str, Field] | None, ...]
    fills: bool = False
    drawn: tuple[str, Any] | None = None

    @property
    def fields(self) -> dict[str, Field]:
        """The fields, by name."""
        return dict(column for column in self.columns if column is not None)

    def values(self, cells: bytes, base: bytes, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of one item; None for what is missing.

        Args:
            cells: Of the item.
            base: Folder that the paths of images and masks are relative to: an absolute path or a URL.
            names: Of the fields that are wanted; None: all.
        """
        try:
            cell_values = json.loads(cells.decode("utf-8", "surrogatepass"))
            fields = self.fields
            values = {name: None for name in fields if names is None or name in names}
            for column, value in zip(self.columns, cell_values, strict=False):
                if column is not None and column[0] in values:
                    values[column[0]] = self._value(column[1], value, base)
            if self.fills:
                values.update((name, fields[name].missing) for name, cell in values.items() if cell is None)
        except (LookupError, TypeError, ValueError) as error:
            raise SourceError(f"the values of its fields are damaged: {error}; list the source again") from error
        return values

    def _value(self, field: Field, value: Any, base: bytes) -> Any:
        if field.is_image and self.drawn is not None:
            return DRAWN[self.drawn[0]].of_cell(self.drawn[1], value, base)
        if field.is_image:
            return os.fsdecode(join(base, os.fsencode(value))) if value else None
        if isinstance(value, str):
            return field.from_cell(value)
        is_filled = self.fills and isinstance(value, int) and field.missing is not None
        return type(field.missing)(value) if is_filled else value

    def digest(self, table: ItemTable) -> bytes:
        """Return 32 bytes that change with any field and any value."""
        digest = hashlib.sha256(repr([column and (column[0], column[1].to_json()) for column in self.columns]).encode())
        digest.update(b"fills" * self.fills + (DRAWN[self.drawn[0]].digested(self.drawn[1]) if self.drawn else b""))
        cells = cast("Blobs", table.columns["cells"]).take(np.flatnonzero(table.objects <= 0))  # once for all objects
        for first, end in chunks(len(cells.starts)):
            digest.update(cells.starts[first:end].tobytes())
        digest.update(cells.data)
        return digest.digest()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        columns = [column and [column[0], column[1].to_json()] for column in self.columns]
        return {"columns": columns, "fills": self.fills, "drawn": self.drawn}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Self:
        """Return what `to_json` has described.

        Raises:
            ConfigError: A field is none.
            KeyError, TypeError: It is damaged.
        """
        columns = tuple(column and (str(column[0]), from_json(column[1])) for column in described["columns"])
        drawn = described["drawn"] and (str(described["drawn"][0]), described["drawn"][1])
        if drawn and drawn[0] not in DRAWN:
            raise KeyError(drawn[0])
        return cls(columns, bool(described["fills"]), drawn or None)


def json_bytes(value: Any) -> bytes:
    """Return what JSON can say as ``cells`` have it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
