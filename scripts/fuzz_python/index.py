"""The text index of a shard: rows that cover the shard without gap are written as the same text."""

from __future__ import annotations

import re

from scripts.fuzz_python.made import dataset
from stoker.errors import IndexMismatchError
from stoker.format.index import check_index, format_index, parse_index

_ROW = re.compile(rb"(0|[1-9][0-9]{0,17}) ([1-9][0-9]{0,17})\n")


def one_input(data: bytes) -> None:
    """Parse any bytes as the index of a shard that is as long as its last row says."""
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


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    return [path.read_bytes() for path in dataset().glob("*.idx")] + [b"0 16\n16 100\n", b""]
