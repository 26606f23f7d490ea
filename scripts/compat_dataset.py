"""Write a dataset of a few kilobytes with this Stoker, for later versions to be tested with.

    python scripts/compat_dataset.py FOLDER [OPTIONS OF stoker build]

FOLDER gets ``dataset/`` and ``expected.json``: what the dataset holds and how a loader that stopped went on, as the
version that wrote it says. ``tests/compat`` reads both for ever; each release that writes something new adds one.
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
from stoker.cli.main import main as stoker_command

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    return {
        "dataset_id": json.loads((directory / "manifest.json").read_text(encoding="utf-8"))["dataset_id"],
        "classes": [label.name for label in splits["train"].classes],
        "splits": {split: contents(dataset) for split, dataset in splits.items()},
        "state": state,
        "rest": rest,
    }


def main(folder: str, *options: str) -> int:
    """Write the dataset and what is expected of it."""
    to = Path(folder)
    to.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "photos"
        photographs(source)
        status = stoker_command(["build", str(source), str(to / "dataset"), *options, "--max-rejects", "1"])
    if status == 0:
        found = {"options": list(options)} | expected(to / "dataset")
        (to / "expected.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
