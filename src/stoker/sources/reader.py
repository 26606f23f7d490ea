"""How the images and the values of items are read: one `Reader` for each way to store them.

The table of the source has the items; each call of a reader gets one of them. So readers hold no items, and are sent to
other processes in a few bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, cast, get_args

import numpy as np

from stoker.errors import SourceError
from stoker.fields import from_json
from stoker.sources.drawn_masks import DrawnMask
from stoker.sources.files import read_file
from stoker.sources.items import Blobs, Item, ItemTable, chunks
from stoker.storage import Location, from_uri, join, without_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.types import Box, Field

Latency: TypeAlias = Literal["disk", "store", "web"]
"""What reading an image waits for: this machine at most, a store, or a web server. A web server may send another image
the next time, and nothing is known of an image before it is read."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """How the values of items are read from the column ``cells``. Read-only; safe in any thread.

    It has a JSON list of values, each as the source has it: numbers and truth values in text stay text. A list may be
    shorter than ``columns``: values beyond its end are missing, and so are empty texts outside text fields. With
    ``fills`` a missing value becomes an empty text in a text field, and NaN in a `Float`.
    """

    columns: tuple[tuple[str, Field] | None, ...]  # what each column is: a name and a field; None where it is not used
    fills: bool = False  # see above
    # A name of `DrawnMask.kinds` and what its ``of_cell`` needs beside the value of a mask; None where masks are paths
    drawn: tuple[str, Any] | None = None

    @property
    def fields(self) -> dict[str, Field]:
        """The fields, by name."""
        return dict(column for column in self.columns if column is not None)

    def values(self, cells: bytes, base: bytes, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of one item from its ``cells``: of all fields or those in ``names``; None if missing.

        Paths of images and masks are relative to ``base``, an absolute path or a URL.
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
            return DrawnMask.kinds[self.drawn[0]].of_cell(self.drawn[1], value, base)
        if field.is_image:
            return os.fsdecode(join(base, os.fsencode(value))) if value else None
        if isinstance(value, str):
            return field.from_cell(value)
        is_filled = self.fills and isinstance(value, int) and field.missing is not None
        return type(field.missing)(value) if is_filled else value

    def digest(self, table: ItemTable) -> bytes:
        """Return 32 bytes that change with any field and any value."""
        digest = hashlib.sha256(repr([column and (column[0], column[1].to_json()) for column in self.columns]).encode())
        drawn = DrawnMask.kinds[self.drawn[0]].digested(self.drawn[1]) if self.drawn else b""
        digest.update(b"fills" * self.fills + drawn)
        cells = cast("Blobs", table.columns["cells"]).take(np.flatnonzero(table.objects <= 0))  # once per image
        for first, end in chunks(len(cells.starts)):
            digest.update(cells.starts[first:end].tobytes())
        digest.update(cells.data)
        return digest.digest()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        columns = [column and [column[0], column[1].to_json()] for column in self.columns]
        return {"columns": columns, "fills": self.fills, "drawn": self.drawn}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> Self:
        """Return what `to_json` has described.

        Raises:
            ConfigError: A field is not valid.
            KeyError, TypeError: It is damaged.
        """
        columns = tuple(column and (str(column[0]), from_json(column[1])) for column in described["columns"])
        drawn = described["drawn"] and (str(described["drawn"][0]), described["drawn"][1])
        if drawn and drawn[0] not in DrawnMask.kinds:
            raise KeyError(drawn[0])
        return cls(columns, bool(described["fills"]), drawn or None)


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON in the form that ``cells`` have."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class SourceImage:
    """One image, as it was loaded.

    Attributes:
        data: The bytes of its file, or its pixels, as `stoker.recipe.convert` takes them.
        filename: Name of its file without any folder, or its URL.
        boxes: Its annotated objects.
        annotation_error: What is wrong with its annotation, in which case it has no boxes.
        fields: Values of the extra fields, as the source gives them: not checked yet.
        label: Its class, if it is known only after loading; None if its item has it.
    """

    data: bytes | NDArray[Any]
    filename: bytes
    boxes: Sequence[Box] = ()
    annotation_error: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    label: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Extents:
    """Where the core reads images from: files, or slices of files."""

    base: bytes  # folder that the paths of files are relative to
    # the images. With a column ``archive``, an image is a slice of the file of that number from its ``offset`` on,
    # unless the number is -1. ``sizes`` has -1 for an image whose size is not known before it is loaded
    table: ItemTable
    archives: tuple[bytes, ...] = ()  # absolute paths or URLs of the files that ``archive`` numbers
    is_local: bool = True  # whether all of them lie on this machine
    # returns the bytes or the pixels of a row, if a program has the images; None if all are files
    load: Callable[[int], bytes | NDArray[Any]] | None = None

    def slices(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the number of the archive of each image (-1 without one), and its offset there."""
        archives = self.table.columns.get("archive", np.broadcast_to(np.int32(-1), len(self.table)))
        offsets = self.table.columns.get("offset", np.broadcast_to(np.int64(0), len(self.table)))
        return np.ascontiguousarray(archives, np.int32), np.ascontiguousarray(offsets, np.int64)

    def location(self, number: int) -> Location:
        """Return the location of a file by number: archives come first, then one file for each image."""
        own = number - len(self.archives)
        return from_uri(join(self.base, self.table.paths[own] if own >= 0 else self.archives[number]))


