"""A small Keras model fitted for one epoch: python tensorflow_fit.py DATASET."""

from __future__ import annotations

import sys

import tensorflow as tf

import stoker
import stoker.tensorflow


def main(path: str) -> None:
    """Fit and print the loss."""
    tf.random.set_seed(0)
    train = stoker.open(path, split="train")
    batches = stoker.tensorflow.dataset(
        train, batch_size=16, transform=stoker.RandomResizedCrop(64, hflip=0.5), shuffle=True, seed=17, tail="drop"
    )
    print(batches.element_spec, batches.cardinality().numpy())
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((64, 64, 3)),
            tf.keras.layers.Rescaling(1 / 255),
            tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(len(train.classes)),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    history = model.fit(batches, epochs=1, shuffle=False, verbose=0)  # the loader shuffles
    print(f"one epoch of {len(train)} samples: loss {history.history['loss'][0]:.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
