"""Which item goes into which shard at which position: integers only, decided before any image is opened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.config import format_count, format_size, option
from stoker.errors import ConfigError, SourceError
from stoker.format import MAX_SHARDS, contents_of, no_records, records_below
from stoker.sources import list_source, sum_of, with_objects
from stoker.splits import SPLITS
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from stoker.builder.settings import BuildOptions, BuildSettings
    from stoker.format import ShardNaming
    from stoker.sources import Item, Source
    from stoker.storage import Location
    from stoker.types import Compression, Progress, SchemaInfo


FULL_SHARD = 100
"""A preferred number of shards counts only if each shard has at least this many records."""


@dataclass(frozen=True, slots=True, eq=False)
class ShardJob:
    """One shard to build."""

    name: str  # its name, relative to the destination
    split: str
    items: Iterable[Item]  # its items, in order; for records without a length, iterated only once
    compression: Compression = "none"  # of the whole file


@dataclass(frozen=True, slots=True, eq=False)
class SplitPlan:
    """One split."""

    name: str
    # int64 (N,): its rows of the source's table, before ``seed`` has put them into the order of the dataset
    rows: NDArray[np.int64]
    # int64 (S + 1,): shard ``i`` holds the positions from ``bounds[i]`` to ``bounds[i + 1]`` of that order
    bounds: NDArray[np.int64]
    shard_names: tuple[str, ...]  # names of its S shards, in order
    size_bytes: int  # bytes of its source files
    # of the order, which is computed for one shard at a time to save 8 bytes per item. None: the order of ``rows``
    seed: int | None = None

    def shard_rows(self, shard: int) -> NDArray[np.int64]:
        """Return the rows of one shard, in order."""
        first, end = int(self.bounds[shard]), int(self.bounds[shard + 1])
        if self.seed is None:
            return self.rows[first:end]
        return self.rows[_native.permute(first, end - first, len(self.rows), self.seed, 0).astype(np.int64)]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The whole build. Read-only."""

    source: Source
    splits: tuple[SplitPlan, ...]  # the plan of each split
    compression: Compression = "none"
    shard_rule: str = ""  # why there are as many shards as there are, in words

    @property
    def items(self) -> int:
        """Items of all splits."""
        return sum(len(split.rows) for split in self.splits)

    @property
    def size_bytes(self) -> int:
        """Bytes of all source files."""
        return sum(split.size_bytes for split in self.splits)

    @property
    def shard_names(self) -> list[str]:
        """Names of the shards of all splits, in the order of the dataset."""
        return [name for split in self.splits for name in split.shard_names]

    def items_of(self, shards: Container[str]) -> int:
        """Return how many items some shards have together, given their names."""
        return sum(
            int(split.bounds[shard + 1] - split.bounds[shard])
            for split in self.splits
            for shard, name in enumerate(split.shard_names)
            if name in shards
        )

    def rows_of_shards(self) -> dict[str, Callable[[], NDArray[np.int64]]]:
        """Return, by the name of each shard, a function that returns its rows in order."""
        return {
            name: partial(split.shard_rows, shard)
            for split in self.splits
            for shard, name in enumerate(split.shard_names)
        }

    def jobs(self, wanted: Container[str]) -> Iterator[ShardJob]:
        """Yield the jobs of the shards whose names are in ``wanted``, in the order of the dataset.

        The items of a job are copied out of the table when it is yielded, so only those in use take memory.
        """
        for split in self.splits:
            for shard, name in enumerate(split.shard_names):
                if name in wanted:
                    yield ShardJob(name, split.name, self.source.table.take(split.shard_rows(shard)), self.compression)


@dataclass(frozen=True, slots=True)
class RecordSize:
    """Length of records, measured on a sample of them."""

    per_source_byte: float  # bytes of records for each byte of source
    per_record: float | None = None  # bytes of a record where all are about as long, else None

    def of(self, items: int, source_bytes: int) -> float:
        """Return the expected bytes of some records."""
        return source_bytes * self.per_source_byte if self.per_record is None else items * self.per_record


def open_source(
    settings: BuildSettings, progress: Progress | None = None, destination: Location | None = None
) -> Source:
    """List the images that the settings name; a destination that lies in the source is left out.

    Raises:
        SourceError: They cannot be listed, or are TFRecords.
    """
    assert settings.root is not None, "records of a program are not listed here"
    path = location(settings.root)
    below = records_below(path)
    if below is not None:
        raise _records_at(settings.root, below)
    try:
        source = list_source(settings.root, settings.source, progress, destination)
    except SourceError as error:  # only now: images are built also where TFRecords lie beside them
        kind = "images" if settings.source.refer_to(error.path) or not path.exists() else contents_of(path).kind
        if kind != "images":
            raise (no_records(path) if kind == "unfinished" else _records_at(settings.root, path)) from error
        raise
    if settings.held_out is not None and "train" in source.boxes:
        # Items that are held out keep the annotations that they have in train.
        source = replace(source, boxes={settings.held_out[0]: source.boxes["train"], **source.boxes})
    return with_objects(source, progress) if settings.options.crop_objects else source


