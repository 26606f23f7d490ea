"""Where images come from: a source is listed once, in an order that no file system can change."""

from __future__ import annotations

from stoker.sources.boxes import BoxFolder, read_boxes
from stoker.sources.config_file import PipelineConfig, read_config
from stoker.sources.folders import Listing, list_folders
from stoker.sources.items import Item, ItemTable, ItemTableBuilder
from stoker.sources.label_map import LabelMap, read_label_map
from stoker.sources.listing import list_source
from stoker.sources.objects import with_objects
from stoker.sources.reading import MAX_FILE_BYTES, read_file
from stoker.sources.tree import SPLITS, BoxSource, Source, SourceImage, SourceOptions, SourceTree
from stoker.sources.walk import Skipped

__all__ = [
    "MAX_FILE_BYTES",
    "SPLITS",
    "BoxFolder",
    "BoxSource",
    "Item",
    "ItemTable",
    "ItemTableBuilder",
    "LabelMap",
    "Listing",
    "PipelineConfig",
    "Skipped",
    "Source",
    "SourceImage",
    "SourceOptions",
    "SourceTree",
    "list_folders",
    "list_source",
    "read_boxes",
    "read_config",
    "read_file",
    "read_label_map",
    "with_objects",
]
