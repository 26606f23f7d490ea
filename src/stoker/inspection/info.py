"""What is at a path: a finished dataset, an unfinished build, or TFRecords of other origin."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import DatasetNotFoundError
from stoker.inspection.foreign import ForeignInfo, foreign_info
from stoker.inspection.unfinished import UnfinishedInfo, unfinished_info
from stoker.records.labels import read_labels
from stoker.records.layout import MANIFEST_NAME, is_unfinished
from stoker.records.manifest_reading import read_manifest
from stoker.storage import is_named, location

if TYPE_CHECKING:
    import os

    from stoker.records.labels import ClassLabel
    from stoker.records.manifest import Manifest
    from stoker.storage import Location

DEFAULT_RECORDS = 1000
"""Records of TFRecords of other origin that are looked at: about 100 MB of photographs, a fraction of a second."""


@dataclass(frozen=True, slots=True)
class ClassCount:
    """How often one class occurs.

    Attributes:
        label: Its id.
        name: Its name; empty when ``labels.txt`` does not say.
        text: The class in words; empty when unknown.
        counts: Records by split.
    """

    label: int
    name: str
    text: str
    counts: dict[str, int]

    @property
    def total(self) -> int:
        """Records of all splits."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A finished dataset.

    Attributes:
        path: Its directory.
        manifest: Everything the build recorded.
        histogram: The classes by id, from the label base on.
    """

    path: str
    manifest: Manifest
    histogram: tuple[ClassCount, ...]


def dataset_info(
    path: str | os.PathLike[str], records: int = DEFAULT_RECORDS
) -> DatasetInfo | UnfinishedInfo | ForeignInfo:
    """Return what is known about a dataset without reading its records.

    Args:
        path: Directory of a dataset or of an unfinished build; directory, pattern or file of other TFRecords; or the
            URL of one.
        records: How many records of other TFRecords to look at, from the first on, to learn their keys.

    Raises:
        DatasetNotFoundError: There is nothing of the kind at ``path``.
        ManifestError: ``manifest.json`` is damaged or of a newer version.
        ShardError: One of the records looked at is damaged.
        ExampleError: One of them is no Example.
        OSError: A file cannot be read.
    """
    place = location(path)
    if is_named(place / MANIFEST_NAME):
        manifest = read_manifest(place)
        return DatasetInfo(str(path), manifest, _histogram(place, manifest))
    if is_unfinished(place):
        return unfinished_info(place)
    found = foreign_info(place, records)
    if found is None:
        message = f"no dataset at {place}: it is no directory with manifest.json, no shard, and matches none"
        raise DatasetNotFoundError(message, path=str(place))
    return found


def _histogram(directory: Location, manifest: Manifest) -> tuple[ClassCount, ...]:
    labels: tuple[ClassLabel, ...] = ()
    with contextlib.suppress(FileNotFoundError):  # what is missing is for verify to report
        labels = read_labels(directory)
    classes = max((len(split.class_counts) for split in manifest.splits.values()), default=0)
    return tuple(
        ClassCount(
            label,
            labels[label].name if label < len(labels) else "",
            labels[label].text if label < len(labels) else "",
            {
                name: split.class_counts[label] if label < len(split.class_counts) else 0
                for name, split in manifest.splits.items()
            },
        )
        for label in range(manifest.schema.label_base, classes)
    )
