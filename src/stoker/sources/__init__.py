"""Sources of images: each is listed once, in an order that does not depend on the file system.

- ``kinds``: asks each kind of source in turn (start here to add one); ``look``: what each kind checks
- modules that end with a `Kind`, such as ``coco``: the kinds
- ``source``: the listed source, and the builder that a kind fills; ``items``: its table; ``listing``: saving it
- ``reader``: reads the items of a source; ``parquet_files``: reads Parquet
- ``boxes``: boxes; ``drawn_masks``: masks; ``pixels``: images and masks beside an image
- ``tables``: rows and columns of tables
- ``names``, ``split_lists``, ``known_layouts``: classes and splits by names of files and folders; see `stoker.splits`
- ``labels``: formats of labels, and ImageNet's 1,000 classes
- ``records``: records that a program has in sequences and iterables, and datasets of other libraries
- ``files``, ``tar_format``: reading folders, files and tars

All raise `SourceError` for a source that is damaged or cannot be used, `ConfigError` for an option that does not fit or
a package that is not installed, and `OSError` for a file that cannot be read: a ``StorageError`` if a store cannot be
reached. Exported functions document all of these, others only further errors.
"""

from __future__ import annotations

from stoker.sources.boxes import EMPTY, OUTSIDE, Annotations, BoxFolder, flaws_of, read_boxes
from stoker.sources.file_lists import find_files, is_config, read_config, shuffled
from stoker.sources.files import in_order
from stoker.sources.items import Item, ItemTable, ItemTableBuilder, counts_of, new_column, sum_of
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
