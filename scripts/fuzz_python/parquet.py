"""What ``datasets`` notes of columns of Parquet, as any bytes: refused, or items whose classes and fields those are."""

from __future__ import annotations

import contextlib
import os

import pyarrow as pa
from pyarrow import parquet

from scripts.fuzz_python.scratch import folder
from stoker.errors import SourceError
from stoker.sources import list_source

_FOLDER = folder()
_FILE = _FOLDER / "train.parquet"
os.environ["STOKER_CACHE_DIR"] = str(_FOLDER / "cache")

_TABLE = pa.table(
    {
        "image": [{"bytes": b"x", "path": "a/b.jpg"}, {"bytes": None, "path": "../c.jpg"}],
        "label": [0, 1],
        "tags": [[0, 2], []],
        "matrix": [[[0.5, 1.0]], [[2.0, 3.0]]],
        "text": ["one", "two"],
    }
)


def one_input(data: bytes) -> None:
    """List a file with any notes of its columns."""
    parquet.write_table(_TABLE.replace_schema_metadata({b"huggingface": data}), _FILE.local_path())
    tree = list_source(str(_FILE))
    for row, item in enumerate(tree.table):
        assert -1 <= item.label < len(tree.classes)
        assert item.path.startswith(b"train.parquet/%09d" % row)
        assert tree.stored.values(item).keys() == tree.fields.keys()
        with contextlib.suppress(SourceError):
            tree.load(item, "train")


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    notes = (
        b'{"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": ["a", "b"]}}',
        b'{"tags": {"_type": "List", "feature": {"_type": "ClassLabel", "names": ["a", "b", "c"]}}}',
        b'{"tags": [{"_type": "ClassLabel", "num_classes": 3}], "label": {"_type": "ClassLabel"}}',
        b'{"matrix": {"_type": "Array2D", "shape": [1, 2], "dtype": "float32"}}',
    )
    return [b'{"info": {"features": %b}}' % note for note in notes]
