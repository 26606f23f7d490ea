"""Which item goes into which shard at which place: integers only, decided before any image is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.build.job import ShardJob
from stoker.errors import ConfigError, SourceError
from stoker.records.layout import MAX_SHARDS, shard_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from numpy.typing import NDArray

    from stoker.build.settings import BuildSettings
    from stoker.sources import SourceTree

_SPLIT_ORDER = ("train", "validation", "test")


@dataclass(frozen=True, slots=True, eq=False)
class SplitPlan:
    """One split.

    Attributes:
        name: Its name.
        rows: int64 (N,): rows of the tree's table, in the order of the dataset.
        shards: Shard ``i`` holds ``rows[i * N // shards : (i + 1) * N // shards]``.
        size_bytes: Bytes of its source files.
    """

    name: str
    rows: NDArray[np.int64]
    shards: int
    size_bytes: int

    def shard_names(self) -> list[str]:
        """Return the file names of its shards, in order."""
        return [shard_name(self.name, shard, self.shards) for shard in range(self.shards)]

    def shard_rows(self, shard: int) -> NDArray[np.int64]:
        """Return the rows of one shard, in order."""
        count = len(self.rows)
        return self.rows[shard * count // self.shards : (shard + 1) * count // self.shards]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The whole build. Read-only."""

    tree: SourceTree
    splits: tuple[SplitPlan, ...]

    @property
    def items(self) -> int:
        """Items of all splits."""
        return sum(len(split.rows) for split in self.splits)

    @property
    def size_bytes(self) -> int:
        """Bytes of all source files."""
        return sum(split.size_bytes for split in self.splits)

    def jobs(self, done: Container[str] = ()) -> Iterator[ShardJob]:
        """Yield the jobs of the shards whose names are not in ``done``, in the order of the dataset.

        The items of a job are copied out of the table when it is yielded, so only those in use take memory.
        """
        for split in self.splits:
            for shard, name in enumerate(split.shard_names()):
                if name in done:
                    continue
                yield ShardJob(name, split.name, self.tree.table.take(split.shard_rows(shard)))


def make_plan(tree: SourceTree, settings: BuildSettings, stored_ratio: float) -> Plan:
    """Divide a tree into splits and shards, and put each split into its seeded order.

    Args:
        tree: The items.
        settings: Seed, shards and what is held out.
        stored_ratio: Expected bytes of a dataset for each byte of source; decides the number of shards when the
            settings give only their length.

    Raises:
        ConfigError: More shards than items, or nothing to hold out of.
        SourceError: There is no item at all.
    """
    splits = {name: rows for name, rows in _divide(tree, settings).items() if len(rows)}
    if not splits:
        raise SourceError(f"{tree.root} holds class folders but no image in them", path=tree.root)
    sizes = {name: int(tree.table.sizes[rows].sum()) for name, rows in splits.items()}
    shards = _count_shards({name: len(rows) for name, rows in splits.items()}, sizes, settings, stored_ratio)
    return Plan(
        tree,
        tuple(
            SplitPlan(name, rows[_order(len(rows), settings.seed)], shards[name], sizes[name])
            for name, rows in splits.items()
        ),
    )


def plan_settings(plan: Plan, settings: BuildSettings) -> dict[str, Any]:
    """Return everything that decides the bytes of the dataset; equal settings give equal datasets."""
    return {
        "source": plan.tree.fingerprint(),
        "items": {split.name: len(split.rows) for split in plan.splits},
        "shards": {split.name: split.shards for split in plan.splits},
        "recipe": settings.recipe.resolved(),
        "preset": settings.schema.preset,
        "label_base": settings.schema.label_base,
        "seed": settings.seed,
    }


def _order(count: int, seed: int) -> NDArray[np.int64]:
    return _native.permute(0, count, count, seed, 0).astype(np.int64)


def _divide(tree: SourceTree, settings: BuildSettings) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each split after some of train were held out."""
    held_out = settings.source.held_out
    if held_out is None:
        return dict(tree.splits)
    target, fraction = held_out
    if "train" not in tree.splits or len(tree.splits.get(target, ())):
        message = f"--split-fraction {target}={fraction:g} takes from train and needs a tree without {target}/"
        raise ConfigError(f"{message}; {tree.root} holds {', '.join(tree.splits)}")
    rows = tree.splits["train"]
    moved = np.zeros(len(rows), bool)
    labels = tree.table.labels[rows]
    # The rows of a class lie together, so one sort-free pass finds where each begins.
    starts = np.flatnonzero(np.diff(labels, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        count = int((end - start) * fraction + 0.5)
        # The class is the epoch: each class has an order of its own.
        moved[start + _native.permute(0, count, end - start, settings.seed, int(labels[start])).astype(np.int64)] = True
    divided = dict(tree.splits) | {"train": rows[~moved], target: rows[moved]}
    return {name: divided[name] for name in _SPLIT_ORDER if name in divided}


def _count_shards(
    items: dict[str, int], sizes: dict[str, int], settings: BuildSettings, stored_ratio: float
) -> dict[str, int]:
    main = "train" if "train" in items else next(iter(items))
    explicit = {main: settings.shards}
    if settings.validation_shards is not None:
        if "validation" not in items:
            raise ConfigError("--validation-shards is given, but there is no split 'validation'")
        explicit["validation"] = settings.validation_shards
    for name, shards in explicit.items():
        if shards is not None and shards > items[name]:
            raise ConfigError(f"{shards} shards for the {items[name]} items of split {name!r}; ask for fewer shards")
    # Shards of a split without a number of its own are as long as those of the main split.
    target = settings.shard_bytes
    if settings.shards is not None:
        target = max(1, round(sizes[main] * stored_ratio / settings.shards))
    counts = {}
    for name, count in items.items():
        wanted = explicit.get(name) or min(count, max(1, round(sizes[name] * stored_ratio / target)))
        if wanted > MAX_SHARDS:
            raise ConfigError(f"{wanted} shards for split {name!r}, more than {MAX_SHARDS}; raise --shard-size")
        counts[name] = wanted
    return counts
