"""Metadata files: refused, or items whose values are those of their fields."""

from __future__ import annotations

from scripts.fuzz_python.scratch import folder
from stoker.errors import SourceError
from stoker.fields import ValueField
from stoker.sources import list_source

_FOLDER = folder()
_NAMES = ("metadata.csv", "metadata.tsv", "metadata.jsonl")
for _name in ("a.jpg", "b.jpg"):
    (_FOLDER / _name).write_bytes(b"x")


def one_input(data: bytes) -> None:
    """Read any bytes as a table; the first byte says of which kind."""
    for name in _NAMES:
        (_FOLDER / name).unlink(missing_ok=True)
    (_FOLDER / _NAMES[data[0] % 3 if data else 0]).write_bytes(data[1:])
    tree = list_source(str(_FOLDER))
    assert 0 < len(tree.table) <= data.count(b"\n") + 1
    for item in tree.table:
        values = tree.stored.values(item)
        assert values.keys() == tree.fields.keys()
        for name, field in tree.fields.items():
            if isinstance(field, ValueField) and values[name] is not None:
                try:
                    field.encode(name, values[name])
                except SourceError:
                    continue


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    csv = b'file_name,label,n,x,t,mask_file_name\na.jpg,1,7,0.5,"a ""b"", c",b.jpg\nb.jpg,0,-8,2,,\n'
    lines = b'{"file_name": "a.jpg", "label": "cat", "tags": ["x", 1]}\n{"file_name": "c.jpg", "n": 1}\n'
    return [b"\0" + csv, b"\1" + csv.replace(b",", b"\t"), b"\2" + lines]
