"""A ResNet fitted and evaluated with Keras: python train_resnet_keras.py DATASET.

Evaluation counts every sample of the validation split once: the last batch is filled up, so that all have one shape,
and what fills it has weight 0.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import tensorflow as tf

import stoker
import stoker.tensorflow

EPOCHS, BATCH, SIZE = 6, 8, 32


def block(inputs: Any, channels: int, stride: int) -> Any:
    """Two convolutions and a way round them."""
    layers = tf.keras.layers
    outputs = layers.Conv2D(channels, 3, stride, padding="same", use_bias=False)(inputs)
    outputs = layers.ReLU()(layers.GroupNormalization(4)(outputs))
    outputs = layers.Conv2D(channels, 3, padding="same", use_bias=False)(outputs)
    outputs = layers.GroupNormalization(4)(outputs)
    if stride != 1 or inputs.shape[-1] != channels:
        inputs = layers.Conv2D(channels, 1, stride, use_bias=False)(inputs)
    return layers.ReLU()(layers.Add()([inputs, outputs]))


def resnet10(classes: int, width: int = 8) -> Any:
    """Return a ResNet with one block in each of its four stages, and `width` channels in the first."""
    layers = tf.keras.layers
    images = layers.Input((SIZE, SIZE, 3), dtype="uint8")
    scaled = layers.Rescaling(1 / 127.5, offset=-1)(images)
    features = layers.Conv2D(width, 3, 2, padding="same", use_bias=False)(scaled)
    features = layers.ReLU()(layers.GroupNormalization(4)(features))
    for stage in range(4):
        features = block(features, width << stage, stride=2 if stage else 1)
    logits = layers.Dense(classes)(layers.GlobalAveragePooling2D()(features))
    return tf.keras.Model(images, logits)


def main(path: str) -> None:
    """Fit, evaluate, and count by hand what `evaluate` has counted."""
    tf.keras.utils.set_random_seed(0)
    train, validation = stoker.open(path, split="train"), stoker.open(path, split="validation")
    crops = stoker.RandomResizedCrop(SIZE, scale=(0.5, 1.0), hflip=0.5)
    whole = stoker.CenterCrop(SIZE, resize=SIZE)
    batches = stoker.tensorflow.dataset(train, batch_size=BATCH, transform=crops, shuffle=True, seed=17, tail="wrap")
    # `valid` is the third element, which Keras takes for weights; a float, as weights are multiplied.
    exact = stoker.tensorflow.dataset(
        validation, batch_size=BATCH, transform=whole, tail="pad", elements=("images", "labels", "valid")
    ).map(lambda images, labels, valid: (images, labels, tf.cast(valid, tf.float32)))

    model = resnet10(len(train.classes))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.001), loss, weighted_metrics=["accuracy"])
    history = model.fit(batches, validation_data=exact, epochs=EPOCHS, shuffle=False, verbose=0).history
    for epoch, (fitted, accuracy) in enumerate(zip(history["loss"], history["val_accuracy"], strict=True)):
        print(f"epoch {epoch}: loss {fitted:.3f}, validation accuracy {accuracy:.3f}")
    assert history["loss"][-1] < history["loss"][0]

    _, accuracy = model.evaluate(exact, verbose=0)
    right = 0
    with stoker.Loader(validation, batch_size=BATCH, transform=whole) as loader:  # the last batch is short
        for images, labels in loader:
            right += int((np.argmax(model(images), axis=-1) == labels).sum())
    assert abs(accuracy - right / len(validation)) < 1e-6
    print(f"{right} of {len(validation)} right, and no sample was counted twice or left out")


if __name__ == "__main__":
    main(sys.argv[1])
