"""What a kind of source is. Each has a module, ending with its `Kind`; `stoker.sources.listing` asks them all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.sources.imagenet.boxes import BoxFolder, MappedBoxes
from stoker.sources.reader import FileReader
from stoker.sources.table_boxes import TableBoxes

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.sources.look import Look
    from stoker.sources.reader import StoredReader
    from stoker.sources.source import Source
    from stoker.sources.table_boxes import Annotations


LABEL_OPTIONS = frozenset({"class_names", "labels", "imagenet_labels"})
"""Names of the options that mean something wherever images have classes."""

COLUMN_OPTIONS = frozenset({"image_column", "label_column", "columns"})
"""Names of the options that mean something to every table."""
TABLE_OPTIONS = COLUMN_OPTIONS | {"label_separator", "split_column", "separator", "image_root"}
"""Names of those that mean something to a table beside images."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source.

    Attributes:
        name: What help and messages call it.
        looks_like: How it is recognised.
        claim: Returns what ``list`` needs to list a place of this kind; None or nothing for a place of another kind.
        list: Lists a place, given what ``claim`` returned.
        options: Names of the `stoker.sources.SourceOptions` that mean something to it; others are refused.
        reader: Its `StoredReader`, which readers of saved listings make again.
        annotations: Its `Annotations`, which they make again, too.
    """

    name: str
    looks_like: str
    claim: Callable[[Look], Any]
    list: Callable[[Look, Any], Source]
    options: frozenset[str] = LABEL_OPTIONS | {"boxes", "validation_labels"}
    reader: type[StoredReader] = FileReader
    annotations: tuple[type[Annotations], ...] = (BoxFolder, MappedBoxes, TableBoxes)
