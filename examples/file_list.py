"""A list of files and boxes in XML: every annotated object is a sample, in NumPy, PyTorch and TensorFlow alike.

    python examples/file_list.py dataset/

The images of a dataset stand for ILSVRC. See docs/how-to/migrate/file-lists.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import stoker
import stoker.tensorflow
import stoker.torch
from stoker.cli.main import main as run

OBJECT = "<object><name>{}</name><bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox></object>"


def write_tree(dataset: str, root: Path) -> None:
    """Put images into ``ILSVRC/Data/CLS-LOC/train`` and their boxes into ``ILSVRC/Annotations/CLS-LOC/train``."""
    train = stoker.open(dataset, split="train")
    for sample in (train[key] for key in range(min(100, len(train)))):
        wnid = train.classes[sample.label].name
        image = root / "ILSVRC/Data/CLS-LOC/train" / wnid / Path(sample.source).with_suffix(".JPEG")
        image.parent.mkdir(parents=True, exist_ok=True)
        image.write_bytes(sample.encoded)
        if not sample.boxes:
            continue
        height, width, _ = sample.decode().shape
        sides = (width, height, width, height)
        objects = "".join(
            OBJECT.format(wnid, *(f * side for f, side in zip((b.xmin, b.ymin, b.xmax, b.ymax), sides, strict=True)))
            for b in sample.boxes
        )
        xml = root / "ILSVRC/Annotations/CLS-LOC/train" / wnid / f"{image.stem}.xml"
        xml.parent.mkdir(parents=True, exist_ok=True)
        size = f"<size><width>{width}</width><height>{height}</height></size>"
        xml.write_text(f"<annotation><filename>%s</filename>{size}{objects}</annotation>")


def main(dataset: str) -> None:
    """List, then read with all three."""
    with tempfile.TemporaryDirectory() as work:
        write_tree(dataset, Path(work))
        names = str(Path(work, "train_filelist.txt"))
        assert run(["list", f"{work}/ILSVRC/Data/CLS-LOC/train/*/*.JPEG", "--out", names, "--shuffle"]) == 0
        data = {"train_filelist": names, "batch_size": 16, "crop_image_size": [96, 96], "shuffle_buffer": 200000}
        config = Path(work, "ilsvrc.json")
        config.write_text(json.dumps({"data": data}))

        train = stoker.open(names)
        settings = stoker.loader_settings(config) | {"seed": 3}
        with stoker.Loader(train, **settings) as loader:
            batches = [(batch.images, batch.labels) for batch in loader]
        objects = sum(len(labels) for _, labels in batches)
        print(f"{len(train)} images, {objects} objects, batches of {batches[0][0].shape}")

        with stoker.torch.DataLoader(train, **settings) as tensors:
            for (images, labels), (ours, classes) in zip(tensors, batches, strict=True):
                assert np.array_equal(images.numpy(), ours)
                assert np.array_equal(labels.numpy(), classes)
        for (images, _), (ours, _) in zip(stoker.tensorflow.dataset(train, **settings), batches, strict=True):
            assert np.array_equal(images.numpy(), ours)

        crops = str(Path(work, "crops"))
        assert run(["build", names, crops, "--crop-objects", "--resize", "exact:96x96"]) == 0
        assert len(stoker.open(crops)) == objects


if __name__ == "__main__":
    main(sys.argv[1])
