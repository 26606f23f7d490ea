"""Where images come from: a source is listed once, in an order that no file system can change."""

from __future__ import annotations

from stoker.sources.file_lists import find_files, shuffled
from stoker.sources.imagenet.boxes import BoxFolder, read_boxes
from stoker.sources.imagenet.config_file import read_config
from stoker.sources.imagenet.labels import LabelMap, has_control_character, one_line, read_label_map
from stoker.sources.items import SPLITS, Item, ItemTable, ItemTableBuilder
from stoker.sources.listing import SOURCE_KINDS, list_source
from stoker.sources.source import BoxSource, Source, SourceImage, SourceOptions, SourceTree, with_objects
from stoker.sources.tar_format import FileWindow, walk

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
    "list_source",
    "one_line",
    "read_boxes",
    "read_config",
    "read_label_map",
    "shuffled",
    "walk",
    "with_objects",
]
