"""Datasets as sources of builds: the one place where the write path uses the read path."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from stoker.builder import Tally
from stoker.errors import ConfigError, StokerError, StorageError
from stoker.fields import stored_values
from stoker.format import BACKGROUND, MANIFEST_NAME, ClassLabel, no_records, read_manifest
from stoker.loader import find_splits, open_dataset
from stoker.sources import (
    SPLITS,
    Item,
    ItemTable,
    ItemTableBuilder,
    Reader,
    Source,
    SourceImage,
    has_control_character,
    one_line,
)
from stoker.storage import location
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.format import RecordKeys
    from stoker.loader import Dataset, Sample
    from stoker.types import Progress

__all__ = ["open_records"]


_AT_ONCE = 256
_SYNSET, _TEXT, _OBJECT_TEXTS = "image/class/synset", "image/class/text", "image/object/class/text"


class DatasetReader(Reader):
    """Reads records of a dataset: an item's ``number`` is its position in the split that its column ``dataset`` is."""

    def __init__(self, datasets: tuple[Dataset, ...], names: ClassNames) -> None:
        self.datasets = datasets
        self.latency = "disk" if all(dataset.remote is None for dataset in datasets) else "store"
        self.fields = datasets[0].fields
        self.box_names = datasets[0].schema.box_names
        self._identity = _identity(datasets, names)

    @property
    def identity(self) -> str:
        """What stands for the records of all splits."""
        return self._identity

    def load(self, item: Item) -> SourceImage:
        """Return the image of one record and its boxes. See `stoker.sources.Reader.load`."""
        sample = self.datasets[item.columns["dataset"]][item.number]
        is_raw = sample.schema.image_encoding == "raw"
        base = sample.schema.label_base
        boxes = [
            box if box.label is None or box.label < 0 else replace(box, label=box.label - base) for box in sample.boxes
        ]
        data = sample.decode() if is_raw else sample.encoded
        return SourceImage(data, _file_name(sample), boxes, fields=stored_values(sample.features, self.fields))


def _identity(datasets: tuple[Dataset, ...], names: ClassNames) -> str:
    digest = hashlib.sha256("\n".join(dataset.identity for dataset in datasets).encode())
    for part in (*names.classes, b"", *names.texts):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:32]


def open_records(
    root: str,
    keys: RecordKeys | None,
    *,
    label_base: int | None = None,
    keeps_boxes: bool = True,
    crop_objects: bool = False,
    progress: Progress | None = None,
) -> Source:
    """List the records of a dataset; each is read once, for its class and its name.

    Those in a store are read ahead, in long ranges. A damaged record is an item that a build will reject.

    Nothing in records of other origin says whether their classes count from 0 or from 1. Unless ``keys`` say so, or a
    list of classes whose first is the background, labels stay what they are: the classes count from ``label_base``, as
    they will in the new dataset. Where its records have no place for boxes (``keeps_boxes``), a warning says so. With
    ``crop_objects`` every annotated object is an item of its own; a record without one stays whole.

    Raises:
        DatasetNotFoundError: There is nothing to read.
        ConfigError: The layout of the records is unknown, a label is not a class, or the classes of the splits do not
            count from the same number.
    """
    datasets = tuple(open_dataset(root, split, keys=keys) for split in _splits(root))
    says_base = keys is not None and keys.label_base is not None
    for dataset in datasets:
        schema, classes = dataset.schema, dataset.classes
        has_background = schema.label_base == 1 and bool(classes) and classes[0].name == BACKGROUND
        if not says_base and label_base is not None and dataset.manifest is None and not has_background:
            dataset.reader.schema = replace(schema, label_base=label_base)
    _refuse_different_bases(root, datasets)
    listing = _Listing(datasets, progress, crop_objects=crop_objects)
    for number, dataset in enumerate(datasets):
        listing.add(number, dataset)
    names, table = listing.names, listing.builder.finish()
    warnings = () if says_base else _warnings(root, datasets, table)
    if listing.boxes and not keeps_boxes and not crop_objects:
        what = f"the layout of the new dataset has no place for boxes, so the {listing.boxes:,} of {root} are left out"
        warnings += (f"{what}; --preset imagenet keeps them, --crop-objects makes a record of each",)
    return Source(
        root,
        names.classes,
        names.texts,
        table,
        listing.splits,
        DatasetReader(datasets, names),
        listing_warnings=warnings,
        label_base=datasets[0].schema.label_base,
    )


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


def _file_name(sample: Sample) -> bytes:
    """Return the name that a record has, or one by its place: layouts without names are read into those with."""
    name = sample.source.encode("utf-8", "surrogateescape")
    return name[name.rfind(b"/") + 1 :] or b"%d" % sample.index


