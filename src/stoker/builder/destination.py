"""Whether a directory may be built in, and what of the same build is already there."""

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
from stoker.storage import RemotePath, is_named, location
from stoker.storage.temporary import TEMPORARY_MARK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stoker.builder.journal import Journal
    from stoker.format import Manifest
    from stoker.storage import Location
    from stoker.types import Compression


# What lies in a destination: names and lengths, asked for one by one on a disk, and listed once in a store.


class Contents:
    """The files of a dataset.

    Args:
        destination: Its directory.

    Raises:
        OSError: It cannot be listed.
    """

    def __init__(self, destination: Location) -> None:
        self._size: Callable[[str], int | None]
        if isinstance(destination, RemotePath):
            below = len(f"{destination.key}/") if destination.key else 0
            entries = destination.store.entries(destination.key)
            self._size = {entry.key[below:]: entry.size_bytes for entry in entries}.get
        else:
            self._size = lambda name: _size_of(destination / name)

    def has_shard(self, name: str, size_bytes: int, compression: Compression) -> bool:
        """Return whether a shard is there in its full length, with an index if it must have one."""
        if self._size(name) != size_bytes:
            return False
        return compression != "none" or self._size(new_index_name(name)) is not None


def remove_temporaries(destination: Location) -> None:
    """Remove what dead builds left unfinished.

    On a disk only for the holder of the journal's lock. A store that another build is writing to at the same time does
    not mind: what that build misses it writes once more.

    Raises:
        OSError: It cannot be listed, or something in it cannot be removed.
    """
    if isinstance(destination, RemotePath):
        entries = destination.store.entries(destination.key)
        destination.store.delete_all([entry.key for entry in entries if TEMPORARY_MARK in entry.key])
        return
    for path in destination.rglob(f"*{TEMPORARY_MARK}*"):
        path.unlink(missing_ok=True)


def _size_of(path: Location) -> int | None:
    return path.stat().st_size if path.is_file() else None


def check_destination(destination: Location, source: str) -> None:
    """Refuse a destination in which nothing can be built, before the source is looked at.

    Raises:
        DestinationError: It lies in the source, is a file, or holds something else than a dataset or an unfinished
            build.
        OSError: It cannot be listed.
    """
    _refuse_overlap(destination, source)
    _refuse_foreign(destination)


def _refuse_overlap(destination: Location, source: str) -> None:
    """Refuse to write into the tree that is read.

    Raises:
        DestinationError: ``destination`` is ``source`` or lies in it.
    """
    read = location(source)
    if isinstance(destination, RemotePath) or isinstance(read, RemotePath):
        lies_in = read == destination or (isinstance(destination, RemotePath) and read in destination.parents)
    else:
        inner, outer = os.path.realpath(destination), os.path.realpath(read)
        lies_in = os.path.commonpath([inner, outer]) == outer
    if lies_in:
        message = f"{destination} lies in the source {source}; build into a directory outside it"
        raise DestinationError(message, path=str(destination))


def _refuse_foreign(destination: Location) -> None:
    """Refuse a directory that holds something else than a dataset or an unfinished build; a missing one is fine.

    Raises:
        DestinationError: It does, or it is not a directory.
        OSError: It cannot be listed.
    """
    if destination.is_file():
        message = f"{destination} is a file; give a directory for the dataset"
        raise DestinationError(message, path=str(destination))
    names = sorted(path.name for path in destination.iterdir()) if destination.is_dir() else []
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
    if not is_named(destination / MANIFEST_NAME):
        return None
    try:
        manifest = read_manifest(destination)
    except ManifestError as error:
        message = f"{destination} holds something that cannot be built on: {error}"
        raise DestinationError(message, path=str(destination)) from error
    _refuse_other(destination, "a finished dataset", _manifest_settings(manifest), settings)
    contents = Contents(destination)
    for split in manifest.splits.values():
        for shard in split.shards:
            if not contents.has_shard(shard.name, shard.size_bytes, manifest.compression):
                message = f"{destination} holds the finished dataset {manifest.dataset_id}, but {shard.name} or its"
                message += (
                    " index is missing or has another length; restore it, or delete the directory and build again"
                )
                raise DestinationError(message, path=str(destination / shard.name))
    return manifest


def resume(journal: Journal, destination: Location, settings: dict[str, Any]) -> None:
    """Make the journal that of these settings: go on with the one there is, or begin.

    Shards that the journal names and that are no longer there in full are forgotten, so that they are built again.

    Raises:
        DestinationError: The journal is that of other settings.
    """
    if journal.settings is None:
        journal.begin(settings)
    _refuse_other(destination, "an unfinished build", journal.settings or {}, settings)
    remove_temporaries(destination)
    contents, compression = Contents(destination), settings["compression"]
    journal.results = [r for r in journal.results if contents.has_shard(r.file.name, r.file.size_bytes, compression)]


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


# Files that readers of other systems expect beside their shards.


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
