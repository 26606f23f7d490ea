"""Write a dataset of a few kilobytes with this Stoker, for later versions to be tested with.

    python scripts/compat_dataset.py FOLDER [OPTIONS OF stoker build]
    python scripts/compat_dataset.py FOLDER --fields

FOLDER gets ``dataset/`` and ``expected.json``: what the dataset holds and how a loader that stopped went on, as the
version that wrote it says. With ``--fields`` it is built of records with a field of every kind. ``tests/compat`` reads
both for ever; each release that writes something new adds one.
"""

from __future__ import annotations

import json
import sys
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

import stoker
from stoker import fields
from stoker.cli.main import main as stoker_command

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CLASSES = ("ant", "bee", "cat")
SEED = 5
BATCH = 2
_BOXES = """<annotation><filename>{name}</filename><size><width>24</width><height>20</height></size>
<object><name>{label}</name><bndbox><xmin>2</xmin><ymin>3</ymin><xmax>14</xmax><ymax>15</ymax></bndbox></object></annotation>
"""


def photographs(root: Path) -> None:
    """Write the source: three images a class and one to validate with; one is grey, one a PNG, one cut short; boxes."""
    for number, label in enumerate(CLASSES):
        for split, count in (("train", 3), ("validation", 1)):
            folder = root / split / label
            folder.mkdir(parents=True)
            for i in range(count):
                _picture(10 * number + i).save(folder / f"{label}{i}.JPEG", quality=60)
        boxes = root / "bounding_boxes" / label
        boxes.mkdir(parents=True)
        (boxes / f"{label}0.xml").write_text(_BOXES.format(name=f"{label}0", label=label), encoding="utf-8")
    _picture(1).convert("L").save(root / "train" / "ant" / "ant1.JPEG", quality=60)
    _picture(41).save(root / "train" / "bee" / "png.JPEG", format="PNG")
    whole = (root / "train" / "cat" / "cat2.JPEG").read_bytes()
    (root / "train" / "cat" / "cut.JPEG").write_bytes(whole[:-40])


def _picture(seed: int) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), np.uint8)
    return Image.fromarray(pixels).resize((24, 20), Image.Resampling.BICUBIC)


KINDS = {
    "image": fields.Image(),
    "label": fields.Label(CLASSES),
    "boxes": fields.Boxes(["leg", "wing"]),
    "caption": fields.Text(),
    "blob": fields.Bytes(),
    "meta": fields.Json(),
    "number": fields.Int(),
    "weight": fields.Float(),
    "sex": fields.Label(["male", "female"]),
    "tags": fields.Labels(["red", "green", "blue"]),
    "vector": fields.Array("float32", (2, 3)),
    "track": fields.Array("int16", (None, 2)),
    "mask": fields.Mask(),
    "parts": fields.Mask(bits=16),
    "right": fields.Image(),
}


def records(count: int, first: int) -> list[dict[str, Any]]:
    """Return records with a value in each of `KINDS`."""
    records = []
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        box = {"xmin": 0.25, "ymin": 0.125, "xmax": 0.75, "ymax": 1.0}
        records.append(
            {
                "image": np.asarray(_picture(seed)),
                "label": CLASSES[seed % 3],
                "boxes": [box | {"label": "wing"}, box][: seed % 3],
                "caption": f"ant {seed}, caf\u00e9" * (seed % 2),
                "blob": bytes(rng.integers(0, 256, seed % 5, np.uint8)),
                "meta": {"seed": seed, "list": [1.5, None, True]},
                "number": -(2**60) - seed,
                "weight": seed / 3,
                "sex": ["male", "female", -1][seed % 3],
                "tags": ["blue", "red"][: seed % 3],
                "vector": rng.normal(size=(2, 3)).astype(np.float32),
                "track": rng.integers(-99, 99, (seed % 4, 2)).astype(np.int16),
                "mask": rng.integers(0, 4, (20, 24)).astype(np.uint8),
                "parts": rng.integers(0, 2**16, (20, 24)).astype(np.uint16),
                "right": np.asarray(_picture(seed + 100)),
            }
        )
    return records


def values(dataset: Any) -> list[dict[str, Any]]:
    """Return the fields and boxes of each record; of arrays and bytes dtype, shape and CRC-32."""
    return [
        {
            "boxes": [[box.xmin, box.ymin, box.xmax, box.ymax, box.label] for box in sample.boxes],
            **{name: _plain(value) for name, value in sample.fields.items()},
        }
        for sample in (dataset[i] for i in range(len(dataset)))
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return ["bytes", len(value), zlib.crc32(value)]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), list(value.shape), zlib.crc32(np.ascontiguousarray(value).tobytes())]
    return value


def contents(dataset: Any) -> list[dict[str, Any]]:
    """Return each record: source, label, and CRC-32 of the whole image as pixels."""
    return [
        {
            "source": sample.source,
            "label": int(sample.label),
            "pixels": zlib.crc32(sample.decode().tobytes()),
        }
        for sample in (dataset[i] for i in range(len(dataset)))
    ]


def loader(dataset: Any) -> Any:
    """Return the loader that is stopped, and later resumed."""
    transform = stoker.RandomResizedCrop(8, hflip=0.5)
    return stoker.Loader(dataset, batch_size=BATCH, transform=transform, shuffle=True, seed=SEED, threads=1)


def batches(batches_: Iterable[Any]) -> list[dict[str, Any]]:
    """Return each batch: indices, labels, CRC-32 of the pixels."""
    return [
        {
            "keys": [int(key) for key in batch.indices],
            "labels": [int(label) for label in batch.labels],
            "pixels": zlib.crc32(batch.images.tobytes()),
        }
        for batch in batches_
    ]


def expected(directory: Path) -> dict[str, Any]:
    """Return what a dataset holds, and the rest of an epoch after two batches, with the state between them."""
    splits = {split: stoker.open(directory, split=split) for split in ("train", "validation")}
    stopped = loader(splits["train"])
    iterator = iter(stopped)
    batches([next(iterator), next(iterator)])
    state = stopped.state_dict()
    rest = batches(iterator)
    with_fields = {
        "fields": {name: field.to_json() for name, field in splits["train"].fields.items()},
        "box_names": list(splits["train"].schema.box_names),
        "values": {split: values(dataset) for split, dataset in splits.items()},
    }
    return {
        "dataset_id": json.loads((directory / "manifest.json").read_text(encoding="utf-8"))["dataset_id"],
        "classes": [label.name for label in splits["train"].classes],
        "splits": {split: contents(dataset) for split, dataset in splits.items()},
        "state": state,
        "rest": rest,
        **(with_fields if with_fields["fields"] else {}),
    }


def main(folder: str, *options: str) -> int:
    """Write the dataset and what is expected of it."""
    to = Path(folder)
    to.mkdir(parents=True)
    if options == ("--fields",):
        stoker.build(
            {"train": records(8, 0), "validation": records(3, 20)}, to / "dataset", fields=KINDS, progress=False
        )
        status = 0
    else:
        status = _build_photographs(to, options)
    if status == 0:
        document = {"options": list(options)} | expected(to / "dataset")
        (to / "expected.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return status


def _build_photographs(to: Path, options: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "photos"
        photographs(source)
        return stoker_command(["build", str(source), str(to / "dataset"), *options, "--max-rejects", "1"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
