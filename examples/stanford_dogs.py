"""Stanford Dogs as Google's notebook stores them, and better: one-hot labels in GZIP shards, or a class number.

    python examples/stanford_dogs.py dataset/

The images of a dataset stand for the dogs. See docs/how-to/migrate/dogs.md.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import stoker
from stoker.cli.main import main as run

KINDS = ("Images", "Annotation")

ANNOTATION = """<annotation><size><width>{width}</width><height>{height}</height></size><object><name>{breed}</name>
<bndbox><xmin>2</xmin><ymin>2</ymin><xmax>{xmax}</xmax><ymax>{ymax}</ymax></bndbox></object></annotation>
"""


def write_dogs(dataset: str, root: Path) -> None:
    """Put images into folders called ``Images/<wnid>-<Breed>``, and a box for each into a file without ending."""
    train = stoker.open(dataset, split="train")
    for sample in (train[key] for key in range(min(60, len(train)))):
        known = train.classes[sample.label]
        breed = known.text.split(",")[0].replace(" ", "_") or "dog"
        image, box = (Path(root, kind, f"{known.name}-{breed}", f"{known.name}_{sample.index}") for kind in KINDS)
        height, width, _ = sample.decode().shape
        text = ANNOTATION.format(breed=breed, width=width, height=height, xmax=width // 2, ymax=height // 2)
        for path, content in ((image.with_suffix(".jpg"), sample.encoded), (box, text.encode())):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def main(dataset: str) -> None:
    """Build both, and read the same classes from both."""
    with tempfile.TemporaryDirectory() as work:
        source, notebook, sane = Path(work, "stanford-dogs"), Path(work, "tfrecords"), Path(work, "sane")
        write_dogs(dataset, source)
        assert run(["build", str(source), str(notebook), "--preset", "dogs-onehot"]) == 0
        assert run(["build", str(source), str(sane), "--preset", "tfds", "--resize", "exact:224x224"]) == 0

        one_hot, number = stoker.open(notebook), stoker.open(sane)
        print("one-hot:", one_hot[0].features["label"][1])
        assert np.array_equal(np.sort(one_hot.labels), np.sort(number.labels))
        with stoker.Loader(one_hot, batch_size=32, transform=stoker.Resize(224, hflip=0.5), shuffle=True) as loader:
            images, labels = next(iter(loader))
        print(f"{len(one_hot)} dogs of {len(number.classes)} breeds: {images.shape}, classes {labels[:6]}")


if __name__ == "__main__":
    main(sys.argv[1])