def _records_at(root: str, path: Location) -> SourceError:
    message = f"TFRecords are in {path}, and they are not images"
    message += f"; build from those with 'stoker repack {path} DESTINATION'"
    if location(root).is_dir() and not path.is_same(location(root)):
        message += f", or move them out of {root} to build from images beside them"
    return SourceError(message, path=root)


def make_plan(source: Source, settings: BuildSettings, size: RecordSize) -> Plan:
    """Divide a source into splits and shards, and put each split into its seeded order.

    The size of the records decides the number of shards when the settings give only their length.
    """
    images = [name for name, field in source.fields.items() if field.is_image]
    if settings.options.crop_objects and images:
        message = f"{option('crop_objects')} cuts objects out of the image, but not out of {', '.join(images)}"
        raise ConfigError(f"{message}; omit it, or those fields")
    splits = {name: rows for name, rows in _divide(source, settings).items() if len(rows)}
    if not splits:
        raise SourceError(f"{source.root} {source.without_images}", path=source.root)
    naming, seed = settings.naming, settings.options.seed
    if len(splits) > 1 and not naming.names_splits:
        message = f"{option('shard_names')} {naming.text!r} gives the shards of {' and '.join(splits)} the same names"
        raise ConfigError(f"{message}; add {{split}} to it, for example {{split}}-part-{{shard}}.tfrecord")
    sizes = {name: sum_of(source.table.sizes, rows) for name, rows in splits.items()}
    items = {name: len(rows) for name, rows in splits.items()}
    if naming.per_class:
        plans = [_by_class(source, naming, name, rows, sizes[name], seed) for name, rows in splits.items()]
    else:
        stored = {name: size.of(items[name], sizes[name]) for name in splits}
        shards = count_shards(items, stored, settings)
        plans = [_even(naming, name, rows, sizes[name], shards[name], seed) for name, rows in splits.items()]
    return Plan(source, tuple(plans), settings.compression, shard_rule(items, settings))


