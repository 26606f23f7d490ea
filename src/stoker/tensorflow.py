"""The loader as a `tf.data.Dataset`."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Never

import numpy as np
import tensorflow as tf

from stoker import _native
from stoker.errors import ConfigError
from stoker.fields import Padded, Ragged, Text
from stoker.habits import needs_transform
from stoker.loader import (
    BatchMaker,
    Dataset,
    Feed,
    LoaderSettings,
    chosen_fields,
    find_call_site,
    loader_of,
    plain_arrays,
    settings_given,
)
from stoker.order import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stoker.loader import Balanced, Batch, BoxOutput, MemoryCache, Mix, NodeCache, OnBad, ReadAhead, Weighted
    from stoker.order import BlockShuffle, Tail
    from stoker.transforms import Output, Transform
    from stoker.types import DecodeMode, Field

__all__ = ["dataset", "state_at"]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


# How each part of an element is taken from a batch; TensorFlow has few ops for unsigned numbers of 64 bits.
_ELEMENTS: dict[str, Callable[[Batch, int], Any]] = {
    "images": lambda batch, _: batch.images,
    "labels": lambda batch, _: batch.labels,
    "indices": lambda batch, _: batch.indices.view(np.int64),
    "valid": lambda batch, _: batch.valid,
    "seeds": lambda batch, _: batch.seeds.view(np.int64),
    "boxes": lambda batch, _: plain_arrays(batch.boxes),
    "fields": lambda batch, _: {name: _tensor(value) for name, value in batch.fields.items()},
    "position": lambda batch, seed: np.array([batch.position.epoch, batch.position.consumed, seed], np.int64),
}


@needs_transform
def dataset(
    dataset: Dataset | Mix,
    # settings: loader.settings.LoaderSettings
    batch_size: int = 1,
    shuffle: bool | BlockShuffle = False,
    *,
    transform: Transform,
    drop_last: bool = False,
    tail: Tail | None = None,
    sampling: Balanced | Weighted | None = None,
    max_samples: int | None = None,
    seed: int | None = None,
    output: Output | None = None,
    boxes: BoxOutput | None = None,
    fields: Sequence[str] | Mapping[str, Field] = (),
    decode: DecodeMode = "exact",
    threads: int | None = None,
    prefetch: int = 3,
    rank: int | None = None,
    world_size: int | None = None,
    check_ranks: bool = True,
    check: bool = True,
    max_pixels: int = _native.DEFAULT_MAX_PIXELS,
    cache: MemoryCache | NodeCache | None = None,
    read_ahead: ReadAhead | None = None,
    on_bad: OnBad = "raise",
    max_bad: int = 100,
    # end of settings
    elements: Sequence[str] | None = None,
    state: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> tf.data.Dataset:
    """Return a ``tf.data.Dataset`` of the loader's batches.

    Every pass over it is one epoch, each in its own order: the first pass is epoch 0, or the rest of the epoch that
    ``state`` is in, and each later pass is the next epoch, even if the one before was left early. So
    ``fit(..., epochs=n)`` sees n different orders. Decoding runs on the loader's native threads, so no ``map`` or
    ``interleave`` is needed after it, and pixels reach TensorFlow without a copy.

    Elements are tuples of the parts that ``elements`` names:

    ============  ==================  ==================================================================
    element       dtype and shape     meaning
    ============  ==================  ==================================================================
    ``images``    uint8 (B, H, W, C)  C is 3 in mode RGB, 1 in L, 4 in RGBA; I;16 is uint16 (B, H, W, 1); with
                                      `stoker.MultiCrop` a tuple of them, one for each transform
    ``labels``    int64 (B,)          as stored in the records; -1 for no label
    ``indices``   int64 (B,)          number of each sample in its split
    ``valid``     bool (B,)           false for samples that are repeated to fill the last batch of an epoch
    ``seeds``     int64 (B,)          random bits of each sample in this epoch, for transforms of your own
    ``boxes``     as ``boxes=`` says  a dict of the arrays of `stoker.Boxes` or `stoker.PaddedBoxes`; with
                                      `stoker.MultiCrop` a tuple of them, one for each transform
    ``fields``    a dict              text, bytes and JSON as strings (B,); values whose number differs between samples
                                      as ragged tensors, or padded as a dict of the arrays of
                                      `stoker.fields.Padded`; the rest as in `stoker.Batch`
    ``position``  int64 (3,)          epoch, samples of it consumed after this batch, and the bits of the seed; after
                                      the last batch of epoch ``E`` they are ``E + 1`` and 0; see `state_at`
    ============  ==================  ==================================================================

    The ``element_spec`` is static, except for the batch dimension if the last batch may be smaller: on one rank, unless
    ``drop_last`` or ``tail`` says otherwise. The cardinality is the number of batches of an epoch; with a state from
    within an epoch it is unknown, because the first pass is shorter than others.

    Automatic sharding of ``tf.distribute`` is off, as batches are this process's share already, and so is autotuning,
    which has nothing to tune here; ``with_options`` after your own ``map`` turns it on again.

    The settings are those of `stoker.Loader`, which explains them.

    Args:
        dataset: What to read; see `stoker.open` and `stoker.mix`.
        batch_size: Number of images of a batch on this rank.
        shuffle: Whether each epoch has its own random order.
        transform: How each image is cropped, resized and changed.
        drop_last: Whether samples that do not fill a batch on every rank are left out of an epoch.
        tail: What happens to samples that do not fill a last batch.
        sampling: How often each class or sample comes in an epoch.
        max_samples: Number of samples of an epoch, over all ranks. Default: all.
        seed: Seed of the order and of the random choices. Default: a new one; 0 on several ranks.
        output: Type, layout and scale of the pixels.
        boxes: How batches hold the boxes of the annotated objects of their samples.
        fields: Names of the fields of the dataset that batches have, or a mapping from names to `stoker.fields`.
        decode: ``"exact"`` or ``"fast"``.
        threads: Number of decoding threads. Default: one per CPU of this rank.
        prefetch: Number of batches decoded ahead of the consumer.
        rank: Rank of this process, from 0. Default: as the framework or the launcher says.
        world_size: Number of ranks. Default: as ``rank``.
        check_ranks: Whether to raise an error if another rank has other settings or another state.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more pixels are refused before anything is allocated for them.
        cache: Where samples are cached after they are read.
        read_ahead: How much of a dataset in a bucket or in HDFS is fetched ahead.
        on_bad: What happens when a sample cannot be loaded.
        max_bad: Number of bad samples that an epoch may replace on this rank.
        elements: Names of the parts of an element, in this order. Default: ``images``, ``labels``, and ``boxes`` and
            ``fields`` if those are given.
        state: Where to begin: a state of any loader of the same dataset, seed and shuffle, in any framework.
        unknown: Not a setting: keywords of other libraries are refused with the setting to use instead.

    Raises:
        ConfigError: A setting is out of range, or the state is of another run. Errors of samples appear while
            iterating, as TensorFlow errors with the message of Stoker's.
        TypeError: A setting does not exist.
    """
    settings = settings_given("stoker.tensorflow.dataset", locals())
    if elements is None:
        elements = ("images", "labels", *["boxes"] * (boxes is not None), *["fields"] * bool(fields))
    _check_elements(elements, boxes)
    # JSON stays text, because TensorFlow has no type for its values.
    chosen = chosen_fields(dataset, fields).items()
    settings = replace(settings, fields={name: Text() if field.kind == "json" else field for name, field in chosen})
    feed, start = Feed(dataset, settings), Position(0, 0)
    if state is not None:
        feed, start = feed.resumed(state)
    rows, empty = None if feed.topology.tail == "short" else feed.topology.batch_size, BatchMaker(feed).empty(start)
    spec = tuple(_spec(_ELEMENTS[name](empty, 0), 3 if name == "position" else rows, name) for name in elements)
    passes = _passes(feed, find_call_site(), start, tuple(elements))
    batches = tf.data.Dataset.from_generator(passes, output_signature=spec)
    if start.consumed == 0:
        batches = batches.apply(tf.data.experimental.assert_cardinality(feed.steps_after(0)))
    # One batch ahead, so that handing over from Python costs the training step nothing.
    return batches.prefetch(1).with_options(_options())


def _options() -> tf.data.Options:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    # There is nothing to tune here, and the tuner of TensorFlow 2.21 may hold up the end of a pass for seconds.
    options.autotune.enabled = False
    return options


def state_at(
    position: Any,
    dataset: Dataset | Mix,
    # settings: loader.settings.LoaderSettings OfOrder
    shuffle: bool | BlockShuffle = False,
    *,
    transform: Transform,
    sampling: Balanced | Weighted | None = None,
    max_samples: int | None = None,
    # end of settings
    seed: int | None = None,
) -> dict[str, Any]:
    """Return the state of a loader after the batch that a position came with.

    tf.data asks for batches ahead of the training loop, so only the batch itself knows how far training is. The
    settings are those that `dataset` was given: they decide which samples come when.

    Args:
        position: The field ``position`` of the last element that was trained on, int64 (3,): a tensor, an array or
            numbers. Two numbers, without the seed, are enough if ``seed`` is given.
        dataset: What is read.
        shuffle: Whether each epoch has its own random order.
        transform: How each image is cropped, resized and changed.
        sampling: How often each class or sample comes in an epoch.
        max_samples: Number of samples of an epoch, over all ranks. Default: all.
        seed: Seed of the order and of the random choices. Default: as the position says.

    Returns:
        A state for ``state=``, `stoker.Loader.load_state_dict` and the other frameworks' adapters: less than 200 bytes
        of JSON, the same on every rank.

    Raises:
        ConfigError: The position has another seed than ``seed``, or neither gives one.
    """
    arguments = locals()
    numbers = np.asarray(position)
    if numbers.shape not in ((2,), (3,)) or numbers.dtype.kind not in "iu":
        raise ConfigError(f"position is {position!r}; give the element position of a batch, two or three whole numbers")
    epoch, consumed, *bits = numbers.tolist()
    if not bits and seed is None:
        raise ConfigError("position has two numbers, and no seed; give seed=, as it was given to dataset()")
    own_seed = bits[0] % 2**64 if bits else seed
    if seed not in (None, own_seed):
        raise ConfigError(f"position is of seed {own_seed}, and not of {seed}; omit seed=")
    return Feed(dataset, LoaderSettings.of_order(arguments, own_seed)).run.state_at(Position(epoch, consumed))


def _passes(
    feed: Feed, call_site: str, start: Position, elements: Sequence[str]
) -> Callable[[], Iterator[tuple[Any, ...]]]:
    """Return a function that yields the elements of the next pass; ``call_site`` is where the loader was made.

    Every pass has a loader of its own: passes may overlap, and one that is left early must not cut the next one short.
    TensorFlow never releases a generator, so nothing that holds threads or memory may outlive a pass.
    """
    numbers = itertools.count()

    def elements_of_next() -> Iterator[tuple[Any, ...]]:
        number = next(numbers)
        position = Position(start.epoch + number, 0) if number else start
        with loader_of(feed.dataset, feed.settings, seed=feed.seed) as loader:
            loader._agreement.call_site = call_site
            loader.load_state_dict(loader.state_dict(position))
            seed = int(np.uint64(feed.seed).astype(np.int64))  # its bits
            for batch in loader:
                yield tuple(_ELEMENTS[name](batch, seed) for name in elements)

    return elements_of_next


def _check_elements(elements: Sequence[str], boxes: BoxOutput | None) -> None:
    is_list = hasattr(elements, "__len__") and not isinstance(elements, str)
    if not is_list or not elements or any(name not in [*_ELEMENTS] for name in elements):
        raise ConfigError(f"elements is {elements!r}; it must name one or more of {', '.join(_ELEMENTS)}")
    if "boxes" in elements and boxes is None:
        raise ConfigError("the element boxes needs boxes=stoker.BoxOutput(...)")


def _tensor(value: Any) -> Any:
    if isinstance(value, list):
        return tf.constant(value, tf.string)  # also of an empty list, whose type TensorFlow would guess
    if isinstance(value, Ragged):
        return tf.RaggedTensor.from_row_splits(value.values, value.offsets, validate=False)
    return {"values": value.values, "counts": value.counts} if isinstance(value, Padded) else value


def _spec(value: Any, rows: int | None, name: str) -> Any:
    """Return the spec of an element with this many rows, given its value in a batch without samples."""
    if isinstance(value, tuple):
        return tuple(_spec(each, rows, name) for each in value)
    if isinstance(value, dict):
        if name == "boxes" and "offsets" in value:  # of any number, end to end
            ends, rows = None if rows is None else rows + 1, None
            return {key: _spec(each, ends if key == "offsets" else rows, key) for key, each in value.items()}
        return {key: _spec(each, rows, key) for key, each in value.items()}
    if isinstance(value, tf.RaggedTensor):
        return tf.RaggedTensorSpec((rows, *value.shape[1:]), value.dtype, 1, tf.int64)
    return tf.TensorSpec((rows, *value.shape[1:]), value.dtype, name=name)
