"""One split of a dataset, opened for random access."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from stoker import _native
from stoker.errors import ConfigError, ExampleError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.records.labels import ClassLabel
    from stoker.records.manifest import Manifest, SchemaInfo
    from stoker.types import Features


@dataclass(frozen=True, slots=True)
class OpenShard:
    """A shard and where its records lie.

    Attributes:
        path: Its path.
        extents: uint64 (N, 2) of (offset, size) of each whole frame, in bytes.
    """

    path: Path
    extents: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Sample:
    """One record.

    Attributes:
        key: Its number in the split.
        features: Everything it holds.
        encoded: The bytes of its image, as stored.
        label: Its label, as stored; -1 when there is none.
        source: Name of the image it was made from; empty when the record does not say.
    """

    key: int
    features: Features
    encoded: bytes
    label: int
    source: str

    def decode(self) -> NDArray[np.uint8]:
        """Return the whole image, uint8 (H, W, 3), RGB.

        Raises:
            ImageError: It cannot be decoded without losing pixels.
        """
        return _native.decode_jpeg(self.encoded)


class Dataset:
    """One split of a dataset: ``len(dataset)`` samples, ``dataset[i]``, its labels and classes.

    Opening reads the manifest and the indexes, never a record. Reading is safe from any thread. Make one with
    `stoker.open`.

    Attributes:
        path: Directory, or the pattern or file it was opened from.
        split: Name of the split.
        schema: Which features hold the image, the label and the name.
        shards: Shards in their order.
        classes: Name and text of each class, by label; empty when the dataset does not say.
        manifest: What the build recorded; None for TFRecords that Stoker did not write.
    """

    def __init__(
        self,
        *,
        path: str,
        split: str,
        schema: SchemaInfo,
        shards: tuple[OpenShard, ...],
        classes: tuple[ClassLabel, ...],
        manifest: Manifest | None,
    ) -> None:
        self.path = path
        self.split = split
        self.schema = schema
        self.shards = shards
        self.classes = classes
        self.manifest = manifest
        self.records = _native.RecordSet()
        for shard in shards:
            self.records.add(str(shard.path), shard.extents)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Sample:
        """Return one sample; negative numbers count from the end.

        Raises:
            IndexError: There is no such sample.
            ShardError: Its bytes are damaged.
            ExampleError: It is no Example, or lacks the image.
        """
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"there is no sample {index}; split {self.split} of {self.path} has {size}")
        key = index % size
        features = _native.parse_example(self.records.read(key))
        encoded = self._bytes(features, self.schema.image_key, key)
        kind, labels = features.get(self.schema.label_key, ("int64", []))
        label = int(labels[0]) if kind == "int64" and labels else -1
        name = self.schema.filename_key
        source = self._bytes(features, name, key).decode("utf-8", "replace") if name and name in features else ""
        return Sample(key, features, encoded, label, source)

    def __repr__(self) -> str:
        size = f"{len(self):,} samples in {len(self.shards)} shards"
        return f"<stoker.Dataset {self.path!r} split={self.split!r}: {size}>"

    def _bytes(self, features: Features, feature: str, key: int) -> bytes:
        kind, values = features.get(feature, ("none", []))
        if kind == "bytes" and values:
            return cast("bytes", values[0])
        path, record, offset = self.records.where(key)
        message = f"{path}, record {record} at byte {offset}: no bytes under {feature!r}; it has {sorted(features)}"
        raise ExampleError(message, path=path, record=record, offset=offset)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Labels of all samples, int64 (len(dataset),). The first use reads every record once."""
        return np.fromiter((self[i].label for i in range(len(self))), np.int64, len(self))

    @property
    def identity(self) -> str:
        """Stands for this split's content: ``dataset_id`` and split, or the shards' names and lengths."""
        if self.manifest is not None:
            return f"{self.manifest.dataset_id}/{self.split}"
        sizes = ";".join(f"{s.path.name}:{int(s.extents[:, 1].sum())}" for s in self.shards)
        return f"{_native.crc32c(sizes.encode()):08x}-{len(self)}/{self.split}"


def check_not_empty(dataset: Dataset) -> None:
    """Refuse a split without samples, of which no batch can be made.

    Raises:
        ConfigError: It is empty.
    """
    if len(dataset) == 0:
        raise ConfigError(f"split {dataset.split} of {dataset.path} has no samples, so there is nothing to load")
