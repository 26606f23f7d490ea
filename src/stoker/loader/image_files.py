"""Images that are files or members of tars, read as they are: no build in between."""

from __future__ import annotations

import errno
import os
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import ExampleError, ImageError, SourceError, StorageError
from stoker.loader.read_ahead import RemoteFiles
from stoker.loader.selection import same_numbers, selection_name
from stoker.sources import features_beside
from stoker.storage import stoppable_pool
from stoker.types import SchemaInfo

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.loader.selection import Numbers
    from stoker.sources import Item, ItemTable, SourceTree, StoredReader
    from stoker.types import Box, Features


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
        table = tree.table.take(rows)
        extents = tree.stored.extents(table)
        self.table = replace(table, sizes=extents.table.sizes)
        self.labels: NDArray[np.int64] = self.table.labels.astype(np.int64)
        self.schema = replace(FILE_SCHEMA, fields=tree.fields)
        self.records = _native.FileSet(
            os.fsdecode(extents.base),
            extents.table.paths.data[:],
            np.ascontiguousarray(extents.table.paths.starts, np.int64),
            self.labels,
            np.ascontiguousarray(extents.table.sizes, np.int64),
            [os.fsdecode(archive) for archive in extents.archives],
            *extents.slices(),
        )
        # No methods: what the core holds must not hold the core's objects again.
        name_of = {key: name for name, field in tree.fields.items() for key in field.features(name)}
        if name_of:
            self.records.set_fields(partial(_fields_record, tree.stored, self.table, name_of))
        self.remote: RemoteFiles | None = None
        if not extents.is_local:
            self.remote = RemoteFiles(len(extents.archives) + len(table), extents.location)
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
                features |= _fields_of(self._tree.stored, item, data, [name])
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
                item_boxes: Sequence[Box] = self._tree.read_boxes(item, self._split)
            except SourceError as error:
                damaged.append(str(error))
                continue
            counts[index] = len(item_boxes)
            boxes += item_boxes
            labels += [_label(box, item.label) for box in item_boxes]
        if damaged:
            message = f"{len(damaged)} of {len(self.table)} annotations are damaged, their images count as one object"
            warnings.warn(f"{message}; the first: {damaged[0]}", stacklevel=3)
        corners = np.array([(box.xmin, box.ymin, box.xmax, box.ymax) for box in boxes], np.float32).reshape(-1, 4)
        starts = np.concatenate(([0], np.cumsum(counts)))
        self.records.set_boxes(starts, corners, np.array(labels, np.int64))
        return counts.astype(np.uint32)


def _label(box: Box, label: int) -> int:
    """Return the class of an object: its own, or that of its image."""
    return label if box.label is None else box.label


def _fields_of(reader: StoredReader, item: Item, image: bytes, names: Collection[str]) -> Features:
    """Return some extra fields of an item as the features that a build of the same source would store."""
    try:
        return features_beside(image, {name: reader.fields[name] for name in names}, reader.values(item, names))
    except SourceError as error:
        raise ExampleError(str(error)) from error


def _fields_record(
    reader: StoredReader, table: ItemTable, name_of: Mapping[str, str], number: int, image: bytes, keys: Sequence[str]
) -> bytes:
    """Return an Example with the features of the fields that some keys belong to, for the core; see `_fields_of`."""
    try:
        return _native.write_example(_fields_of(reader, table[number], image, {name_of[key]: None for key in keys}))
    except StorageError:
        raise
    except OSError as error:
        message = f"its fields cannot be read: {error.strerror or error}"
        raise OSError(error.errno or errno.EIO, message) from error
