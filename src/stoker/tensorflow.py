"""The loader for TensorFlow, and a pipeline of TensorFlow's own ops over the same shards."""

from __future__ import annotations

import itertools
import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from stoker.config import check_range
from stoker.errors import ConfigError, StokerError
from stoker.format import compression_of
from stoker.loader import Dataset, Loader, Position, box_arrays
from stoker.transforms import CenterCrop, MultiCrop, Output, RandomResizedCrop, Resize, native_transforms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stoker.loader import Batch, BoxOutput, Mix
    from stoker.transforms import Transform
    from stoker.types import SchemaInfo

__all__ = ["dataset", "graph_dataset", "profile", "state_at"]


# The loader as a `tf.data.Dataset`.


# What each field of an element is in a batch; TensorFlow has few ops for unsigned numbers of 64 bits.
_FIELDS: dict[str, Callable[[Batch], Any]] = {
    "images": lambda batch: batch.images,
    "labels": lambda batch: batch.labels,
    "indices": lambda batch: batch.indices.view(np.int64),
    "valid": lambda batch: batch.valid,
    "seeds": lambda batch: batch.seeds.view(np.int64),
    "boxes": lambda batch: box_arrays(batch.boxes),
    "position": lambda batch: np.array([batch.position.epoch, batch.position.consumed], np.int64),
}


