"""One split of a dataset, opened for random access; and datasets as the source of a build."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, cast, overload

import numpy as np

from stoker import _native
from stoker.config import check_range, format_count, format_size, option
from stoker.errors import ConfigError, SourceError, StokerError, StorageError, record_error
from stoker.format import FRAME_BYTES, ClassLabel, first_bytes
from stoker.habits import DATASETS, no_attribute
from stoker.loader.pictures import (
    NOTEBOOK_PIXELS,
    NOTEBOOK_SIDE,
    class_title,
    escaped,
    notebook_block,
    notebook_figure,
)
from stoker.loader.sample import Sample, texts_of
from stoker.loader.selection import (
    division,
    draws_by_name,
    first_of_each,
    label_named,
    refuse_unlabelled,
    same_numbers,
    select,
    selection_name,
    sharing_a_name,
    single_index,
    values_at,
)
from stoker.order import random_sample
from stoker.progress import Tally
from stoker.sources import (
    Item,
    ItemTableBuilder,
    Reader,
    Source,
    SourceImage,
    bundled_label_map,
    has_control_character,
    in_order,
    one_line,
)
from stoker.storage import location
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray
    from PIL import Image

    from stoker.format import Manifest
    from stoker.loader.read_ahead import RemoteFiles
    from stoker.loader.readers import SampleReader
    from stoker.loader.selection import Numbers
    from stoker.loader.shards import OpenShard
    from stoker.types import Exif, Field, Mode, Progress, SchemaInfo

    _Row = tuple[int, bytes | None, int, int, int]
    """Class, name (None if damaged), number, object (-1: the whole image) and size in bytes of one item of a build."""


_STRIP_IMAGES, _STRIP_SECONDS = 8, 1.0
_NAMED_CLASSES, _STAMPED = 12, 256
_SYNSET, _TEXT, _OBJECT_TEXTS = "image/class/synset", "image/class/text", "image/object/class/text"


class Dataset:
    """One split of a dataset, or a part of one: ``len(dataset)`` samples, ``dataset[i]``, its labels and classes.

    Make one with `stoker.open`, which reads the manifest, the indexes unless they are very many, and the first record
    of TFRecords of other origin. Reading is safe from any thread. Unpickling opens the dataset again from the same
    path, which must still hold the same dataset.

    A part is made by ``dataset[:1000]``, ``dataset[[5, 3, 7]]``, `shard`, `filter`, `random_split`, `folds` or
    `per_class`. Loaders take a part as they take the whole. It has each of its samples once, in the order in which they
    were chosen. ``Batch.indices`` and `Sample.index` are still numbers in the split that was opened, and a sample has
    the same random choices in every part.

    Attributes:
        path: What it was opened from: a directory, a file or a pattern.
        split: Name of the split.
        reader: Reads all samples of the split by their numbers.
        classes: Name and text of each class, by label; empty if the dataset does not say.
        manifest: The manifest of the build; None for data that Stoker did not write.
        numbers: Numbers of its samples in the split: ``range(n)`` for all, another range, or int64 (len(dataset),).
        mode: Channels and depth of the pixels of its samples and batches.
        exif: ``apply`` if images are turned upright, ``keep`` if not; None, as ``keep``, if `stoker.open` was not told.
        opener: Function that opens it again, and can be pickled; None if `stoker.open` did not open it.
        folders: Its path, and the folders of its shards: nothing may be built there while it is read.
    """

    def __init__(
        self,
        *,
        path: str,
        split: str,
        reader: SampleReader,
        classes: tuple[ClassLabel, ...] = (),
        manifest: Manifest | None = None,
    ) -> None:
        self.path = path
        self.split = split
        self.reader = reader
        self.classes = classes
        self.manifest = manifest
        self.mode: Mode = "RGB"
        self.exif: Exif | None = None
        self.opener: Callable[[], Dataset] | None = None
        self.folders: frozenset[str] = frozenset()
        self._labels: NDArray[np.int64] | None = None
        self._object_counts: NDArray[np.uint32] | None = None
        self.numbers: Numbers = range(len(reader.native))
        self._whole: Dataset | None = None
        self._divisions = 0  # how often it was divided at random

    @property
    def schema(self) -> SchemaInfo:
        """Which features hold the image, the label and the name."""
        return self.reader.schema

    @property
    def shards(self) -> tuple[OpenShard, ...]:
        """The shards of the split in their order; none where the samples are image files."""
        return self.reader.shards

    @property
    def records(self) -> _native.RecordSet | _native.FileSet:
        """The native reader of all samples of the split."""
        return self.reader.native

    @property
    def remote(self) -> RemoteFiles | None:
        """The files of the split, if they are in a store."""
        return self.reader.remote

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | Sequence[bool] | NDArray[Any]) -> Dataset: ...
    def __getitem__(self, index: int | slice | ArrayLike) -> Sample | Dataset:
        """Return one sample, or the part of the dataset that a slice, positions or booleans choose.

        Args:
            index: The position of a sample gives that sample; negative ones count from the end. A slice, a list or
                array of positions, or a boolean for each sample gives a part, whose samples come in this order.

        Raises:
            IndexError: There is no such sample.
            TypeError: This is not an index.
            ConfigError: A position is given twice.
            ShardError: The bytes of the sample are damaged.
            ExampleError: The record is not an Example, or lacks the image.
            OSError: The sample is a file that cannot be read.
        """
        if isinstance(index, str):
            raise TypeError(f"samples have numbers, and {index!r} is none: {DATASETS['[]']}")
        position = single_index(index)
        if position is None:
            return self._part(select(self.numbers, index, self._name))
        size = len(self)
        if not -size <= position < size:
            raise IndexError(f"there is no sample {position}; {self._name} has {size}")
        return self._sample(int(self.numbers[position]))

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        """Return several samples, for PyTorch's loader; its default collation then raises, and says what to use."""
        collation: Any = sys.modules.get("torch.utils.data._utils.collate")
        if collation is not None:
            collation.default_collate_fn_map.setdefault(Sample, _refuse_collation)
        return [self[index] for index in indices]

    def __add__(self, other: object) -> Never:
        raise TypeError(f"a stoker.Dataset has no + for {type(other).__name__}: {DATASETS['concatenate']}")

    __radd__ = __add__

    __getattr__ = no_attribute("stoker.Dataset", DATASETS)

    @property
    def targets(self) -> list[int]:
        """`labels` as a list, as torchvision's datasets have them."""
        return [int(label) for label in self.labels]

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class by its name, as torchvision's datasets have it."""
        return {each.name: label for label, each in enumerate(self.classes) if label >= self.schema.label_base}

    @property
    def samples(self) -> list[tuple[str, int]]:
        """Path and label of each image, as torchvision's ``ImageFolder`` has them; for local image files only.

        Raises:
            AttributeError: Images are not files of their own.
        """
        if self.shards or self.remote is not None or self.reader.given is not None:
            raise AttributeError("the images are not files")  # users see the error that `__getattr__` then raises
        files = [self.records.where(int(number)) for number in self.numbers]
        if any(offset for _, _, offset in files):
            raise AttributeError("the images lie in archives")
        return [(path, label) for (path, _, _), label in zip(files, self.targets, strict=True)]

    def _sample(self, index: int) -> Sample:
        return self.reader.sample(index, self.mode, self.exif)

    @staticmethod
    def source_of(
        datasets: Mapping[str, Dataset],
        progress: Progress | None = None,
        *,
        keeps_boxes: bool = True,
        crop_objects: bool = False,
        imagenet_labels: bool = False,
    ) -> Source:
        """Return datasets, or parts of them, as the splits of a new dataset, in the order of a build from a path.

        Builds call this method, since they do not import the loader. Each record is read once, for its class and name;
        records in a store are read ahead, in long ranges. A damaged record becomes an item that the build rejects. If
        the new dataset cannot hold boxes (``keeps_boxes`` is false), a warning says so. With ``crop_objects`` every
        annotated object is an item of its own; a sample without objects stays whole. With ``imagenet_labels`` classes
        of image files must have their labels among ImageNet's 1,000.

        Raises:
            ConfigError: A label is not a class, a dataset was opened with ``exif="apply"`` or in another mode than RGB,
                or the datasets differ in their fields or in the labels of their classes.
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
            what = f"the layout of the new dataset has no place for boxes, so the {listing.boxes:,} of {root}"
            remedies = f"{option('preset')} imagenet keeps them, {option('crop_objects')} makes a record of each"
            warnings = (f"{what} are left out; {remedies}",)
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

    def _part(self, numbers: Numbers) -> Dataset:
        part = object.__new__(Dataset)
        part.__dict__ |= self.__dict__
        part.numbers, part._whole = numbers, self.whole
        part._labels = part._object_counts = None
        return part

    @property
    def whole(self) -> Dataset:
        """The whole split; the dataset itself, unless it is a part of one."""
        return self if self._whole is None else self._whole

    @property
    def _name(self) -> str:
        return f"{'' if self._whole is None else 'this part of '}split {self.split} of {self.path}"

    def shard(self, index: int, count: int) -> Dataset:
        """Return one of several parts of nearly equal size, which together are the dataset.

        Samples that lie side by side stay together, so that reading is fast. Loaders do not need this: they divide each
        epoch among the ranks themselves.

        Args:
            index: Number of the part, from 0.
            count: Number of parts.

        Raises:
            ConfigError: There is no such part.
        """
        count = check_range("count", count, 1, 2**31)
        index = check_range("index", index, 0, count - 1)
        return self[len(self) * index // count : len(self) * (index + 1) // count]

    def filter(
        self, where: Callable[[Sample], object] | None = None, *, labels: Iterable[int | str] | None = None
    ) -> Dataset:
        """Return the samples that fulfil a condition, in their order.

        Args:
            where: Function that is called with each sample, in this thread, and returns whether to keep it. Every
                sample is read, but decoded only if the function decodes it.
            labels: Classes to keep, by label or by name. The labels of samples do not change.

        Raises:
            ConfigError: Neither is given, there is no such class, or no sample has a label.
            StokerError: A sample cannot be read.
        """
        if where is None and labels is None:
            raise ConfigError("filter needs a condition: a function of a sample, or labels=[...]")
        if isinstance(labels, str | int):
            raise ConfigError(f"labels is {labels!r}; give a list of labels or of names: labels=[{labels!r}]")
        part = self
        if labels is not None:
            part = part[np.isin(part.labels, [self.label_named(label) for label in labels])]
            if not len(part):
                refuse_unlabelled(self.path, self.labels)
        if where is not None:
            samples = (part._sample(int(number)) for number in part.numbers)
            part = part[np.fromiter((bool(where(sample)) for sample in samples), np.bool_, len(part))]
        return part

    def random_split(self, fractions: Sequence[float], *, seed: int = 0) -> tuple[Dataset, ...]:
        """Divide the dataset at random: ``train, validation = dataset.random_split([0.9, 0.1])``.

        The part of a sample depends only on the name of its file without folders, its class and the seed. So it is the
        same after other samples are added, after the dataset is built again or in another order, and in a folder as in
        the dataset built from it. Where samples share name and class, such as ``s0/rgb.png`` and ``s1/rgb.png``, the
        bytes of the image decide too, so that only identical images stay together. A sample without a name goes by its
        number, and may move when others are added. Sizes are therefore near the fractions, not exact. Dividing a part
        again is independent of the first division. With TFRecords, the name and label of every record of this dataset
        are read, and the images of those that share a name.

        Args:
            fractions: Share of each part; their sum is 1.
            seed: Seed of the division, 0 to 2**64 - 1.

        Raises:
            ConfigError: The fractions do not sum to 1, or a part would have no sample.
            ShardError: A record is damaged.
        """
        part_of = self._part_of(ends := division(fractions), seed)
        return tuple(self._chosen(part_of == part) for part in range(len(ends)))

    def folds(self, count: int, *, seed: int = 0) -> list[tuple[Dataset, Dataset]]:
        """Return pairs of a training and a validation dataset, for cross-validation.

        Each sample is in the validation dataset of one pair, and in the training dataset of all others; `random_split`
        says what decides which.

        Args:
            count: Number of pairs, at least 2.
            seed: Seed of the folds, 0 to 2**64 - 1.

        Raises:
            ConfigError: There would be a fold without a sample.
            ShardError: A record is damaged.
        """
        count = check_range("count", count, 2, 2**20)
        fold_of = self._part_of(ends := [2**64 * (fold + 1) // count for fold in range(count)], seed)
        return [(self._chosen(fold_of != fold), self._chosen(fold_of == fold)) for fold in range(len(ends))]

    def per_class(self, count: int, *, seed: int = 0) -> Dataset:
        """Return some samples of each class, in their order: the same ones as long as no samples are added.

        Args:
            count: Number of samples of each class; a smaller class gives all. Samples without a label count as a class.
            seed: Seed of the choice, 0 to 2**64 - 1; `random_split` says what else decides.

        Raises:
            ConfigError: A number is out of range, or no sample has a label.
            ShardError: A record is damaged.
        """
        count = check_range("count", count, 1, 2**62)
        refuse_unlabelled(self.path, self.labels)
        return self._chosen(first_of_each(self.labels, self._draws(seed), count))

    def _chosen(self, mask: NDArray[np.bool_]) -> Dataset:
        part = self[mask]
        part._divisions = self._divisions + 1
        return part

    def _part_of(self, ends: Sequence[int], seed: int) -> NDArray[np.int64]:
        draws = self._draws(seed)
        part_of = np.searchsorted(np.array(ends[:-1], np.uint64), draws, side="right")
        missing = np.flatnonzero(np.bincount(part_of, minlength=len(ends)) == 0)
        if len(missing):
            names = len(np.unique(draws))
            message = f"of {len(ends)} parts of {self._name}, number {missing[0]} would have no sample"
            counts = f"it has {format_count(len(self), 'sample')}, {names:,} of them different"
            raise ConfigError(f"{message}: {counts}; make fewer parts, or give another seed=")
        return part_of

    def _draws(self, seed: int) -> NDArray[np.uint64]:
        """Return a random number for each sample, by its name and class, and by its image if another shares both."""
        seed = check_range("seed", seed, 0, 2**64 - 1)
        known, class_of = np.unique(self.labels, return_inverse=True)
        names = [
            self.classes[label].name.encode("utf-8", "surrogateescape")
            if 0 <= label < len(self.classes)
            else b"%d" % label
            for label in known.tolist()
        ]
        classes = np.array([_native.crc32c(name) for name in names], np.uint32)[class_of]
        digests = self.reader.name_digests(self.numbers)
        shared = np.flatnonzero(sharing_a_name(digests, classes))
        if len(shared):
            digests[shared] ^= self.reader.content_digests(self[shared].numbers)
        return draws_by_name(digests, classes, seed, self._divisions)

    def label_named(self, label: int | str) -> int:
        """Return the label of a class that is given by its label or its name.

        Raises:
            ConfigError: There is no class of this name.
        """
        return label_named(label, self.classes, self.path)

    def __repr__(self) -> str:
        classes = f", {self._classes}" if self.classes else ""
        samples = self._size_text()
        given = {"mode": self.mode if self.mode != "RGB" else None, "exif": self.exif}
        pixels = "".join(f" {name}={value!r}" for name, value in given.items() if value is not None)
        return f"<stoker.Dataset {self.path!r} split={self.split!r}{pixels}: {samples} in {self.reader}{classes}>"

    def _size_text(self) -> str:
        if self._whole is None:
            return format_count(len(self), "sample")
        return f"{len(self):,} of {format_count(len(self._whole), 'sample')}"

    @property
    def _classes(self) -> str:
        count, note = len(self.classes) - self.schema.label_base, self.schema.label_note
        return f"{format_count(count, 'class')}{', ' * bool(note)}{note}"

    def _repr_html_(self) -> str:
        facts = [f"{self._size_text()} in {self.reader}, {format_size(self.size_bytes)}"]
        if self.classes:
            labels = range(self.schema.label_base, len(self.classes))
            names = [class_title(self.classes, label) for label in labels[:_NAMED_CLASSES]]
            names += ["…"] * (len(labels) > _NAMED_CLASSES)
            facts.append(f"{self._classes}: {', '.join(names)}")
        figures = () if self.remote is not None else self._strip()  # images in a store would take too long
        return notebook_block(f"<b>{escaped(self.path)}</b> / {escaped(self.split)}", facts, figures)

    def _strip(self) -> Iterator[str]:
        """Yield some of the images for a notebook, and stop after a second."""
        end = time.monotonic() + _STRIP_SECONDS
        for index in random_sample(_STRIP_IMAGES, len(self), 17).tolist():
            if time.monotonic() > end:
                return
            lines = [f"#{self.numbers[index]}"]
            try:
                sample = self[index]
                picture: Image.Image | str = sample.thumbnail(NOTEBOOK_SIDE, NOTEBOOK_PIXELS, self.classes)
                lines = [class_title(self.classes, sample.label), *lines, *texts_of(sample)]
            except (StokerError, OSError) as error:
                picture = f"damaged: {error}"
            yield notebook_figure(picture, lines)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self.opener is None:
            raise TypeError(f"{self!r} cannot be pickled, because stoker.open did not open it")
        numbers = None if self._whole is None else self.numbers
        return _reopened, (self.opener, self.whole.identity, numbers, self._divisions)

    @property
    def fields(self) -> Mapping[str, Field]:
        """Extra fields of its samples, by name: all but the image, the class and the boxes; see `stoker.fields`."""
        return self.schema.fields

    @property
    def labels(self) -> NDArray[np.int64]:
        """Labels of all samples, int64 (len(dataset),). With TFRecords, the first use reads each record once."""
        if self._labels is None:
            known = self.whole._labels
            self._labels = self.reader.labels(self.numbers) if known is None else values_at(self.numbers, known)
        return self._labels

    @property
    def object_counts(self) -> NDArray[np.uint32]:
        """Number of annotated objects of each sample, uint32 (len(dataset),).

        The first use reads every record, or every annotation, of the whole split once, even for a part of it.
        """
        if self._object_counts is None:
            if self._whole is not None:
                self._object_counts = values_at(self.numbers, self._whole.object_counts)
            elif self.has_boxes:
                self._object_counts = self.reader.object_counts()
            else:
                message = f"{self.path} has no boxes: its records follow the layout {self.schema.preset!r}"
                raise ConfigError(f"{message}; ObjectCrops needs records with {'image/object/bbox/xmin'!r} and so on")
        return self._object_counts

    @property
    def size_bytes(self) -> int:
        """Length of its shards or image files in bytes; for a part, that of its records or files."""
        if self.shards and self._whole is None:  # their indexes need not be read
            return sum(shard.size_bytes for shard in self.shards)
        return int(self.sample_bytes.sum()) + (FRAME_BYTES * len(self) if self.shards else 0)

    @property
    def sample_bytes(self) -> NDArray[np.uint64]:
        """Length of the record or file of each sample in bytes, uint64 (len(dataset),)."""
        if self._whole is not None:
            return np.ascontiguousarray(values_at(self.numbers, self._whole.sample_bytes))
        return self.reader.sizes

    def stamps(self) -> Iterator[bytes]:
        """Yield bytes that, with `sample_bytes`, change with the content, as far as that shows without reading it.

        - A dataset with a manifest: its ``dataset_id``, which stands for every byte of it, and the split;
        - other datasets in stores: URL, size and etag of each shard, and the listing of images;
        - others: path, size and modification time of each file, and the listing of images (names, sizes, labels).

        Raises:
            OSError: The status of a file cannot be read.
        """
        yield self.identity.encode("utf-8", "surrogateescape")
        if self.manifest is not None:
            return
        if self.remote is not None:
            yield self.path.encode("utf-8", "surrogateescape")
            yield from (f"{shard.path} {shard.size_bytes} {shard.stamp}".encode() for shard in self.shards)
            return
        if not self.shards:
            yield os.fsencode(Path(self.path).absolute())
        paths = self.reader.local_paths(self.numbers)
        yield from in_order(_stamps_of, (paths[at : at + _STAMPED] for at in range(0, len(paths), _STAMPED)))

    @property
    def has_boxes(self) -> bool:
        """Whether its layout has a place for annotated objects."""
        return self.schema.box_prefix is not None

    def load_boxes(self) -> None:
        """Read the annotations of image files and pass them to the native reader; records hold theirs themselves."""
        self.reader.load_boxes()

    @property
    def identity(self) -> str:
        """Identifies the content, by ``dataset_id`` and split or by the shards' names and lengths, and the part."""
        if self._whole is not None:
            whole = self._whole.identity
            is_all = same_numbers(self.numbers, self._whole.numbers)
            return whole if is_all else f"{whole}[{selection_name(self.numbers)}]"
        if self.manifest is not None:
            return f"{self.manifest.dataset_id}/{self.split}"
        return f"{self.reader.fingerprint}-{len(self)}/{self.split}"


