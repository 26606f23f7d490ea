"""The destination of a dataset: whether a build may write there, and what it holds already."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from stoker.builder.companions import TFDS_NAMES
from stoker.builder.plan import fields_record
from stoker.config import check_range, format_some
from stoker.errors import ConfigError, DestinationError, ManifestError
from stoker.format import (
    LABELS_NAME,
    MANIFEST_NAME,
    MAX_SHARDS,
    REJECTS_NAME,
    ShardNaming,
    check_listed,
    is_unfinished,
    new_index_name,
    read_journal,
    read_manifest,
    sizes_path,
)
from stoker.splits import SPLITS
from stoker.storage import TEMPORARY_MARK, check_directory, location, stoppable_pool, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stoker.format import Journal, Manifest, Shard, ShardResult
    from stoker.storage import FileInfo, Location
    from stoker.types import Compression


_REMOVED_AT_ONCE = 32
MAX_UNLISTED = 8
"""Upper limit of the shards that may be complete and that the journal of a build does not list yet."""


def check_destination(destination: Location, *sources: str | None) -> None:
    """Refuse a destination in which nothing can be built, before the sources are looked at.

    It may lie in a source; the listing leaves it out.

    Raises:
        DestinationError: It is a source, is not a directory, or holds something that no build has written.
    """
    if any(source is not None and destination.is_same(location(source)) for source in sources):
        message = f"{destination} is the source itself; give a new directory, in it or outside it"
        raise DestinationError(message, path=str(destination))
    if destination.is_local:
        check_directory(destination.local_path())
    elif destination.lexists():
        raise DestinationError(f"{destination} is a file; give a directory", path=str(destination))
    names = sorted(os.fsdecode(child.name) for child in destination.children()) if destination.is_dir() else []
    foreign = [n for n in names if not n.startswith(".") and n != "lost+found" and TEMPORARY_MARK not in n]
    if foreign and MANIFEST_NAME not in names and not is_unfinished(destination):
        message = f"{destination} holds something else ({format_some(foreign, 3)}); give a new or empty directory"
        raise DestinationError(message, path=str(destination))


def finished_dataset(destination: Location, settings: Callable[[], dict[str, Any]]) -> Manifest | None:
    """Return the manifest of a finished build with the same settings, which are only asked for if there is one."""
    manifest = _manifest_there(destination)
    if manifest is None:
        return None
    _refuse_other(destination, "a finished dataset", manifest_settings(manifest), settings())
    contents = destination.snapshot()
    for split in manifest.splits.values():
        for shard in split.shards:
            if not _has_shard(contents, shard, manifest.compression):
                message = f"{destination} holds the finished dataset {manifest.dataset_id}, but {shard.name} or its"
                message += " index is missing or has another length; restore it, or overwrite the dataset"
                raise DestinationError(message, path=str(destination / shard.name))
    for name, listed in manifest.files.items():
        try:
            check_listed(destination, name, listed)
        except ManifestError as error:
            message = f"{destination} holds the finished dataset {manifest.dataset_id}, but {name} is missing or was"
            message += " changed after the build; restore it, or overwrite the dataset"
            raise DestinationError(message, path=error.path) from error
    return manifest


def resume(journal: Journal, destination: Location, settings: dict[str, Any], *, in_parts: bool = False) -> None:
    """Resume the journal of a build with these settings, or begin it.

    Shards that the journal lists but that are missing or incomplete are forgotten, so that they are built again. Files
    that dead builds have left are removed, unless parts that write at the same time may need them.

    Raises:
        DestinationError: The journal is that of other settings.
    """
    if journal.settings is None:
        journal.begin(settings)
    _refuse_other(destination, "an unfinished build", journal.settings or {}, settings)
    if journal.has_lock or not (in_parts or destination.is_local):
        destination.remove_temporaries()
    forget_missing(journal, destination, settings)


def forget_missing(journal: Journal, destination: Location, settings: dict[str, Any]) -> None:
    """Forget the shards that a journal lists and that are missing or incomplete."""
    contents, compression = destination.snapshot(), settings["compression"]
    journal.results = [result for result in journal.results if _has_shard(contents, result.file, compression)]


def _manifest_there(destination: Location) -> Manifest | None:
    if not (destination / MANIFEST_NAME).lexists():
        return None
    try:
        return read_manifest(destination)
    except ManifestError as error:
        message = f"{destination} holds a manifest that cannot be used: {error}"
        raise DestinationError(message, path=str(destination)) from error


def what_is_replaced(destination: Location, settings: dict[str, Any]) -> str | None:
    """Return what a build that overwrites would remove, in words; None if there is nothing.

    That is a finished dataset, or an unfinished build with other settings; one with the same settings is resumed.
    """
    manifest = _manifest_there(destination)
    if manifest is not None:
        return f"dataset {manifest.dataset_id} of {manifest.records:,} records"
    if is_unfinished(destination):
        existing, results = read_journal(destination)
        if existing not in ({}, settings):
            return f"unfinished build of {len(results):,} shards"
    return None


def remove_dataset(destination: Location, journal: Journal, settings: dict[str, Any]) -> None:
    """Remove what `what_is_replaced` says, and begin the journal of a build with these settings.

    Only files that Stoker wrote are removed, the manifest last: after a kill it still says what is left, so that the
    same command removes that.
    """
    manifest = _manifest_there(destination)
    begun = journal.settings if journal.settings not in (None, settings) else None
    names = [] if begun is None else [result.file.name for result in journal.results]
    names += [] if begun is None else _planned_shards(begun, journal.results)
    presets = set() if begun is None else {begun.get("preset")}
    if manifest is not None:
        names += [shard.name for split in manifest.splits.values() for shard in split.shards]
        presets.add(manifest.schema.preset)
    names += [new_index_name(name) for name in names] + [LABELS_NAME, REJECTS_NAME]
    names += TFDS_NAMES if "tfds" in presets else ()
    contents = destination.snapshot()
    files = [destination / name for name in dict.fromkeys(names) if contents(name) is not None]
    files += [sizes_path(destination)] if "tiny-imagenet" in presets else []
    with stoppable_pool(min(_REMOVED_AT_ONCE, destination.requests_at_once), "stoker-remove") as pool:
        list(pool.map(lambda file: file.unlink(missing_ok=True), files))
    if destination.is_local:
        sync_directory(destination.local_path())
    (destination / MANIFEST_NAME).unlink(missing_ok=True)
    if journal.settings != settings:
        if not journal.has_lock:
            journal.remove()
        journal.begin(settings)
        journal.results.clear()


def _planned_shards(settings: dict[str, Any], results: Sequence[ShardResult]) -> list[str]:
    """Return the names of the shards of a build: some may exist that its journal does not list yet."""
    try:
        naming = ShardNaming(settings["shard_names"])
        if "shard_records" in settings:
            known = Counter(result.split for result in results)
            return [naming.name(split, shard, 0) for split in SPLITS for shard in range(known[split] + MAX_UNLISTED)]
        counts = {split: check_range("shards", count, 1, MAX_SHARDS) for split, count in settings["shards"].items()}
    except (AttributeError, KeyError, TypeError, ConfigError):  # another version wrote it, or a person
        return []
    return [naming.name(split, shard, count) for split, count in counts.items() for shard in range(count)]


def _has_shard(contents: Callable[[str], FileInfo | None], shard: Shard, compression: Compression) -> bool:
    file = contents(shard.name)
    if file is None or file.size_bytes != shard.size_bytes:
        return False
    return compression != "none" or contents(new_index_name(shard.name)) is not None


def manifest_settings(manifest: Manifest) -> dict[str, Any]:
    """Return the settings of the build that made a dataset, as a journal has them."""
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
        **fields_record(manifest.schema),
    }


def _refuse_other(destination: Location, what: str, existing: dict[str, Any], wanted: dict[str, Any]) -> None:
    if existing == wanted:
        return
    changes = "; ".join(
        f"{key} is {_shown(existing.get(key))}, not {_shown(wanted.get(key))}"
        for key in sorted(existing.keys() | wanted.keys())
        if existing.get(key) != wanted.get(key)
    )
    message = f"{destination} holds {what} with other settings ({changes})"
    message += "; use the same settings or another directory, or overwrite it"
    raise DestinationError(message, path=str(destination))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
