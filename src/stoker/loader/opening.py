"""Finding the samples of a split: in shards of any origin, or in image files."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import ConfigError, DatasetNotFoundError, ManifestError, SourceError
from stoker.format import (
    LABELS_NAME,
    MANIFEST_NAME,
    ClassLabel,
    ImagenetSchema,
    KeptIndex,
    compression_of,
    find_shards,
    from_keys,
    holds_records,
    inflate,
    is_unfinished,
    new_index_name,
    parse_shard_name,
    read_index,
    read_labels,
    read_manifest,
    recognise,
    refuse_incomplete,
    write_index,
)
from stoker.loader.dataset import Dataset
from stoker.loader.image_files import FILE_SCHEMA, ImageFiles
from stoker.loader.remote.shards import RemoteFolder, foreign_remote_splits, open_remote_shards, read_anew
from stoker.loader.shards import OpenShard, check_length, with_records
from stoker.sources import SourceOptions, list_source
from stoker.storage import location, stoppable_pool

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from stoker.format import Shard
    from stoker.storage import Location, LocationLike
    from stoker.types import Features, SchemaInfo


# Shards, and those of other origin: which there are, where their records lie, and what these hold.


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


def foreign_splits(place: Location) -> dict[str, Sequence[Location]]:
    """Return the shards that a directory, a file or a pattern names, by split; empty if there are none.

    Raises:
        DatasetNotFoundError: The names of the shards promise others that are not there.
        OSError: The directory or the file cannot be read.
    """
    if not place.is_dir():
        groups: dict[str, list[Location]] = {}
        for match in [place] if place.is_file() else place.matching():
            said = parse_shard_name(match.name)
            if said is not None or (match == place and holds_records(place)):
                groups.setdefault(said.split if said else "train", []).append(match)
        return dict(groups)
    found = find_shards(place)
    refuse_incomplete(place, found)
    return {name: split.paths for name, split in found.items()}


def choose_split(wanted: str | None, splits: Mapping[str, object], path: LocationLike) -> str:
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


def open_shard(path: Location) -> OpenShard:
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
        kept = KeptIndex.of(path.local_path())
    rows = kept.read()
    if rows is None:
        rows = _native.scan_shard(str(path), check=False)
        try:
            write_index(path, rows)
        except OSError:  # a read-only place
            kept.write(rows)
    return OpenShard.of(path, rows)


def size_of(path: Location) -> int:
    """Return the length of a shard.

    Raises:
        DatasetNotFoundError: It is missing.
    """
    try:
        return path.size()
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


# Shards that a manifest lists: opened without reading what nobody has asked for yet.
#
# The manifest knows how many records each shard has, so the order of an epoch and the place of a sample need no index.
# Opening looks at every shard's length and index; up to four million records it reads the indexes too, on all CPUs. Of
# more records an index is read when the first record of its shard is; see `docs/format.md`.


def listed_shards(directory: Location, listed: Sequence[Shard]) -> tuple[OpenShard, ...]:
    """Return the plain shards of a manifest; nothing is looked at yet."""
    return tuple(
        OpenShard(directory / shard.name, shard.records, shard.size_bytes, directory / new_index_name(shard.name))
        for shard in listed
    )


def open_listed(dataset: Dataset, listed: Sequence[Shard]) -> None:
    """Look at the shards of a dataset, which are those of `listed_shards`, and open what is not as listed one by one.

    Raises:
        DatasetNotFoundError: One is missing.
        TruncatedShardError: One is shorter or longer than listed.
        IndexMismatchError: An index is that of another file, or lists another number of records.
        ShardError: One without an index is damaged.
    """
    records = cast("_native.RecordSet", dataset.records)
    odd = records.open_listed(available_cpus())
    opened = open_shards(lambda number: _open_again(dataset.shards[number], listed[number]), odd)
    shards = list(dataset.shards)
    for number, shard in zip(odd, opened, strict=True):
        records.set_extents(number, shard.extents)
        shards[number] = shard
    dataset.shards = tuple(shards)


def _open_again(shard: OpenShard, listed: Shard) -> OpenShard:
    return open_one(shard.path, listed) if shard.path.is_local else read_anew(shard)


def open_one(path: Location, listed: Shard) -> OpenShard:
    """Open a shard that a manifest lists; its length and number of records must be those listed.

    Raises:
        DatasetNotFoundError: It is missing.
        TruncatedShardError: It is shorter or longer than listed.
        IndexMismatchError: Its index is that of another file, or lists another number of records.
        ShardError: It has no index and is damaged.
    """
    check_length(path, size_of(path), listed.size_bytes)
    return with_records(open_shard(path), listed.records)


if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stoker.format import Manifest, Shard
    from stoker.storage import Location

    _Choice = Callable[[Mapping[str, object]], str]


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
            pattern such as ``old/train-*``; or images that nobody has built anything of: a tree of class folders, a
            file list, a directory of tars. Shards without an index are scanned once, and the index is kept if that is
            allowed (`stoker.format.index.index_path` says where); compressed ones are inflated into nameless
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


def open_main_split(path: LocationLike, split: str | None) -> Dataset:
    """Open one split, or, if none is named, the only one, or else train; as `open_dataset` otherwise."""

    def choose(splits: Mapping[str, object]) -> str:
        return choose_split("train" if split is None and len(splits) > 1 else split, splits, path)

    return _reopenable(_open(location(path), choose, None, SourceOptions()), None, SourceOptions())


def open_splits(path: LocationLike) -> dict[str, Dataset]:
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
    if (place / MANIFEST_NAME).lexists():
        return _open_built(place, choose)
    refuse_unfinished(place)
    if place.is_local:
        splits = foreign_splits(place)
        if splits:
            split = choose(splits)
            return open_foreign(place, split, open_shards(open_shard, splits[split]), keys)
    else:
        remote = foreign_remote_splits(place)
        if remote:
            split = choose(remote)
            return open_foreign(place, split, open_remote_shards(remote[split]), keys)
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
    if not directory.is_local:
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
