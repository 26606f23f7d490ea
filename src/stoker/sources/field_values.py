"""Values of extra fields that a listing knows, or knows where to read: columns of its table."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from stoker.errors import SourceError
from stoker.fields import Float, ImageField, Int, Text
from stoker.sources.coco_masks import CocoMask
from stoker.sources.columns import chunks
from stoker.sources.reading import read_slice
from stoker.storage import join, parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from stoker.sources.columns import Blobs
    from stoker.sources.items import Item, ItemTable
    from stoker.types import Field


TRUTH_VALUES = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
"""Texts of cells that the libraries ``pandas`` and ``datasets`` read as truth values."""

_MAX_VALUE_BYTES = 2**24
FILLED: Mapping[type[Field], Any] = {Text: "", Float: float("nan")}
"""What stands for a value that a row lacks, where that is no error."""


class ItemValues(Protocol):
    """The extra fields of the items of a source. Read-only; safe in any thread.

    A build reads all values of each item once, in the order of the table; an open dataset those of any item, at any
    time, as often as batches have it. So nothing is read before it is asked for, and what `read` keeps is bounded.
    """

    @property
    def fields(self) -> Mapping[str, Field]:
        """The fields, by name."""

    def read(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of one item as the source has them, unchecked; None for what is missing.

        Args:
            item: One of the table, from which everything follows that says where its values are.
            names: Of the fields that are wanted; None: all.

        Raises:
            SourceError: A value is damaged, or not there any more.
            OSError: It cannot be read.
        """

    def digest(self, table: ItemTable) -> bytes:
        """Return 32 bytes that change with any field, and as far as the listing knows them with any value."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldValues:
    """The values of items that a table or a list names: their column ``cells``. Read-only.

    It has a JSON list of the values of some columns, each as the source has it: text that stands for a number or a
    truth value is text. It may be shorter than the columns are many; what is not there, and an empty text that is no
    text field's, is missing; with ``fills`` it is an empty text in a text field, and not a number in a `Float`.

    Attributes:
        base: Folder that the paths of images and masks are relative to: an absolute path or a URL.
        columns: What each column is: a name and a field; None where it is not used.
        coco: The COCO file whose annotations the values of masks are: width, height and objects of a `CocoMask`; empty
            where masks are paths.
        fills: See above.
    """

    base: bytes
    columns: tuple[tuple[str, Field] | None, ...]
    coco: str = ""
    fills: bool = False

    @property
    def fields(self) -> dict[str, Field]:
        """The fields, by name."""
        return dict(column for column in self.columns if column is not None)

    def read(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of one item; None for what is missing. See `ItemValues`.

        Raises:
            SourceError: They are damaged.
        """
        try:
            values = json.loads(item.columns["cells"].decode("utf-8", "surrogatepass"))
            known = (column[0] for column in self.columns if column is not None)
            found = {name: None for name in known if names is None or name in names}
            for column, value in zip(self.columns, values, strict=False):
                if column is not None and column[0] in found:
                    found[column[0]] = self._value(column[1], value)
            if self.fills:
                filled = ((name, FILLED.get(type(self.fields[name]))) for name, one in found.items() if one is None)
                found.update(filled)
        except (TypeError, ValueError) as error:
            raise SourceError(f"the values of its fields are damaged: {error}; list the source again") from error
        return found

    def _value(self, field: Field, value: Any) -> Any:
        if isinstance(field, ImageField) and self.coco:
            width, height, objects = value
            return CocoMask(self.coco, width, height, objects)
        if isinstance(field, ImageField):
            return os.fsdecode(join(self.base, os.fsencode(value))) if value else None
        if isinstance(value, str) and isinstance(field, (Int, Float)):
            return _number(field, value) if value else None
        if self.fills and isinstance(value, int) and isinstance(field, (Text, Float)):
            return str(value) if isinstance(field, Text) else float(value)
        return value

    def digest(self, table: ItemTable) -> bytes:
        """Return 32 bytes that change with any field and any value."""
        digest = hashlib.sha256(repr([column and (column[0], column[1].to_json()) for column in self.columns]).encode())
        digest.update(b"fills" * self.fills)
        cells = cast("Blobs", table.columns["cells"]).take(np.flatnonzero(table.objects <= 0))  # once for all objects
        for first, end in chunks(len(cells.starts)):
            digest.update(cells.starts[first:end].tobytes())
        digest.update(cells.data)
        return digest.digest()


@dataclass(frozen=True, slots=True, eq=False)
class MemberValues:
    """The values of items that lie in tars as members of their own. Read-only.

    The column ``slices`` of an item has where the value of each field begins, and its length; -1 for a value that is
    not there.

    Attributes:
        places: Absolute paths or URLs of the tars.
        fields: The fields, by name.
    """

    places: tuple[bytes, ...]
    fields: dict[str, Field]

    def read(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of one item; None for what is missing. See `ItemValues`.

        Raises:
            SourceError: A value is damaged, or the tar has become shorter.
            OSError: It cannot be read.
        """
        slices = item.columns["slices"]
        found: dict[str, Any] = {}
        for name, start, size in zip(self.fields, slices[::2], slices[1::2], strict=True):
            if names is None or name in names:
                found[name] = None if start < 0 else self._read(item, name, start, size)
        return found

    def _read(self, item: Item, name: str, start: int, size: int) -> Any:
        place = os.fsdecode(self.places[item.columns["archive"]])
        where = f"the {name} of {item.key} in {place}"
        is_file = isinstance(self.fields[name], ImageField)
        if size > _MAX_VALUE_BYTES and not is_file:
            raise SourceError(f"{where} has {size} bytes, more than {_MAX_VALUE_BYTES}", path=place, offset=start)
        data = read_slice(self.places[item.columns["archive"]], start, size)
        if is_file:
            return data
        try:
            return data.decode() if isinstance(self.fields[name], Text) else parse_json(data)
        except (RecursionError, ValueError) as error:
            problem = f"it is not UTF-8 at byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
            raise SourceError(f"{where} is damaged: {problem}", path=place, offset=start) from error

    def digest(self, table: ItemTable) -> bytes:
        """Return 32 bytes that change with any field, and with the length of any value."""
        digest = hashlib.sha256(repr([(name, field.to_json()) for name, field in self.fields.items()]).encode())
        slices = cast("NDArray[np.int64]", table.columns["slices"])
        rows = np.flatnonzero(table.objects <= 0)  # once for all objects of an image
        rows = rows[np.argsort(table.numbers[rows])]
        for first, end in chunks(len(rows)):
            digest.update(slices[rows[first:end], 1::2].astype("<i8").tobytes())
        return digest.digest()


def _number(field: Int | Float, text: str) -> int | float:
    known = TRUTH_VALUES.get(text)
    if isinstance(field, Float):
        return float(text if known is None else known)
    return int(text) if known is None else int(known)


def json_bytes(value: Any) -> bytes:
    """Return what JSON can say as the ``cells`` of `FieldValues` have it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
