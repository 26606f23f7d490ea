"""By how much the mistakes of the original benchmarks falsify their figures, each beside the right way.

python -m benchmarks.mistakes PHOTOS [--images 300] [--batch 128] [--steps 10] [--rounds 3] [--seconds 3]

PHOTOS is whatever ``stoker bench`` takes; with annotated objects, crops are counted beside files. The mistaken and the
right way take turns in one process, over the same pipelines: those of `benchmarks.ladder`. The right way is that of
``stoker bench``: first what was made ahead is used up, then the clock runs for some seconds.

sleep      ``time.sleep(1)`` for every batch inside the timed loop (ALCF's script, since November 2021)
crops      one image for each annotated object, counted as if each were a file (the same script)
paths      ``cache()`` before the files are read, so that it holds their names (the GCS notebook)
start      the clock starts before the first batch: building the graph and starting threads is counted (both)
ready      a few batches are timed of a pipeline that had time to make some ahead, as while the sleep lasts
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from benchmarks.ladder.pipelines import load_transform, pipeline
from stoker.cli.output import shown_progress
from stoker.inspect.bench import BenchImages, BenchSpec, prepare
from stoker.inspect.measuring import Meter
from stoker.loader import open_main_split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.loader import Dataset

    Corners = list[list[tuple[float, float, float, float]]]

SLEEP_SECONDS = 1.0
Figures = dict[str, list[float]]


class Pipeline:
    """A pipeline that has read one epoch, and the two ways to measure it."""

    def __init__(self, dataset: Any, images: int, options: argparse.Namespace) -> None:
        self._batches = iter(dataset)
        self._options = options
        self.last = 0.0
        self._meter = Meter(int(batch.shape[0]) for batch in self._batches)
        self._meter.warm_up(options.seconds, images)

    def right(self) -> float:
        """Images per second, of what was read from the first batch on that had to be waited for."""
        self._meter.lead_in(self._options.seconds)
        self.last = self._meter.rate(self._options.seconds)
        return self.last

    def with_pause(self) -> float:
        """The same with a sleep after each batch that is part of the time."""
        return rate(self._batches, self._options.steps, SLEEP_SECONDS)

    def after_pause(self) -> float:
        """Of a few batches, which had time to be made ahead."""
        time.sleep(SLEEP_SECONDS)
        return rate(self._batches, self._options.steps)


def rate(batches: Iterator[Any], steps: int, pause: float = 0.0) -> float:
    """Images per second of so many batches, with a pause after each that is part of the time."""
    images, began = 0, time.perf_counter()
    for _ in range(steps):
        images += int(next(batches).shape[0])
        time.sleep(pause)
    return images / (time.perf_counter() - began)


def path_cache(spec: BenchSpec, images: BenchImages) -> Any:
    """The notebook's pipeline: what is cached are names, and each epoch reads and decodes everything again."""
    transform = load_transform(spec.transform)

    def load(path: Any) -> Any:
        return transform(tf.io.decode_jpeg(tf.io.read_file(path), channels=3))

    cached = tf.data.Dataset.from_tensor_slices(images.files()).cache().shuffle(len(images.numbers)).repeat()
    pixels = cached.map(load, num_parallel_calls=spec.threads)
    return pixels.batch(spec.batch_size, drop_remainder=True).prefetch(2)


def object_crops(spec: BenchSpec, images: BenchImages, corners: Corners) -> Any:
    """The script's pipeline: an image of each annotated object."""

    def load(path: Any, boxes: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
        numbers = tf.zeros([tf.shape(boxes)[0]], tf.int32)
        return tf.ensure_shape(tf.image.crop_and_resize(image[None], boxes, numbers, [224, 224]), [None, 224, 224, 3])

    boxes = tf.ragged.constant(corners, ragged_rank=1, inner_shape=(4,), dtype=tf.float32)
    listed = tf.data.Dataset.from_tensor_slices((images.files(), boxes)).shuffle(len(corners)).repeat()
    crops = listed.map(load, num_parallel_calls=spec.threads).unbatch().map(lambda crop: tf.cast(crop, tf.uint8))
    return crops.batch(spec.batch_size, drop_remainder=True).prefetch(2)


def corners_of(dataset: Dataset, images: BenchImages) -> Corners:
    """Return the annotated objects of each image as (ymin, xmin, ymax, xmax); all of an image that has none."""
    part = images.open_own() if images.shards else dataset
    objects = [[(box.ymin, box.xmin, box.ymax, box.xmax) for box in part[number].boxes] for number in images.numbers]
    return [boxes or [(0.0, 0.0, 1.0, 1.0)] for boxes in objects]


def ways(
    spec: BenchSpec, images: BenchImages, corners: Corners, options: argparse.Namespace
) -> dict[str, Callable[[], float]]:
    """Each figure: a function that measures it once."""
    count = len(images.numbers)
    files_a_crop = count / sum(map(len, corners))
    serial, ahead, pixels = (
        Pipeline(pipeline(spec, images, key), count, options) for key in ("serial", "prefetch", "cache-memory")
    )
    crops = Pipeline(object_crops(spec, images, corners), count, options)
    paths = Pipeline(path_cache(spec, images), count, options)
    return {
        "right: one file at a time": serial.right,
        "sleep: one file at a time, with the sleep": serial.with_pause,
        "right: parallel and ahead": ahead.right,
        "sleep: parallel and ahead, with the sleep": ahead.with_pause,
        "ready: parallel and ahead, a few batches": ahead.after_pause,
        "start: parallel and ahead, from the start": lambda: rate(
            iter(pipeline(spec, images, "prefetch")), options.steps
        ),
        "paths: parallel and ahead, names cached": paths.right,
        "right: parallel and ahead, decoded images cached": pixels.right,
        "crops: crops, as if they were files": crops.right,
        "right: files of these crops": lambda: crops.last * files_a_crop,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos")
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--out", help="write the figures as JSON, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-mistakes-") as folder:
        dataset = open_main_split(options.photos, None)
        spec = BenchSpec(options.photos, batch_size=options.batch, images=options.images)
        images = prepare(dataset, spec, folder, frozenset({"files"}), shown_progress)
        corners = corners_of(dataset, images)
        print(f"{len(corners)} images, {sum(map(len, corners))} crops, batch {options.batch}")
        measures = ways(spec, images, corners, options)
        figures: Figures = {name: [] for name in measures}
        for _ in range(options.rounds):
            for name, measure in measures.items():
                figures[name].append(measure())
    for name, speeds in figures.items():
        print(f"{name:<50}{statistics.median(speeds):8.0f} a second  ({min(speeds):.0f} to {max(speeds):.0f})")
    if options.out:
        Path(options.out).write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