def _stamps_of(paths: Sequence[str]) -> bytes:
    """Return the paths, sizes and modification times of those of some files that are there."""
    stamps = []
    for path in map(os.path.abspath, paths):
        with suppress(FileNotFoundError):  # reported where the sample is used
            status = os.stat(path)  # noqa: PTH116 - a million of them
            stamps.append(b"%b\0%d\0%d" % (os.fsencode(path), status.st_size, status.st_mtime_ns))
    return b"\0".join(stamps)


def _refuse_collation(*_: Any, **__: Any) -> Never:
    raise TypeError(f"torch.utils.data.DataLoader makes no batches of stoker.Sample: {DATASETS['sample[]']}")


def _reopened(opener: Callable[[], Dataset], identity: str, numbers: Numbers | None, divisions: int) -> Dataset:
    dataset = opener()
    if dataset.identity != identity:
        message = f"{dataset.path} holds the dataset {dataset.identity}, but the one that was pickled is {identity}"
        raise ConfigError(f"{message}; do not change a dataset while it is read, or open it again in each process")
    if numbers is None:
        return dataset
    part = dataset._part(numbers)
    part._divisions = divisions
    return part


# As a source of builds.


class DatasetReader(Reader):
    """Reads samples of datasets. An item's column ``dataset`` says which, its ``number`` which sample of the split."""

    identity = ""

    def __init__(self, datasets: Sequence[Dataset], names: ClassNames) -> None:
        self._datasets = datasets
        self.latency = "disk" if all(dataset.reader.remote is None for dataset in datasets) else "store"
        self.fields = datasets[0].schema.fields
        self.box_names = max((dataset.schema.box_names for dataset in datasets), key=len)
        digest = hashlib.sha256("\n".join(dataset.identity for dataset in datasets).encode())
        for part in (*names.classes, b"", *names.texts):
            digest.update(len(part).to_bytes(8, "little") + part)
        for dataset in datasets:
            digest.update(dataset.reader.content(dataset.numbers))
        self.identity = digest.hexdigest()[:32]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the samples loaded so far."""
        return tuple(dict.fromkeys(warning for dataset in self._datasets for warning in dataset.reader.warnings))

    def load(self, item: Item) -> SourceImage:
        """Return the image of one sample and its boxes. See `stoker.sources.Reader.load`."""
        dataset = self._dataset_of(item)
        try:
            image = dataset.reader.load(item.number, item.object)
        except OSError as error:
            if isinstance(error, StorageError) or location(dataset.path).is_readable_after(error):
                raise
            message = f"{dataset.path} is not there any more: {error.strerror or error}; call again to resume"
            raise StorageError(message) from error
        if image.boxes and self.box_names and not dataset.schema.box_names:
            message = "its boxes have the classes of images, and those of another split have names of their own"
            raise SourceError(f"{message}; build both with the same names")
        return image

    def plain_file(self, item: Item) -> bytes | None:
        """Return the file that an item consists of. See `stoker.sources.Reader.plain_file`."""
        return self._dataset_of(item).reader.plain_file(item.number)

    def _dataset_of(self, item: Item) -> Dataset:
        number: int = item.columns["dataset"]
        return self._datasets[number]


def _refuse_turned(dataset: Dataset) -> None:
    exif = "exif='apply'" if dataset.exif == "apply" else ""
    mode = f"mode={dataset.mode!r}" if dataset.mode != "RGB" else ""
    if given := " and ".join(filter(None, (exif, mode))):
        message = f"{dataset.path} was opened with {given}, and a build stores images as they are; open it without"
        raise ConfigError(f"{message}, and give exif to stoker.build" if exif else message)


def _refuse_part_of_imagenet(dataset: Dataset) -> None:
    """Refuse ImageNet classes that were opened with other labels than a build of their path would give them."""
    known, names = set(bundled_label_map().names), {os.fsencode(each.name) for each in dataset.classes}
    if names and names < known and not dataset.reader.shards:
        message = f"the preset gives the {len(names)} classes of {dataset.path} their labels among ImageNet's 1,000"
        raise ConfigError(f"{message}, but it was opened with others; open it with imagenet_labels=True")


def _refuse_unlike(datasets: Mapping[str, Dataset]) -> None:
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
    def __init__(self, datasets: Sequence[Dataset], progress: Progress | None, *, crop_objects: bool) -> None:
        self.names = ClassNames(datasets, of_boxes=crop_objects)
        self.builder = ItemTableBuilder()
        self.splits: dict[str, NDArray[np.int64]] = {}
        self.boxes = 0
        self._datasets, self._crop_objects = datasets, crop_objects
        self._tally = Tally(sum(map(len, datasets)), progress)

    def add(self, number: int, split: str) -> None:
        """Add the samples of a dataset as a split, in the order in which a build lists them where that is known."""
        dataset, first = self._datasets[number], len(self.builder)
        listed = dataset.reader.items(dataset.numbers, crop_objects=self._crop_objects)
        for item in self._read(dataset) if listed is None else listed:
            self.builder.add(replace(item, columns={"dataset": number}))
        if listed is not None:
            self._tally.advanced(len(dataset), 0, 0)
        self.splits[split] = np.arange(first, len(self.builder), dtype=np.int64)

    def _read(self, dataset: Dataset) -> Iterator[Item]:
        numbers = np.sort(np.asarray(dataset.numbers, np.int64))
        with dataset.reader.reading_in_order(numbers):
            rows = [row for key in map(int, numbers) for row in self._look(dataset, key)]
        has_names = all(name != b"" for _, name, *_ in rows)
        rows.sort(key=lambda row: (row[0], (row[1] or b"") if has_names else b"", *row[2:4]))
        for label, name, key, position, size_bytes in rows:
            path = f"{dataset.split}#{key}".encode() + (b" " + name if name else b"")
            yield Item(path, label, size_bytes, key, position)

    def _look(self, dataset: Dataset, key: int) -> list[_Row]:
        try:
            sample = dataset.reader.sample(key)
            boxes = sample.boxes
        except StorageError:  # the record itself may be intact
            raise
        except StokerError:  # the build will read it again, and reject it
            self._tally.advanced(1, 0, 1)
            return [(-1, None, key, -1, 0)]
        label = _class_of(dataset, key, sample.label)
        objects = [label if box.label is None else _class_of(dataset, key, box.label) for box in boxes]
        if dataset.schema.box_names and self._crop_objects:
            label = -1  # the classes are those of the boxes
        self.names.see(label, sample, objects if self._crop_objects or not dataset.schema.box_names else ())
        self.boxes += len(boxes)
        name, size_bytes = sample.source.encode("utf-8", "surrogateescape"), len(sample.encoded)
        self._tally.advanced(1, size_bytes, 0)
        parts = enumerate(objects if self._crop_objects else ())
        whole: list[_Row] = [(label, name, key, -1, size_bytes)]
        return [(each, name, key, position, size_bytes) for position, each in parts] or whole


def _class_of(dataset: Dataset, key: int, label: int) -> int:
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


class ClassNames:
    """Names and texts of classes: from ``labels.txt`` where there is one, otherwise from the records.

    A class without a name is called by its label, such as ``12``. With ``of_boxes`` they are the classes of boxes, if
    boxes have classes of their own.
    """

    def __init__(self, datasets: Sequence[Dataset], *, of_boxes: bool = False) -> None:
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
        if synset and not has_control_character(synset):  # any program may have written it
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
