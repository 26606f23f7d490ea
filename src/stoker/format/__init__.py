"""The files of a dataset: shards, indexes, manifest, labels and rejects. `docs/reference/format.md` is the norm."""

from __future__ import annotations

from stoker.format.contents import contents_of, is_companion, no_records, records_below
from stoker.format.directory import (
    BACKGROUND,
    BUILD_FOLDER,
    JOURNAL_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    REJECTS_NAME,
    SIZES_NAME,
    ClassLabel,
    ListedFile,
    check_listed,
    is_dataset,
    is_unfinished,
    read_class_names,
    read_labels,
    read_rejects,
    sizes_path,
    write_labels,
    write_listed,
    write_rejects,
)
from stoker.format.frames import (
    HEADER_BYTES,
    FramedRecords,
    InflatedShard,
    ShardWriter,
    compression_of,
    compression_of_head,
    holds_records,
    inflate,
    payload_length,
)
from stoker.format.index import (
    FRAME_BYTES,
    INDEX_FOLDER,
    INDEX_SUFFIX,
    INDEXES_FOLDER,
    CachedIndex,
    cached_indexes,
    format_index,
    index_candidates,
    index_path,
    new_index_name,
    parse_index,
    read_index,
    read_index_file,
    write_index,
)
from stoker.format.journal import ItemReject, Journal, ShardResult, open_journal, read_journal, read_journal_head
from stoker.format.layouts import (
    DlbsSchema,
    DogsSchema,
    ImagenetSchema,
    NvidiaSchema,
    RecordKeys,
    Schema,
    StoredSample,
    TfdsSchema,
    TinySchema,
    find_layout,
    first_bytes,
    format_name,
    recognise,
)
from stoker.format.manifest import (
    VERSION,
    Manifest,
    Shard,
    SourceInfo,
    Split,
    format_manifest,
    nested_counts,
    read_classes,
    read_manifest,
    sum_of_formats,
    write_manifest,
)
from stoker.format.shard_names import (
    MAX_SHARDS,
    ShardNaming,
    SplitShards,
    find_shards,
    parse_shard_name,
    refuse_incomplete,
)
