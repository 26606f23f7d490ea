"""Opening a dataset: what was built, TFRecords of other origin, or image files, each as a `stoker.Dataset`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from stoker import _native
from stoker.config import full_split_name
from stoker.errors import ConfigError, DatasetNotFoundError, ManifestError, SourceError
from stoker.format import (
    LABELS_NAME,
    MANIFEST_NAME,
    ClassLabel,
    ImagenetSchema,
    from_keys,
    is_unfinished,
    read_labels,
    read_manifest,
    recognise,
)
from stoker.loader.dataset import Dataset
from stoker.loader.image_files import FILE_SCHEMA, ImageFiles
from stoker.loader.shards import find_splits, listed_shards, open_found, open_listed, record_set
from stoker.sources import SourceOptions, list_source
from stoker.storage import location

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from stoker.format import Manifest
    from stoker.loader.shards import OpenShard
    from stoker.storage import Location, LocationLike
    from stoker.types import Features, SchemaInfo

    _Choice = Callable[[Mapping[str, object]], str]


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


def open_dataset(
    path: str | os.PathLike[str] | Location,
    split: str | None = None,
    *,
    keys: RecordKeys | None = None,
    source: SourceOptions | None = None,
) -> Dataset:
    """Open one split of a dataset for reading.

    Args:
        path: A directory that ``stoker build`` made; TFRecord shards of other origin, as a directory, one file or a
            pattern such as ``old/train-*``; or images as they are, in any source that ``stoker build`` takes
            (see `docs/reference/images.md`). Shards without an index are scanned once, and the index is kept if that is
            allowed (`stoker.format.index.index_path` says where); compressed ones are inflated into nameless
            temporary files. All of these may be in a bucket or in HDFS: ``s3://BUCKET/PATH``, ``gs://BUCKET/PATH``,
            ``hdfs://HOST:PORT/PATH``; `docs/how-to/buckets.md` says how they are read.
        split: Which split; may be left out when there is only one. ``val`` is another name for ``validation``.
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
    opened = _open(location(path), lambda splits: _choose_split(split, splits, path), keys, options)
    return _reopenable(opened, keys, options)


def open_main_split(path: LocationLike, split: str | None) -> Dataset:
    """Open one split, or, if none is named, the only one, or else train; as `open_dataset` otherwise."""

    def choose(splits: Mapping[str, object]) -> str:
        return _choose_split("train" if split is None and len(splits) > 1 else split, splits, path)

    return _reopenable(_open(location(path), choose, None, SourceOptions()), None, SourceOptions())


def open_splits(path: LocationLike) -> dict[str, Dataset]:
    """Open every split that there is at a place; as `open_dataset` otherwise."""
    names: list[str] = []

    def first(splits: Mapping[str, object]) -> str:
        names.extend(splits)
        return next(iter(splits))

    opened = _reopenable(_open(location(path), first, None, SourceOptions()), None, SourceOptions())
    return {name: opened if name == opened.split else open_dataset(path, name) for name in names}


def _choose_split(wanted: str | None, splits: Mapping[str, object], path: LocationLike) -> str:
    """Return the split that is wanted, or the only one there is.

    Raises:
        ConfigError: There is no such split, or it is not said which of several.
    """
    names = ", ".join(sorted(splits))
    if wanted is None:
        if len(splits) == 1:
            return next(iter(splits))
        raise ConfigError(f"{path} has the splits {names}; say which one with split=")
    if wanted not in splits:
        full = full_split_name(wanted)
        if full in splits:
            return full
        raise ConfigError(f"{path} has no split {wanted!r}; it has {names}")
    return wanted


def _reopenable(opened: Dataset, keys: RecordKeys | None, source: SourceOptions) -> Dataset:
    # The process that opens it again may have another working directory.
    place = location(opened.path).absolute()
    opened.opener = partial(open_dataset, place, opened.split, keys=keys, source=source.absolute())
    return opened


def _open(place: Location, choose: _Choice, keys: RecordKeys | None, source: SourceOptions) -> Dataset:
    if (place / MANIFEST_NAME).lexists():
        return _open_built(place, choose)
    refuse_unfinished(place)
    splits = find_splits(place)
    if splits:
        split = choose(splits)
        return _open_foreign(place, split, open_found(place, splits[split]), keys)
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
    opened = Dataset(
        path=str(directory),
        split=split,
        schema=manifest.schema,
        shards=listed_shards(directory, listed, plain=plain),
        classes=_labels(directory, manifest),
        manifest=manifest,
    )
    if plain:
        opened.shards = open_listed(cast("_native.RecordSet", opened.records), opened.shards, listed)
    return opened


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


def _open_foreign(place: Location, split: str, shards: tuple[OpenShard, ...], keys: RecordKeys | None) -> Dataset:
    """Open shards of other origin; their first record says which feature is what, or ``keys``."""
    first = next((shard for shard in shards if shard.records), None)
    if first is None:
        schema = ImagenetSchema().info(0)  # any will do: there is not a record to which it could be wrong
    else:
        schema = _schema(_native.parse_example(record_set([first])[0].read(0)), keys, place)
    return Dataset(path=str(place), split=split, schema=schema, shards=shards)


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
