"""Datasets as sources of builds: what `stoker.open` returned, for `stoker.build`, and records for ``stoker repack``."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from stoker.config import option
from stoker.errors import ConfigError, SourceError, StokerError, StorageError, record_error
from stoker.format import ClassLabel, first_bytes
from stoker.sources import (
    Item,
    ItemTableBuilder,
    Reader,
    Source,
    SourceImage,
    bundled_label_map,
    has_control_character,
    one_line,
)
from stoker.storage import location
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.loader.sample import Sample
    from stoker.loader.sample_readers import SampleReader
    from stoker.loader.selection import Numbers
    from stoker.types import Exif, Mode, Progress, SchemaInfo


_AT_ONCE = 256
_SYNSET, _TEXT, _OBJECT_TEXTS = "image/class/synset", "image/class/text", "image/object/class/text"


class _Dataset(Protocol):
    """What this module needs of a `stoker.Dataset`."""

    path: str
    split: str
    reader: SampleReader
    classes: tuple[ClassLabel, ...]
    numbers: Numbers
    mode: Mode
    exif: Exif | None

    def __len__(self) -> int: ...
    @property
    def identity(self) -> str: ...
    @property
    def schema(self) -> SchemaInfo: ...


class DatasetReader(Reader):
    """Reads samples of datasets: an item's ``number`` is that of its sample in the split that ``dataset`` counts."""

    def __init__(self, datasets: Sequence[_Dataset], names: ClassNames) -> None:
        self._readers = [dataset.reader for dataset in datasets]
        self._roots = [dataset.path for dataset in datasets]
        self.latency = "disk" if all(dataset.reader.remote is None for dataset in datasets) else "store"
        self.fields = datasets[0].schema.fields
        self.box_names = max((dataset.schema.box_names for dataset in datasets), key=len)
        self._identity = _identity(datasets, names)

    @property
    def identity(self) -> str:
        """What stands for the samples of all splits."""
        return self._identity

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the samples that were loaded so far have to say."""
        return tuple(dict.fromkeys(warning for reader in self._readers for warning in reader.warnings))

    def load(self, item: Item) -> SourceImage:
        """Return the image of one sample and its boxes. See `stoker.sources.Reader.load`."""
        reader = self._reader_of(item)
        try:
            image = reader.load(item.number, item.object)
        except OSError as error:
            root = self._roots[item.columns["dataset"]]
            if isinstance(error, StorageError) or location(root).is_readable_after(error):
                raise
            message = f"{root} is not there any more: {error.strerror or error}; call again to resume"
            raise StorageError(message) from error
        if image.boxes and self.box_names and not reader.schema.box_names:
            message = "its boxes have the classes of images, and those of another split have names of their own"
            raise SourceError(f"{message}; build both with the same names")
        return image

    def plain_file(self, item: Item) -> bytes | None:
        """Return the file that is all there is of an item. See `stoker.sources.Reader.plain_file`."""
        return None if item.object >= 0 else self._reader_of(item).plain_file(item.number)

    def _reader_of(self, item: Item) -> SampleReader:
        dataset: int = item.columns["dataset"]
        return self._readers[dataset]


def _identity(datasets: Sequence[_Dataset], names: ClassNames) -> str:
    digest = hashlib.sha256("\n".join(dataset.identity for dataset in datasets).encode())
    for part in (*names.classes, b"", *names.texts):
        digest.update(len(part).to_bytes(8, "little") + part)
    for dataset in datasets:
        digest.update(dataset.reader.content(dataset.numbers))
    return digest.hexdigest()[:32]


def source_of(
    datasets: Mapping[str, _Dataset],
    progress: Progress | None = None,
    *,
    keeps_boxes: bool = True,
    crop_objects: bool = False,
    imagenet_labels: bool = False,
) -> Source:
    """Return datasets, or parts of some, by the splits that they are of a new one, in the order of a build from a path.

    Records are each read once, for their class and their name; those in a store are read ahead, in long ranges. A
    damaged record is an item that a build will reject. Where the new dataset has no place for the boxes of records
    (``keeps_boxes``), a warning says so. With ``crop_objects`` every annotated object is an item of its own; a sample
    without one stays whole. With ``imagenet_labels`` classes of image files are to have those of ImageNet's 1,000.

    Raises:
        ConfigError: A label is not a class; samples are turned upright, or have another mode than they are stored in;
            or the datasets have other fields, or classes of other numbers, than one another.
    """
    chosen = tuple(datasets.values())
    for dataset in chosen:
        _refuse_turned(dataset)
        if imagenet_labels:
            _refuse_part_of_imagenet(dataset)
    _refuse_unlike(datasets)
    if not any(map(len, chosen)):
        raise ConfigError(f"there are no samples in {' and '.join(datasets)}; give datasets that have some")
    listing = _Listing(chosen, progress, crop_objects=crop_objects)
    for number, split in enumerate(datasets):
        listing.add(number, split)
    root, names, table = chosen[0].path, listing.names, listing.builder.finish()
    names.see_labels(table.labels)
    warnings: tuple[str, ...] = ()
    if listing.boxes and not keeps_boxes and not crop_objects:
        what = f"the layout of the new dataset has no place for boxes, so the {listing.boxes:,} of {root} are left out"
        remedies = f"{option('preset')} imagenet keeps them, {option('crop_objects')} makes a record of each"
        warnings = (f"{what}; {remedies}",)
    return Source(
        root,
        names.classes,
        names.texts,
        table,
        listing.splits,
        DatasetReader(chosen, names),
        listing_warnings=warnings,
        label_base=chosen[0].schema.label_base,
    )


def _refuse_turned(dataset: _Dataset) -> None:
    """Refuse a dataset that shows its samples otherwise than they are stored."""
    exif = "exif='apply'" if dataset.exif == "apply" else ""
    mode = f"mode={dataset.mode!r}" if dataset.mode != "RGB" else ""
    if given := " and ".join(filter(None, (exif, mode))):
        message = f"{dataset.path} was opened with {given}, and a build stores images as they are; open it without"
        raise ConfigError(f"{message}, and give exif to stoker.build" if exif else message)


def _refuse_part_of_imagenet(dataset: _Dataset) -> None:
    """Refuse images whose classes are numbered by themselves, where a build of their path would number them in full."""
    known, names = set(bundled_label_map().names), {os.fsencode(each.name) for each in dataset.classes}
    if names and names < known and not dataset.reader.shards:
        message = f"the preset gives the {len(names)} classes of {dataset.path} their labels among ImageNet's 1,000"
        raise ConfigError(f"{message}, but it was opened with others; open it with imagenet_labels=True")


def _refuse_unlike(datasets: Mapping[str, _Dataset]) -> None:
    """Refuse datasets whose fields, or whose classes counted from 0, are not those of one another."""
    for (first, dataset), (second, other) in combinations(datasets.items(), 2):
        classes = [[each.name for each in part.classes[part.schema.label_base :]] for part in (dataset, other)]
        boxes = [part.schema.box_names for part in (dataset, other)]
        for what, names in (("class", classes), ("class of boxes", boxes)):
            for label, (name, own) in enumerate(zip(*names, strict=False)):
                if name != own:
                    message = f"{what} {label} is {name!r} in {first} and {own!r} in {second}"
                    advice = "images can be opened with the labels of a list: labels=LIST"
                    raise ConfigError(f"{message}; give datasets whose labels mean the same ({advice})")
        if dataset.schema.fields != other.schema.fields:
            fields, more = (", ".join(part.schema.fields) or "none" for part in (dataset, other))
            message = f"the fields are {fields} in {first} and {more} in {second}"
            raise ConfigError(f"{message}; give datasets with the same fields")


class _Listing:
    """Collects the samples of one dataset after another."""

    def __init__(self, datasets: Sequence[_Dataset], progress: Progress | None, *, crop_objects: bool) -> None:
        self.names = ClassNames(datasets, of_boxes=crop_objects)
        self.builder = ItemTableBuilder()
        self.splits: dict[str, NDArray[np.int64]] = {}
        self.boxes = 0
        self._datasets, self._progress, self._crop_objects = datasets, progress, crop_objects
        self._size_bytes = self._damaged = 0

    def add(self, number: int, split: str) -> None:
        """Add the samples of a dataset as a split, in the order of a tree of its files where that is known."""
        dataset, first = self._datasets[number], len(self.builder)
        listed = dataset.reader.items(dataset.numbers, crop_objects=self._crop_objects)
        for item in self._read(dataset) if listed is None else listed:
            self.builder.add(replace(item, columns={"dataset": number}))
        self.splits[split] = np.arange(first, len(self.builder), dtype=np.int64)

    def _read(self, dataset: _Dataset) -> list[Item]:
        records: list[_Record] = []
        numbers = np.sort(np.asarray(dataset.numbers, np.int64))
        with dataset.reader.reading_in_order(numbers):
            for first in range(0, len(numbers), _AT_ONCE):
                some = [self._look(dataset, key) for key in numbers[first : first + _AT_ONCE].tolist()]
                self._show(len(self.builder) + len(records) + len(some), some)
                records += some
        items = [(label, record, position) for record in records for position, label in record.items()]
        has_names = all(record.name or record.is_damaged for record in records)
        items.sort(key=lambda item: (item[0], item[1].name if has_names else b"", item[1].key, item[2]))
        paths = (
            f"{dataset.split}#{record.key}".encode() + (b" " + record.name if record.name else b"")
            for _, record, _ in items
        )
        return [
            Item(path, label, record.size_bytes, record.key, position)
            for path, (label, record, position) in zip(paths, items, strict=True)
        ]

    def _show(self, done: int, some: Sequence[_Record]) -> None:
        self._size_bytes += sum(record.size_bytes for record in some)
        self._damaged += sum(record.is_damaged for record in some)
        if self._progress is not None:
            total = sum(map(len, self._datasets))
            self._progress(done=done, total=total, size_bytes=self._size_bytes, rejects=self._damaged)

    def _look(self, dataset: _Dataset, key: int) -> _Record:
        try:
            sample = dataset.reader.sample(key)
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


def _class_of(dataset: _Dataset, key: int, label: int) -> int:
    """Return the class of a label, counted from 0; -1 for none."""
    base = dataset.schema.label_base
    if label == -1 or base <= label < MAX_CLASSES + base:
        return label - base if label >= 0 else -1
    if label >= MAX_CLASSES:
        problem = f"is not below {MAX_CLASSES}; say where the class is with {option('label_key')}"
    elif label < 0:
        problem = f"is negative, and only -1 stands for no class; say where it is with {option('label_key')}"
    else:
        problem = f"is not a class, because classes count from {base}; if these count from 0, give --from-label-base 0"
    raise record_error(ConfigError, dataset.reader.native.where(key), f"label {label} {problem}")


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
        """Return what it becomes: the number of an object, or -1 for all of it, and the class of that."""
        return list(enumerate(self.objects)) or [(-1, self.label)]


class ClassNames:
    """Names and texts by class index: from ``labels.txt`` where there is one, otherwise from the records themselves.

    A class that nothing names is called by its label, as ``12``. With ``of_boxes`` they are the classes of boxes, where
    these have names of their own.
    """

    def __init__(self, datasets: Sequence[_Dataset], *, of_boxes: bool = False) -> None:
        self._base = datasets[0].schema.label_base
        known = max((dataset.classes[dataset.schema.label_base :] for dataset in datasets), key=len)
        box_names = max((dataset.schema.box_names for dataset in datasets), key=len)
        if of_boxes and box_names:
            known = tuple(ClassLabel(name, "") for name in box_names)
        self._names = {label: os.fsencode(class_label.name) for label, class_label in enumerate(known)}
        self._texts = {
            label: class_label.text.encode("utf-8", "surrogateescape") for label, class_label in enumerate(known)
        }
        self._listed = bool(known)
        self._most = len(known) - 1

    def see_labels(self, labels: NDArray[np.int32]) -> None:
        """Take note of the classes of items."""
        self._most = max(self._most, int(labels.max(initial=-1)))

    def see(self, label: int, sample: Sample, objects: Sequence[int]) -> None:
        """Take note of a record's class and of those of its objects."""
        self._most = max((self._most, *objects))
        if not self._listed and any(object_label != label for object_label in objects):
            self._see_objects(sample, objects)
        if label < 0 or self._listed or label in self._names:
            return
        synset, text = (first_bytes(sample.features, key) for key in (_SYNSET, _TEXT))
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
