"""Every way to read that a benchmark knows: what it is called, what it does, and what it needs.

The ladder goes from the simplest way upwards, each rung one step more than the one before, as the documents that
started this project taught it; Stoker's own ways and rivals stand beside it.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.measure.figures import Group

Needs = Literal["files", "plain", "gzip", "raw", "restart", "own"]
"""What a rung reads: a form of the prepared images, or ``own``: the user's data where they lie."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One contender.

    Attributes:
        key: What ``--only`` and ``--against`` call it.
        name: What a table calls it.
        group: What kind of contender it is.
        note: One sentence: what it does.
        module: Its module in `stoker.measure.contenders`.
        form: Which form of what this module does.
        needs: What it reads.
        packages: Packages it imports, which may be missing: (module, what pip installs).
        fills: Whether its warm-up reads every image once, because it holds on to what it has read.
        holds: Whether decoded images then lie in memory, so that nothing is read any more.
        bucket: Whether it is for data in a bucket only.
        boxes: Whether it can make an image of each annotated object.
    """

    key: str
    name: str
    group: Group
    note: str
    module: str
    form: str = ""
    needs: Needs = "files"
    packages: tuple[tuple[str, str], ...] = ()
    fills: bool = False
    holds: bool = False
    bucket: bool = False
    boxes: bool = True

    @property
    def missing(self) -> str:
        """How the packages that are missing are installed; empty if all are there."""
        names = [name for module, name in self.packages if not _is_installed(module)]
        return f"not installed: pip install {' '.join(names)}" if names else ""


def _is_installed(module: str) -> bool:
    found = importlib.util.find_spec(module)
    return found is not None and found.origin is not None  # a folder of that name that happens to lie here has none


_TF = (("tensorflow", "'stoker[tensorflow]'"),)
_TORCH = ("torch", "torch")


def _python(key: str, name: str, note: str, **settings: Any) -> Rung:
    return Rung(f"python-{key}", f"Python + Pillow: {name}", "ladder", note, "python_files", key, **settings)


def _tf(key: str, name: str, note: str, needs: Needs = "files", **settings: Any) -> Rung:
    return Rung(key, f"tf.data: {name}", "ladder", note, "tf_ladder", key, needs, _TF, **settings)


def _stoker(key: str, name: str, note: str, needs: Needs, **settings: Any) -> Rung:
    full = f"stoker-{key}" if key else "stoker"
    return Rung(full, f"Stoker: {name}", "stoker", note, "stoker_loader", key or "exact", needs, **settings)


def _rival(key: str, name: str, note: str, module: str, *packages: tuple[str, str]) -> Rung:
    needs: Needs = "plain" if module == "tf_data" else "files"
    return Rung(key, name, "rival", note, module, key, needs, packages, boxes=False)


RUNGS: tuple[Rung, ...] = (
    Rung(
        "codec",
        "codec alone (the limit)",
        "limit",
        "JPEGs in memory, decoded and resized by Stoker's codec on all threads, with nothing around it",
        "codec",
        needs="plain",
        boxes=False,
    ),
    Rung(
        "bucket-serial",
        "Python + Pillow: one image at a time, from the bucket",
        "ladder",
        "each image is fetched from the bucket, then decoded, in one thread",
        "python_bucket",
        "serial",
        "own",
        bucket=True,
        boxes=False,
    ),
    Rung(
        "bucket-parallel",
        "Python + Pillow: threads, from the bucket",
        "ladder",
        "as before with 8 threads for each CPU, most of which wait for the bucket",
        "python_bucket",
        "parallel",
        "own",
        bucket=True,
        boxes=False,
    ),
    _python("serial", "one file at a time", "open, decode, crop and resize in one thread; then make the batch"),
    _python("parallel", "threads", "the images of a batch in a pool of threads; then wait for the consumer"),
    _python("prefetch", "threads, two batches ahead", "the pool works on the next two batches meanwhile"),
    _python(
        "cache", "decoded images kept in memory", "as before, without reading and decoding", fills=True, holds=True
    ),
    _tf("serial", "one file at a time", "map without parallelism: read_file, decode_jpeg, crop and resize; batch"),
    _tf("parallel", "parallel map", "the same with num_parallel_calls"),
    _tf("prefetch", "parallel map, prefetch", "the same with batches made ahead of the consumer"),
    _tf(
        "cache-memory",
        "decoded images cached in memory",
        "cache() after decoding, before crops",
        fills=True,
        holds=True,
    ),
    _tf("cache-file", "decoded images cached in a file", "cache(file) after decoding, before crops", fills=True),
    _tf("tfrecord", "TFRecord shards, one after the other", "TFRecordDataset, parallel map, prefetch", "plain"),
    _tf("tfrecord-gzip", "TFRecord shards, GZIP", "the same of shards that are compressed as a whole", "gzip"),
    _tf("interleave", "TFRecord shards, interleaved", "several shards read at a time, by parallel interleave", "plain"),
    _tf("raw", "TFRecord of raw tensors", "decode_raw of 256 x 256 pixels, resized beforehand; no JPEG", "raw"),
    _stoker(
        "own",
        "your data as they are",
        "stoker.Loader on what you named, where it lies; of a bucket, every byte comes from the store",
        "own",
    ),
    _stoker(
        "node-cache",
        "your bucket behind a node cache",
        "the same; all of it was fetched and lies on disk before the first turn",
        "own",
        fills=True,
        bucket=True,
    ),
    _stoker("files", "loose files", "stoker.Loader on JPEG files, without any build", "files"),
    _stoker("gzip", "GZIP shards", "shards that are compressed as a whole", "gzip"),
    _stoker("", "shards, exact pixels", "TFRecord shards; the pixels of libjpeg and Pillow", "plain"),
    _stoker("fast", "shards, fast decode", "the same with decode='fast': JPEGs decoded at a smaller scale", "plain"),
    _stoker(
        "restart",
        "shards with restart markers, exact pixels",
        "recipe restart: crops decode only themselves",
        "restart",
    ),
    _stoker(
        "cache", "decoded images in a memory cache", "MemoryCache(keep='decoded')", "plain", fills=True, holds=True
    ),
    _stoker("raw", "raw tensors", "shards of 256 x 256 pixels, resized beforehand; no JPEG", "raw"),
    _rival(
        "tf-tuned",
        "tf.data, tuned, fast DCT",
        "interleave, decode and crop in one op, nothing in order",
        "tf_data",
        *_TF,
    ),
    _rival("torch", "torch DataLoader + Pillow", "worker processes over loose files", "torch_workers", _TORCH),
    _rival(
        "webdataset",
        "WebDataset + Pillow",
        "tar shards, worker processes",
        "webdataset_tars",
        ("webdataset", "webdataset"),
        _TORCH,
    ),
    _rival(
        "hf-datasets",
        "Hugging Face datasets + Pillow",
        "Arrow files, worker processes",
        "hf_arrow",
        ("datasets", "datasets"),
        _TORCH,
    ),
    _rival(
        "grain",
        "Grain + Pillow",
        "ArrayRecord, threads",
        "grain_records",
        ("grain", "grain"),
        ("array_record", "array_record"),
    ),
    _rival(
        "litdata", "LitData + Pillow", "its chunks, worker processes", "litdata_chunks", ("litdata", "litdata"), _TORCH
    ),
)
LIMIT = "codec"
ELSEWHERE = ("dali", "ffcv", "mosaic", "spdl")
"""Rivals that ``make bench-rivals`` measures, each in an environment of its own."""


def find_rung(key: str) -> Rung:
    """Return the rung of a key."""
    return next(rung for rung in RUNGS if rung.key == key)


def chosen_rungs(only: Sequence[str], against: Sequence[str]) -> tuple[Rung, ...]:
    """Return what is to be measured, in the order of the ladder.

    Args:
        only: Keys; none: every rung but rivals.
        against: Keys of rivals, or ``all``.

    Raises:
        ConfigError: There is no such key; the message lists those there are.
    """
    rivals = [rung.key for rung in RUNGS if rung.group == "rival"]
    others = [rung.key for rung in RUNGS if rung.group != "rival"]
    _refuse_unknown("--only", only, [*others, *rivals])
    _refuse_unknown("--against", against, ["all", *rivals])
    wanted = {*(only or others), *(rivals if "all" in against else against)}
    return tuple(rung for rung in RUNGS if rung.key in wanted)


def _refuse_unknown(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [key for key in given if key not in known]
    if not unknown:
        return
    message = f"{option} knows no {', '.join(map(repr, unknown))}; it knows {', '.join(known)}"
    if set(unknown) & set(ELSEWHERE):
        message += f"; {', '.join(ELSEWHERE)} are measured by 'make bench-rivals'"
    raise ConfigError(message)
