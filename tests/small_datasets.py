"""Small datasets for tests of what looks at them, written without the build."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reference import pictures
from stoker import _native
from stoker.format import LABELS_NAME, REJECTS_NAME, ImagenetSchema, ListedFile, StoredSample, write_rejects
from stoker.format.directory import write_labels
from stoker.format.frames import ShardWriter
from stoker.format.manifest import Manifest, Shard, SourceInfo, Split, with_checksum, write_manifest
from stoker.types import Box, Reject

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

NAMES = (b"n01", b"n02", b"n03")
TEXTS = (b"red kite, Milvus milvus", b"", b"caf\xc3\xa9")
SCHEMA = ImagenetSchema(label_base=1)


@dataclass
class Written:
    """What was written of one split."""

    shards: list[Shard] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0] * (len(NAMES) + 1))


def sample(number: int, size: tuple[int, int] = (48, 36)) -> StoredSample:
    label = number % len(NAMES)
    return StoredSample(
        image=pictures.jpeg(*size, number, subsampling=2 * (number % 2)),
        format="jpeg",
        width=size[0],
        height=size[1],
        order="HWC",
        filename=b"picture-%d.JPEG" % number,
        label=label,
        classes=len(NAMES),
        class_name=NAMES[label],
        class_text=TEXTS[label],
        boxes=[Box(0.25, 0.125, 0.75, 0.5)] * (number % 3),
    )


def write_dataset(directory: Path, splits: dict[str, list[int]]) -> Manifest:
    """Write a finished dataset: for each split, the number of records of each of its shards; one reject in each."""
    directory.mkdir(parents=True, exist_ok=True)
    number, written = 0, {name: Written() for name in splits}
    for name, sizes in splits.items():
        for shard, records in enumerate(sizes):
            with ShardWriter(directory, f"{name}-{shard:05d}-of-{len(sizes):05d}.tfrecord") as writer:
                for _ in range(records):
                    record = sample(number)
                    writer.append(_native.write_example(SCHEMA.to_features(record)))
                    written[name].counts[record.label + SCHEMA.label_base] += 1
                    number += 1
                file = writer.commit()
            written[name].shards.append(Shard(file.name, file.records, file.size_bytes, file.crc32c))
    rejects = [Reject(f"n01/{name}.JPEG", name, "the file is empty") for name in splits]
    files = {
        LABELS_NAME: write_labels(directory, NAMES, TEXTS, SCHEMA.label_base),
        REJECTS_NAME: write_rejects(directory, rejects),
    }
    manifest = _manifest(written, number + len(splits), files)
    write_manifest(directory, manifest)
    return manifest


def manifest_text(content: Mapping[str, Any]) -> bytes:
    """The text of a manifest with these fields and the checksum that they have now."""
    return with_checksum({key: value for key, value in content.items() if key != "checksum"})


def change_manifest(directory: Path, **changes: object) -> None:
    """Change fields of a manifest, and its checksum with them: what Stoker would have written."""
    path = directory / "manifest.json"
    path.write_bytes(manifest_text(json.loads(path.read_bytes()) | changes))


def list_again(directory: Path, *names: str) -> None:
    """Change what the manifest says about files that a test has changed."""
    files = json.loads((directory / "manifest.json").read_bytes())["files"]
    for name in names:
        listed = ListedFile.of((directory / name).read_bytes())
        files[name] = {"bytes": listed.size_bytes, "crc32c": f"{listed.crc32c:08x}"}
    change_manifest(directory, files=files)


def _manifest(written: dict[str, Written], items: int, files: dict[str, ListedFile]) -> Manifest:
    return Manifest(
        stoker_version="0.1.0",
        schema=SCHEMA.info(len(NAMES)),
        recipe={"kind": "keep", "encode": "jpeg:100:444", "check": "header", "exif": "keep", "max_pixels": 2**27},
        seed=17,
        source=SourceInfo(items=items, size_bytes=12345, fingerprint="ab" * 16, ignored={".txt": 2}),
        converted={"png": 1},
        annotation_errors=0,
        splits={
            name: Split(
                records=sum(shard.records for shard in split.shards),
                size_bytes=sum(shard.size_bytes for shard in split.shards),
                rejects=1,
                class_counts=tuple(split.counts),
                shards=tuple(split.shards),
            )
            for name, split in written.items()
        },
        files=files,
    )
