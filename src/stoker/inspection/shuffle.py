"""How well a dataset is mixed by each kind of order, and how much of its shards a reader has in hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.feed.opening import open_main_split
from stoker.order import BlockShuffle, EpochOrder, sampled_batches, shuffle_quality
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    import os

    from stoker.feed import Dataset

_LABELS = 4096
"""The most records of each order whose labels are read."""
_AT_ONCE = 32
"""Records that are asked for at a time where each has to wait for a store."""


@dataclass(frozen=True, slots=True)
class ShuffleSpec:
    """What to measure.

    Attributes:
        split: Which split; None takes the only one, or train.
        batch_size: Samples of a batch, of all ranks together.
        shuffle: The block shuffle to compare with no shuffle and a full one.
        seed: Of the orders.

    Raises:
        ConfigError: A number is out of range.
    """

    split: str | None = None
    batch_size: int = 256
    shuffle: BlockShuffle = BlockShuffle()  # noqa: RUF009 - frozen
    seed: int = 17

    def __post_init__(self) -> None:
        check_range("--batch-size", self.batch_size, 1, 2**30)
        check_range("--seed", self.seed, 0, 2**64 - 1)


@dataclass(frozen=True, slots=True)
class ShuffleRow:
    """One kind of order.

    Attributes:
        order: ``none``, ``full``, or the name of the block shuffle.
        quality: 1.0 mixes a batch as well as a full shuffle does, 0 takes it from one place.
        blocks_read: The most blocks that are begun and not finished at one time.
        bytes_read: Bytes of the shards that those blocks are, from their mean size; None for image files.
        classes: Mean number of different classes in a batch; None where there are no labels.
    """

    order: str
    quality: float
    blocks_read: int
    bytes_read: int | None
    classes: float | None


@dataclass(frozen=True, slots=True)
class ShuffleReport:
    """What was measured of a split.

    Attributes:
        path: The dataset.
        split: Its split.
        samples: How many it has.
        batch_size: Samples of a batch.
        block: Samples of a block.
        rows: No shuffle, the block shuffle, a full shuffle.
        class_batch: Samples of the batches whose classes were counted, which may be smaller than a batch.
    """

    path: str
    split: str
    samples: int
    batch_size: int
    block: int
    rows: tuple[ShuffleRow, ...]
    class_batch: int


def measure_shuffle(path: str | os.PathLike[str], spec: ShuffleSpec) -> ShuffleReport:
    """Compare no shuffle, a block shuffle and a full one on a dataset.

    Decodes no image; of each order it reads a few thousand records for their labels.

    Raises:
        ConfigError: The split is unknown or empty.
        DatasetNotFoundError: There is no such dataset.
        ShardError: A record that was read for its label is damaged.
    """
    dataset = open_main_split(path, spec.split)
    if len(dataset) == 0:
        raise ConfigError(f"split {dataset.split} of {path} has no samples, so there is no order to measure")
    orders: list[tuple[str, bool | BlockShuffle]] = [("none", False), (spec.shuffle.name, spec.shuffle), ("full", True)]
    return ShuffleReport(
        path=str(path),
        split=dataset.split,
        samples=len(dataset),
        batch_size=spec.batch_size,
        block=spec.shuffle.block,
        rows=tuple(_row(dataset, name, shuffle, spec) for name, shuffle in orders),
        class_batch=min(spec.batch_size, len(dataset), _LABELS),
    )


def _row(dataset: Dataset, name: str, shuffle: bool | BlockShuffle, spec: ShuffleSpec) -> ShuffleRow:  # noqa: FBT001
    order = EpochOrder(len(dataset), shuffle, spec.seed, 0)
    measured = shuffle_quality(order, spec.batch_size, block=spec.shuffle.block)
    stored = sum(shard.size_bytes for shard in dataset.shards)
    share = min(1.0, measured.blocks_read * measured.block / len(dataset))
    return ShuffleRow(
        order=name,
        quality=measured.quality,
        blocks_read=measured.blocks_read,
        bytes_read=round(stored * share) if dataset.shards else None,
        classes=_classes(dataset, order, spec.batch_size),
    )


def _classes(dataset: Dataset, order: EpochOrder, batch_size: int) -> float | None:
    """Mean number of different classes in a batch; None if a sample of them has no label."""
    counts = []
    with stoppable_pool(1 if dataset.remote is None else _AT_ONCE, "stoker-look") as pool:
        for keys in sampled_batches(order, batch_size, _LABELS):
            labels = set(pool.map(lambda key: dataset[key].label, keys.tolist()))
            if -1 in labels:
                return None
            counts.append(len(labels))
    return float(np.mean(counts))
