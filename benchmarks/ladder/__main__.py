"""The ladder of tf.data steps beside Pillow, Stoker and the codec alone: ``make bench``.

python -m benchmarks.ladder DATASET [--transform eval] [--seconds 5] [--rounds 5] [--images 1000] [--threads N] [--json]

Each step does one thing more than the one before, as the tutorials that Stoker started from teach it. DATASET is
whatever ``stoker bench`` takes; the cases of ``stoker bench`` and these take turns on the same images, each in a
process of its own. Needs TensorFlow.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from stoker.cli import output
from stoker.cli.bench import print_report
from stoker.config import available_cpus
from stoker.inspect.bench import CASES, BenchSpec, Case, run_bench

if TYPE_CHECKING:
    from collections.abc import Sequence

_step = partial(Case, module="benchmarks.ladder.pipelines")
_cache = "cache of decoded images, before crops"
_raw = "decode_raw of 256 x 256 pixels, resized beforehand; nothing to decode"
STEPS: tuple[Case, ...] = (
    _step("serial", "tf.data: one file at a time", "map without parallelism: read_file, decode, crop and resize"),
    _step("parallel", "tf.data: parallel", "the same with num_parallel_calls"),
    _step("prefetch", "tf.data: parallel, prefetch", "the same with batches made ahead of the consumer"),
    _step("cache-memory", "tf.data: decoded images in memory", _cache, keeps="memory"),
    _step("cache-file", "tf.data: decoded images in a file", _cache, keeps="file"),
    _step("tfrecord", "tf.data: TFRecord", "shards, one after the other; parallel map, prefetch", "plain"),
    _step("tfrecord-gzip", "tf.data: TFRecord, GZIP", "the same of shards that are compressed as a whole", "plain"),
    _step("interleave", "tf.data: TFRecord, interleaved", "several shards at a time, by parallel interleave", "plain"),
    _step("raw", "tf.data: raw tensors", _raw, "raw"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--transform", choices=("train", "eval"), default="train")
    parser.add_argument("--threads", type=int, default=available_cpus(), help="of each case")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn (default 1)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each case (default 3)")
    parser.add_argument("--images", type=int, help="at most (default 1000, fewer if they are large)")
    parser.add_argument("--json", action="store_true")
    args = vars(parser.parse_args(words))
    as_json = args.pop("json")
    # The processes of the cases find this package there: they do not look into the working directory.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))  # noqa: PTH109
    report = run_bench(BenchSpec(**args), output.shown_progress, cases=sorted((*CASES, *STEPS), key=_group))
    if as_json:
        output.document(dataclasses.asdict(report))
    else:
        print_report(report)
    return 1 if report.failed else 0


def _group(case: Case) -> int:
    return ("limit", "ladder", "stoker").index(case.group)


if __name__ == "__main__":
    sys.exit(main())
