"""What a type checker says about uses of the loaders. Nothing runs this file: mypy reads it (`make lint`).

Right uses have no error. Each wrong one has the error that its comment names; since `strict` warns of unused comments,
a mistake that mypy no longer finds is an error too.
"""

from __future__ import annotations

import stoker
import stoker.jax
import stoker.tensorflow
import stoker.torch

TRANSFORM = stoker.CenterCrop(8)


def mean(loader: stoker.torch.DataLoader, batch: stoker.torch.TorchBatch) -> float:
    return float(next(iter(loader)).images.float().mean() + batch.images.float().mean())


def right(train: stoker.Dataset) -> None:
    for batch in stoker.Loader(train, 8, True, transform=TRANSFORM, drop_last=True):
        batch.labels.sum()
    for torch_batch in stoker.torch.DataLoader(train, 8, True, transform=TRANSFORM, pin_memory=False):
        torch_batch.labels.float()
        torch_batch.to("cpu").images.permute(0, 3, 1, 2)
        images, labels = torch_batch
        images.bool()
        labels.bool()
    for pair in stoker.torch.DataLoader(train, 8, transform=stoker.MultiCrop(stoker.Resize(8), stoker.Resize(4))):
        pair.images[1].permute(0, 3, 1, 2)
    stoker.tensorflow.dataset(train, 8, transform=TRANSFORM, elements=("images",))
    stoker.jax.batches(train, 8, transform=TRANSFORM, epochs=1)
    stoker.Loader(train, 8, transform=TRANSFORM, fields={"caption": stoker.fields.Text(), "mask": stoker.fields.Mask()})


def wrong_settings(train: stoker.Dataset) -> None:  # the others have the same annotations: test_signatures.py
    stoker.Loader(train, 8, transform=TRANSFORM, taill="drop")  # type: ignore[arg-type]
    stoker.Loader(train, 8, transform=TRANSFORM, shuffle="yes")  # type: ignore[arg-type]
    stoker.Loader(train, 8, transform=TRANSFORM, num_workers=4)  # type: ignore[arg-type]
    stoker.Loader(train, 8, transform=TRANSFORM, drop_last="no")  # type: ignore[arg-type]


def wrong_batches(train: stoker.Dataset) -> None:
    for batch in stoker.torch.DataLoader(train, 8, transform=TRANSFORM):
        batch.images.colour()  # type: ignore[attr-defined]
        images, _ = batch
        images.colour()  # type: ignore[attr-defined]
    for pair in stoker.torch.DataLoader(train, 8, transform=stoker.MultiCrop(stoker.Resize(8), stoker.Resize(4))):
        pair.images.permute(0, 3, 1, 2)  # type: ignore[attr-defined]
