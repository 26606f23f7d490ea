"""``manifest.json``: what a dataset holds. Written last; without it a directory is an unfinished build."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.records.files import write_atomically
from stoker.records.layout import MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.storage import Location
    from stoker.types import Compression, SchemaInfo

FORMAT = "stoker-dataset"
VERSION = 1
SCHEMA_KEYS = (
    "image_key",
    "label_key",
    "filename_key",
    "label_base",
    "label_encoding",
    "image_encoding",
    "height_key",
    "width_key",
    "order_key",
    "box_prefix",
)
"""Fields of `SchemaInfo` that ``schema`` holds under the same names, beside ``preset`` and ``features``."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard that is complete.

    Attributes:
        name: Name, relative to the dataset's directory.
        records: How many records it holds.
        size_bytes: Its length, compressed where it is.
        crc32c: Of all these bytes.
    """

    name: str
    records: int
    size_bytes: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class Split:
    """One split.

    Attributes:
        records: Sum over its shards.
        size_bytes: Sum over its shards.
        rejects: Source items of this split that are not in the dataset.
        class_counts: Records of each class; the index is the class id.
        unlabelled: Records without a class.
        shards: In their order.
    """

    records: int
    size_bytes: int
    rejects: int
    class_counts: tuple[int, ...]
    shards: tuple[Shard, ...]
    unlabelled: int = 0


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What the dataset was made from: ``size_bytes`` and ``items`` before any reject."""

    items: int
    size_bytes: int
    fingerprint: str
    ignored: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole of ``manifest.json``; `docs/format.md` defines each field.

    ``shard_names`` is the text of a `stoker.records.naming.ShardNaming`; ``limit`` the number of images of train that
    the dataset was restricted to, if any.

    There are no dates in it: the same input and settings give the same bytes.
    """

    stoker_version: str
    schema: SchemaInfo
    recipe: Mapping[str, Any]
    seed: int
    source: SourceInfo
    converted: Mapping[str, int]
    annotation_errors: int
    splits: Mapping[str, Split]
    compression: Compression = "none"
    shard_names: str = "default"
    limit: int | None = None

    @property
    def dataset_id(self) -> str:
        """32 hex digits that stand for the bytes of all shards."""
        return dataset_id(self.splits)

    @property
    def records(self) -> int:
        """Records of all splits."""
        return sum(split.records for split in self.splits.values())

    @property
    def rejects(self) -> int:
        """Rejects of all splits."""
        return sum(split.rejects for split in self.splits.values())


def dataset_id(splits: Mapping[str, Split]) -> str:
    r"""Return the identity of a dataset.

    The first 32 hex digits of the SHA-256 of: for each split, in the order of the names' bytes, ``NAME\n``, then for
    each of its shards ``NAME RECORDS BYTES CRC32C\n``, with the checksum as 8 hex digits.
    """
    digest = hashlib.sha256()
    for name in sorted(splits):
        digest.update(f"{name}\n".encode())
        for shard in splits[name].shards:
            digest.update(f"{shard.name} {shard.records} {shard.size_bytes} {shard.crc32c:08x}\n".encode())
    return digest.hexdigest()[:32]


def format_manifest(manifest: Manifest) -> bytes:
    """Return the text of ``manifest.json``."""
    schema, source = manifest.schema, manifest.source
    content = {
        "format": FORMAT,
        "version": VERSION,
        "dataset_id": manifest.dataset_id,
        "stoker_version": manifest.stoker_version,
        "schema": {
            "preset": schema.preset,
            "features": {key: {"kind": f.kind, "length": f.length} for key, f in schema.features.items()},
            **{key: getattr(schema, key) for key in SCHEMA_KEYS},
        },
        "recipe": dict(manifest.recipe),
        "seed": manifest.seed,
        "source": {
            "items": source.items,
            "bytes": source.size_bytes,
            "fingerprint": source.fingerprint,
            "ignored": dict(source.ignored),
        },
        "converted": dict(sorted(manifest.converted.items())),
        "annotation_errors": manifest.annotation_errors,
        "compression": manifest.compression,
        "shard_names": manifest.shard_names,
        "limit": manifest.limit,
        "splits": {name: _split_content(split) for name, split in manifest.splits.items()},
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def _split_content(split: Split) -> dict[str, Any]:
    return {
        "records": split.records,
        "bytes": split.size_bytes,
        "rejects": split.rejects,
        "class_counts": list(split.class_counts),
        "unlabelled": split.unlabelled,
        "shards": [
            {"name": s.name, "records": s.records, "bytes": s.size_bytes, "crc32c": f"{s.crc32c:08x}"}
            for s in split.shards
        ],
    }


def write_manifest(directory: Location, manifest: Manifest) -> None:
    """Write ``manifest.json`` atomically.

    Raises:
        OSError: It cannot be written.
    """
    write_atomically(directory / MANIFEST_NAME, format_manifest(manifest))
