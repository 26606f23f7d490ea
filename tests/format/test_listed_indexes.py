"""Properties of listed shards: the core takes an index exactly when the reader in Python does, and finds the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import tfrecord
from stoker import _native
from stoker.errors import IndexMismatchError
from stoker.format.index import read_index_file

if TYPE_CHECKING:
    from pathlib import Path

payloads = st.lists(st.binary(max_size=40), max_size=6)
changes = st.lists(
    st.tuples(st.integers(0, 60), st.sampled_from([b"", b"0", b"1", b"9", b" ", b"\n", b"-", b"19 19\n", b"\xff"])),
    max_size=3,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("listed")


def changed(text: bytes, edits: list[tuple[int, bytes]]) -> bytes:
    """The text with bytes replaced here and there."""
    for at, by in edits:
        text = text[:at] + by + text[at + 1 :]
    return text


@given(payloads, changes, st.booleans())
def test_an_index_is_taken_if_it_describes_its_shard(
    folder: Path, records: list[bytes], edits: list[tuple[int, bytes]], at_once: bool
) -> None:
    shard, index = folder / "shard", folder / "shard.idx"
    shard.write_bytes(b"".join(map(tfrecord.frame, records)))
    ends = [sum(len(record) + 16 for record in records[: i + 1]) for i in range(len(records))]
    text = b"".join(b"%d %d\n" % (end - len(r) - 16, len(r) + 16) for end, r in zip(ends, records, strict=True))
    index.write_bytes(changed(text, edits))
    try:
        rows = read_index_file(index, shard.stat().st_size)
        fits = len(rows) == len(records)
    except IndexMismatchError:
        fits = False
    opened = _native.RecordSet(index_bytes=1 << 20 if at_once else 1)
    opened.add_listed(str(shard), str(index), len(records), shard.stat().st_size)
    if at_once:
        assert opened.open_listed(1) == ([] if fits else [0])
    if fits:
        assert [opened.read(i) for i in range(len(records))] == records
    elif records:
        with pytest.raises(IndexMismatchError, match="stoker index"):
            opened.read(0)


def test_the_sum_of_a_scan_is_that_of_the_file(folder: Path) -> None:
    shard = folder / "long"
    payloads = [bytes([i]) * size for i, size in enumerate((0, 5, 20_000, 16_384, 300_000))]
    shard.write_bytes(b"".join(map(tfrecord.frame, payloads)))
    rows, crc = _native.scan_and_sum(str(shard))
    assert rows.tolist() == _native.scan_shard(str(shard)).tolist()
    assert crc == _native.crc32c(shard.read_bytes())
