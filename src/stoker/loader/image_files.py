"""Images that are files or members of tars, read as they are: no build in between."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.errors import SourceError
from stoker.loader.read_ahead import RemoteFiles
from stoker.recipe import Recipe, convert
from stoker.storage import place_at, within
from stoker.types import SchemaInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stoker.sources import ItemTable, SourceTree
    from stoker.storage import Location
    from stoker.types import Box, Features


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
    """The images of one split of a source.

    Args:
        tree: The source.
        split: One of its splits.
    """

    def __init__(self, tree: SourceTree, split: str) -> None:
        self._tree = tree
        self._split = split
        self._object_counts: NDArray[np.uint32] | None = None
        self.table = tree.table.take(tree.splits[split])
        self.labels: NDArray[np.int64] = self.table.labels.astype(np.int64)
        self.fingerprint = tree.fingerprint()
        table = self.table
        self.records = _native.FileSet(
            os.fsdecode(tree.base),
            table.names,
            np.ascontiguousarray(table.starts, np.int64),
            self.labels,
            np.ascontiguousarray(table.sizes, np.int64),
            [os.fsdecode(archive) for archive in tree.archives],
            np.ascontiguousarray(table.archives, np.int32),
            np.ascontiguousarray(table.offsets, np.int64),
        )

        self.remote: RemoteFiles | None = None
        if not tree.images_are_local:
            # Not a method: what the core holds must not hold the core's objects again.
            self.remote = RemoteFiles(len(tree.archives) + len(table), partial(_place, tree, table))
            self.remote.attach_to(self.records)

    def features(self, index: int, data: bytes) -> Features:
        """Return one image as features; its boxes are read from its annotation.

        Raises:
            SourceError: The annotation is damaged.
        """
        item = self.table[index]
        boxes = self._tree.read_boxes(item, self._split)
        return {
            "image": ("bytes", [data]),
            "label": ("int64", [item.label]),
            "file_name": ("bytes", [item.path]),
            "box/xmin": ("float", [box.xmin for box in boxes]),
            "box/xmax": ("float", [box.xmax for box in boxes]),
            "box/ymin": ("float", [box.ymin for box in boxes]),
            "box/ymax": ("float", [box.ymax for box in boxes]),
        }

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
        damaged = []
        for index, item in enumerate(self.table):
            try:
                found: Sequence[Box] = self._tree.read_boxes(item, self._split)
            except SourceError as error:
                damaged.append(str(error))
                continue
            counts[index] = len(found)
            boxes += found
        if damaged:
            message = f"{len(damaged)} of {len(self.table)} annotations are damaged, their images count as one object"
            warnings.warn(f"{message}; the first: {damaged[0]}", stacklevel=3)
        corners = np.array([(box.xmin, box.ymin, box.xmax, box.ymax) for box in boxes], np.float32).reshape(-1, 4)
        self.records.set_boxes(np.concatenate(([0], np.cumsum(counts))), corners)
        return counts.astype(np.uint32)


def _place(tree: SourceTree, table: ItemTable, number: int) -> Location:
    """Return where a file is, as the core counts them: the archives, then one for each image."""
    archives = tree.archives
    name = archives[number] if number < len(archives) else table[number - len(archives)].path
    return place_at(within(tree.base, name))


_AS_STORED = Recipe()


def to_jpeg(data: bytes, max_pixels: int = _AS_STORED.max_pixels) -> bytes:
    """Return an image that is not a JPEG, whatever its name says, as the JPEG that ``stoker build`` would store for it.

    Args:
        data: The bytes of its file.
        max_pixels: An image with more is refused before memory is taken for it.

    Raises:
        ImageError: It is not an image, has more pixels, or cannot be decoded without losing any.
    """
    stored = convert(data, replace(_AS_STORED, max_pixels=max_pixels)).data
    return bytes(stored)
