"""Shards, and those of other origin: which there are, where their records lie, and what these hold."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import ConfigError, DatasetNotFoundError
from stoker.feed.dataset import Dataset
from stoker.feed.open_shard import OpenShard
from stoker.records.index import read_index, write_index
from stoker.records.index_cache import KeptIndex
from stoker.records.inflate import compression_of, holds_records, inflate
from stoker.records.layout import find_shards, parse_shard_name, refuse_incomplete
from stoker.schema import ImagenetSchema, from_keys, recognise
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from stoker.storage import Location
    from stoker.types import Features, SchemaInfo

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """Where records of an unknown layout hold their image and their class.

    Attributes:
        image: Key of the encoded image.
        label: Key of the class: one int64, or a one-hot list of int64 or bytes; None for images without a class.
        label_base: Number of the first class.
    """

    image: str
    label: str | None = None
    label_base: int = 0


def foreign_splits(place: Path) -> dict[str, Sequence[Path]]:
    """Return the shards that a directory, a file or a pattern names, by split; empty if there are none.

    Raises:
        DatasetNotFoundError: The names of the shards promise others that are not there.
        OSError: The directory or the file cannot be read.
    """
    if not place.is_dir():
        matches = [place] if place.is_file() else sorted(Path(match) for match in glob.glob(str(place)))  # noqa: PTH207
        groups: dict[str, list[Path]] = {}
        for match in matches:
            said = parse_shard_name(match.name)
            if said is not None or (match == place and holds_records(place)):
                groups.setdefault(said.split if said else "train", []).append(match)
        return dict(groups)
    found = find_shards(place)
    refuse_incomplete(place, found)
    return {name: split.paths for name, split in found.items()}


def choose_split(wanted: str | None, splits: Mapping[str, object], path: str | os.PathLike[str] | Location) -> str:
    """Return the split that is wanted, or the only one there is.

    Raises:
        ConfigError: There is no such split, or nobody said which of several.
    """
    names = ", ".join(sorted(splits))
    if wanted is None:
        if len(splits) == 1:
            return next(iter(splits))
        raise ConfigError(f"{path} has the splits {names}; say which one with split=")
    if wanted not in splits:
        raise ConfigError(f"{path} has no split {wanted!r}; it has {names}")
    return wanted


def open_foreign(place: Location, split: str, shards: tuple[OpenShard, ...], keys: RecordKeys | None) -> Dataset:
    """Open one split of shards of other origin; what they hold is told by their first record, or by ``keys``.

    Raises:
        ConfigError: The layout is unknown, or the keys are not those of the records.
        ShardError: A shard is damaged.
        ExampleError: The first record is no Example.
    """
    opened = Dataset(path=str(place), split=split, schema=ImagenetSchema().info(0), shards=shards)
    if not len(opened):
        return opened
    features = _native.parse_example(opened.records.read(0))
    return Dataset(path=str(place), split=split, schema=_schema(features, keys, place), shards=shards)


def open_shards(open_one: Callable[[_T], OpenShard], shards: Sequence[_T]) -> tuple[OpenShard, ...]:
    """Open shards side by side: scanning and inflating leave the interpreter to others."""
    with stoppable_pool(min(available_cpus(), max(1, len(shards))), "stoker-open") as pool:
        return tuple(pool.map(open_one, shards))


def open_shard(path: Path) -> OpenShard:
    """Return where the records of a shard lie, by its index or by a scan; a compressed one is inflated.

    What a scan finds is kept beside the shard, or else in the user's cache.

    Raises:
        DatasetNotFoundError: It is missing.
        IndexMismatchError: The index is that of another file.
        ShardError: It is damaged.
    """
    size_bytes = size_of(path)
    if size_bytes and compression_of(path) != "none":
        inflated = inflate(path)
        return OpenShard.of(path, _native.scan_shard(str(inflated.path), check=False), inflated)
    try:
        return OpenShard.of(path, read_index(path, size_bytes))
    except FileNotFoundError:
        kept = KeptIndex.of(path)
    rows = kept.read()
    if rows is None:
        rows = _native.scan_shard(str(path), check=False)
        try:
            write_index(path, rows)
        except OSError:  # a read-only place
            kept.write(rows)
    return OpenShard.of(path, rows)


def size_of(path: Path) -> int:
    """Return the length of a shard.

    Raises:
        DatasetNotFoundError: It is missing.
    """
    try:
        return path.stat().st_size
    except FileNotFoundError as error:
        message = f"shard {path} is missing; restore it, or build again"
        raise DatasetNotFoundError(message, path=str(path)) from error


def _schema(features: Features, keys: RecordKeys | None, place: Location) -> SchemaInfo:
    held = ", ".join(f"{key} ({kind} x {len(values)})" for key, (kind, values) in sorted(features.items()))
    if keys is None:
        found = recognise(features)
        if found is None:
            message = f"{place} holds records of an unknown layout: {held}"
            raise ConfigError(
                f"{message}; say where the image and the label are, with keys=RecordKeys(image=..., label=...)"
            )
        return found
    named = from_keys(features, keys.image, keys.label, keys.label_base)
    if isinstance(named, str):
        raise ConfigError(f"{place}: {named} in the first record, which holds {held}")
    return named
