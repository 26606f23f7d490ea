"""Images that are files or members of tars, read as they are: no build in between."""

from __future__ import annotations

import errno
import os
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import ExampleError, ImageError, SourceError, StorageError
from stoker.extra_fields import features_beside
from stoker.loader.read_ahead import RemoteFiles
from stoker.loader.selection import same_numbers, selection_name
from stoker.progress import progress_of_call
from stoker.sources import ParquetRows
from stoker.storage import from_uri, join, stoppable_pool
from stoker.types import SchemaInfo

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.loader.selection import Numbers
    from stoker.sources import ItemTable, ItemValues, SourceTree
    from stoker.storage import Location
    from stoker.types import Box, Features, Field


_AT_ONCE_REMOTE, _CHUNK = 16, 4096

FILE_SCHEMA = SchemaInfo(
    preset="files",
    features={},
    image_key="image",
    label_key="label",
    filename_key="file_name",
    label_base=0,
    box_prefix="box/",
)
"""How a file is presented as if it were a record: its class is the index of its folder among all, from 0."""


class ItemFields:
    """The extra fields of items, as the features that a build of the same source would store. Safe in any thread.

    Args:
        fields: What they are.
        values: What the items have of them.
        table: The items.
    """

    def __init__(self, fields: Mapping[str, Field], values: ItemValues, table: ItemTable) -> None:
        self.fields = fields
        self._values = values
        self._table = table
        self._name_of = {key: name for name, field in fields.items() for key in field.features(name)}

    def features(self, number: int, image: bytes, names: Collection[str]) -> Features:
        """Return the features of some fields of one item.

        Args:
            number: Of the item.
            image: Its bytes; used only where a field is an image or a mask.
            names: Of the fields.

        Raises:
            ExampleError: A value is missing, or is not one of its field: what a build would reject the item for.
            ImageError: As `features_beside`.
            OSError: It cannot be read.
        """
        try:
            values = self._values.read(self._table[number], names)
            return features_beside(image, {name: self.fields[name] for name in names}, values)
        except SourceError as error:
            raise ExampleError(str(error)) from error

    def record(self, number: int, image: bytes, keys: Sequence[str]) -> bytes:
        """Return an Example with the features of the fields that some keys belong to, for the core.

        Raises:
            ExampleError: As `features`.
            ImageError: The same.
            OSError: The same, with words of ours.
        """
        try:
            return _native.write_example(self.features(number, image, {self._name_of[key]: None for key in keys}))
        except StorageError:
            raise
        except OSError as error:
            message = f"its fields cannot be read: {error.strerror or error}"
            raise OSError(error.errno or errno.EIO, message) from error


