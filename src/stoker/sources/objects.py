"""A source of objects: each annotated box of each image is an item of its own."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError
from stoker.sources.in_order import AT_ONCE, in_order
from stoker.sources.items import ItemTableBuilder

if TYPE_CHECKING:
    from stoker.sources.items import Item
    from stoker.sources.tree import SourceTree
    from stoker.types import Progress

_PROGRESS_ITEMS = 256


def with_objects(tree: SourceTree, progress: Progress | None = None) -> SourceTree:
    """Return the source with one row for each annotated object of each image.

    An image without boxes, or with a damaged annotation, stays one row that means the whole image. The objects of an
    image follow one another in the order of its annotation. Every annotation is read once.

    Args:
        tree: A source of whole images.
        progress: Told about every few images.
    """
    builder = ItemTableBuilder()
    splits = {}
    for split, rows in tree.splits.items():
        first = len(builder)
        items = (tree.table[row] for row in rows.tolist())
        counted = in_order(partial(_counted, tree, split), items, AT_ONCE if tree.is_remote else 1)
        for done, (item, count) in enumerate(counted):
            for index in range(count) or (-1,):
                builder.add(dataclasses.replace(item, object=index))
            if progress is not None and done % _PROGRESS_ITEMS == 0:
                progress(done=int(rows[0]) + done, total=len(tree.table), size_bytes=0, rejects=0)
        splits[split] = np.arange(first, len(builder), dtype=np.int64)
    return dataclasses.replace(tree, table=builder.finish(), splits=splits)


def _counted(tree: SourceTree, split: str, item: Item) -> tuple[Item, int]:
    try:
        return item, len(tree.read_boxes(item, split))
    except SourceError:
        return item, 0  # the build meets it again, and reports it
