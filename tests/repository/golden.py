"""What must not change while code moves: ``python tests/repository/golden.py`` writes golden.json beside it anew.

Of every layout of a source and every way to write a dataset: fingerprint, order, ``dataset_id``, bytes, first batch.
Nothing in it depends on a place, a clock, a processor or the version of a library.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from pyarrow import parquet

import stoker
from sources.layouts import LAYOUTS
from stoker.cli.main import main
from stoker.errors import StokerError
from stoker.format.manifest import read_manifest
from stoker.sources import list_source

if TYPE_CHECKING:
    from collections.abc import Iterable

FILE = Path(__file__).with_name("golden.json")
FIELDS = {
    "image": stoker.fields.Image(),
    "label": stoker.fields.Label(["a", "b"]),
    "caption": stoker.fields.Text(),
    "mask": stoker.fields.Mask(),
}


def records(count: int) -> list[dict[str, object]]:
    pixels = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3)
    masks = [np.full((20, 30), number % 3, np.uint8) for number in range(3)]
    return [
        {"image": pixels + number, "label": "ab"[number % 2], "caption": f"c{number}", "mask": masks[number % 3]}
        for number in range(count)
    ]


def digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()[:32]


def tree(root: Path) -> str:
    """Names and bytes of all files but those that depend on a path or on the version of pyarrow."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    skipped = {".parquet"}
    rejects = root / "rejects.jsonl"
    if rejects.exists():  # whose reasons name files below the folder of the test
        files.remove(rejects)
        skipped.add(".json")
    return digest(
        str(path.relative_to(root)).encode() + b"\0" + (b"" if path.suffix in skipped else path.read_bytes())
        for path in files
    )


def batch(dataset: stoker.Dataset) -> str:
    """Pixels, labels and indices of the first four samples in a fixed order, and the names of the fields."""
    fields = sorted(dataset.fields)
    crop = stoker.CenterCrop(6)
    try:
        with stoker.Loader(dataset, 4, transform=crop, shuffle=True, seed=7, max_bad=100, fields=fields) as loader:
            batch = next(iter(loader))
    except (StokerError, OSError) as error:  # a sample without a field, a file that is not there
        return type(error).__name__
    values = [f"{name} {value!r}".encode() for name, value in batch.fields.items() if isinstance(value, list)]
    return digest([batch.images.tobytes(), repr([batch.labels.tolist(), batch.indices.tolist()]).encode(), *values])


def layout(name: str, top: Path) -> dict[str, object]:
    """What is listed of a layout, built of it, and opened without a build."""
    top.mkdir(exist_ok=True)
    source = LAYOUTS[name](top / "source")
    listed = list_source(str(source))
    order = digest(b"%s %d" % (item.path.rpartition(b"/")[2], item.label) for item in listed.table)
    values: dict[str, object] = {"fingerprint": listed.fingerprint(), "order": order, "warnings": len(listed.warnings)}
    built = top / "built"
    report = stoker.build(source, built, progress=False, max_rejects=100, shard_size=2000)
    manifest = report.manifest
    values |= {"dataset_id": manifest.dataset_id, "rejects": manifest.rejects}
    values |= {"bytes": tree(built)}
    for split in report.manifest.splits:
        values |= {f"batch of {split}, built": batch(stoker.open(built, split))}
        values |= {f"batch of {split}, opened": batch(stoker.open(source, split))}
    return values


def ways_to_write(top: Path) -> dict[str, object]:
    """All that writes a dataset, and the exports of one."""
    sequence = stoker.build(records(20), top / "sequence", shards=3, progress=False).manifest
    stream = stoker.build(iter(records(20)), top / "stream", fields=FIELDS, shard_size=9000, progress=False).manifest
    small = stoker.build(records(7), top / "small", fields=FIELDS, progress=False).manifest
    merged = stoker.merge([top / "stream", top / "small"], top / "merged", progress=False).manifest
    assert main(["repack", str(top / "sequence"), str(top / "repacked"), "--shards", "2", "--quiet"]) == 0
    source = LAYOUTS["splits"](top / "parts of")
    for part in range(2):
        parts = stoker.build(source, top / "parts", part=f"{part}/2", progress=False, max_rejects=100, shard_size=2000)
    values: dict[str, object] = {
        "sequence": [sequence.source.fingerprint, sequence.dataset_id, tree(top / "sequence")],
        "stream": [stream.source.fingerprint, stream.dataset_id, tree(top / "stream")],
        "small": [small.source.fingerprint, small.dataset_id, tree(top / "small")],
        "merged": [merged.dataset_id, tree(top / "merged")],
        "repacked": [read_manifest(top / "repacked").dataset_id, tree(top / "repacked")],
        "parts": [parts.manifest.dataset_id, tree(top / "parts")],
    }
    (top / "exported").mkdir()
    for kind in ("folder", "webdataset", "parquet"):
        stoker.export(top / "small", top / f"exported/{kind}", kind, progress=False)
        values[f"exported as {kind}"] = tree(top / f"exported/{kind}")
    rows = itertools.chain.from_iterable(
        parquet.read_table(path).to_pylist() for path in top.glob("exported/**/*.parquet")
    )
    values["rows of the parquet"] = digest(repr(sorted(row.items())).encode() for row in rows)
    return values


def golden() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        top = Path(folder)
        return {**{name: layout(name, top / name) for name in LAYOUTS}, "ways to write": ways_to_write(top)}


if __name__ == "__main__":
    FILE.write_text(json.dumps(golden(), indent=1) + "\n")
