"""TinyImageNet as the Hops notebook stores it: raw pixels, one-hot labels, a file for each class.

    python examples/tiny_imagenet.py dataset/

The images of a dataset, made small, stand for tiny-imagenet-200. See docs/how-to/migrate/tiny-imagenet.md.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

import stoker
from stoker.cli.main import main as run


def write_tree(dataset: str, root: Path) -> None:
    """Make a small tree in the layout of tiny-imagenet-200: train, val with a list of labels, unlabelled test."""
    train = stoker.open(dataset, split="train")
    lines = []
    for key in range(min(120, len(train))):
        sample = train[key]
        wnid = train.classes[sample.label].name
        file = root / f"train/{wnid}/images/{wnid}_{key}.JPEG"
        if key % 4 == 1:
            file = root / f"val/images/val_{key}.JPEG"
            lines.append(f"{file.name}\t{wnid}\t0\t0\t62\t62\n")
        if key % 4 == 2:
            file = root / f"test/images/test_{key}.JPEG"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(sample.decode()).resize((64, 64)).save(file)
    names = sorted(path.name for path in (root / "train").iterdir())
    (root / "wnids.txt").write_text("".join(f"{name}\n" for name in names))
    (root / "words.txt").write_text("".join(f"{label.name}\t{label.text}\n" for label in train.classes))
    known = [line for line in lines if line.split("\t")[1] in names]
    (root / "val/val_annotations.txt").write_text("".join(known) + "\n")  # a blank line does no harm


def main(dataset: str) -> None:
    """Build, look, read."""
    with tempfile.TemporaryDirectory() as work:
        source, records = Path(work, "tiny-imagenet-200"), Path(work, "tfrecords_raw")
        write_tree(dataset, source)
        assert run(["build", str(source), str(records), "--preset", "tiny-imagenet"]) == 0
        print(records.with_name("sizes.txt").read_text().replace("\n", ", "))
        assert run(["info", str(records)]) == 0
        assert run(["show", str(records), "--out", str(Path(work, "sheet.png"))]) == 0

        train = stoker.open(records, split="train")
        with stoker.Loader(train, batch_size=16, transform=stoker.RawTensor(64, hflip=0.5), shuffle=True) as loader:
            images, labels = next(iter(loader))
        print(images.shape, labels[:8])
        test = stoker.open(records, split="test")
        assert test[0].label == -1
        assert test[0].features["label_one_hot"] == ("bytes", [bytes(len(train.classes))])


if __name__ == "__main__":
    main(sys.argv[1])