def dataset(
    dataset: Dataset | Mix,
    *,
    batch_size: int,
    transform: Transform,
    fields: Sequence[str] = ("images", "labels"),
    state: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tf.data.Dataset:
    """Return a ``tf.data.Dataset`` of the loader's batches.

    Every pass over it is one epoch, each in its own order: the first is epoch 0, or the rest of the epoch that
    ``state`` is in, and every other the next, also when the one before was left early. So ``fit(..., epochs=n)`` sees n
    different orders. Decoding runs on the loader's native threads, so no ``map`` or ``interleave`` is needed behind
    it, and pixels reach TensorFlow without a copy.

    Elements are tuples of the fields that are named:

    ============  ==================  ==================================================================
    field         dtype and shape     meaning
    ============  ==================  ==================================================================
    ``images``    uint8 (B, H, W, 3)  RGB 0..255; with `stoker.MultiCrop` a tuple of such, one a transform
    ``labels``    int64 (B,)          as stored in the records; -1 where there is none
    ``indices``      int64 (B,)          number of each sample in its split
    ``valid``     bool (B,)           false where ``tail="pad"`` filled the batch up
    ``seeds``     int64 (B,)          random bits of each sample in this epoch, for transforms of your own
    ``boxes``     as ``boxes=`` says  a dict of the arrays of `stoker.Boxes` or `stoker.PaddedBoxes`; with
                                      `stoker.MultiCrop` a tuple of such, one a transform
    ``position``  int64 (2,)          epoch, and samples of it consumed after this batch; see `state_at`
    ============  ==================  ==================================================================

    The ``element_spec`` is static, but for the batch dimension where ``tail="short"``. The cardinality is the number of
    batches of an epoch; with a state from within an epoch it is unknown, because the first pass is shorter than others.

    Automatic sharding of ``tf.distribute`` is off, as batches are this process's share already, and so is autotuning,
    which has nothing to tune here; ``with_options`` behind your own ``map`` turns it on again.

    Args:
        dataset: What to read; see `stoker.open` and `stoker.mix`.
        batch_size: Images per batch on this rank.
        transform: What becomes of each image.
        fields: What elements hold, in this order.
        state: Where to begin: a state of any loader of the same dataset, seed and shuffle, in any framework.
        settings: Any other setting of `stoker.Loader`.

    Raises:
        ConfigError: A setting is out of range, or the state is of something else. Errors of samples appear while
            iterating, as TensorFlow errors that carry the message of Stoker's.
    """
    _check_fields(fields, settings.get("boxes"))
    make = partial(Loader, dataset, batch_size=batch_size, transform=transform, **settings)
    with make() as loader:  # settings are refused here
        start, steps, tail = _start(loader, state), len(loader), loader.topology.tail
    count = None if tail == "short" else batch_size
    form = _Form(count, transform, settings.get("output") or Output(), settings.get("boxes"))
    spec = tuple(form.spec(name) for name in fields)
    made = tf.data.Dataset.from_generator(_Passes(make, start, tuple(fields)), output_signature=spec)
    if start.consumed == 0:
        made = made.apply(tf.data.experimental.assert_cardinality(steps))
    # One batch ahead, so that handing over from Python costs the training step nothing.
    return made.prefetch(1).with_options(_options())


def _options() -> tf.data.Options:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    # There is nothing to tune here, and the tuner of TensorFlow 2.21 may hold up the end of a pass for seconds.
    options.autotune.enabled = False
    return options


def state_at(position: Any, dataset: Dataset | Mix, *, transform: Transform, **settings: Any) -> dict[str, Any]:
    """Return the state of a loader after the batch that a position came with.

    tf.data asks for batches ahead of the training loop, so only the batch itself knows how far training is.

    Args:
        position: The field ``position`` of the last element that was trained on, int64 (2,): a tensor, an array or two
            numbers.
        dataset: What is read.
        transform: What becomes of each image.
        settings: The other settings of `dataset`; only those that decide which samples come when matter.

    Returns:
        What ``state=``, `stoker.Loader.load_state_dict` and the other frameworks' adapters take: less than 200 bytes of
        JSON, the same on every rank.
    """
    epoch, consumed = (int(number) for number in np.asarray(position))
    own = {name: settings[name] for name in settings.keys() - {"fields", "state", "threads", "prefetch", "cache"}}
    with Loader(dataset, transform=transform, **{"batch_size": 1, **own}, threads=1, prefetch=1) as loader:
        return loader.state_dict(Position(epoch, consumed))


@dataclass(frozen=True, slots=True)
class _Passes:
    """Called for every pass; gives its elements.

    Every pass has a loader of its own: passes may overlap, and one that is left early must not cut the next one short.
    TensorFlow never lets go of a generator, so nothing that holds threads or memory may outlive a pass.
    """

    make: Callable[[], Loader]
    start: Position
    fields: Sequence[str]
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def __call__(self) -> Iterator[tuple[Any, ...]]:
        number = next(self.numbers)
        position = Position(self.start.epoch + number, 0) if number else self.start
        with self.make() as loader:
            loader.load_state_dict(loader.state_dict(position))
            for batch in loader:
                yield tuple(_FIELDS[name](batch) for name in self.fields)


def _start(loader: Loader, state: Mapping[str, Any] | None) -> Position:
    """Where the first pass begins."""
    if state is None:
        return Position(0, 0)
    loader.load_state_dict(state)
    iter(loader)  # goes to the next epoch where nothing is left of the one that the state is in
    begun = loader.state_dict()
    return Position(begun["epoch"], begun["consumed"])


def _check_fields(fields: Sequence[str], boxes: BoxOutput | None) -> None:
    unknown = [name for name in fields if name not in _FIELDS]
    if "boxes" in fields and boxes is None:
        raise ConfigError("the field boxes needs boxes=stoker.BoxOutput(...)")
    if unknown or not fields or isinstance(fields, str):
        raise ConfigError(f"fields is {fields!r}; it must name one or more of {', '.join(_FIELDS)}")


@dataclass(frozen=True, slots=True)
class _Form:
    """The one place that says what TensorFlow can expect; ``count`` is None where batches differ in size."""

    count: int | None
    transform: Transform
    output: Output
    boxes: BoxOutput | None

    def spec(self, name: str) -> Any:
        if name in ("images", "boxes"):
            sizes = [spec.shape[:2] for spec in native_transforms(self.transform)]
            specs = tuple(self._images(*size) if name == "images" else self._boxes() for size in sizes)
            return specs if isinstance(self.transform, MultiCrop) else specs[0]
        shape = (2,) if name == "position" else (self.count,)
        return tf.TensorSpec(shape, tf.bool if name == "valid" else tf.int64, name=name)

    def _images(self, height: int, width: int) -> Any:
        return tf.TensorSpec((self.count, *self.output.shape(height, width)), self.output.dtype, name="images")

    def _boxes(self) -> dict[str, Any]:
        most = None if self.boxes is None else self.boxes.pad_to
        each = (None,) if most is None else (self.count, most)
        ends = (
            {"offsets": (None if self.count is None else self.count + 1,)}
            if most is None
            else {"counts": (self.count,)}
        )
        return {
            "corners": tf.TensorSpec((*each, 4), tf.float32),
            "labels": tf.TensorSpec(each, tf.int64),
            "objects": tf.TensorSpec(each, tf.int32),
            **{name: tf.TensorSpec(shape, tf.int64) for name, shape in ends.items()},
        }


# Transforms in TensorFlow's ops: which window of a JPEG is decoded and resized to what.


_ATTEMPTS = 10


def pixels_of(transform: Transform) -> Callable[[Any, Any], Any]:
    """Return a function of (JPEG as a string, int64 () of random bits) to pixels, uint8 (H, W, 3).

    Raises:
        ConfigError: The transform, or one of its settings, has no counterpart in TensorFlow's ops.
    """
    window_of, hflip = _window_of(transform)
    height, width = _extent(transform)

    def pixels(encoded: Any, chance: Any) -> Any:
        shape = tf.image.extract_jpeg_shape(encoded)
        window = window_of(shape, chance)
        cropped = tf.image.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_FAST")
        resized = tf.cast(tf.image.resize(cropped, [height, width], "bilinear"), tf.uint8)
        if hflip:
            mirrored = tf.random.stateless_uniform([], [chance, 1]) < hflip
            resized = tf.cond(mirrored, lambda: tf.reverse(resized, [1]), lambda: resized)
        return tf.ensure_shape(resized, [height, width, 3])

    return pixels


def _window_of(transform: Transform) -> tuple[Callable[[Any, Any], Any], float]:
    """Function of (shape, random bits) to top, left, height and width of what is decoded; and the share mirrored."""
    # Comparing with a transform of these settings alone finds every other one, also those that transforms will have
    # one day.
    if isinstance(transform, RandomResizedCrop) and transform == RandomResizedCrop(
        transform.size, transform.scale, transform.ratio, transform.hflip
    ):
        return partial(_random_window, transform), transform.hflip
    if isinstance(transform, CenterCrop) and transform == CenterCrop(transform.size, transform.resize):
        return partial(_center_window, transform), 0.0
    if isinstance(transform, Resize) and transform == Resize(transform.size, transform.hflip):
        return lambda shape, _: tf.stack([0, 0, shape[0], shape[1]]), transform.hflip
    can = "RandomResizedCrop, CenterCrop and Resize, bilinear, with crop and mirror image alone"
    raise ConfigError(f"TensorFlow's ops cannot do {transform!r}, only {can}; use stoker.tensorflow.dataset")


def _extent(transform: Transform) -> tuple[int, int]:
    (height, width, _), *_ = (spec.shape for spec in native_transforms(transform))
    return height, width


def _random_window(transform: RandomResizedCrop, shape: Any, chance: Any) -> Any:
    """The crop that torchvision's RandomResizedCrop draws: the first of ten attempts that fits, or the centre."""
    least, most = transform.ratio
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    drawn = tf.random.stateless_uniform([2, _ATTEMPTS], [chance, 0])
    area = height * width * (transform.scale[0] + drawn[0] * (transform.scale[1] - transform.scale[0]))
    aspect = tf.exp(math.log(least) + drawn[1] * (math.log(most) - math.log(least)))
    widths, heights = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (widths >= 1) & (heights >= 1) & (widths <= width) & (heights <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    crop_width = tf.where(fits[first], widths[first], tf.minimum(width, tf.round(height * most)))
    crop_height = tf.where(fits[first], heights[first], tf.minimum(height, tf.round(width / least)))
    room = tf.stack([height - crop_height, width - crop_width])
    place = tf.random.stateless_uniform([2], [chance, 2])
    place = tf.where(fits[first], tf.floor(place * (room + 1)), tf.floor(room / 2))
    return tf.cast(tf.concat([place, [crop_height, crop_width]], 0), tf.int32)


def _center_window(transform: CenterCrop, shape: Any, _chance: Any) -> Any:
    """The part of the source that becomes the centre after the resize."""
    height, width = _extent(transform)
    short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
    sides = tf.cast(tf.round(short * tf.constant([height / transform.resize, width / transform.resize])), tf.int32)
    sides = tf.maximum(sides, 1)
    return tf.concat([(shape[:2] - sides) // 2, sides], 0)


# A tuned pipeline of TensorFlow's own ops over the shards of a dataset.


_READ_BUFFER_BYTES = 8 << 20
_READERS = 8
_COMPRESSION = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}


def graph_dataset(  # noqa: PLR0913 - settings, all by name
    dataset: Dataset,
    *,
    batch_size: int,
    transform: Transform,
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
    - Pixels are about those of the transform: the fast DCT, and no antialiasing. Crops have the transform's
      distribution, but are others than Stoker's.
    - It cannot be resumed within an epoch, and knows neither indices nor positions.
    - A damaged record is an error of TensorFlow's that names neither record nor image.

    Args:
        dataset: Shards with JPEG images and one number as the label; see `stoker.open`.
        batch_size: Images per batch on this rank.
        transform: `stoker.RandomResizedCrop`, `stoker.CenterCrop` or `stoker.Resize`, with the bilinear filter.
        shuffle_buffer: Records of the shuffle buffer; 0 keeps the order of the shards.
        seed: Makes order, crops and mirror images repeatable, which costs some speed; None: anew in every run.
        rank: This process's number among those that share the dataset.
        world_size: How many they are.
        epochs: How often the dataset is read; None: without end.
        drop_remainder: Whether a last batch that is not full is left out; the batch dimension then is static.
        threads: Threads of a pool of its own; None: TensorFlow's.

    Raises:
        ConfigError: A setting is out of range, or dataset or transform have no counterpart in TensorFlow's ops.
    """
    check_range("batch_size", batch_size, 1, 2**20)
    check_range("rank", rank, 0, check_range("world_size", world_size, 1, 2**24) - 1)
    _refuse_odd_records(dataset)
    load = partial(_load, dataset.schema, pixels_of(transform))
    records = _records(dataset, rank, world_size, deterministic=seed is not None)
    if check_range("shuffle_buffer", shuffle_buffer, 0, 2**31):
        records = records.shuffle(shuffle_buffer, seed, reshuffle_each_iteration=True)
    chances = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
    drawn = tf.data.Dataset.zip((records.repeat(epochs), chances))
    loaded = drawn.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    batched = loaded.batch(batch_size, drop_remainder=drop_remainder).prefetch(tf.data.AUTOTUNE)
    made = batched.with_options(_graph_options(threads, deterministic=seed is not None))
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


def _graph_options(threads: int | None, *, deterministic: bool) -> tf.data.Options:
    options = tf.data.Options()
    options.deterministic = deterministic
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    options.threading.max_intra_op_parallelism = 1
    if threads is not None:
        options.threading.private_threadpool_size = check_range("threads", threads, 1, 4096)
    return options


# TensorFlow's own profiler around a tf.data pipeline.


@contextmanager
def profile(logdir: str | Path) -> Iterator[Path]:
    """Trace every op of tf.data pipelines while a ``with`` block runs.

    For pipelines of TensorFlow's ops, such as `graph_dataset`, which `stoker.trace` cannot see into. TensorBoard with
    the package ``xprof`` shows the file in its trace viewer; steps are not needed.

    Args:
        logdir: A directory for TensorBoard; made if it is not there.

    Yields:
        The directory.

    Raises:
        StokerError: TensorFlow wrote no profile, as when another one is running in this process.
        OSError: The directory cannot be made.

    Example:
        >>> with stoker.tensorflow.profile("logs"):  # doctest: +SKIP
        ...     for images, labels in pipeline.take(100):
        ...         pass
    """
    folder = Path(logdir)
    folder.mkdir(parents=True, exist_ok=True)
    before = _profiles(folder)
    try:
        tf.profiler.experimental.start(str(folder), tf.profiler.experimental.ProfilerOptions(python_tracer_level=0))
    except tf.errors.OpError as error:
        raise StokerError(f"{folder}: TensorFlow's profiler does not start: {error.message}") from error
    try:
        yield folder
    finally:
        tf.profiler.experimental.stop()
    if _profiles(folder) == before:
        raise StokerError(f"{folder}: TensorFlow's profiler has written nothing")


def _profiles(folder: Path) -> set[Path]:
    return set(folder.glob("plugins/profile/*/*.xplane.pb"))
