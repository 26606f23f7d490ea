"""HPE's DLBS tensors: build them, read them as DLBS does and as it should, check them against Pillow.

    python examples/dlbs_tensors.py dataset/

The images of a dataset stand for your ImageNet folders. See docs/how-to/migrate/dlbs.md.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import stoker
from stoker.cli.main import main as run

SIZE = 64


def write_folders(dataset: str, root: Path, count: int) -> None:
    """Put some images of a dataset into folders named after their synsets, as ImageNet comes."""
    train = stoker.open(dataset, split="train")
    for sample in (train[key] for key in range(min(count, len(train)))):
        folder = root / train.classes[sample.label].name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / sample.source).write_bytes(sample.encoded)


def main(dataset: str) -> None:
    """Build in a temporary directory, then read twice."""
    with tempfile.TemporaryDirectory() as work:
        source, tensors = Path(work, "imagenet"), Path(work, "tensors")
        write_folders(dataset, source, 100)
        assert run(["build", str(source), str(tensors), "--preset", "dlbs", "--img-size", str(SIZE)]) == 0

        train = stoker.open(tensors, split="train")
        assert train[0].features["image/format"] == ("bytes", [b"tensor"])
        sample = train[0]
        image = Image.open(source / train.classes[sample.label].name / sample.source).convert("RGB")
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        square = image.crop((left, top, left + side, top + side)).resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        assert np.array_equal(sample.decode(), np.asarray(square))

        original = stoker.TopLeft(48, hflip=0.5)  # always the same corner
        sane = stoker.RandomResizedCrop(48, hflip=0.5)
        for transform in (original, sane):
            with stoker.Loader(train, batch_size=32, transform=transform, shuffle=True, seed=1) as loader:
                images = sum(len(batch) for batch in loader)
            print(f"{type(transform).__name__}: {images} images of 48 x 48")


if __name__ == "__main__":
    main(sys.argv[1])
