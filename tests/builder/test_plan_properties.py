"""Which item goes where: every item exactly once, whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.trees import settings_for
from stoker.builder.plan import Plan, RecordSize, make_plan, plan_settings
from stoker.errors import ConfigError, SourceError
from stoker.sources import ItemTable, Source
from stoker.sources.items import Blobs
from stoker.sources.reader import FileReader

SOURCE = "root"


def tree_of(**splits: list[int]) -> Source:
    """A tree that exists only as numbers: for each split, how many items each class has."""
    labels = [label for counts in splits.values() for label, count in enumerate(counts) for _ in range(count)]
    names = [b"item%d" % row for row in range(len(labels))]
    table = ItemTable(
        Blobs(b"".join(names), np.cumsum([0, *map(len, names)])),
        labels=np.asarray(labels, np.int32),
        sizes=np.arange(1000, 1000 + len(labels)),
        numbers=np.arange(len(labels)),
        objects=np.full(len(labels), -1, np.int32),
    )
    ends = np.cumsum([sum(counts) for counts in splits.values()])
    rows = {name: np.arange(end - sum(counts), end) for (name, counts), end in zip(splits.items(), ends, strict=True)}
    classes = tuple(b"c%d" % label for label in range(max(map(len, splits.values()))))
    return Source("root", classes, (b"",) * len(classes), table, rows, FileReader(b"/root", "disk"))


def paths(plan: Plan) -> list[bytes]:
    return [item.path for job in plan.jobs(plan.shard_names) for item in job.items]


class_counts = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any)


@given(class_counts, class_counts, st.data())
def test_every_item_is_in_exactly_one_shard(train: list[int], validation: list[int], data: st.DataObject) -> None:
    shards = data.draw(st.integers(1, sum(train)))
    seed = data.draw(st.integers(0, 2**63 - 1))
    tree = tree_of(train=train, validation=validation)
    plan = make_plan(tree, settings_for(SOURCE, shards=shards, seed=seed), RecordSize(1.0))
    assert sorted(paths(plan)) == sorted(item.path for item in tree.table)
    jobs = list(plan.jobs(plan.shard_names))
    for split, counts in (("train", train), ("validation", validation)):
        sizes = [len(job.items) for job in jobs if job.split == split]
        assert sum(sizes) == sum(counts)
        assert max(sizes) - min(sizes) <= 1
    assert len(plan.splits[0].shard_names) == shards
    assert len({job.name for job in jobs}) == len(jobs)


@given(class_counts, st.integers(1, 99), st.integers(0, 99))
def test_holding_out_takes_its_part_of_every_class(train: list[int], percent: int, seed: int) -> None:
    tree = tree_of(train=train)
    settings = settings_for(SOURCE, split_fraction=f"validation={percent / 100}", seed=seed, shards=1)
    expected = [int(count * (percent / 100) + 0.5) for count in train]
    if sum(expected) == sum(train):
        return
    plan = make_plan(tree, settings, RecordSize(1.0))
    assert sorted(paths(plan)) == sorted(item.path for item in tree.table)
    rows = {split.name: split.rows for split in plan.splits}
    held = np.bincount(tree.table.labels[rows.get("validation", np.empty(0, int))], minlength=len(train))
    assert held.tolist() == expected


def test_the_order_is_seeded_and_pinned() -> None:
    tree = tree_of(train=[5, 5])

    def order(seed: int) -> list[int]:
        split = make_plan(tree, settings_for(SOURCE, shards=2, seed=seed), RecordSize(1.0)).splits[0]
        return [row for shard in range(2) for row in split.shard_rows(shard).tolist()]

    assert order(0) == order(0) != order(1)
    assert order(17) == PINNED_ORDER


PINNED_ORDER = [0, 2, 3, 7, 1, 9, 8, 4, 6, 5]


def test_only_the_shards_that_are_wanted_are_jobs() -> None:
    plan = make_plan(tree_of(train=[9]), settings_for(SOURCE, shards=3), RecordSize(1.0))
    wanted = {"train-00002-of-00003.tfrecord", "train-00000-of-00003.tfrecord"}
    assert [job.name for job in plan.jobs(wanted)] == sorted(wanted)
    assert plan.items_of(wanted) == sum(len(job.items) for job in plan.jobs(wanted)) == 6


@pytest.mark.parametrize(
    ("settings", "ratio", "expected"),
    [
        ({}, 1.0, (1, 1)),
        ({"shard_size": 10_000}, 1.0, (10, 2)),
        ({"shard_size": 10_000}, 0.5, (5, 1)),
        ({"shard_size": 1}, 1.0, (100, 20)),
        ({"shards": 10}, 1.0, (10, 2)),
        ({"shards": 1}, 1.0, (1, 1)),
        ({"shards": 10, "validation_shards": 7}, 1.0, (10, 7)),
    ],
)
def test_numbers_of_shards(settings: dict[str, int], ratio: float, expected: tuple[int, int]) -> None:
    plan = make_plan(tree_of(train=[100], validation=[20]), settings_for(SOURCE, **settings), RecordSize(ratio))
    assert tuple(len(split.shard_names) for split in plan.splits) == expected


def test_settings_that_do_not_fit_are_refused() -> None:
    for items, settings, message in (
        ({"train": [3], "validation": [2]}, {"shards": 4}, "shards is 4, but split 'train' has 3 items"),
        ({"train": [3], "validation": [2]}, {"validation_shards": 3}, "is 3, but split 'validation' has 2 items"),
        ({"train": [3]}, {"validation_shards": 1}, "no split 'validation'"),
        ({"train": [3], "validation": [2]}, {"split_fraction": "val=0.5"}, "moves images of train to a new split val"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_plan(tree_of(**items), settings_for(SOURCE, **settings), RecordSize(1.0))
    with pytest.raises(SourceError, match="no image"):
        make_plan(tree_of(train=[0]), settings_for(SOURCE), RecordSize(1.0))
    for bad in ({"shards": 0}, {"threads": 0}, {"seed": -1}, {"max_rejects": -1}, {"shard_size": 0}):
        with pytest.raises(ConfigError):
            settings_for(SOURCE, **bad)
    for text in ("train=0.5", "validation=0.0", "validation=1.0", "validation=nan", "validation", "0.5"):
        with pytest.raises(ConfigError, match=f"split_fraction '{text}' is not understood"):
            settings_for(SOURCE, split_fraction=text)
    assert settings_for(SOURCE, split_fraction="val=0.5").held_out == ("validation", 0.5)


def test_threads_and_accepted_rejects_do_not_decide_the_bytes() -> None:
    tree = tree_of(train=[9])
    first, second = settings_for(SOURCE, threads=1, max_rejects=0), settings_for(SOURCE, threads=7, max_rejects=9)
    plans = [plan_settings(make_plan(tree, each, RecordSize(1.0)), each) for each in (first, second)]
    assert plans[0] == plans[1]
