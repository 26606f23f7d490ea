"""A small network trained with JAX, stopped in the middle of an epoch and resumed: python train_cnn_jax.py DATASET."""

from __future__ import annotations

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import stoker
import stoker.jax

EPOCHS, BATCH, RATE = 3, 8, 0.05
LOADER: dict[str, Any] = {
    "batch_size": BATCH,
    "transform": stoker.RandomResizedCrop(48, scale=(0.3, 1.0), hflip=0.5),
    "output": stoker.Output("float32"),
    "shuffle": True,
    "seed": 17,
    "tail": "wrap",
    "epochs": EPOCHS,
}
Weights = dict[str, jax.Array]


def fresh_weights(classes: int) -> Weights:
    """Two convolutions and a linear layer."""
    shapes = {"first": (5, 5, 3, 16), "second": (3, 3, 16, 32), "last": (32, classes)}
    keys = dict(zip(shapes, jax.random.split(jax.random.key(0), len(shapes)), strict=True))
    return {
        name: jax.random.normal(keys[name], shape) * (2 / np.prod(shape[:-1])) ** 0.5 for name, shape in shapes.items()
    }


def loss_of(weights: Weights, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Cross-entropy."""
    hidden = images
    for name in ("first", "second"):
        layout = ("NHWC", "HWIO", "NHWC")
        hidden = jax.lax.conv_general_dilated(hidden, weights[name], (2, 2), "VALID", dimension_numbers=layout)
        hidden = jax.nn.relu(hidden)
    logits = hidden.mean((1, 2)) @ weights["last"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


@jax.jit
def step(weights: Weights, images: jax.Array, labels: jax.Array) -> tuple[Weights, jax.Array]:
    """One step of gradient descent."""
    loss, slopes = jax.value_and_grad(loss_of)(weights, images, labels)
    return jax.tree.map(lambda weight, slope: weight - RATE * slope, weights, slopes), loss


def run(batches: stoker.jax.BatchIterator, weights: Weights, steps: int | None = None) -> tuple[Weights, list[float]]:
    """Train so many steps, or as long as there are batches; return weights and losses."""
    losses: list[float] = []
    while len(losses) != steps and (batch := next(batches, None)) is not None:
        weights, loss = step(weights, batch["images"], batch["labels"].astype(np.int32))
        losses.append(float(loss))
    return weights, losses


def main(path: str) -> None:
    """Train at once and in two parts, and compare."""
    train = stoker.open(path, split="train")
    with stoker.jax.batches(train, **LOADER) as batches:
        whole, losses = run(batches, fresh_weights(len(train.classes)))
    epoch = len(losses) // EPOCHS
    means = [sum(losses[first : first + epoch]) / epoch for first in range(0, len(losses), epoch)]
    print(f"{len(losses)} steps, mean loss of each epoch: {', '.join(f'{mean:.3f}' for mean in means)}")

    with stoker.jax.batches(train, **LOADER) as batches:
        half, before = run(batches, fresh_weights(len(train.classes)), len(losses) // 2)
        saved = json.dumps(batches.get_state())
    print(f"stopped after {len(before)} steps, at {saved}")
    with stoker.jax.batches(train, threads=1, prefetch=1, **LOADER) as batches:
        batches.set_state(json.loads(saved))
        resumed, after = run(batches, half)
    assert before + after == losses
    assert all((whole[name] == resumed[name]).all() for name in whole)
    print("resumed: the same losses and the same weights, bit for bit")


if __name__ == "__main__":
    main(sys.argv[1])