class Reader(ABC):
    """Reads the items of a source. Read-only; safe in any thread.

    A build reads each item once, in the order of the table. An open dataset reads any item at any time, as often as
    batches have it. So readers read nothing in advance, and their caches are bounded.

    Attributes:
        is_named_by_path: Whether the name of an image is its whole path, not the last part of it.
        latency: What reading an image waits for.
        fields: The extra fields that items have, by name.
        box_names: Names of the classes of boxes; empty if boxes have the classes of the images.
        has_witness: Whether `witness` has to tell if the values are still those that a dataset was built from.
    """

    is_named_by_path: ClassVar[bool] = False
    latency: Latency
    fields: Mapping[str, Field]
    box_names: tuple[str, ...] = ()
    has_witness: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings from the items that were read so far."""
        return ()

    @property
    def uris(self) -> tuple[bytes, ...]:
        """Files and folders that must exist: absolute paths or URLs."""
        return ()

    @property
    def identity(self) -> str:
        """32 hex digits that identify the source; empty if its table, boxes and values identify it."""
        return ""

    @abstractmethod
    def load(self, item: Item) -> SourceImage:
        """Return an image and its values, and its boxes unless they are annotations beside it.

        Raises:
            OSError: It cannot be read; a ``StorageError``, if its store cannot be reached.
            StokerError: It is damaged, too large, or no longer what was listed.
        """

    def plain_file(self, item: Item) -> bytes | None:  # noqa: ARG002 - most have none
        """Return the path of the local file that an item consists of; None if there is no such file."""
        return None

    def witness(self, rows: NDArray[np.int64]) -> str:  # noqa: ARG002 - most have none
        """Return a text that changes with the values of some rows of the table; rows that were not loaded are read."""
        return ""

    def boxes(self, item: Item) -> list[Box]:  # noqa: ARG002 - most have none
        """Return the boxes of an item, unless they are annotations beside it.

        Raises:
            SourceError: They are damaged.
        """
        return []


class IndexedReader(Reader):
    """Reads items in any order, and images and values separately, as an open dataset needs them."""

    @abstractmethod
    def values(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of the fields of an item as the source has them, unchecked; None for missing values.

        Args:
            item: The item.
            names: Names of the fields to read; None: all.

        Raises:
            SourceError: A value is damaged, or no longer there.
            OSError: It cannot be read.
        """

    def content(self, numbers: NDArray[np.int64]) -> bytes:  # noqa: ARG002 - most sources have an identity
        """Return bytes that change with the values of the items of these numbers, if the fingerprint does not."""
        return b""

    def allow(self, threads: int) -> None:
        """Let this many threads read objects of a program at the same time, instead of one."""

    @abstractmethod
    def extents(self, table: ItemTable) -> Extents:
        """Return where images lie.

        Raises:
            SourceError: A file is damaged.
            ConfigError: There is no space for what has to be unpacked.
            OSError: A file cannot be read.
        """


class StoredReader(IndexedReader):
    """Reads images that have paths or URLs, so that their source can be saved, sent to other processes and opened.

    Attributes:
        name: Name of the reader in saved listings.
    """

    name: ClassVar[str]

    def load(self, item: Item) -> SourceImage:
        name = without_signature(item.path) if self.is_named_by_path else item.name
        return SourceImage(self.image(item), name, fields=self.values(item))

    @abstractmethod
    def locate(self, item: Item) -> bytes:
        """Return the absolute path or the URL of the file that holds an image."""

    @abstractmethod
    def image(self, item: Item) -> bytes:
        """Return the bytes of an image.

        Raises:
            OSError: It cannot be read; a ``StorageError``, if its store cannot be reached.
            SourceError: It is too large, or no longer what was listed.
        """

    @abstractmethod
    def digest(self, table: ItemTable) -> bytes:
        """Return bytes that change with any field, and with any value that the listing knows; b"" without fields."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `from_json` makes the same reader."""

    @classmethod
    @abstractmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable) -> Self:
        """Return what `to_json` has described.

        Args:
            described: What `to_json` has returned.
            table: The items to read.

        Raises:
            ConfigError: A field is not valid.
            KeyError, TypeError, ValueError: It is damaged, or the table lacks a column.
        """


