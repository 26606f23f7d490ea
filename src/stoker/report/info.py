"""The page about a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.config import format_size
from stoker.report.drawing import SPLIT_COLORS
from stoker.report.info_charts import class_curve, shard_chart, size_charts
from stoker.report.page import count, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stoker.inspect import ClassCount
    from stoker.inspection.portrait import Portrait

_ALL_NAMED = 40  # classes; of more, the ends are named and a curve shows the rest
_ENDS = 10
_KINDS = {"dataset": "Stoker dataset", "records": "TFRecords", "files": "image files"}


@dataclass(frozen=True, slots=True)
class _Figure:
    value: str
    name: str
    bad: bool = False


def info_page(portrait: Portrait) -> str:
    """Return a self-contained page about a dataset: one file, readable without network or JavaScript.

    Args:
        portrait: What to show.
    """
    splits = list(portrait.splits)
    classes = sorted(portrait.classes, key=lambda known: (-known.total, known.label))
    measured = portrait.measured
    many_shards = any(len(split.shard_bytes) > 1 for split in portrait.splits.values())
    return render(
        "info.html",
        portrait=portrait,
        name=portrait.path.rstrip("/").rpartition("/")[2] or portrait.path,
        kind=_KINDS[portrait.kind],
        figures=_figures(portrait),
        facts=_facts(portrait),
        split_colors={name: SPLIT_COLORS[n % len(SPLIT_COLORS)] for n, name in enumerate(splits)},
        class_groups=_class_groups(classes),
        most=max((known.total for known in classes), default=0),
        empty_classes=sum(known.total == 0 for known in classes),
        class_chart=class_curve(classes, splits) if len(classes) > _ALL_NAMED else None,
        size_chart=size_charts(measured) if measured.readable else None,
        shard_chart=shard_chart(portrait.splits) if many_shards else None,
    )


def _figures(portrait: Portrait) -> list[_Figure]:
    readable = portrait.measured.readable
    made = [_Figure(count(portrait.samples), "images"), _Figure(count(len(portrait.classes)), "classes")]
    made.append(_Figure(format_size(portrait.size_bytes), "on disk"))
    if readable:
        width, height = (int(np.median(portrait.measured.column(name))) for name in ("width", "height"))
        made.append(_Figure(f"{width} \N{MULTIPLICATION SIGN} {height}", "median size"))
    rejects = portrait.rejects
    if portrait.kind == "dataset":
        made.append(_Figure(count(rejects.total), "rejected", bad=rejects.total > 0))
    else:
        made.append(_Figure(count(rejects.total), f"unreadable of {rejects.of:,}", bad=rejects.total > 0))
    return made


def _facts(portrait: Portrait) -> list[tuple[str, str]]:
    """Return what the build recorded, by its name."""
    manifest = portrait.manifest
    if manifest is None:
        return [("Layout", f"{portrait.schema.preset}, label base {portrait.schema.label_base}")]
    source = manifest.source
    facts = [
        ("Dataset", manifest.dataset_id),
        ("Written by", f"stoker {manifest.stoker_version}"),
        ("Source", f"{source.items:,} items, {format_size(source.size_bytes)}, fingerprint {source.fingerprint}"),
        ("Ignored", _counted(source.ignored)),
        ("Recipe", ", ".join(f"{key} {value}" for key, value in manifest.recipe.items())),
        ("Converted", _counted(manifest.converted)),
        ("Damaged annotations", f"{manifest.annotation_errors:,}" if manifest.annotation_errors else ""),
        ("Compression", manifest.compression if manifest.compression != "none" else ""),
        ("Limit", "" if manifest.limit is None else f"{manifest.limit:,} images of train"),
        ("Seed", str(manifest.seed)),
    ]
    return [(name, text) for name, text in facts if text]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))


def _class_groups(classes: Sequence[ClassCount]) -> list[dict[str, Any]]:
    """Return the classes that are named, in columns side by side."""
    if len(classes) > _ALL_NAMED:
        ends = [("The most frequent", classes[:_ENDS]), ("The rarest", classes[-_ENDS:])]
        return [{"title": title, "classes": known} for title, known in ends]
    half = len(classes) if len(classes) <= _ENDS else -(-len(classes) // 2)
    return [{"title": "", "classes": known} for known in (classes[:half], classes[half:]) if known]
