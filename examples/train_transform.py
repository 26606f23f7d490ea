"""Batches of a training transform as NumPy arrays, and resuming after an interruption.

python train_transform.py DATASET
"""

from __future__ import annotations

import json
import sys

import stoker


def main(path: str) -> None:
    """Read an epoch in two sittings."""
    train = stoker.open(path, split="train")
    transform = stoker.RandomResizedCrop(224, hflip=0.5)
    print(f"{train!r}, {len(train.classes)} classes")

    with stoker.Loader(train, batch_size=8, transform=transform, shuffle=True, seed=17) as loader:
        for batch in loader:
            print(f"images {batch.images.shape} {batch.images.dtype}, labels {batch.labels.tolist()}")
            checkpoint = json.dumps(loader.state_dict())
            break  # as if the machine had been taken away

    # Another program, another number of threads, another batch size: the rest of the same epoch, the same pixels.
    with stoker.Loader(train, batch_size=5, transform=transform, shuffle=True, seed=17, threads=1) as loader:
        loader.load_state_dict(json.loads(checkpoint))
        rest = sum(len(batch) for batch in loader)
    print(f"the state has {len(checkpoint)} bytes; after it came the other {rest} of {len(train)} samples")


if __name__ == "__main__":
    main(sys.argv[1])
