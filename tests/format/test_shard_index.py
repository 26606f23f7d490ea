"""The text index beside a shard: properties, and hostile content."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_cases import each
from stoker.errors import IndexMismatchError
from stoker.format.index import check_index, format_index, index_path, parse_index, read_index, write_index

if TYPE_CHECKING:
    from pathlib import Path

frame_sizes = st.lists(st.integers(16, 2**40), max_size=30)


@given(frame_sizes)
def test_text_and_rows_say_the_same(sizes: list[int]) -> None:
    starts = [0, *accumulate(sizes)]
    text = "".join(f"{start} {size}\n" for start, size in zip(starts, sizes, strict=False)).encode()
    assert format_index(np.asarray(sizes, np.uint64)) == text
    rows = parse_index(text, "x.idx")
    assert rows.dtype == np.uint64
    assert rows.tolist() == [list(pair) for pair in zip(starts, sizes, strict=False)]
    check_index(rows, starts[-1], "x.idx")


@given(frame_sizes.filter(bool), st.data())
def test_any_changed_number_is_found(sizes: list[int], data: st.DataObject) -> None:
    total = sum(sizes)
    rows = parse_index(format_index(np.asarray(sizes, np.uint64)), "x.idx")
    row, column = data.draw(st.integers(0, len(sizes) - 1)), data.draw(st.integers(0, 1))
    old = int(rows[row, column])
    rows[row, column] = data.draw(st.integers(0, 2**63).filter(lambda number: number != old))
    with pytest.raises(IndexMismatchError) as caught:
        check_index(rows, total, "x.idx")
    assert caught.value.path == "x.idx"
    assert caught.value.record in (row, row + 1)


@each(
    "text",
    [b"0 16", b"0\n", b"0 16 2\n", b" 16\n", b"0  16\n", b"0 16\n\n", b"-1 16\n", b"0 16\r\n", b"0 1e3\n", b"0\t16\n",
     b"a b\n", b"\n", b"0 " + b"9" * 19 + b"\n", b"16\n0 ", b"0 16\n16", b"\xff 1\n", b"0,16\n", b"0 16\x0016 16\n"],
)  # fmt: skip
def test_what_is_not_an_index_is_refused(text: bytes) -> None:
    with pytest.raises(IndexMismatchError, match="not lines of 'offset size'"):
        parse_index(text, "x.idx")


@given(st.binary(max_size=40) | st.text("0123456789 \n", max_size=40).map(str.encode))
def test_any_bytes_parse_or_are_refused(text: bytes) -> None:
    try:
        rows = parse_index(text, "x.idx")
    except IndexMismatchError:
        return
    assert [[int(word) for word in line.split()] for line in text.splitlines()] == rows.tolist()


@pytest.mark.parametrize(
    "rows", [[(0, 15)], [(1, 16)], [(0, 16), (17, 16)], [(0, 17), (16, 17)], [(0, 2**64 - 8), (0, 40)]]
)
def test_gaps_overlaps_and_wrapping_numbers_are_refused(rows: list[tuple[int, int]]) -> None:
    with pytest.raises(IndexMismatchError):
        check_index(np.asarray(rows, np.uint64), 33, "x.idx")


def test_files(tmp_path: Path) -> None:
    shard = tmp_path / "a.tfrecord"
    rows = np.asarray([(0, 20), (20, 30)], np.uint64)
    assert write_index(shard, rows) == tmp_path / "a.tfrecord.idx"
    assert read_index(shard, 50).tolist() == rows.tolist()
    with pytest.raises(IndexMismatchError, match=r"a.tfrecord.idx does not describe .* end at byte 50 of 51"):
        read_index(shard, 51)
    with pytest.raises(IndexMismatchError, match="record 1 cannot be 30 bytes at 20 of 20"):
        read_index(shard, 20)
    with pytest.raises(FileNotFoundError):
        read_index(tmp_path / "b.tfrecord", 50)
    (tmp_path / "c.tfrecord.idx").write_bytes(b"")
    assert read_index(tmp_path / "c.tfrecord", 0).shape == (0, 2)
    with pytest.raises(IndexMismatchError):
        read_index(tmp_path / "c.tfrecord", 16)


def test_an_index_too_large_for_its_shard_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.tfrecord.idx").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(IndexMismatchError, match="too many for a shard of 50 bytes"):
        read_index(tmp_path / "a.tfrecord", 50)


@pytest.mark.parametrize(
    ("shard", "index"),
    [
        ("out/train-00000-of-00001.tfrecord", "out/train-00000-of-00001.tfrecord.idx"),
        ("out/train-00000-of-00001", "out/idx/train-00000-of-00001.idx"),
        ("train/train-00000-of-00001", "train/idx/train-00000-of-00001.idx"),
        ("out/train/7.tfrecords", "out/idx/train/7.tfrecords.idx"),
        ("out/7.tfrecords", "out/idx/7.tfrecords.idx"),
    ],
)
def test_an_index_lies_where_no_pattern_of_shards_finds_it(tmp_path: Path, shard: str, index: str) -> None:
    path = tmp_path / shard
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(16))
    assert index_path(path) == tmp_path / index
    assert write_index(path, np.array([[0, 16]], np.uint64)) == tmp_path / index
    assert len(read_index(path, 16)) == 1
    beside = path.with_name(path.name + ".idx")
    (tmp_path / index).rename(beside)  # where others put it
    assert index_path(path) == beside
