"""Finding the samples of a split: in shards of any origin, or in image files."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from stoker.errors import DatasetNotFoundError, ManifestError, SourceError
from stoker.feed.dataset import Dataset
from stoker.feed.files import FILE_SCHEMA, ImageFiles
from stoker.feed.foreign import choose_split, foreign_splits, open_foreign, open_shard, open_shards
from stoker.feed.listed import listed_shards, open_listed, open_one
from stoker.feed.remote_opening import RemoteFolder, foreign_remote_splits, open_remote_shards
from stoker.records.labels import ClassLabel, read_labels
from stoker.records.layout import LABELS_NAME, MANIFEST_NAME, is_unfinished
from stoker.records.manifest_reading import read_manifest
from stoker.sources import SourceOptions, list_source
from stoker.storage import RemotePath, is_named, location

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from stoker.feed.foreign import RecordKeys
    from stoker.feed.open_shard import OpenShard
    from stoker.records.manifest import Manifest, Shard
    from stoker.storage import Location

    _Choice = Callable[[Mapping[str, object]], str]


def open_dataset(
    path: str | os.PathLike[str] | RemotePath,
    split: str | None = None,
    *,
    keys: RecordKeys | None = None,
    source: SourceOptions | None = None,
) -> Dataset:
    """Open one split of a dataset for reading.

    Args:
        path: A directory that ``stoker build`` made; TFRecord shards of other origin, as a directory, one file or a
            pattern such as ``old/train-*``; or images that nobody has built anything of: a tree of class folders, a
            file list, a directory of tars. Shards without an index are scanned once, and the index is kept if that is
            allowed (`stoker.records.index.index_path` says where); compressed ones are inflated into nameless
            temporary files. All of these may be in a bucket or in HDFS: ``s3://BUCKET/PATH``, ``gs://BUCKET/PATH``,
            ``hdfs://HOST:PORT/PATH``; `docs/remote.md` tells how they are read.
        split: Which split; may be left out when there is only one.
        keys: Where the records hold what; found out from the first record when left out.
        source: For images: what the listing cannot find out by itself, such as the order of the classes.

    Raises:
        DatasetNotFoundError: There is nothing to read at ``path``, or a shard is missing.
        ConfigError: There is no such split, ``split`` is left out and there are several, or the layout of the records
            is unknown.
        ManifestError: ``manifest.json`` is damaged or of a newer version.
        TruncatedShardError: A shard is shorter or longer than the manifest says, or its compression is damaged.
        IndexMismatchError: An index does not belong to its shard.
        CorruptRecordError: A shard without index is damaged.
    """
    options = source or SourceOptions()
    opened = _open(location(path), lambda splits: choose_split(split, splits, path), keys, options)
    return _reopenable(opened, keys, options)


def open_main_split(path: str | os.PathLike[str], split: str | None) -> Dataset:
    """Open one split, or, if none is named, the only one, or else train; as `open_dataset` otherwise."""

    def choose(splits: Mapping[str, object]) -> str:
        return choose_split("train" if split is None and len(splits) > 1 else split, splits, path)

    return _reopenable(_open(location(path), choose, None, SourceOptions()), None, SourceOptions())


def open_splits(path: str | os.PathLike[str]) -> dict[str, Dataset]:
    """Open every split that there is at a place; as `open_dataset` otherwise."""
    names: list[str] = []

    def first(splits: Mapping[str, object]) -> str:
        names.extend(splits)
        return next(iter(splits))

    opened = _reopenable(_open(location(path), first, None, SourceOptions()), None, SourceOptions())
    return {name: opened if name == opened.split else open_dataset(path, name) for name in names}


def _reopenable(opened: Dataset, keys: RecordKeys | None, source: SourceOptions) -> Dataset:
    # The process that opens it again may have another working directory.
    said = {name: path and str(location(path).absolute()) for name, path in asdict(source).items()}
    place = location(opened.path).absolute()
    opened.opener = partial(open_dataset, place, opened.split, keys=keys, source=SourceOptions(**said))
    return opened


def _open(place: Location, choose: _Choice, keys: RecordKeys | None, source: SourceOptions) -> Dataset:
    if is_named(place / MANIFEST_NAME):
        return _open_built(place, choose)
    refuse_unfinished(place)
    if isinstance(place, RemotePath):
        remote = foreign_remote_splits(place)
        if remote:
            split = choose(remote)
            return open_foreign(place, split, open_remote_shards(remote[split]), keys)
    else:
        splits = foreign_splits(place)
        if splits:
            split = choose(splits)
            return open_foreign(place, split, open_shards(open_shard, splits[split]), keys)
    if place.exists():
        return _open_images(place, choose, source)
    message = f"no dataset at {place}: there is no such file or directory, and no shard matches it"
    raise DatasetNotFoundError(message, path=str(place))


def refuse_unfinished(directory: Location) -> None:
    """Refuse a directory without a manifest that a build has begun and not finished.

    Raises:
        DatasetNotFoundError: It is one.
    """
    if is_unfinished(directory):
        message = f"{directory} is an unfinished build; run the same 'stoker build' again to finish it"
        raise DatasetNotFoundError(message, path=str(directory))


def _open_built(directory: Location, choose: _Choice) -> Dataset:
    manifest = read_manifest(directory)
    split = choose(manifest.splits)
    listed, plain = manifest.splits[split].shards, manifest.compression == "none"
    shards = _built_shards(directory, listed, plain=plain)
    opened = Dataset(
        path=str(directory),
        split=split,
        schema=manifest.schema,
        shards=shards,
        classes=_labels(directory, manifest),
        manifest=manifest,
    )
    if plain:
        open_listed(opened, listed)
    return opened


def _built_shards(directory: Location, listed: Sequence[Shard], *, plain: bool) -> tuple[OpenShard, ...]:
    if isinstance(directory, RemotePath):
        return RemoteFolder(directory).listed_shards(listed, plain=plain)
    if plain:
        return listed_shards(directory, listed)
    return open_shards(lambda shard: open_one(directory / shard.name, shard), listed)


def _labels(directory: Location, manifest: Manifest) -> tuple[ClassLabel, ...]:
    where = directory / LABELS_NAME
    try:
        labels = read_labels(directory)
    except FileNotFoundError as error:
        raise ManifestError(f"{where} is missing; restore it, or build again", path=str(where)) from error
    counted = max((len(split.class_counts) for split in manifest.splits.values()), default=0)
    if len(labels) != counted:
        message = f"{where} names {len(labels)} classes, but the manifest counts {counted}"
        raise ManifestError(f"{message}; restore it, or build again", path=str(where))
    return labels


def _open_images(place: Location, choose: _Choice, options: SourceOptions) -> Dataset:
    try:
        tree = list_source(str(place), options)
    except SourceError as error:
        message = f"no dataset at {place}: it holds no manifest.json and no shard, and no images: {error}"
        raise DatasetNotFoundError(message, path=str(place)) from error
    present = {name: rows for name, rows in tree.splits.items() if len(rows)}
    split = choose(present)
    classes = tuple(
        ClassLabel(name.decode("utf-8", "surrogateescape"), text.decode("utf-8", "replace"))
        for name, text in zip(tree.classes, tree.texts, strict=True)
    )
    return Dataset(path=str(place), split=split, schema=FILE_SCHEMA, files=ImageFiles(tree, split), classes=classes)
