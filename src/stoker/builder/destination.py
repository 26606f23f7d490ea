"""The directory of a dataset: whether it may be built in, what is there already, and files for other systems."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from stoker.errors import DestinationError, ManifestError
from stoker.format import (
    BACKGROUND,
    MANIFEST_NAME,
    is_unfinished,
    new_index_name,
    read_manifest,
    write_atomically,
    write_tfds_metadata,
)
from stoker.storage import TEMPORARY_MARK, location

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stoker.format import Journal, Manifest, Shard
    from stoker.storage import FileInfo, Location
    from stoker.types import Compression


SIZES_NAME = "sizes.txt"
_HOPS_FOLDER = "tfrecords_raw"
"""What the Hops notebook calls its output, which lies below the images; its ``sizes.txt`` lies beside it."""
_SIZES = (("train", "train"), ("val", "validation"), ("test", "test"))


def check_destination(destination: Location, source: str) -> None:
    """Refuse a destination in which nothing can be built, before the source is looked at.

    It may lie in the source, whose listing leaves it out.

    Raises:
        DestinationError: It is the source, is a file, or holds something else than a dataset or an unfinished build.
        OSError: It cannot be listed.
    """
    if destination.is_same(location(source)):
        message = f"{destination} is the source itself; give a new directory, in it or outside it"
        raise DestinationError(message, path=str(destination))
    if destination.is_file():
        message = f"{destination} is a file; give a directory for the dataset"
        raise DestinationError(message, path=str(destination))
    names = sorted(os.fsdecode(child.name) for child in destination.children()) if destination.is_dir() else []
    foreign = [n for n in names if not n.startswith(".") and n != "lost+found" and TEMPORARY_MARK not in n]
    if foreign and MANIFEST_NAME not in names and not is_unfinished(destination):
        shown = ", ".join(foreign[:3]) + (", ..." if len(foreign) > 3 else "")
        message = f"{destination} holds something else ({shown}); give a new or empty directory"
        raise DestinationError(message, path=str(destination))


def finished_dataset(destination: Location, settings: dict[str, Any]) -> Manifest | None:
    """Return the manifest of a finished build with the same settings; None if none is finished here.

    Raises:
        DestinationError: A dataset with other settings is finished here, or files of it are missing, or its manifest
            cannot be read.
    """
    if not (destination / MANIFEST_NAME).lexists():
        return None
    try:
        manifest = read_manifest(destination)
    except ManifestError as error:
        message = f"{destination} holds something that cannot be built on: {error}"
        raise DestinationError(message, path=str(destination)) from error
    _refuse_other(destination, "a finished dataset", _manifest_settings(manifest), settings)
    contents = destination.snapshot()
    for split in manifest.splits.values():
        for shard in split.shards:
            if not _has_shard(contents, shard, manifest.compression):
                message = f"{destination} holds the finished dataset {manifest.dataset_id}, but {shard.name} or its"
                message += (
                    " index is missing or has another length; restore it, or delete the directory and build again"
                )
                raise DestinationError(message, path=str(destination / shard.name))
    return manifest


def resume(journal: Journal, destination: Location, settings: dict[str, Any]) -> None:
    """Make the journal that of these settings: resume the one there is, or begin one.

    Shards that the journal names and that are no longer there in full are forgotten, so that they are built again.

    Raises:
        DestinationError: The journal is that of other settings.
    """
    if journal.settings is None:
        journal.begin(settings)
    _refuse_other(destination, "an unfinished build", journal.settings or {}, settings)
    destination.remove_temporaries()
    contents, compression = destination.snapshot(), settings["compression"]
    journal.results = [result for result in journal.results if _has_shard(contents, result.file, compression)]


def _has_shard(contents: Callable[[str], FileInfo | None], shard: Shard, compression: Compression) -> bool:
    """Return whether a shard is there in its full length, with an index if it must have one."""
    found = contents(shard.name)
    if found is None or found.size_bytes != shard.size_bytes:
        return False
    return compression != "none" or contents(new_index_name(shard.name)) is not None


def _manifest_settings(manifest: Manifest) -> dict[str, Any]:
    return {
        "source": manifest.source.fingerprint,
        "items": {name: split.records + split.rejects for name, split in manifest.splits.items()},
        "shards": {name: len(split.shards) for name, split in manifest.splits.items()},
        "shard_names": manifest.shard_names,
        "compression": manifest.compression,
        "recipe": dict(manifest.recipe),
        "preset": manifest.schema.preset,
        "label_base": manifest.schema.label_base,
        "limit": manifest.limit,
        "seed": manifest.seed,
    }


def _refuse_other(destination: Location, what: str, there: dict[str, Any], wanted: dict[str, Any]) -> None:
    if there == wanted:
        return
    changes = "; ".join(
        f"{key} is {_shown(there.get(key))}, not {_shown(wanted.get(key))}"
        for key in sorted(there.keys() | wanted.keys())
        if there.get(key) != wanted.get(key)
    )
    message = f"{destination} holds {what} with other settings ({changes}); use these, another directory, or delete it"
    raise DestinationError(message, path=str(destination))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def write_companions(directory: Location, manifest: Manifest, classes: Sequence[bytes]) -> None:
    """Write what the preset of a dataset asks for: TFDS's two JSON files, or the Hops notebook's ``sizes.txt``.

    Raises:
        OSError: A file cannot be written.
    """
    if manifest.schema.preset == "tiny-imagenet":
        lines = [f"{word},{manifest.splits[split].records}" for word, split in _SIZES if split in manifest.splits]
        absolute = directory.absolute()
        folder = absolute.parent if absolute.name == _HOPS_FOLDER else directory
        write_atomically(folder / SIZES_NAME, "\n".join(lines).encode())
    if manifest.schema.preset == "tfds" and manifest.shard_names.startswith("tfds:"):
        write_tfds_metadata(
            directory,
            name=manifest.shard_names.partition(":")[2],
            splits=manifest.splits,
            class_names=[BACKGROUND] * manifest.schema.label_base + [os.fsdecode(name) for name in classes],
        )
