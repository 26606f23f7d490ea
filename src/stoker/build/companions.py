"""Files that readers of other systems expect beside their shards."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stoker.records.files import write_atomically
from stoker.records.labels import BACKGROUND
from stoker.records.tfds import write_tfds_metadata

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.records.manifest import Manifest
    from stoker.storage import Location

SIZES_NAME = "sizes.txt"
_SIZES = (("train", "train"), ("val", "validation"), ("test", "test"))


def write_companions(directory: Location, manifest: Manifest, classes: Sequence[bytes]) -> None:
    """Write what the preset of a dataset asks for: TFDS's two JSON files, or the Hops notebook's ``sizes.txt``.

    Raises:
        OSError: A file cannot be written.
    """
    if manifest.schema.preset == "tiny-imagenet":
        lines = [f"{word},{manifest.splits[split].records}" for word, split in _SIZES if split in manifest.splits]
        write_atomically(directory / SIZES_NAME, "\n".join(lines).encode())
    if manifest.schema.preset == "tfds" and manifest.shard_names.startswith("tfds:"):
        write_tfds_metadata(
            directory,
            name=manifest.shard_names.partition(":")[2],
            splits=manifest.splits,
            class_names=[BACKGROUND] * manifest.schema.label_base + [os.fsdecode(name) for name in classes],
        )