class FileReader(StoredReader):
    """Reads images that are files of their own, and their values in a table.

    Args:
        base: Folder that the paths of files are relative to: absolute, links resolved, or a URL such as
            ``s3://photos/train`` without a slash at the end.
        latency: What reading a file waits for.
        cells: How the column ``cells`` of the items is read; None without extra fields.
    """

    name = "files"

    def __init__(self, base: bytes, latency: Latency, cells: Cells | None = None) -> None:
        self.base, self.latency, self.cells = base, latency, cells
        self.fields = {} if cells is None else cells.fields

    @property
    def uris(self) -> tuple[bytes, ...]:
        return (self.base,)

    def locate(self, item: Item) -> bytes:
        return join(self.base, item.path)

    def image(self, item: Item) -> bytes:
        return read_file(self.locate(item), item.size_bytes)

    def plain_file(self, item: Item) -> bytes | None:
        """Return the path of the file, unless it lies in a store or has values beside it."""
        return self.locate(item) if self.cells is None and self.latency == "disk" else None

    def values(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        return {} if self.cells is None else self.cells.values(item.columns["cells"], self.base, names)

    def digest(self, table: ItemTable) -> bytes:
        return b"" if self.cells is None else self.cells.digest(table)

    def extents(self, table: ItemTable) -> Extents:
        return Extents(self.base, table, is_local=self.latency == "disk")

    def to_json(self) -> dict[str, Any]:
        cells = None if self.cells is None else self.cells.to_json()
        return {"base": to_text(self.base), "latency": self.latency, "cells": cells}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable) -> Self:
        if described["latency"] not in get_args(Latency):
            raise ValueError("an unknown latency")
        cells = None if described["cells"] is None else Cells.from_json(described["cells"])
        if cells is not None and not isinstance(table.columns["cells"], Blobs):
            raise ValueError("values that are no text")
        return cls(to_bytes(described["base"]), described["latency"], cells)


class ArchiveReader(StoredReader):
    """Reads images that are parts of larger files; the column ``archive`` of an item has the number of the file.

    Args:
        base: Folder of the files.
        archives: Absolute paths or URLs of the files.
        fields: The extra fields that items have, by name.
    """

    def __init__(self, base: bytes, archives: tuple[bytes, ...], fields: Mapping[str, Field]) -> None:
        self.base, self.archives, self.fields = base, archives, fields
        self.latency = "disk" if all(from_uri(uri).is_local for uri in self.uris) else "store"

    @property
    def uris(self) -> tuple[bytes, ...]:
        return (self.base, *self.archives)

    def locate(self, item: Item) -> bytes:
        archive: int = item.columns["archive"]
        return self.archives[archive]

    def to_json(self) -> dict[str, Any]:
        fields = [[name, field.to_json()] for name, field in self.fields.items()]
        return {"base": to_text(self.base), "archives": list(map(to_text, self.archives)), "fields": fields}

    @staticmethod
    def parts_of(described: Mapping[str, Any], table: ItemTable) -> tuple[bytes, tuple[bytes, ...], dict[str, Field]]:
        """Return the arguments that `to_json` has described."""
        archives = tuple(map(to_bytes, described["archives"]))
        numbers_in(table, "archive", len(archives))
        fields = {str(name): from_json(field) for name, field in described["fields"]}
        return to_bytes(described["base"]), archives, fields


def numbers_in(table: ItemTable, name: str, end: int = 2**63, shape: tuple[int, ...] = ()) -> NDArray[np.int64]:
    """Return a column of numbers from a saved listing.

    Raises:
        KeyError, ValueError: It does not exist, its values have another shape, or a value is not below ``end``.
    """
    column = table.columns[name]
    if isinstance(column, Blobs) or column.shape[1:] != shape or (len(column) and int(column.max()) >= end):
        raise ValueError(f"{name} out of range")
    return column


def to_text(name: bytes) -> str:
    """Return a path or a name as text for JSON."""
    return name.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """Return the path or the name that `to_text` has written; `ValueError` if it has a NUL character."""
    if "\0" in text:
        raise ValueError("a name with a NUL byte")
    return text.encode("utf-8", "surrogateescape")
