"""A tuned pipeline of TensorFlow's own ops over the shards of a dataset."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.feed import Dataset
from stoker.records.inflate import compression_of
from stoker.tensorflow.windows import pixels_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.types import SchemaInfo
    from stoker.views import View

_READ_BUFFER_BYTES = 8 << 20
_READERS = 8
_COMPRESSION = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}


def graph_dataset(  # noqa: PLR0913 - settings, all by name
    dataset: Dataset,
    *,
    batch_size: int,
    view: View,
    shuffle_buffer: int = 0,
    seed: int | None = None,
    rank: int = 0,
    world_size: int = 1,
    epochs: int | None = 1,
    drop_remainder: bool = False,
    threads: int | None = None,
) -> tf.data.Dataset:
    """Return a ``tf.data.Dataset`` that reads, decodes and crops with TensorFlow's own ops.

    It is for those who must stay inside the graph: it can be serialised, and run by tf.data service on machines that
    have no Stoker. Elements are pairs: images uint8 (B, H, W, 3), labels int64 (B,).

    It is tuned (parallel interleave, decode and crop in one op, no synchronisation at the ends of epochs and batches),
    but slower than `dataset`, and **promises less**:

    - The order is that of a shuffle buffer, so neighbours stay near each other; ranks share whole files, or every
      ``world_size``-th record where there are fewer files than ranks, and may differ in their number of batches.
    - Pixels are about those of the view: the fast DCT, and no antialiasing. Crops have the view's distribution, but
      are others than Stoker's.
    - It cannot be resumed within an epoch, and knows neither keys nor positions.
    - A damaged record is an error of TensorFlow's that names neither record nor image.

    Args:
        dataset: Shards with JPEG images and one number as the label; see `stoker.open`.
        batch_size: Images per batch on this rank.
        view: `stoker.RandomResizedCrop`, `stoker.CenterCrop` or `stoker.Resize`, with the bilinear filter.
        shuffle_buffer: Records of the shuffle buffer; 0 keeps the order of the shards.
        seed: Makes order, crops and mirror images repeatable, which costs some speed; None: anew in every run.
        rank: This process's number among those that share the dataset.
        world_size: How many they are.
        epochs: How often the dataset is read; None: without end.
        drop_remainder: Whether a last batch that is not full is left out; the batch dimension then is static.
        threads: Threads of a pool of its own; None: TensorFlow's.

    Raises:
        ConfigError: A setting is out of range, or dataset or view have no counterpart in TensorFlow's ops.
    """
    check_range("batch_size", batch_size, 1, 2**20)
    check_range("rank", rank, 0, check_range("world_size", world_size, 1, 2**24) - 1)
    _refuse_odd_records(dataset)
    load = partial(_load, dataset.schema, pixels_of(view))
    records = _records(dataset, rank, world_size, deterministic=seed is not None)
    if check_range("shuffle_buffer", shuffle_buffer, 0, 2**31):
        records = records.shuffle(shuffle_buffer, seed, reshuffle_each_iteration=True)
    chances = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
    drawn = tf.data.Dataset.zip((records.repeat(epochs), chances))
    loaded = drawn.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    batched = loaded.batch(batch_size, drop_remainder=drop_remainder).prefetch(tf.data.AUTOTUNE)
    made = batched.with_options(_options(threads, deterministic=seed is not None))
    if epochs is None:
        return made
    count = check_range("epochs", epochs, 1, 2**31) * _share(dataset, rank, world_size)
    batches = count // batch_size if drop_remainder else -(-count // batch_size)
    return made.apply(tf.data.experimental.assert_cardinality(batches))


def _share(dataset: Dataset, rank: int, world_size: int) -> int:
    """Records that a rank reads in an epoch."""
    sizes = [shard.records for shard in dataset.shards]
    return sum(sizes[rank::world_size]) if len(sizes) >= world_size else len(range(rank, sum(sizes), world_size))


def _refuse_odd_records(dataset: Dataset) -> None:
    if not isinstance(dataset, Dataset) or not dataset.shards:
        what = "is no dataset of TFRecords"
    elif dataset.schema.image_encoding == "raw":
        what = f"holds raw tensors (layout {dataset.schema.preset!r})"
    elif dataset.schema.label_encoding != "id":
        what = f"holds one-hot labels (layout {dataset.schema.preset!r})"
    else:
        return
    message = f"{dataset!r} {what}, which this pipeline of TensorFlow's ops does not read"
    raise ConfigError(f"{message}; use stoker.tensorflow.dataset, or make such records with 'stoker build' or 'repack'")


def _load(schema: SchemaInfo, pixels: Callable[[Any, Any], Any], record: Any, chance: Any) -> tuple[Any, Any]:
    features = {
        schema.image_key: tf.io.FixedLenFeature([], tf.string),
        schema.label_key: tf.io.FixedLenFeature([], tf.int64, default_value=-1),
    }
    parsed = tf.io.parse_single_example(record, features)
    return pixels(parsed[schema.image_key], chance), parsed[schema.label_key]


def _records(dataset: Dataset, rank: int, world_size: int, *, deterministic: bool) -> tf.data.Dataset:
    """Serialised Examples of this rank."""
    paths = [str(shard.path) for shard in dataset.shards]
    kinds = [_COMPRESSION["none" if s.inflated is None else compression_of(s.local_path)] for s in dataset.shards]
    files = tf.data.Dataset.from_tensor_slices((paths, kinds))
    by_file = len(paths) >= world_size
    if by_file:
        files = files.shard(world_size, rank)
    records = files.interleave(
        lambda path, kind: tf.data.TFRecordDataset(path, kind, _READ_BUFFER_BYTES),
        cycle_length=min(_READERS, len(paths)),
        num_parallel_calls=tf.data.AUTOTUNE,
        # Records that ranks take in turn must come in one order on all of them.
        deterministic=deterministic or not by_file,
    )
    return records if by_file else records.shard(world_size, rank)


def _options(threads: int | None, *, deterministic: bool) -> tf.data.Options:
    options = tf.data.Options()
    options.deterministic = deterministic
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.threading.max_intra_op_parallelism = 1
    if threads is not None:
        options.threading.private_threadpool_size = check_range("threads", threads, 1, 4096)
    return options
