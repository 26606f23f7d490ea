"""Records as the source of ``stoker repack``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.errors import ConfigError
from stoker.format import BACKGROUND, MANIFEST_NAME, no_records, read_manifest
from stoker.loader import find_splits, open_dataset, source_of
from stoker.sources import SPLITS
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stoker.format import RecordKeys
    from stoker.loader import Dataset
    from stoker.sources import ItemTable, Source
    from stoker.types import Progress

__all__ = ["open_records"]


def open_records(
    root: str,
    keys: RecordKeys | None,
    *,
    label_base: int | None = None,
    keeps_boxes: bool = True,
    crop_objects: bool = False,
    progress: Progress | None = None,
) -> Source:
    """List the records of a dataset, as `source_of` does.

    Nothing in records of other origin says whether their classes count from 0 or from 1. Unless ``keys`` say so, or a
    list of classes whose first is the background, labels stay what they are: the classes count from ``label_base``, as
    they will in the new dataset.

    Raises:
        DatasetNotFoundError: There is nothing to read.
        ConfigError: The layout of the records is unknown, or as `source_of`.
    """
    datasets = {split: open_dataset(root, split, keys=keys) for split in _splits(root)}
    says_base = keys is not None and keys.label_base is not None
    for dataset in datasets.values():
        schema, classes = dataset.schema, dataset.classes
        has_background = schema.label_base == 1 and bool(classes) and classes[0].name == BACKGROUND
        if not says_base and label_base is not None and dataset.manifest is None and not has_background:
            dataset.reader.schema = replace(schema, label_base=label_base)
    _refuse_different_bases(root, [*datasets.values()])
    source = source_of(datasets, progress, keeps_boxes=keeps_boxes, crop_objects=crop_objects)
    warnings = () if says_base else _warnings(root, [*datasets.values()], source.table)
    return replace(source, root=root, listing_warnings=(*warnings, *source.listing_warnings))


def _refuse_different_bases(root: str, datasets: Sequence[Dataset]) -> None:
    """Refuse splits of which one has a list of classes with a background, and another has none."""
    bases = {dataset.split: dataset.schema.label_base for dataset in datasets if len(dataset)}
    if len(set(bases.values())) > 1:
        numbers = ", ".join(f"{split} from {base}" for split, base in bases.items())
        message = f"the classes of {root} count from different numbers: {numbers}, as the lists beside them say"
        raise ConfigError(f"{message}; give --from-label-base 0 or 1 for all")


def _warnings(root: str, datasets: Sequence[Dataset], table: ItemTable) -> tuple[str, ...]:
    """Return what to say where the labels look as if they counted from 1, and were taken as counting from 0."""
    labelled = table.labels[table.labels >= 0]
    if any(dataset.manifest or dataset.classes or dataset.schema.label_base for dataset in datasets):
        return ()
    if not len(labelled) or labelled.min() != 1:
        return ()
    message = f"no record of {root} has the label 0, so class 0 is empty: labels are kept as they are stored"
    return (f"{message}; if its classes count from 1, give --from-label-base 1",)


def _splits(root: str) -> list[str]:
    place = location(root)
    is_built = (place / MANIFEST_NAME).lexists()
    splits: Mapping[str, object] = read_manifest(place).splits if is_built else find_splits(place)
    if not splits:
        raise no_records(place)
    known = [split for split in SPLITS if split in splits]
    return known + sorted(set(splits) - set(known))