def _divide(source: Source, settings: BuildSettings) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each split, after some of train were left out and some held out."""
    divided = dict(source.splits)
    limit, seed = settings.options.num_images, settings.options.seed
    if limit is not None:
        if "train" not in divided:
            raise ConfigError(
                f"{option('num_images')} takes images of train, but {source.root} holds only"
                f" {' and '.join(source.splits)}"
            )
        rows = divided["train"]
        if limit < len(rows):
            divided["train"] = rows[np.sort(_native.permute(0, limit, len(rows), seed, 1).astype(np.int64))]
    if settings.held_out is not None:
        divided |= _hold_out(source, divided, settings.held_out, seed)
    return {name: divided[name] for name in SPLITS if name in divided}


def _hold_out(
    source: Source, splits: Mapping[str, NDArray[np.int64]], held_out: tuple[str, float], seed: int
) -> dict[str, NDArray[np.int64]]:
    target, fraction = held_out
    if "train" not in splits or len(splits.get(target, ())):
        message = f"{option('split_fraction')} {target}={fraction:g} moves images of train to a new split {target}"
        raise ConfigError(f"{message}, but {source.root} holds {' and '.join(splits)}")
    rows = splits["train"]
    moved = np.zeros(len(rows), bool)
    # One sort finds where the rows of each class lie.
    by_class = np.argsort(source.table.labels[rows], kind="stable")
    labels = source.table.labels[rows][by_class]
    starts = np.flatnonzero(np.diff(labels, prepend=-2))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        count = int((end - start) * fraction + 0.5)
        # The class takes the place of the epoch, so that each class has an order of its own.
        chosen = _native.permute(0, count, end - start, seed, max(0, int(labels[start]))).astype(np.int64)
        moved[by_class[start + chosen]] = True
    return {"train": rows[~moved], target: rows[moved]}


def count_shards(items: Mapping[str, int], sizes: Mapping[str, float], settings: BuildSettings) -> dict[str, int]:
    """Return the number of shards of each split, at least one, by its items and the expected bytes of their records."""
    main, preferred = _main_split(items), settings.preferred_shards
    explicit = _checked_counts(items, settings.options)
    if preferred is not None and _fills_preferred(items, preferred):
        explicit[main] = preferred[0]
        if len(items) > 1 and items.get("validation", 0) >= FULL_SHARD * preferred[1]:
            explicit.setdefault("validation", preferred[1])
    # Shards of a split without a number of its own are as long as those of the main split.
    target = settings.shard_bytes
    main_shards = explicit.get(main)
    if main_shards is not None:
        target = max(1, round(sizes[main] / main_shards))
    counts = {}
    for name, count in items.items():
        wanted = explicit.get(name) or min(count, max(1, round(sizes[name] / target)))
        if wanted > MAX_SHARDS:
            raise ConfigError(
                f"{wanted} shards for split {name!r}, more than {MAX_SHARDS}; raise {option('shard_size')}"
            )
        counts[name] = wanted
    return counts


def _given_counts(items: Mapping[str, int], options: BuildOptions) -> list[tuple[str, str, int]]:
    """Return the settings that give the number of shards of a split: name, split and number."""
    splits = {"shards": _main_split(items), "validation_shards": "validation"}
    return [
        (option(name), split, count) for name, split in splits.items() if (count := getattr(options, name)) is not None
    ]


def _checked_counts(items: Mapping[str, int], options: BuildOptions) -> dict[str, int]:
    given: dict[str, int] = {}
    for name, split, count in _given_counts(items, options):
        if split not in items:
            raise ConfigError(f"{name} is given, but there is no split {split!r}")
        if split in given:
            message = f"{option('shards')} is {given[split]} and {name} is {count}"
            message += f", but without a split 'train' both are of {split}"
            raise ConfigError(f"{message}; give one of them")
        if count > items[split]:
            message = f"{name} is {count}, but split {split!r} has {format_count(items[split], 'item')}"
            raise ConfigError(f"{message}; give {items[split]} or less")
        given[split] = count
    return given


def _main_split(items: Mapping[str, int]) -> str:
    return "train" if "train" in items else next(iter(items))


def _fills_preferred(items: Mapping[str, int], preferred: tuple[int, int]) -> bool:
    return items[_main_split(items)] >= FULL_SHARD * preferred[0]


def shard_rule(items: Mapping[str, int], settings: BuildSettings) -> str:
    """Return in words how `count_shards` decides."""
    if settings.naming.per_class:
        return "one for each class of train"
    options, preferred, main = settings.options, settings.preferred_shards, _main_split(items)
    phrases = [f"{count:,} of {split}, as {name} says" for name, split, count in _given_counts(items, options)]
    if options.shards is not None or len(phrases) == len(items):
        return "; ".join(phrases)
    length = (
        f"about {format_size(settings.shard_bytes)} each; {option('shards')} or {option('shard_size')} changes that"
    )
    if preferred is None:
        return "; ".join([*phrases, length])
    needed = f"{FULL_SHARD * preferred[0]:,} images of {main}, {FULL_SHARD} for each"
    if _fills_preferred(items, preferred):
        return f"{preferred[0]:,} of {main}, as the preset has from {needed}"
    return f"{length}; the preset has {preferred[0]:,} from {needed}"


def _even(
    naming: ShardNaming, split: str, rows: NDArray[np.int64], size_bytes: int, shards: int, seed: int
) -> SplitPlan:
    bounds = np.arange(shards + 1, dtype=np.int64) * len(rows) // shards
    names = tuple(naming.name(split, shard, shards) for shard in range(shards))
    return SplitPlan(split, rows, bounds, names, size_bytes, seed)


def _by_class(
    source: Source, naming: ShardNaming, split: str, rows: NDArray[np.int64], size_bytes: int, seed: int
) -> SplitPlan:
    """Give every class of train a shard of its own, in seeded order; every other split is one shard."""
    if split != "train":
        return _even(naming, split, rows, size_bytes, 1, seed)
    rows = rows[_native.permute(0, len(rows), len(rows), seed, 0).astype(np.int64)]
    rows = rows[np.argsort(source.table.labels[rows], kind="stable")]
    labels, starts = np.unique(source.table.labels[rows], return_index=True)
    names = tuple(naming.name(split, label, len(labels)) for label in labels.tolist())
    return SplitPlan(split, rows, np.append(starts, len(rows)).astype(np.int64), names, size_bytes)


def plan_settings(plan: Plan, settings: BuildSettings) -> dict[str, Any]:
    """Return everything that decides the bytes of the dataset; equal settings give equal datasets."""
    return {
        "source": plan.source.fingerprint(),
        "items": {split.name: len(split.rows) for split in plan.splits},
        "shards": {split.name: len(split.shard_names) for split in plan.splits},
        "shard_names": settings.naming.text,
        "compression": settings.compression,
        "recipe": recipe_record(settings),
        "preset": settings.schema.info(0).preset,
        "label_base": settings.schema.label_base,
        "limit": settings.options.num_images,
        "seed": settings.options.seed,
        **fields_record(stored_schema(plan.source, settings)),
    }


def stored_schema(source: Source, settings: BuildSettings, classes: int = 0) -> SchemaInfo:
    """Return the schema of the records of a source, as in the manifest, for a number of classes."""
    info = settings.schema.with_fields(source.fields).info(classes)
    return info if info.box_prefix is None else replace(info, box_names=source.reader.box_names)


def fields_record(schema: SchemaInfo) -> dict[str, Any]:
    """Return the extra fields and the classes of boxes, for the journal; empty if there are none."""
    record: dict[str, Any] = {}
    if schema.fields:
        record["fields"] = {name: field.to_json() for name, field in schema.fields.items()}
    if schema.box_names:
        record["box_names"] = list(schema.box_names)
    return record


def recipe_record(settings: BuildSettings) -> dict[str, Any]:
    """Return how an image becomes a record, for the manifest and the journal."""
    options = settings.options
    record = settings.recipe.resolved() | ({"crop_objects": True} if options.crop_objects else {})
    return record | ({"drop_duplicates": options.drop_duplicates} if options.drop_duplicates else {})
