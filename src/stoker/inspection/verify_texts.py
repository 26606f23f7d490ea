"""The text files of a dataset: the manifest, the classes, the rejects, and whether their numbers add up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from stoker.errors import ManifestError, NewerManifestError
from stoker.feed.opening import refuse_unfinished
from stoker.inspection.problem import Problem
from stoker.records.labels import read_labels
from stoker.records.layout import LABELS_NAME, MANIFEST_NAME, REJECTS_NAME
from stoker.records.manifest_reading import read_manifest
from stoker.records.rejects import read_rejects
from stoker.storage import is_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stoker.records.labels import ClassLabel
    from stoker.records.manifest import Manifest
    from stoker.storage import Location


def read_texts(place: Location) -> tuple[Manifest | None, tuple[ClassLabel, ...], list[Problem]]:
    """Return the manifest, the classes, and what is wrong with either; no manifest for shards of other origin.

    Raises:
        NewerManifestError: A newer version wrote the manifest.
        DatasetNotFoundError: The directory is an unfinished build.
    """
    if not is_named(place / MANIFEST_NAME):
        refuse_unfinished(place)
        return None, (), _lost_manifest(place)
    try:
        manifest = read_manifest(place)
    except NewerManifestError:
        raise
    except ManifestError as error:  # the shards are checked all the same, as if they came from elsewhere
        return None, (), [Problem(str(place / MANIFEST_NAME), None, error.offset, None, str(error))]
    problems: list[Problem] = []
    return manifest, _classes(place, manifest, problems), problems


def _lost_manifest(place: Location) -> list[Problem]:
    """Return that the manifest is missing, if something is there that only comes with one."""
    if not is_named(place / REJECTS_NAME):
        return []
    what = f"is missing, and {REJECTS_NAME} is there; restore it, or build again"
    return [Problem(str(place / MANIFEST_NAME), None, None, None, what)]


def _classes(place: Location, manifest: Manifest, problems: list[Problem]) -> tuple[ClassLabel, ...]:
    counted = max((len(split.class_counts) for split in manifest.splits.values()), default=0)
    where = str(place / LABELS_NAME)
    try:
        classes = read_labels(place)
    except FileNotFoundError:
        problems.append(Problem(where, None, None, None, "is missing; restore it, or build again"))
        return ()
    except ManifestError as error:
        problems.append(Problem(where, None, None, None, str(error)))
        return ()
    if len(classes) != counted:
        problems.append(
            Problem(where, None, None, None, f"names {len(classes)} classes; the manifest counts {counted}")
        )
        return ()
    return classes


def count_problems(place: Location, manifest: Manifest, labels: Mapping[str, Counter[int]]) -> Iterator[Problem]:
    """Yield where the manifest's counts are not those of the records and rejects.

    Args:
        place: Directory of the dataset.
        manifest: Its manifest.
        labels: How often each label was seen, by split.
    """
    where = str(place / MANIFEST_NAME)
    for name, split in manifest.splits.items():
        seen = labels.get(name, Counter())
        for label, count in enumerate(split.class_counts):
            if seen[label] != count:
                what = f"split {name} has {seen[label]} records of class {label}; the manifest says {count}"
                yield Problem(where, None, None, None, what)
        if seen[-1] != split.unlabelled:
            what = f"split {name} has {seen[-1]} records without a class; the manifest says {split.unlabelled}"
            yield Problem(where, None, None, None, what)
    if manifest.source.items != manifest.records + manifest.rejects:
        what = f"{manifest.records} records and {manifest.rejects} rejects are not the {manifest.source.items} items"
        yield Problem(where, None, None, None, f"{what} of the source")
    yield from _reject_problems(place, manifest)


def _reject_problems(place: Location, manifest: Manifest) -> Iterator[Problem]:
    where = str(place / REJECTS_NAME)
    if not is_named(place / REJECTS_NAME):
        yield Problem(where, None, None, None, "is missing; restore it, or build again")
        return
    try:
        rejected = Counter(reject.split for reject in read_rejects(place))
    except ManifestError as error:
        yield Problem(where, None, None, None, str(error))
        return
    for name, split in manifest.splits.items():
        if rejected[name] != split.rejects:
            what = f"has {rejected[name]} rejects of split {name}; the manifest says {split.rejects}"
            yield Problem(where, None, None, None, what)
