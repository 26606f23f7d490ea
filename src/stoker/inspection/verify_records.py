"""The content of records: features, image, label."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from stoker import _native
from stoker.errors import ExampleError, ImageError, StokerError
from stoker.feed.opening import FOREIGN_SCHEMA
from stoker.inspection.problem import Problem, problem_of
from stoker.records.layout import LABELS_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from stoker.records.labels import ClassLabel
    from stoker.records.manifest import Feature, Manifest
    from stoker.types import Features

_SYNSET_KEY, _TEXT_KEY = "image/class/synset", "image/class/text"
_SIZE_KEYS = ("image/height", "image/width")


@dataclass(frozen=True, slots=True)
class RecordRules:
    """What every record must satisfy.

    Attributes:
        features: Features each must have; empty for shards of other origin.
        image_key: Feature with the image.
        label_key: Feature with the label.
        filename_key: Feature with the name of the source, for messages.
        classes: Class ids there are; empty when unknown.
        label_base: The smallest label.
    """

    features: Mapping[str, Feature]
    image_key: str
    label_key: str
    filename_key: str | None
    classes: tuple[ClassLabel, ...]
    label_base: int

    @classmethod
    def of(cls, manifest: Manifest | None, classes: tuple[ClassLabel, ...]) -> RecordRules:
        """Return the rules that a manifest and its classes set, or those for shards of other origin."""
        schema = FOREIGN_SCHEMA if manifest is None else manifest.schema
        return cls(schema.features, schema.image_key, schema.label_key, schema.filename_key, classes, schema.label_base)


@dataclass(slots=True)
class RecordsResult:
    """What a run of records came to; ``labels`` counts the labels seen."""

    records: int = 0
    size_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)
    labels: Counter[int] = field(default_factory=Counter)


def check_records(path: Path, first: int, rows: NDArray[np.uint64], rules: RecordRules) -> RecordsResult:
    """Check a run of records of one shard.

    Args:
        path: The shard.
        first: Number of the first of them in the shard.
        rows: uint64 (N, 2), their extents.
        rules: What they must satisfy.
    """
    result = RecordsResult()
    for number, (offset, size) in enumerate(rows.tolist(), first):
        result.records += 1
        result.size_bytes += size
        try:
            payload = _native.read_record(str(path), offset, size)
            features = _native.parse_example(payload)
        except StokerError as error:
            what = problem_of(error, path).what
            result.problems.append(Problem(str(path), number, offset, None, what))
            continue
        source = _source(features, rules)
        found = _features_wrong(features, rules)
        found += _image_wrong(features, rules)
        found += _label_wrong(features, rules, result.labels)
        result.problems += [Problem(str(path), number, offset, source, what) for what in found]
    return result


def _source(features: Features, rules: RecordRules) -> str | None:
    kind, values = features.get(rules.filename_key or "", ("none", []))
    return cast("bytes", values[0]).decode("utf-8", "replace") if kind == "bytes" and values else None


def _features_wrong(features: Features, rules: RecordRules) -> list[str]:
    wrong = []
    for key, expected in rules.features.items():
        kind, values = features.get(key, ("none", []))
        if kind != expected.kind:
            wrong.append(f"feature {key} is of kind {kind}, not {expected.kind}")
        elif expected.length is not None and len(values) != expected.length:
            wrong.append(f"feature {key} has {len(values)} values, not {expected.length}")
    if rules.features:
        wrong += [f"feature {key} is not in the schema" for key in features.keys() - rules.features.keys()]
    return wrong


def _image_wrong(features: Features, rules: RecordRules) -> list[str]:
    kind, values = features.get(rules.image_key, ("none", []))
    if kind != "bytes" or not values:
        missing = f"no image under {rules.image_key}; it has {sorted(features)}"
        return [] if rules.image_key in rules.features else [missing]  # what the schema lists is reported already
    try:
        height, width, _ = _native.decode_jpeg(cast("bytes", values[0])).shape
    except (ImageError, ExampleError) as error:
        return [str(error)]
    wrong = []
    for key, true in zip(_SIZE_KEYS, (height, width), strict=True):
        said_kind, said = features.get(key, ("none", []))
        if said_kind == "int64" and said and said[0] != true:
            wrong.append(f"{key} says {int(said[0])}, but the image has {true}")
    return wrong


def _label_wrong(features: Features, rules: RecordRules, labels: Counter[int]) -> list[str]:
    kind, values = features.get(rules.label_key, ("none", []))
    if kind != "int64" or not values:
        return []
    label = int(values[0])
    labels[label] += 1
    if not rules.classes:
        return []
    if not rules.label_base <= label < len(rules.classes):
        return [f"label {label} is not in {rules.label_base}..{len(rules.classes) - 1}"]
    named = rules.classes[label]
    wrong = []
    for key, expected in ((_SYNSET_KEY, named.name), (_TEXT_KEY, named.text)):
        said_kind, said = features.get(key, ("none", []))
        if said_kind == "bytes" and said and said[0] != os.fsencode(expected):
            wrong.append(f"{key} says {said[0]!r}, but {LABELS_NAME} names class {label} {expected!r}")
    return wrong
