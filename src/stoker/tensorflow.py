"""The loader for TensorFlow."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker.feed import Loader
from stoker.views import native_views

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.feed import Dataset
    from stoker.views import View


def dataset(dataset: Dataset, *, batch_size: int, view: View, **settings: Any) -> tf.data.Dataset:
    """Return a ``tf.data.Dataset`` of the loader's batches.

    Every pass over it is one epoch, each in its own order; ``fit(..., epochs=n)`` sees n different orders. Its
    ``element_spec`` is static but for the batch dimension of ``tail="short"``, and its cardinality is the number of
    batches. Decoding runs on the loader's native threads, so no ``map`` or ``interleave`` is needed behind it.

    Elements are pairs: images uint8 (B, H, W, 3), labels int64 (B,).

    Args:
        dataset: What to read; see `stoker.open`.
        batch_size: Images per batch on this rank.
        view: What becomes of each image.
        settings: Any other setting of `stoker.Loader`.

    Raises:
        ConfigError: A setting is out of range. Errors of samples appear while iterating, as TensorFlow errors that
            carry the message of Stoker's.
    """
    with Loader(dataset, batch_size=batch_size, view=view, **settings) as checked:  # settings are refused here
        steps, tail = len(checked), checked.topology.tail
    (height, width, channels), *_ = (spec.shape for spec in native_views(view))
    count = None if tail == "short" else batch_size
    spec = (
        tf.TensorSpec((count, height, width, channels), tf.uint8, name="images"),
        tf.TensorSpec((count,), tf.int64, name="labels"),
    )
    epochs = itertools.count()

    def batches() -> Iterator[tuple[Any, Any]]:
        # A loader for every pass: passes may overlap, and one that is left early must not cut the next one short.
        with Loader(dataset, batch_size=batch_size, view=view, **settings) as loader:
            loader.set_epoch(next(epochs))
            for batch in loader:
                yield batch.images, batch.labels

    made = tf.data.Dataset.from_generator(batches, output_signature=spec)
    return made.apply(tf.data.experimental.assert_cardinality(steps))
