"""Finding the samples of a split: in shards of any origin, or in image files."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import DatasetNotFoundError, ManifestError, SourceError
from stoker.feed.dataset import Dataset
from stoker.feed.files import FILE_SCHEMA, ImageFiles
from stoker.feed.foreign import choose_split, foreign_splits, open_foreign, open_shards
from stoker.feed.listed import listed_shards, open_listed, open_one
from stoker.records.labels import ClassLabel, read_labels
from stoker.records.layout import MANIFEST_NAME, is_unfinished
from stoker.records.manifest_reading import read_manifest
from stoker.sources import SourceOptions, list_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stoker.feed.foreign import RecordKeys
    from stoker.records.manifest import Manifest

    _Choice = Callable[[Mapping[str, object]], str]


def open_dataset(
    path: str | os.PathLike[str],
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
            temporary files.
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
    opened = _open(Path(path), lambda splits: choose_split(split, splits, path), keys, options)
    return _reopenable(opened, keys, options)


def open_main_split(path: str | os.PathLike[str], split: str | None) -> Dataset:
    """Open one split, or, if none is named, the only one, or else train; as `open_dataset` otherwise."""

    def choose(splits: Mapping[str, object]) -> str:
        return choose_split("train" if split is None and len(splits) > 1 else split, splits, path)

    return _reopenable(_open(Path(path), choose, None, SourceOptions()), None, SourceOptions())


def _reopenable(opened: Dataset, keys: RecordKeys | None, source: SourceOptions) -> Dataset:
    # The process that opens it again may have another working directory.
    said = {name: path and os.path.abspath(path) for name, path in asdict(source).items()}  # noqa: PTH100 - keeps None
    place = Path(opened.path).absolute()
    opened.opener = partial(open_dataset, place, opened.split, keys=keys, source=SourceOptions(**said))
    return opened


def _open(place: Path, choose: _Choice, keys: RecordKeys | None, source: SourceOptions) -> Dataset:
    if place.is_dir() and (place / MANIFEST_NAME).exists():
        return _open_built(place, choose)
    refuse_unfinished(place)
    splits = foreign_splits(place)
    if splits:
        return open_foreign(place, choose(splits), splits, keys)
    if place.exists():
        return _open_images(place, choose, source)
    message = f"no dataset at {place}: there is no such file or directory, and no shard matches it"
    raise DatasetNotFoundError(message, path=str(place))


def refuse_unfinished(directory: Path) -> None:
    """Refuse a directory without a manifest that a build has begun and not finished.

    Raises:
        DatasetNotFoundError: It is one.
    """
    if is_unfinished(directory):
        message = f"{directory} is an unfinished build; run the same 'stoker build' again to finish it"
        raise DatasetNotFoundError(message, path=str(directory))


def _open_built(directory: Path, choose: _Choice) -> Dataset:
    manifest = read_manifest(directory)
    split = choose(manifest.splits)
    listed, plain = manifest.splits[split].shards, manifest.compression == "none"
    if plain:
        shards = listed_shards(directory, listed)
    else:
        shards = open_shards(lambda shard: open_one(directory / shard.name, shard), listed)
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


def _labels(directory: Path, manifest: Manifest) -> tuple[ClassLabel, ...]:
    labels = read_labels(directory)
    counted = max((len(split.class_counts) for split in manifest.splits.values()), default=0)
    if len(labels) < counted:
        message = f"{directory / 'labels.txt'} names {len(labels)} classes, but the manifest counts {counted}"
        raise ManifestError(f"{message}; restore it, or build again", path=str(directory / "labels.txt"))
    return labels


def _open_images(place: Path, choose: _Choice, options: SourceOptions) -> Dataset:
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
