"""The files beside the shards: labels, rejects, files for the readers of presets, and the content of the manifest."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.builder.convert import class_number
from stoker.builder.plan import recipe_record, stored_schema
from stoker.builder.settings import PRESETS
from stoker.config import stoker_version
from stoker.format import (
    BACKGROUND,
    LABELS_NAME,
    REJECTS_NAME,
    SIZES_NAME,
    ListedFile,
    Manifest,
    SourceInfo,
    Split,
    sizes_path,
    sum_of_formats,
    write_labels,
    write_listed,
    write_rejects,
)
from stoker.recipe import encoder_versions
from stoker.sources import counts_of
from stoker.storage import location
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stoker.builder.plan import Plan, SplitPlan
    from stoker.builder.settings import BuildSettings
    from stoker.format import ShardResult
    from stoker.sources import Source
    from stoker.storage import Location, LocationLike


_SIZES = (("train", "train"), ("val", "validation"), ("test", "test"))

_TFDS_FEATURES_NAME = "features.json"
_TFDS_INFO_NAME = "dataset_info.json"
_LABEL_NAMES_NAME = "label.labels.txt"
TFDS_NAMES = (_TFDS_FEATURES_NAME, _TFDS_INFO_NAME, _LABEL_NAMES_NAME)
"""Files of TFDS, which looks for the names of a ``ClassLabel`` in a file named after its key."""

_TFDS_VERSION = "1.0.0"
_TFDS_CLASSES = "tensorflow_datasets.core.features."


def describe_build(
    plan: Plan, settings: BuildSettings, results: Sequence[ShardResult], destination: Location
) -> Manifest:
    """Write the files beside the shards of a build, and return its manifest, which is not written."""
    classes, texts = _classes(plan.source, results)
    manifest = _make_manifest(plan, settings, results, len(classes))
    base = settings.schema.label_base
    numbered = PRESETS[settings.options.preset].numbered_labels
    labels = write_labels(destination, classes, texts, base, numbered=numbered)
    files = {LABELS_NAME: labels, REJECTS_NAME: write_rejects(destination, rejects_of(results))}
    return replace(manifest, files=files | write_companions(destination, manifest, classes))


def _classes(source: Source, results: Sequence[ShardResult]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the names and the texts of all classes: those of the source, and numbers for those without one."""
    most = max((label for result in results for label in result.labels), default=-1)
    unnamed = tuple(class_number(label) for label in range(len(source.classes), most + 1))
    return (*source.classes, *unnamed), (*source.texts, *[b""] * len(unnamed))


def _make_manifest(plan: Plan, settings: BuildSettings, results: Sequence[ShardResult], classes: int) -> Manifest:
    """Return the manifest of a build without its list of files; all shards are complete, in the order of the plan."""
    converted: Counter[str] = Counter()
    for result in results:
        converted.update(result.converted)
    formats = sum_of_formats(result.formats for result in results)
    by_pillow = any(field.is_image for field in plan.source.fields.values())
    by_pillow |= any("encoded" in formats.get(name, ()) for name in ("png", "webp"))
    return Manifest(
        stoker_version=stoker_version(),
        schema=stored_schema(plan.source, settings, classes),
        recipe=recipe_record(settings),
        seed=settings.options.seed,
        source=SourceInfo(plan.items, plan.size_bytes, plan.source.fingerprint(), plan.source.ignored),
        converted=dict(sorted(converted.items())),
        annotation_errors=sum(len(result.annotation_errors) for result in results),
        splits={split.name: _split(plan, split, settings.schema.label_base, results, classes) for split in plan.splits},
        compression=settings.compression,
        shard_names=settings.naming.text,
        limit=settings.options.num_images,
        formats=formats,
        encoders=encoder_versions() if by_pillow else {},
    )


def _split(plan: Plan, split: SplitPlan, label_base: int, results: Sequence[ShardResult], classes: int) -> Split:
    split_results = [result for result in results if result.split == split.name]
    rejected = np.asarray([reject.label for result in split_results for reject in result.rejects], np.int64)
    # The first count is of items without a class.
    counts = counts_of(plan.source.table.labels, [split.rows], classes)
    counts -= np.bincount(rejected + 1, minlength=len(counts))
    for label, count in [pair for result in split_results for pair in result.labels.items()]:
        counts[0] -= count
        counts[label + 1] += count
    boxes: Counter[int] = Counter()
    for result in split_results:
        boxes.update(result.boxes)
    shards = tuple(result.file for result in split_results)
    records = sum(shard.records for shard in shards)
    assert records + len(rejected) == len(split.rows), "an item is neither in the dataset nor among its rejects"
    return Split(
        records=records,
        size_bytes=sum(shard.size_bytes for shard in shards),
        rejects=len(rejected),
        class_counts=(0,) * label_base + tuple(counts[1:].tolist()),
        shards=shards,
        unlabelled=int(counts[0]),
        box_counts={label + label_base: count for label, count in sorted(boxes.items())},
    )


