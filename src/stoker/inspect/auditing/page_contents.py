"""The images that a page about an audit shows: those of its findings, duplicates side by side, some of each class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stoker.inspect.page_contents import SampleHeader, Thumbnail, thumbnail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stoker.inspect.auditing.report import AuditedImage, AuditReport
    from stoker.inspect.info import ClassCount
    from stoker.loader import Dataset

_GROUPS, _SIDE_BY_SIDE = 60, 6
_OF_FINDING = 24
_CLASSES, _OF_CLASS = 60, 6
_MEANINGS = {
    "unreadable": "They cannot be decoded.",
    "dark": "Their mean is below 20 of 255.",
    "bright": "Their mean is above 235 of 255.",
    "flat": "The standard deviation of their pixels is below 4 of 255.",
    "turned": "An EXIF orientation turns or mirrors them; pictures and boxes are shown as they are stored.",
    "animated": "Only their first frame is read.",
    "alpha": "They have an alpha channel, which mode RGB drops.",
    "deep": "They have more than 8 bits a channel.",
    "box outside": "A box leaves the image.",
    "box empty": "A box has no area.",
}


@dataclass(frozen=True, slots=True)
class Album:
    """Pictures of one part of the page."""

    title: str  # what they have in common
    note: str  # what that means; empty where the title says it
    total: int
    pictures: tuple[Thumbnail, ...]  # the first of them


def audit_albums(report: AuditReport, splits: Mapping[str, Dataset]) -> dict[str, tuple[Album, ...]]:
    """Return the images that a page about an audit shows, by what its parts are about.

    Duplicates are a group each, those across splits and of several classes first; of many classes there are the most
    and the least frequent.
    """

    def pictures(images: Iterable[AuditedImage], unit: str = "") -> tuple[Thumbnail, ...]:
        return tuple(_picture(splits[image.split], image, unit) for image in images)

    ordered = sorted(report.duplicates, key=lambda group: (-len(group.splits), -len(group.labels)))
    groups = []
    for group in ordered[:_GROUPS]:
        flaws = ["in several splits"] * (len(group.splits) > 1) + ["of several classes"] * (len(group.labels) > 1)
        title = {"bytes": "Equal files", "pixels": "Equal pixels", "near": "Near duplicates"}[group.how]
        unit = "bits from the first" if group.how == "near" else ""
        shown = pictures(group.images[:_SIDE_BY_SIDE], unit)
        groups.append(Album(", ".join([title, *flaws]), "", len(group.images), shown))
    findings = (
        Album(name, _MEANINGS[name], len(images), pictures(images[:_OF_FINDING]))
        for name, images in report.findings.items()
    )
    return {
        "duplicates": tuple(groups),
        "findings": tuple(findings),
        "extremes": tuple(Album(name, "", len(some), pictures(some)) for name, some in report.extremes.items() if some),
        "classes": tuple(_class_album(splits, known) for known in _shown_classes(report.classes)),
    }


def _picture(dataset: Dataset, image: AuditedImage, unit: str) -> Thumbnail:
    shown = thumbnail(dataset, SampleHeader(image.split, image.index, image.label))
    name = (image.source or image.path).rpartition("/")[2]
    value = [f"{image.value:,.5g} {unit}".rstrip()] if image.value is not None else []
    problem = shown.problem and (image.problem or shown.problem)
    shard = [] if image.record is None else [f"{image.path.rpartition('/')[2]}, record {image.record}"]
    details = (f"{image.split} #{image.index}", *shard, *value)
    return replace(shown, title=f"{shown.title} · {name}", details=details, problem=problem)


def _shown_classes(classes: Iterable[ClassCount]) -> list[ClassCount]:
    ordered = sorted(classes, key=lambda known: (-known.total, known.label))
    half = _CLASSES // 2
    return ordered if len(ordered) <= _CLASSES else [*ordered[:half], *ordered[-half:]]


def _class_album(splits: Mapping[str, Dataset], known: ClassCount) -> Album:
    title = known.text.split(",")[0].strip() or known.name or f"label {known.label}"
    pictures: list[Thumbnail] = []
    for split, dataset in splits.items():
        numbers = np.flatnonzero(dataset.labels == known.label)
        for index in numbers[:: max(1, len(numbers) // _OF_CLASS)].tolist():
            if len(pictures) < _OF_CLASS:
                pictures.append(thumbnail(dataset, SampleHeader(split, index, known.label)))
    return Album(
        title, "", known.total, tuple(replace(picture, title=picture.details[0], details=()) for picture in pictures)
    )