class ImageFiles:
    """The images of one split of a source, in its own order: as `SourceTree.rows_as_listed` has them.

    Args:
        tree: The source.
        split: One of its splits.

    Attributes:
        table: The images.
        fingerprint: Stands for the source, and for the order of the images where that is not the order of a build.
        schema: How they are presented as if they were records.
        records: The native reader.
        remote: The files, if they are in a store.
    """

    def __init__(self, tree: SourceTree, split: str) -> None:
        self._tree = tree.without_items()
        self._split = split
        self._object_counts: NDArray[np.uint32] | None = None
        rows = tree.rows_as_listed(split)
        self.fingerprint = tree.fingerprint()
        if not same_numbers(rows, tree.splits[split]):
            self.fingerprint += f"[{selection_name(rows)}]"
        table, archives = tree.table.take(rows), tree.archives
        self.table = table
        if isinstance(tree.values, ParquetRows):
            with progress_of_call("unpacking", None) as progress:
                table, archives = tree.values.located(table, progress)
            self.table = replace(self.table, sizes=table.sizes)
        self.labels: NDArray[np.int64] = self.table.labels.astype(np.int64)
        self.schema = replace(FILE_SCHEMA, fields=tree.fields)
        self._fields = None if tree.values is None else ItemFields(tree.fields, tree.values, self.table)
        self.records = _native.FileSet(
            os.fsdecode(tree.base),
            table.paths.data[:],
            np.ascontiguousarray(table.paths.starts, np.int64),
            self.labels,
            np.ascontiguousarray(table.sizes, np.int64),
            [os.fsdecode(archive) for archive in archives],
            *_extents(table),
        )
        if self._fields is not None:
            self.records.set_fields(self._fields.record)
        self.remote: RemoteFiles | None = None
        if not (tree.images_are_local or isinstance(tree.values, ParquetRows)):
            # Not a method: what the core holds must not hold the core's objects again.
            self.remote = RemoteFiles(len(tree.archives) + len(table), partial(_place, tree, table))
            self.remote.attach_to(self.records)

    def features(self, index: int, data: bytes) -> tuple[Features, dict[str, str]]:
        """Return one image as features, and what is wrong with fields that it has not; its boxes are read, too.

        Raises:
            SourceError: The annotation is damaged.
            OSError: A value cannot be read.
        """
        item = self.table[index]
        boxes = self._tree.read_boxes(item, self._split)
        features: Features = {
            "image": ("bytes", [data]),
            "label": ("int64", [item.label]),
            "file_name": ("bytes", [item.path]),
            "box/xmin": ("float", [box.xmin for box in boxes]),
            "box/xmax": ("float", [box.xmax for box in boxes]),
            "box/ymin": ("float", [box.ymin for box in boxes]),
            "box/ymax": ("float", [box.ymax for box in boxes]),
        }
        if any(box.label is not None for box in boxes):
            features["box/label"] = ("int64", [_label(box, item.label) for box in boxes])
        problems = {}
        for name in self.schema.fields:
            try:
                features |= cast("ItemFields", self._fields).features(index, data, [name])
            except (ExampleError, ImageError) as error:
                problems[name] = str(error)
        return features, problems

    def name_digests(self, numbers: Numbers) -> NDArray[np.uint64]:
        """Return what stands for the name of each of some images, without its folders: uint64 (N,)."""
        digests = (_native.name_digest(self.table[int(number)].name) for number in numbers)
        return np.fromiter(digests, np.uint64, len(numbers))

    def content_digests(self, numbers: Numbers) -> NDArray[np.uint64]:
        """Return what stands for the bytes of each of some images, which are all read: uint64 (N,).

        Raises:
            OSError: One cannot be read.
        """
        digests = np.empty(len(numbers), np.uint64)
        with stoppable_pool(available_cpus() if self.remote is None else _AT_ONCE_REMOTE, "stoker-digests") as pool:
            for start in range(0, len(numbers), _CHUNK):
                some = np.asarray(numbers[start : start + _CHUNK]).tolist()
                digests[start : start + len(some)] = list(pool.map(self._content_digest, some))
        return digests

    def _content_digest(self, number: int) -> int:
        return _native.name_digest(self.records.read(number))

    @property
    def object_counts(self) -> NDArray[np.uint32]:
        """How many annotated objects each image has; reads every annotation, and passes them to the core.

        An image with a damaged annotation counts as one without; a warning says how many there are.
        """
        if self._object_counts is None:
            self._object_counts = self._read_boxes()
        return self._object_counts

    def _read_boxes(self) -> NDArray[np.uint32]:
        counts = np.zeros(len(self.table), np.int64)
        boxes: list[Box] = []
        labels: list[int] = []
        damaged = []
        for index, item in enumerate(self.table):
            try:
                found: Sequence[Box] = self._tree.read_boxes(item, self._split)
            except SourceError as error:
                damaged.append(str(error))
                continue
            counts[index] = len(found)
            boxes += found
            labels += [_label(box, item.label) for box in found]
        if damaged:
            message = f"{len(damaged)} of {len(self.table)} annotations are damaged, their images count as one object"
            warnings.warn(f"{message}; the first: {damaged[0]}", stacklevel=3)
        corners = np.array([(box.xmin, box.ymin, box.xmax, box.ymax) for box in boxes], np.float32).reshape(-1, 4)
        starts = np.concatenate(([0], np.cumsum(counts)))
        self.records.set_boxes(starts, corners, np.array(labels, np.int64))
        return counts.astype(np.uint32)


def _extents(table: ItemTable) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the archive of each image, -1 without one, and where it begins in that, as the core takes them."""
    nowhere = np.broadcast_to(np.int32(-1), len(table)), np.broadcast_to(np.int64(0), len(table))
    archives, offsets = (
        table.columns.get(name, other) for name, other in zip(("archive", "offset"), nowhere, strict=True)
    )
    return np.ascontiguousarray(archives, np.int32), np.ascontiguousarray(offsets, np.int64)


def _label(box: Box, label: int) -> int:
    """Return the class of an object: its own, or that of its image."""
    return label if box.label is None else box.label


def _place(tree: SourceTree, table: ItemTable, number: int) -> Location:
    """Return where a file is, as the core counts them: the archives, then one for each image."""
    archives = tree.archives
    name = archives[number] if number < len(archives) else table[number - len(archives)].path
    return from_uri(join(tree.base, name))
