"""Records in memory as a source of a build."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from builder.trees import settings_for
from reference import example, tfrecord
from small_datasets import change_manifest
from stoker import _native
from stoker.builder import BuildReport, build_source
from stoker.format.manifest import Shard, Split, dataset_id, read_manifest
from stoker.sources import Item, ItemTableBuilder, Reader, Source, SourceImage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stoker.types import Features, Field

SHARD = "train-00000-of-00001.tfrecord"
"""The only shard that `build_records` writes, unless it is told otherwise."""


class MemoryReader(Reader):
    """Reads dicts: ``image`` is the bytes of a file, everything else an extra field."""

    latency = "disk"

    def __init__(self, records: Sequence[Mapping[str, Any]], fields: Mapping[str, Field]) -> None:
        self.records, self.fields = records, fields

    @property
    def identity(self) -> str:
        return hashlib.sha256(repr([sorted(record) for record in self.records]).encode()).hexdigest()[:32]

    def load(self, item: Item) -> SourceImage:
        record = self.records[item.number]
        extra = {name: value for name, value in record.items() if name != "image"}
        return SourceImage(record["image"], item.name, fields=extra)


def memory_source(records: Sequence[Mapping[str, Any]], fields: Mapping[str, Field]) -> Source:
    """A source of dicts, as `MemoryReader` reads them, all of one class."""
    builder = ItemTableBuilder()
    for number, record in enumerate(records):
        builder.add(Item(b"record-%d" % number, 0, len(record["image"]), number))
    table = builder.finish()
    splits = {"train": np.arange(len(table), dtype=np.int64)}
    return Source("/", (b"cat",), (b"",), table, splits, MemoryReader(records, fields))


def build_records(
    destination: Path,
    records: Sequence[Mapping[str, Any]],
    fields: Mapping[str, Field],
    *,
    shards: int = 1,
    **settings: Any,
) -> BuildReport:
    """Build a dataset of records."""
    build_settings = settings_for("/", shards=shards, **{"threads": 1, **settings})
    return build_source(memory_source(records, fields), build_settings, destination)


def with_second_record(dataset: Path, folder: Path, changes: Features) -> tuple[Path, int]:
    """A copy whose second record has other features, as the manifest and the checksums have it; and where it begins."""
    shutil.copytree(dataset, folder)
    shard = folder / SHARD
    first, second = tfrecord.scan(shard.read_bytes())
    held = {key: value for key, value in (example.parse(second.payload) | changes).items() if value is not None}
    data = tfrecord.frame(first.payload) + tfrecord.frame(example.write(held))
    shard.write_bytes(data)
    (folder / f"{SHARD}.idx").write_text(f"0 {first.size}\n{first.size} {len(data) - first.size}\n")
    split = read_manifest(dataset).splits["train"]
    listed = {"name": SHARD, "records": 2, "bytes": len(data), "crc32c": f"{_native.crc32c(data):08x}"}
    content: dict[str, Any] = {
        "records": 2, "bytes": len(data), "rejects": 0, "class_counts": list(split.class_counts), "unlabelled": 0,
        "shards": [listed],
    }  # fmt: skip
    changed_split = Split(2, len(data), 0, split.class_counts, (Shard(SHARD, 2, len(data), _native.crc32c(data)),))
    change_manifest(folder, splits={"train": content}, dataset_id=dataset_id({"train": changed_split}))
    return folder, first.size
