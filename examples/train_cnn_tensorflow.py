"""A small network trained with TensorFlow, stopped in mid-epoch and resumed: python train_cnn_tensorflow.py DATASET.

tf.data asks for batches ahead of the training loop, so the position of each batch comes with it: what is saved is where
training is, not how far tf.data has read.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

import stoker
import stoker.tensorflow

EPOCHS, BATCH = 3, 8
ORDER: dict[str, Any] = {
    "transform": stoker.RandomResizedCrop(48, scale=(0.3, 1.0), hflip=0.5),
    "shuffle": True,
    "seed": 17,
}
LOADER: dict[str, Any] = {**ORDER, "batch_size": BATCH, "output": stoker.Output("float32"), "tail": "wrap"}


class Training:
    """A network, its optimizer, and where the data are."""

    def __init__(self, train: stoker.Dataset) -> None:
        tf.keras.utils.set_random_seed(0)
        self.train = train
        self.state: dict[str, Any] | None = None
        self.model = tf.keras.Sequential(
            [
                tf.keras.layers.Input((48, 48, 3)),
                tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
                tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
                tf.keras.layers.AveragePooling2D(3),
                tf.keras.layers.Flatten(),
                tf.keras.layers.Dense(len(train.classes)),
            ]
        )
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.model.compile(optimizer=tf.keras.optimizers.SGD(0.05, momentum=0.9), loss=loss)
        self.model.optimizer.build(self.model.trainable_variables)
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.model.optimizer)

    def run(self, steps: int | None = None) -> list[float]:
        """Train so many steps, or up to the end of the last epoch; return the losses."""
        elements = ("images", "labels", "position")
        batches = stoker.tensorflow.dataset(self.train, elements=elements, state=self.state, **LOADER)
        losses: list[float] = []
        begun, last = 0 if self.state is None else self.state["epoch"], None
        for images, labels, position in batches.repeat(EPOCHS - begun):  # every pass is an epoch, or the rest of one
            losses.append(float(self.model.train_on_batch(images, labels)))
            self.model.reset_metrics()
            last = position
            if len(losses) == steps:
                break
        if last is not None:
            self.state = stoker.tensorflow.state_at(last, self.train, **ORDER)
        return losses

    def save(self, folder: str) -> None:
        """Write a checkpoint."""
        self.checkpoint.write(f"{folder}/model")
        Path(folder, "data.json").write_text(json.dumps(self.state))

    def load(self, folder: str) -> None:
        """Go on from a checkpoint."""
        self.checkpoint.read(f"{folder}/model").assert_consumed()
        self.state = json.loads(Path(folder, "data.json").read_text())


def main(path: str) -> None:
    """Train at once and in two parts, and compare."""
    tf.config.experimental.enable_op_determinism()
    train = stoker.open(path, split="train")
    whole = Training(train)
    losses = whole.run()
    epoch = len(losses) // EPOCHS
    means = [sum(losses[first : first + epoch]) / epoch for first in range(0, len(losses), epoch)]
    print(f"{len(losses)} steps, mean loss of each epoch: {', '.join(f'{mean:.3f}' for mean in means)}")

    with tempfile.TemporaryDirectory() as folder:
        first, second = Training(train), Training(train)
        before = first.run(len(losses) // 2)  # in the middle of the second epoch
        first.save(folder)
        second.load(folder)
    print(f"stopped after {len(before)} steps, at {second.state}")
    after = second.run()
    assert before + after == losses
    for weight, other in zip(whole.model.weights, second.model.weights, strict=True):
        tf.debugging.assert_equal(weight, other)
    print("resumed: the same losses and the same weights, bit for bit")


if __name__ == "__main__":
    main(sys.argv[1])
