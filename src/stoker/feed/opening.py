"""Finding the shards of a split and where their records lie."""

from __future__ import annotations

import contextlib
import glob
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import ConfigError, DatasetNotFoundError, IndexMismatchError, ManifestError, TruncatedShardError
from stoker.feed.dataset import Dataset, OpenShard
from stoker.records.index import read_index, write_index
from stoker.records.labels import read_labels
from stoker.records.layout import JOURNAL_NAME, MANIFEST_NAME, find_shards, parse_shard_name
from stoker.records.manifest import SchemaInfo
from stoker.records.manifest_reading import read_manifest

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from stoker.records.labels import ClassLabel
    from stoker.records.manifest import Manifest, Shard

FOREIGN_SCHEMA = SchemaInfo(
    preset="imagenet",
    features={},
    image_key="image/encoded",
    label_key="image/class/label",
    filename_key="image/filename",
    label_base=1,
)
"""The keys of Google's ImageNet scripts, which TFRecords from elsewhere are taken to have."""


def open_dataset(path: str | os.PathLike[str], split: str | None = None) -> Dataset:
    """Open one split of a dataset for reading.

    Args:
        path: A directory that ``stoker build`` made; a directory of TFRecord shards of other origin, with the keys
            ``image/encoded`` and ``image/class/label``; one such file; or a pattern such as ``old/train-*``. Shards
            without an index are scanned once, and the index is written beside them where that is allowed.
        split: Which split; may be left out when there is only one.

    Raises:
        DatasetNotFoundError: There is nothing to read at ``path``, or a shard is missing.
        ConfigError: There is no such split, or ``split`` is left out and there are several.
        ManifestError: ``manifest.json`` is damaged or of a newer version.
        TruncatedShardError: A shard is shorter or longer than the manifest says.
        IndexMismatchError: An index does not belong to its shard.
        CorruptRecordError: A shard without index is damaged.
    """
    place = Path(path)
    if place.is_dir() and (place / MANIFEST_NAME).exists():
        return _open_built(place, split)
    refuse_unfinished(place)
    return _open_foreign(place, split)


def refuse_unfinished(directory: Path) -> None:
    """Refuse a directory without a manifest that a build has begun and not finished.

    Raises:
        DatasetNotFoundError: It is one.
    """
    if (directory / JOURNAL_NAME).exists():
        message = f"{directory} is an unfinished build; run the same 'stoker build' again to finish it"
        raise DatasetNotFoundError(message, path=str(directory))


def _open_built(directory: Path, wanted: str | None) -> Dataset:
    manifest = read_manifest(directory)
    split = _choose(wanted, manifest.splits, directory)
    shards = tuple(_open_listed(directory / shard.name, shard) for shard in manifest.splits[split].shards)
    return Dataset(
        path=str(directory),
        split=split,
        schema=manifest.schema,
        shards=shards,
        classes=_labels(directory, manifest),
        manifest=manifest,
    )


def _labels(directory: Path, manifest: Manifest) -> tuple[ClassLabel, ...]:
    labels = read_labels(directory)
    counted = max((len(split.class_counts) for split in manifest.splits.values()), default=0)
    if len(labels) < counted:
        message = f"{directory / 'labels.txt'} names {len(labels)} classes, but the manifest counts {counted}"
        raise ManifestError(f"{message}; restore it, or build again", path=str(directory / "labels.txt"))
    return labels


def _choose(wanted: str | None, splits: Mapping[str, object], path: Path) -> str:
    names = ", ".join(sorted(splits))
    if wanted is None:
        if len(splits) == 1:
            return next(iter(splits))
        raise ConfigError(f"{path} has the splits {names}; say which one with split=")
    if wanted not in splits:
        raise ConfigError(f"{path} has no split {wanted!r}; it has {names}")
    return wanted


def _open_listed(path: Path, listed: Shard) -> OpenShard:
    """Open a shard that the manifest lists; its length and number of records must be those listed."""
    found = _size_of(path)
    if found != listed.size_bytes:
        message = f"{path} has {found} bytes, but manifest.json says {listed.size_bytes}; restore it, or build again"
        raise TruncatedShardError(message, path=str(path), offset=min(found, listed.size_bytes))
    shard = _open_shard(path, found)
    if len(shard.extents) != listed.records:
        message = f"the index of {path} lists {len(shard.extents)} records, but manifest.json says {listed.records}"
        raise IndexMismatchError(f"{message}; write it anew with 'stoker index'", path=str(path))
    return shard


def _open_shard(path: Path, size_bytes: int) -> OpenShard:
    try:
        return OpenShard(path, read_index(path, size_bytes))
    except FileNotFoundError:
        rows = _native.scan_shard(str(path), check=False)
    with contextlib.suppress(OSError):  # a read-only place is scanned again next time
        write_index(path, rows)
    return OpenShard(path, rows)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError as error:
        message = f"shard {path} is missing; restore it, or build again"
        raise DatasetNotFoundError(message, path=str(path)) from error


def _open_foreign(place: Path, wanted: str | None) -> Dataset:
    splits = _foreign_splits(place)
    if not splits:
        message = f"no dataset at {place}: it is no directory with manifest.json, no shard, and matches none"
        raise DatasetNotFoundError(message, path=str(place))
    split = _choose(wanted, splits, place)
    shards = tuple(_open_shard(path, _size_of(path)) for path in splits[split])
    return Dataset(path=str(place), split=split, schema=FOREIGN_SCHEMA, shards=shards, classes=(), manifest=None)


def _foreign_splits(place: Path) -> dict[str, Sequence[Path]]:
    if not place.is_dir():
        matches = [place] if place.is_file() else sorted(Path(match) for match in glob.glob(str(place)))  # noqa: PTH207
        groups: dict[str, list[Path]] = {}
        for match in matches:
            said = parse_shard_name(match.name)
            if said is not None or match == place:
                groups.setdefault(said.split if said else "train", []).append(match)
        return dict(groups)
    found = find_shards(place)
    for split in found.values():
        if split.missing:
            message = f"{place} lacks shards {list(split.missing[:5])} that the names of the others promise"
            raise DatasetNotFoundError(f"{message}; complete it before reading", path=str(place))
    return {name: split.paths for name, split in found.items()}
