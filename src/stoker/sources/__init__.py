"""Where images come from: a source is listed once, in an order that no file system can change.

- ``listing``: tells the kinds of sources apart (start here to add one), and saves listings; ``look``: what they see
- modules that end with a `Kind`, such as ``coco``: the kinds
- ``source``: what each kind fills in, and the result; ``items``: its table
- ``reader``: what reads the items of a source; ``parquet_files``: those of Parquet
- ``boxes``: boxes; ``drawn_masks``: masks; ``pixels``: images and masks beside an image
- ``tables``: rows and columns of tables
- ``names``, ``split_lists``, ``known_layouts``: what names of files and folders say of splits and classes
- ``labels``: formats of labels, and ImageNet's 1,000 classes
- ``records``: what a program has, in sequences and in iterables, and datasets of other libraries
- ``files``, ``tar_format``: reading folders, files and tars

All raise `SourceError` for what is damaged or cannot be used; `ConfigError` for what the user says that does not fit,
or a package that is not installed; `OSError` for what cannot be read, a ``StorageError`` where a store cannot be
reached. Docstrings of what this package exports say which, others what is more.
"""

from __future__ import annotations

from stoker.sources.boxes import EMPTY, OUTSIDE, Annotations, BoxFolder, flaws_of, read_boxes
from stoker.sources.file_lists import find_files, is_config, read_config, shuffled
from stoker.sources.files import in_order, is_dataset
from stoker.sources.items import SPLITS, Item, ItemTable, ItemTableBuilder, counts_of, new_column, sum_of
from stoker.sources.kinds import SOURCE_KINDS, list_source
from stoker.sources.labels import LabelMap, bundled_label_map, has_control_character, one_line, read_label_map
from stoker.sources.listing import read_listing, write_listing
from stoker.sources.options import SourceOptions
from stoker.sources.parquet_files import UNPACKED_FOLDER, import_pyarrow, is_in_use, unpacked_files
from stoker.sources.pixels import RecordPixels, features_beside
from stoker.sources.reader import IndexedReader, Reader, SourceImage
from stoker.sources.records import (
    Given,
    RecordSequence,
    RecordStream,
    given_splits,
    image_digest,
    index_records,
    is_sequence,
    list_records,
    open_datasets,
)
from stoker.sources.source import Source, with_objects
from stoker.sources.tar_format import FileWindow, tar_members
