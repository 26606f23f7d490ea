"""Columns in files: a source of millions is listed, planned and saved as one that is held in memory."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.layouts import LAYOUTS
from sources.making import listing, read_back
from stoker.builder import BuildOptions
from stoker.builder.plan import RecordSize, make_plan
from stoker.sources import Source, items, with_objects
from stoker.sources.items import Blobs, Group, GrowingColumn, Item, ItemCollector, ItemTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLASSES = (b"a", b"b", b"c", None)
GROUPS = [Group(split, name, 2) for split in ("train", "validation", None) for name in CLASSES]
GROUPS += [Group("train", b"b", 2, tar=0), Group("test", None, 0, tar=1)]
LABELS = {b"a": 2, b"b": 0, b"c": 1}

IMAGES = st.lists(
    st.tuples(
        st.integers(0, len(GROUPS) - 1),
        st.text("ab\xff", max_size=20).map(lambda name: b"x/" + name.encode("latin-1")),
        st.integers(0, 2**40),
        st.integers(0, 3),
    ),
    max_size=60,
)


@contextmanager
def in_files(rows: int, chunk: int) -> Iterator[None]:
    """Let columns of more than so many rows lie in files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "HELD_ROWS", rows)
        patch.setattr(items, "CHUNK_ROWS", chunk)
        patch.setattr(items, "HELD_NAME_BYTES", 5 * rows)
        yield


def collected(images: list[tuple[int, bytes, int, int]]) -> tuple[ItemTable, dict[str, list[int]], int]:
    collector = ItemCollector()
    for group in GROUPS:
        collector.add_group(group)
    for *image, _ in images:
        collector.add(*image)
    collector.columns = {"offset": np.asarray([image[3] for image in images], np.int64)}
    table, splits = collector.finish(LABELS)
    return table, {name: rows.tolist() for name, rows in splits.items()}, collector.repeated


def rows_of(table: ItemTable) -> list[tuple[Item, Any]]:
    return [(item, item.columns) for item in table]


@given(images=IMAGES)
@settings(max_examples=40)
def test_the_order_does_not_depend_on_where_the_columns_lie(images: list[tuple[int, bytes, int, int]]) -> None:
    held = collected(images)
    for rows, chunk in ((1, 1), (3, 2), (16, 5)):
        with in_files(rows, chunk):
            table, splits, repeated = collected(images)
        assert rows_of(table) == rows_of(held[0])
        assert (splits, repeated) == held[1:]


@given(numbers=st.lists(st.integers(0, 40), min_size=20, max_size=50), archive=st.booleans())
@settings(max_examples=40)
def test_one_class_that_does_not_fit_into_memory_is_sorted(numbers: list[int], archive: bool) -> None:
    images = [(len(GROUPS) - 1 if archive else 0, b"x/%02d" % number, at, 0) for at, number in enumerate(numbers)]
    held = collected(images)
    if not archive:
        assert [(item.path, item.size_bytes) for item in held[0]] == sorted((image[1], image[2]) for image in images)
    with in_files(5, 4):
        table, splits, repeated = collected(images)
    assert rows_of(table) == rows_of(held[0])
    assert (splits, repeated) == held[1:]


@given(
    paths=st.lists(st.text("ab\xff", max_size=30).map(lambda text: text.encode("latin-1")), max_size=60),
    done=st.sampled_from(["", "a", "n01440764/n01440764_"]),
)
@settings(max_examples=80)
def test_rows_are_sorted_as_the_bytes_of_their_paths(paths: list[bytes], done: str) -> None:
    paths = [b"folder/" + done.encode() + path for path in paths]
    starts = np.cumsum([0, *map(len, paths)], dtype=np.int64)
    for rows in (1, 7, 100):
        with in_files(rows, 5):
            by_path = items.RowsByPath(Blobs(b"".join(paths), starts), lambda some: np.full(len(some), 7))
            order = [row for some in by_path.sorted(np.arange(len(paths))) for row in some.tolist()]
        assert order == sorted(range(len(paths)), key=paths.__getitem__)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_source_is_listed_and_planned_alike(layout: str, tmp_path: Path) -> None:
    root = LAYOUTS[layout](tmp_path)
    held = listing(root)
    with in_files(3, 2):
        tree = listing(root)
        for source in (tree, read_back(tree, tmp_path)):
            assert list(source.table) == list(held.table)
            assert (source.fingerprint(), source.warnings) == (held.fingerprint(), held.warnings)
            assert planned(source) == planned(held)
        assert list(with_objects(tree).table) == list(with_objects(held).table)


def planned(tree: Source) -> list[tuple[str, list[Item]]]:
    plan = make_plan(tree, BuildOptions(seed=3).settings(tree.root), RecordSize(1.0))
    return [(job.name, list(job.items)) for job in plan.jobs(plan.shard_names)]


@given(values=st.lists(st.integers(-5, 5), max_size=40), wanted=st.data())
@settings(max_examples=40)
def test_sums_and_counts_of_chunks(values: list[int], wanted: st.DataObject) -> None:
    column = np.asarray(values, np.int64)
    rows = np.asarray(wanted.draw(st.lists(st.sampled_from(range(len(values))), max_size=9) if values else st.just([])))
    rows = rows.astype(np.int64)
    with in_files(3, 2):
        growing = GrowingColumn("q")
        for value in values:
            growing.append(value)
        assert len(growing) == len(values)
        assert items.sum_of(column, rows) == sum(values[row] for row in rows.tolist())
        counts = items.counts_of(column.clip(-1), [rows, rows], 6).tolist()
        assert counts == [2 * sum(max(-1, values[row]) == value for row in rows.tolist()) for value in range(-1, 6)]
        assert items.row_range(7, len(values)).tolist() == list(range(7, 7 + len(values)))
        finished = growing.finish()
        assert finished.tolist() == values
        assert items.repeats_in(finished) == len(values) - len(set(values))