def rejects_of(results: Iterable[ShardResult]) -> Iterator[Reject]:
    """Yield every reject, in the order of the shards."""
    for result in results:
        for reject in result.rejects:
            yield Reject(reject.key, result.split, reject.reason)


def write_companions(directory: Location, manifest: Manifest, classes: Sequence[bytes]) -> dict[str, ListedFile]:
    """Write the files that a preset needs: TFDS's two JSON files, or the Hops notebook's ``sizes.txt``.

    Returns what the manifest says about each file.
    """
    if manifest.schema.preset == "tiny-imagenet":
        lines = [f"{word},{manifest.splits[split].records}" for word, split in _SIZES if split in manifest.splits]
        return {SIZES_NAME: write_listed(sizes_path(directory), "\n".join(lines).encode())}
    if manifest.schema.preset == "tfds" and manifest.shard_names.startswith("tfds:"):
        return write_tfds_metadata(
            directory,
            name=manifest.shard_names.partition(":")[2],
            splits=manifest.splits,
            class_names=[BACKGROUND] * manifest.schema.label_base + [os.fsdecode(name) for name in classes],
        )
    return {}


def write_tfds_metadata(
    directory: LocationLike, *, name: str, splits: Mapping[str, Split], class_names: Sequence[str]
) -> dict[str, ListedFile]:
    r"""Write ``features.json``, ``dataset_info.json`` and the names of the labels, each atomically.

    The records have the keys of preset ``tfds`` and lie in shards called ``NAME-SPLIT.tfrecord-00000-of-00008``. The
    three files are the JSON form of TFDS's own protocol buffers and hold no dates: the same arguments give the same
    bytes. They are written for TFDS 4.0 or newer, which checks neither the name nor the version. Returns what the
    manifest says about each file.

    TFDS reads the names as UTF-8 lines, strips them and skips blank ones. Bytes of a name that are not UTF-8 (surrogate
    escapes in ``class_names``) are written as an escape (``\udcff``). If stripping would make two names equal or one
    empty, no names are written: the classes then have only numbers, which is better than wrong names.
    """
    folder = location(directory)
    names = [text.encode("utf-8", "backslashreplace") for text in class_names]
    seen = {text.decode().strip() for text in names}
    contents = {
        _TFDS_FEATURES_NAME: _tfds_json(_tfds_features(len(names))),
        _TFDS_INFO_NAME: _tfds_json(_tfds_info(name, splits)),
    }
    if names and "" not in seen and len(seen) == len(names):
        contents[_LABEL_NAMES_NAME] = b"".join(text + b"\n" for text in names)
    else:
        (folder / _LABEL_NAMES_NAME).unlink(missing_ok=True)
    return {file: write_listed(folder / file, content) for file, content in contents.items()}


def _tfds_features(classes: int) -> dict[str, Any]:
    """Return the three keys of preset ``tfds``; 64-bit integers are strings in the JSON of protocol buffers."""
    # Without the format TFDS looks at the bytes of each image, which are JPEG or PNG.
    image = {"dtype": "uint8", "encodingFormat": "", "shape": {"dimensions": ["-1", "-1", "3"]}}
    features = {
        "file_name": {"pythonClassName": _TFDS_CLASSES + "text_feature.Text", "text": {}},
        "image": {"pythonClassName": _TFDS_CLASSES + "image_feature.Image", "image": image},
        "label": {
            "pythonClassName": _TFDS_CLASSES + "class_label_feature.ClassLabel",
            "classLabel": {"numClasses": str(classes)},
        },
    }
    return {"pythonClassName": _TFDS_CLASSES + "features_dict.FeaturesDict", "featuresDict": {"features": features}}


def _tfds_info(name: str, splits: Mapping[str, Split]) -> dict[str, Any]:
    """Return the splits, and what ``as_supervised=True`` yields; ``numBytes`` is the size of the files."""
    return {
        "name": name,
        "version": _TFDS_VERSION,
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": split,
                "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
                "numBytes": str(content.size_bytes),
                "shardLengths": [str(shard.records) for shard in content.shards],
            }
            for split, content in splits.items()
        ],
        "supervisedKeys": {"tuple": {"items": [{"featureKey": "image"}, {"featureKey": "label"}]}},
    }


def _tfds_json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2, sort_keys=True).encode() + b"\n"
