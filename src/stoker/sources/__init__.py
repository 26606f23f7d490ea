"""Where images come from: a tree is listed once, in an order that no file system can change."""

from __future__ import annotations

from stoker.sources.boxes import BoxFolder, read_boxes
from stoker.sources.folder import SourceTree, list_folder
from stoker.sources.items import Item, ItemTable
from stoker.sources.reading import MAX_FILE_BYTES, read_file

__all__ = ["MAX_FILE_BYTES", "BoxFolder", "Item", "ItemTable", "SourceTree", "list_folder", "read_boxes", "read_file"]
