"""The text index of a shard, beside it or kept in the cache: rows that cover the shard are written as the same text."""

from __future__ import annotations

import re

import numpy as np

from scripts.fuzz_python.scratch import folder
from scripts.fuzz_python.seed_data import dataset
from stoker.errors import IndexMismatchError
from stoker.format.index import CachedIndex, check_index, format_index, parse_index

_KEPT = folder() / "kept.idx"
_ROW = re.compile(rb"(0|[1-9][0-9]{0,17}) ([1-9][0-9]{0,17})\n")


def one_input(data: bytes) -> None:
    """Parse any bytes as the index of a shard that is as long as its last row says."""
    _read_kept(data)
    rows = parse_index(data, "index")
    end = int(rows[-1].sum()) if len(rows) else 0
    try:
        check_index(rows, end, "index")
    except IndexMismatchError:
        return
    assert rows[:, 1].sum() == end
    text = format_index(rows[:, 1])
    assert (parse_index(text, "index") == rows).all()
    assert text == data or not re.fullmatch(rb"(?:%b)*" % _ROW.pattern, data)


def _read_kept(data: bytes) -> None:
    """Read any bytes as an index in the cache: there is none, or one that the shard may have."""
    _KEPT.write_bytes(data)
    last = re.search(rb"(\d{1,18}) (\d{1,18})\n\Z", data)
    kept = CachedIndex(_KEPT, int(last[1]) + int(last[2]) if last else 0)
    rows = kept.read()
    if rows is None:
        return
    assert kept.may_list(len(rows))
    assert rows[:, 1].sum() == kept.shard_bytes
    kept.write(rows)
    again = kept.read()
    assert again is not None
    assert np.array_equal(again, rows)


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    return [path.read_bytes() for path in dataset().glob("*.idx")] + [b"0 16\n16 100\n", b""]
