"""A segmentation network trained with PyTorch on images and masks: python train_segmentation.py DATASET.

The images of a dataset are built once more with a mask each, of what is brighter than their mean. The loader crops,
mirrors and resizes both alike.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import numpy as np
import torch
from torch import nn

import stoker
import stoker.torch
from stoker import fields

EPOCHS, BATCH, CLASSES = 3, 8, 2
CROP = stoker.RandomResizedCrop(48, scale=(0.3, 1.0), hflip=0.5)
OUTPUT = stoker.Output("float32", "NCHW", mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))


def record(sample: stoker.Sample) -> dict[str, object]:
    """What `stoker.build` takes: an image, and the class of each of its pixels."""
    pixels = sample.decode()
    return {"image": sample.encoded, "mask": (pixels.mean(axis=2) > pixels.mean()).astype(np.uint8)}


def main(path: str, folder: str) -> None:
    """Build, train, and say how many pixels are right."""
    source = stoker.open(path, split="train")
    records = [record(source[number]) for number in range(min(64, len(source)))]
    stoker.build(records, folder, fields={"image": fields.Image(), "mask": fields.Mask()}, progress=False)

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, CLASSES, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    settings: dict[str, Any] = {"shuffle": True, "drop_last": True, "fields": ["mask"]}
    with stoker.torch.DataLoader(stoker.open(folder), BATCH, transform=CROP, output=OUTPUT, **settings) as loader:
        for epoch in range(EPOCHS):
            right = pixels = 0
            for batch in loader:
                scores, classes = model(batch.images), batch.fields["mask"].long()
                loss = nn.functional.cross_entropy(scores, classes)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                right, pixels = right + int((scores.argmax(1) == classes).sum()), pixels + classes.numel()
            print(f"epoch {epoch}: {right / pixels:.1%} of the pixels in their class")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(sys.argv[1], scratch + "/masks")
