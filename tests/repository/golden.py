"""What may not change unseen: fingerprints, orders, ids and files of every layout and of every way to write a dataset.

Write ``golden.json`` anew, after a change that is meant::

    make golden
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import stoker
from sources.layouts import LAYOUTS
from sources.making import png
from stoker import fields
from stoker.cli.main import main
from stoker.errors import StokerError

FILE = Path(__file__).with_suffix(".json")
FOOTERS = "footers of pyarrow "
"""Begins the entry of what depends on who wrote a Parquet file, which only its own version can compare."""
VARYING = ("stoker_version", "encoders", "checksum", "files", "source")
"""Of a manifest: what depends on versions and paths, or has entries of its own."""
BUILD: dict[str, Any] = {"progress": False, "max_rejects": 100, "shard_size": 4000}


def golden(folder: Path) -> dict[str, Any]:
    """Return all entries, made in an empty folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {**_of_layouts(folder), **_of_records(folder)}


def _of_layouts(folder: Path) -> dict[str, Any]:
    entries = {}
    for name, make in LAYOUTS.items():
        target = folder / name
        target.mkdir()
        source = make(target / "source")
        report = stoker.build(source, target / "built", **BUILD)
        entries[name] = entry = _of_dataset(report, target / "built", folder)
        for split in report.manifest.splits:
            entry[f"samples of {split}"] = [_named(sample) for sample in stoker.open(target / "built", split)]
            opened = stoker.open(source, split)
            entry[f"opened {split}"] = _opened(opened, folder)
            entry[f"batch of {split}"], entry[f"state of {split}"] = _batch(opened)
    varying = ("fingerprint", *(name for name in entries["parquet"] if name.startswith("state")))
    entries[FOOTERS + pa.__version__] = {name: entries["parquet"].pop(name) for name in varying}
    for name in ("tiny", "voc_folder", "coco_boxes"):
        target = folder / f"objects of {name}"
        source = LAYOUTS[name](folder / f"again {name}")
        report = stoker.build(source, target, crop_objects=True, preset="dlbs", resize="off", **BUILD)  # as pixels
        entries[target.name] = _of_dataset(report, target, folder)
    return entries


def _of_records(folder: Path) -> dict[str, Any]:
    kinds: dict[str, fields.Field] = {
        "image": fields.Image(),
        "label": fields.Label(["a", "b"]),
        "boxes": fields.Boxes(["x", "y"]),
        "caption": fields.Text(),
        "count": fields.Int(),
        "score": fields.Float(),
        "tags": fields.Labels(["x", "y"]),
        "vector": fields.Array("int16", (2,)),
        "extra": fields.Bytes(),
        "meta": fields.Json(),
        "mask": fields.Mask(),
        "second": fields.Image(),
    }
    records = [_record(number) for number in range(12)]
    plain = [{name: record[name] for name in ("image", "label", "caption")} for record in records]
    reports = {
        "sequence": stoker.build(records, folder / "sequence", fields=kinds, **BUILD),
        "inferred": stoker.build(plain, folder / "inferred", **BUILD),
        "stream": stoker.build(iter(records[:7]), folder / "stream", fields=kinds, **BUILD),
        "split": stoker.build(plain, folder / "split", split_fraction="val=0.25", **BUILD),
        "merged": stoker.merge([folder / "sequence", folder / "stream"], folder / "merged", progress=False),
    }
    for part in ("0/2", "1/2"):
        reports["parts"] = stoker.build(folder / "class_folders/source", folder / "parts", part=part, **BUILD)
    entries: dict[str, Any] = {name: _of_dataset(report, folder / name, folder) for name, report in reports.items()}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["repack", str(folder / "sequence"), str(folder / "repacked"), "--shards", "3"]) == 0
    entries["repacked"] = _files(folder / "repacked", folder)
    for to in ("folder", "webdataset", "parquet"):
        target = folder / f"exported {to}"
        stoker.export(folder / "sequence", target, to, shard_size=2000, progress=False)
        entries[f"exported {to}"] = _files(target, folder)
    return entries


def _record(number: int) -> dict[str, Any]:
    return {
        "image": png(f"image {number}"),
        "label": "ab"[number % 2],
        "boxes": [{"xmin": 0.25, "ymin": 0.5, "xmax": 0.75, "ymax": 1, "label": "xy"[number % 2]}] * (number % 3),
        "caption": f"picture {number}, été",
        "count": number,
        "score": number / 4,
        "tags": ["y"] * (number % 3),
        "vector": [number, -number],
        "extra": bytes([number, 255]),
        "meta": {"a": [number, None]},
        "mask": png(f"mask {number}", channels=1),
        "second": png(f"second {number}"),
    }


def _of_dataset(report: Any, target: Path, folder: Path) -> dict[str, Any]:
    manifest = report.manifest
    return {
        "fingerprint": manifest.source.fingerprint,
        "dataset_id": manifest.dataset_id,
        "files": _files(target, folder),
    }


def _files(target: Path, folder: Path) -> dict[str, str]:
    paths = sorted(path for path in target.rglob("*") if path.is_file())
    return {path.relative_to(target).as_posix(): _digest(_content(path, folder)) for path in paths}


def _content(path: Path, folder: Path) -> bytes:
    """Return what a file says, without the folder it was made in and without versions of libraries."""
    if path.suffix == ".parquet":
        table = parquet.read_table(path)
        return repr((table.schema.to_string(truncate_metadata=False), table.to_pylist())).encode()
    data = path.read_bytes()
    if path.name == "manifest.json":
        manifest = json.loads(data)
        kept = {name: value for name, value in manifest.items() if name not in VARYING}
        data = json.dumps([kept, manifest["source"]["items"], manifest["source"]["ignored"]]).encode()
    return _elsewhere(data, folder)


def _elsewhere(data: bytes, folder: Path) -> bytes:
    for top in (os.path.realpath(folder), folder):
        data = data.replace(os.fsencode(top), b"TOP")
    return data


def _opened(dataset: stoker.Dataset, folder: Path) -> list[str]:
    """Return label, name and digest of every sample, or the error of one that cannot be read."""
    lines = []
    for index, label in enumerate(dataset.labels):
        try:
            sample = dataset[index]
        except (OSError, StokerError) as error:
            lines.append(f"{label} {type(error).__name__}")
        else:
            features = _elsewhere(repr(sorted(sample.features.items())).encode(), folder)
            lines.append(f"{_elsewhere(_named(sample).encode(), folder).decode()} {_digest(features)}")
    return lines


def _named(sample: stoker.Sample) -> str:
    return f"{sample.label} {sample.source}"


def _batch(dataset: stoker.Dataset) -> tuple[str, str]:
    """Return the first of the shuffled batches, and the state after it."""
    with stoker.Loader(
        dataset, 4, shuffle=True, transform=stoker.CenterCrop(4), seed=7, threads=1, on_bad="substitute"
    ) as loader:
        batch = next(iter(loader))
        state = json.dumps(loader.state_dict())
    return f"{batch.indices.tolist()} {batch.labels.tolist()} {_digest(batch.images.tobytes())}", state


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as top:
        FILE.write_text(json.dumps(golden(Path(top)), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
