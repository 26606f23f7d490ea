"""Where images come from: a source is listed once, in an order that no file system can change.

- ``listing``: tells the kinds of sources apart; start here to add one
- ``folders``, ``tars``, ``file_lists``: the kinds
- ``source_builder``, ``items``: what each kind fills; ``source``: the result
- ``imagenet``: formats of labels and boxes
- ``walking``, ``tar_format``, ``reading``: reading folders, tars and files
"""

from __future__ import annotations

from stoker.sources.file_lists import find_files, shuffled
from stoker.sources.imagenet.boxes import BoxFolder, read_boxes
from stoker.sources.imagenet.config_file import is_config, read_config
from stoker.sources.imagenet.labels import LabelMap, has_control_character, one_line, read_label_map
from stoker.sources.items import SPLITS, Item, ItemTable, ItemTableBuilder
from stoker.sources.listing import SOURCE_KINDS, list_source
from stoker.sources.source import BoxSource, Source, SourceImage, SourceOptions, SourceTree, with_objects
from stoker.sources.tar_format import FileWindow, tar_members

__all__ = [
    "SOURCE_KINDS",
    "SPLITS",
    "BoxFolder",
    "BoxSource",
    "FileWindow",
    "Item",
    "ItemTable",
    "ItemTableBuilder",
    "LabelMap",
    "Source",
    "SourceImage",
    "SourceOptions",
    "SourceTree",
    "find_files",
    "has_control_character",
    "is_config",
    "list_source",
    "one_line",
    "read_boxes",
    "read_config",
    "read_label_map",
    "shuffled",
    "tar_members",
    "with_objects",
]
