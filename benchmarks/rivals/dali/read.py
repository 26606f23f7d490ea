"""DALI's CPU operators, in the forms ``tfrecord`` and ``files``; no accelerator and no driver is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from nvidia.dali import fn, math, pipeline_def, tfrecord, types

from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.work import RATIO, RAW_SIDE, RESIZE, SCALE, SIDE, Work

if TYPE_CHECKING:
    from collections.abc import Iterator


def read_records(work: Work) -> tuple[Any, Any]:
    """The image and the number of each record of the shards that tf.data reads, too."""
    is_raw = work.line == "raw"
    shards = sorted(Path(work.path_of("raw" if is_raw else "photos")).glob("*.tfrecord"))
    image, label = ("image", "label") if is_raw else ("image/encoded", "image/class/label")
    record = fn.readers.tfrecord(
        path=[str(shard) for shard in shards],
        index_path=[str(shard.with_suffix(".idx")) for shard in shards],
        random_shuffle=True,
        initial_fill=work.window,
        features={
            image: tfrecord.FixedLenFeature((), tfrecord.string, ""),
            label: tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
        },
    )
    return record[image], record[label]


def train_transform(encoded: Any) -> Any:
    """Only the crop is decoded."""
    image = fn.decoders.image_random_crop(
        encoded,
        device="cpu",
        use_fast_idct=True,
        output_type=types.RGB,
        random_area=list(SCALE),
        random_aspect_ratio=list(RATIO),
        num_attempts=10,
    )
    image = fn.resize(image, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=False)
    return fn.flip(image, horizontal=fn.random.coin_flip(probability=0.5))


def eval_transform(encoded: Any) -> Any:
    """The centre as one crop: decoding just that is much faster here than decoding everything."""
    shape = fn.cast(fn.peek_image_shape(encoded)[:2], dtype=types.FLOAT)
    side = math.floor(fn.reductions.min(shape) * (SIDE / RESIZE) + 0.5)
    size = fn.stack(side, side)
    start = math.floor((shape - size) * 0.5)
    image = fn.decoders.image_slice(
        encoded,
        start,
        size,
        device="cpu",
        use_fast_idct=True,
        output_type=types.RGB,
        axes=[0, 1],
        normalized_anchor=False,
        normalized_shape=False,
    )
    return fn.resize(image, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=False)


def pipeline(work: Work) -> Any:
    """The pipeline of a line."""

    @pipeline_def(  # type: ignore[untyped-decorator]
        batch_size=work.batch,
        num_threads=work.threads,
        device_id=None,
        prefetch_queue_depth=4 if work.line == "raw" else 2,
    )
    def described() -> tuple[Any, Any]:
        if work.form == "files":
            paths = work.photos()
            encoded, number = fn.readers.file(files=paths, labels=list(range(len(paths))), shuffle_after_epoch=True)
        else:
            encoded, number = read_records(work)
        if work.line == "raw":
            return fn.reshape(encoded, shape=[RAW_SIDE, RAW_SIDE, 3]), number
        if work.line == "thumbnails":
            return fn.decoders.image(encoded, device="cpu", output_type=types.RGB), number
        return (eval_transform if work.line == "eval" else train_transform)(encoded), number

    return described()


def batches(work: Work) -> Iterator[Batch]:
    """Read without end; the batch is looked at where DALI put it, and not copied."""
    built = pipeline(work)
    built.build()
    while True:
        images, numbers = (output.as_tensor() for output in built.run())
        yield Batch(np.array(images, copy=False), np.array(numbers, copy=False).reshape(-1))


if __name__ == "__main__":
    serve_batches(batches)