class _Listing:
    """Collects the records of one split after another."""

    def __init__(self, datasets: tuple[Dataset, ...], progress: Progress | None, *, crop_objects: bool) -> None:
        self.names = ClassNames(datasets, of_boxes=crop_objects)
        self._crop_objects = crop_objects
        self.builder = ItemTableBuilder()
        self.splits: dict[str, NDArray[np.int64]] = {}
        self.boxes = 0
        self._tally = Tally(sum(map(len, datasets)), progress)

    def add(self, number: int, dataset: Dataset) -> None:
        """Add a split, in the order of a tree of its files where that is known."""
        records: list[_Record] = []
        with dataset.reader.reading_in_order():
            for first in range(0, len(dataset), _AT_ONCE):
                some = [self._look(dataset, key) for key in range(len(dataset))[first : first + _AT_ONCE]]
                damaged = sum(record.is_damaged for record in some)
                self._tally.advanced(len(some), sum(record.size_bytes for record in some), damaged)
                records += some
        items = [(label, record, place) for record in records for place, label in record.items()]
        has_names = all(record.name or record.is_damaged for record in records)
        items.sort(key=lambda item: (item[0], item[1].name if has_names else b"", item[1].key, item[2]))
        first = len(self.builder)
        for label, record, place in items:
            path = f"{dataset.split}#{record.key}".encode() + (b" " + record.name if record.name else b"")
            self.builder.add(Item(path, label, record.size_bytes, record.key, place, {"dataset": number}))
        self.splits[dataset.split] = np.arange(first, len(self.builder), dtype=np.int64)

    def _look(self, dataset: Dataset, key: int) -> _Record:
        try:
            sample = dataset[key]
            boxes = sample.boxes
        except StorageError:  # the record may be whole
            raise
        except StokerError:  # the build will meet it again, and name it among the rejects
            return _Record(-1, b"", key, 0, (), is_damaged=True)
        label = _class_of(dataset, key, sample.label)
        objects = [label if box.label is None else _class_of(dataset, key, box.label) for box in boxes]
        if dataset.schema.box_names and self._crop_objects:
            label = -1  # the classes are those of the boxes
        self.names.see(label, sample, objects if self._crop_objects or not dataset.schema.box_names else ())
        self.boxes += len(boxes)
        name = sample.source.encode("utf-8", "surrogateescape")
        return _Record(label, name, key, len(sample.encoded), tuple(objects) if self._crop_objects else ())


def _class_of(dataset: Dataset, key: int, label: int) -> int:
    """Return the class of a label, counted from 0; -1 for none."""
    base = dataset.schema.label_base
    if label == -1 or base <= label < MAX_CLASSES + base:
        return label - base if label >= 0 else -1
    path, record, offset = dataset.records.where(key)
    where = f"label {label} of record {record} of {path}, at byte {offset},"
    if label >= MAX_CLASSES:
        raise ConfigError(f"{where} is not below {MAX_CLASSES}; say where the class is with --label-key")
    if label < 0:
        raise ConfigError(f"{where} is negative, and only -1 stands for no class; say where it is with --label-key")
    remedy = "if the classes of these records count from 0, give --from-label-base 0"
    raise ConfigError(f"{where} is not a class, because classes count from {base}; {remedy}")


@dataclass(frozen=True, slots=True)
class _Record:
    """What the listing keeps of a record; ``objects`` has the class of each, and is empty when it is taken whole."""

    label: int
    name: bytes
    key: int
    size_bytes: int
    objects: tuple[int, ...]
    is_damaged: bool = False

    def items(self) -> list[tuple[int, int]]:
        """Return what it becomes: the place of an object, or -1 for all of it, and the class of that."""
        return list(enumerate(self.objects)) or [(-1, self.label)]


class ClassNames:
    """Names and texts by class index: from ``labels.txt`` where there is one, otherwise from the records themselves.

    A class that nothing names is called by its label, as ``12``. With ``of_boxes`` they are the classes of boxes, where
    these have names of their own.
    """

    def __init__(self, datasets: Sequence[Dataset], *, of_boxes: bool = False) -> None:
        self._base = datasets[0].schema.label_base if datasets else 0
        known = max((dataset.classes for dataset in datasets), key=len, default=())[self._base :]
        if of_boxes and datasets and datasets[0].schema.box_names:
            known = tuple(ClassLabel(name, "") for name in datasets[0].schema.box_names)
        self._names = {label: os.fsencode(class_label.name) for label, class_label in enumerate(known)}
        self._texts = {
            label: class_label.text.encode("utf-8", "surrogateescape") for label, class_label in enumerate(known)
        }
        self._listed = bool(known)
        self._most = len(known) - 1

    def see(self, label: int, sample: Sample, objects: Sequence[int]) -> None:
        """Take note of a record's class and of those of its objects."""
        self._most = max(self._most, label, *objects)
        if not self._listed and any(object_label != label for object_label in objects):
            self._see_objects(sample, objects)
        if label < 0 or self._listed or label in self._names:
            return
        synset, text = _first(sample, _SYNSET), _first(sample, _TEXT)
        if sample.schema.preset == "imagenet-nvidia":
            synset, text = text, b""
        text = one_line(text)
        if synset and not has_control_character(synset):  # the record may be of any program
            self._names[label] = synset
            self._texts[label] = text
        elif text:
            self._texts.setdefault(label, text)

    def _see_objects(self, sample: Sample, objects: Sequence[int]) -> None:
        kind, texts = sample.features.get(_OBJECT_TEXTS, ("", []))
        if kind == "bytes" and len(texts) == len(objects):
            for label, text in zip(objects, cast("list[bytes]", texts), strict=True):
                if label >= 0 and text and not has_control_character(text):
                    self._names.setdefault(label, text)

    @property
    def classes(self) -> tuple[bytes, ...]:
        """Names, by index."""
        return tuple(self._names.get(label, b"%d" % (label + self._base)) for label in range(self._most + 1))

    @property
    def texts(self) -> tuple[bytes, ...]:
        """Texts, by index; empty where unknown."""
        return tuple(self._texts.get(label, b"") for label in range(self._most + 1))


def _first(sample: Sample, key: str) -> bytes:
    kind, values = sample.features.get(key, ("", []))
    return cast("bytes", values[0]) if kind == "bytes" and values else b""
