"""The content of records: features, image, label."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from stoker import _native
from stoker.errors import ExampleError, ImageError, StokerError
from stoker.feed.sample import Sample, label_of
from stoker.inspection.problem import Problem, problem_of
from stoker.records.layout import LABELS_NAME

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from stoker.records.labels import ClassLabel
    from stoker.storage import Location
    from stoker.types import Features, SchemaInfo

_SYNSET_KEY, _TEXT_KEY = "image/class/synset", "image/class/text"
_ONE_HOT_KEY = "label_one_hot"
_SHOWN_KEYS = 20  # the layout with the most has 15
_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class RecordRules:
    """What every record must satisfy.

    Attributes:
        schema: Which feature means what; for shards of other origin without a list of features.
        classes: Class ids there are; empty when unknown.
    """

    schema: SchemaInfo
    classes: tuple[ClassLabel, ...]


@dataclass(slots=True)
class RecordsResult:
    """What a run of records came to; ``labels`` counts the labels seen."""

    records: int = 0
    size_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)
    labels: Counter[int] = field(default_factory=Counter)


def check_records(
    path: Location, plain: Path, first: int, rows: NDArray[np.uint64], rules: RecordRules
) -> RecordsResult:
    """Check a run of records of one shard.

    Args:
        path: The shard.
        plain: Where its bytes are on this machine, without compression.
        first: Number of the first of them in the shard.
        rows: uint64 (N, 2), their extents.
        rules: What they must satisfy.
    """
    result = RecordsResult()
    for number, (offset, size) in enumerate(rows.tolist(), first):
        result.records += 1
        result.size_bytes += size
        try:
            payload = _native.read_record(str(plain), offset, size)
            features = _native.parse_example(payload)
        except StokerError as error:
            what = problem_of(error, path, plain).what
            result.problems.append(Problem(str(path), number, offset, None, what))
            continue
        sample = _sample(features, rules.schema)
        found = _features_wrong(features, rules)
        found += _image_wrong(sample, rules.schema)
        found += _label_wrong(sample, rules, result.labels)
        found += _boxes_wrong(features, rules.schema)
        result.problems += [Problem(str(path), number, offset, sample.source or None, what) for what in found]
    return result


def _sample(features: Features, schema: SchemaInfo) -> Sample:
    """Return a record as a sample; what it lacks is empty."""
    held = {key: values[0] for key, (kind, values) in features.items() if kind == "bytes" and values}
    encoded = cast("bytes", held.get(schema.image_key, b""))
    source = cast("bytes", held.get(schema.filename_key or "", b""))
    return Sample(-1, features, encoded, -1, source.decode("utf-8", "replace"), schema)


def _features_wrong(features: Features, rules: RecordRules) -> list[str]:
    wrong = []
    for key, expected in rules.schema.features.items():
        kind, values = features.get(key, ("none", []))
        if kind != expected.kind:
            wrong.append(f"feature {key} is of kind {kind}, not {expected.kind}")
        elif expected.length is not None and len(values) != expected.length:
            wrong.append(f"feature {key} has {len(values)} values, not {expected.length}")
    unknown = sorted(features.keys() - rules.schema.features.keys()) if rules.schema.features else []
    if unknown:
        subject = f"feature {_some(unknown)} is" if len(unknown) == 1 else f"features {_some(unknown)} are"
        wrong.append(f"{subject} not in the schema")
    return wrong


def _image_wrong(sample: Sample, schema: SchemaInfo) -> list[str]:
    if not sample.encoded:
        missing = f"no image under {schema.image_key}; it has {_some(sorted(sample.features))}"
        return [] if schema.image_key in schema.features else [missing]  # what the schema lists is reported already
    try:
        height, width, _ = sample.decode().shape
    except (ImageError, ExampleError) as error:
        return [str(error)]
    wrong = []
    sizes = ((schema.height_key or "image/height", height), (schema.width_key or "image/width", width))
    for key, true in sizes:
        kind, said = sample.features.get(key, ("none", []))
        if kind == "int64" and said and said[0] != true:
            wrong.append(f"{key} says {int(said[0])}, but the image has {true}")
    return wrong


def _label_wrong(sample: Sample, rules: RecordRules, labels: Counter[int]) -> list[str]:
    schema, features = rules.schema, sample.features
    if schema.label_key not in features:
        return []
    try:
        label = label_of(features, schema)
    except ExampleError as error:
        return [str(error)]
    labels[label] += 1
    wrong = _one_hot_wrong(features, schema, label)
    if not rules.classes or label == -1:
        return wrong
    if not schema.label_base <= label < len(rules.classes):
        return [*wrong, f"label {label} is not in {schema.label_base}..{len(rules.classes) - 1}"]
    named = rules.classes[label]
    text = named.name if schema.preset == "imagenet-nvidia" else named.text
    for key, expected in ((_SYNSET_KEY, named.name), (_TEXT_KEY, text)):
        kind, said = features.get(key, ("none", []))
        if kind == "bytes" and said and said[0] != os.fsencode(expected):
            shown = _cut(cast("bytes", said[0]))
            wrong.append(f"{key} says {shown}, but {LABELS_NAME} names class {label} {expected!r}")
    return wrong


def _boxes_wrong(features: Features, schema: SchemaInfo) -> list[str]:
    """Compare how many left, right, upper and lower edges there are; each must be a number."""
    if schema.box_prefix is None:
        return []
    keys = [schema.box_prefix + side for side in ("xmin", "xmax", "ymin", "ymax")]
    counts = [len(features.get(key, ("float", []))[1]) for key in keys]
    if len(set(counts)) == 1:
        edges = (edge for key in keys for edge in features.get(key, ("float", []))[1])
        odd = sorted({str(edge) for edge in edges if not (isinstance(edge, float) and math.isfinite(edge))})
        return [f"boxes have edges that are no numbers: {', '.join(odd[:3])}"] if odd else []
    return ["boxes have " + ", ".join(f"{count} {key}" for key, count in zip(keys, counts, strict=True))]


def _one_hot_wrong(features: Features, schema: SchemaInfo, label: int) -> list[str]:
    """Compare the one-hot copy of a label, which some layouts have, with the label itself."""
    kind, values = features.get(_ONE_HOT_KEY, ("none", []))
    if schema.label_encoding != "id" or kind != "bytes" or not values:
        return []
    ones = [place for place, digit in enumerate(cast("bytes", values[0])) if digit]
    expected = [label - schema.label_base] if label >= 0 else []
    if ones == expected:
        return []
    return [f"{_ONE_HOT_KEY} marks {_cut(ones)}, but the label is {label}"]


def _some(keys: list[str]) -> str:
    """Return a few of the keys of a record, which may have as many and as long ones as it likes."""
    more = f" and {len(keys) - _SHOWN_KEYS} more" if len(keys) > _SHOWN_KEYS else ""
    return ", ".join(key[:_SHOWN_LENGTH] for key in keys[:_SHOWN_KEYS]) + more


def _cut(value: bytes | list[int]) -> str:
    """Return a value of a record, which may be as long as it likes."""
    return repr(value[:_SHOWN_LENGTH]) + ("..." if len(value) > _SHOWN_LENGTH else "")
