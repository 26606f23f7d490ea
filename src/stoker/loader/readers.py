"""Readers of the samples of a split, by number: records of shards, image files, and images of a program."""

from __future__ import annotations

import errno
import os
import warnings
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stoker import _native
from stoker.config import available_cpus, format_count
from stoker.errors import ExampleError, ImageError, SourceError, SourceWarning, StorageError, record_error
from stoker.fields import stored_values
from stoker.format import FRAME_BYTES, ImagenetSchema
from stoker.loader.read_ahead import NumberedFiles, RemoteFiles, read_through
from stoker.loader.sample import Sample, label_of
from stoker.loader.selection import same_numbers, selection_name, values_at
from stoker.recipe import Recipe, convert, decode_as_stored, is_turned, sniff
from stoker.sources import SourceImage, features_beside, in_order, with_objects
from stoker.storage import from_uri
from stoker.types import BOX_SIDES, Box

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.loader.selection import Numbers
    from stoker.loader.shards import OpenShard
    from stoker.sources import IndexedReader, Item, ItemTable, Source
    from stoker.types import Exif, Features, Mode, SchemaInfo


_AT_ONCE_REMOTE = 16
_PROBED_IMAGES, _FIRST_BYTES, _HEADER_BYTES = 64, 2**12, 2**18
_MARK = b"\0stoker\0"
_SECRET_BYTES, _NUMBER_BYTES = 16, 8

FILE_SCHEMA = replace(ImagenetSchema.layout, preset="files", features={})
"""The layout of an image file read as a record; no extra field has these keys, and classes count from 0."""


class SampleReader(ABC):
    """Reads the samples of one split by number. Safe from any thread; ``numbers`` choose some of the samples."""

    native: _native.RecordSet | _native.FileSet  # the core's reader
    fingerprint: str  # identifies the stored data and its order
    shards: tuple[OpenShard, ...] = ()  # the shards that hold the samples; none if these are files
    remote: RemoteFiles | None = None  # files of the samples, if they are in a store
    given: GivenImages | None = None  # images of the samples, if they are records of a program

    def __init__(self, schema: SchemaInfo) -> None:
        self.schema = schema

    @property
    @abstractmethod
    def sizes(self) -> NDArray[np.uint64]:
        """Size of each sample of the split in bytes, uint64 (N,)."""

    @abstractmethod
    def source(self, *, check: bool) -> _native.SampleSource:
        """Return the source that the core's loader reads; with ``check`` it verifies the checksum of every record."""

    @abstractmethod
    def features(self, number: int) -> tuple[Features, dict[str, str]]:
        """Return one sample as features, and by name what is wrong with fields that are missing.

        Raises:
            ShardError: The record is damaged.
            ExampleError: It is not a ``tf.train.Example``; the message says where it is.
            SourceError: The annotation of an image file is damaged.
            OSError: It cannot be read.
        """

    def sample(self, number: int, mode: Mode = "RGB", exif: Exif | None = None) -> Sample:
        """Return one sample; raises what `features` does, and an ExampleError if it lacks the image."""
        features, problems = self.features(number)
        encoded = self._bytes(features, self.schema.image_key, number)
        name = self.schema.filename_key
        source = self._bytes(features, name, number).decode("utf-8", "replace") if name and name in features else ""
        label = label_of(features, self.schema)
        return Sample(number, features, encoded, label, source, self.schema, mode, exif, problems)

    def flaws_of_boxes(self, number: int) -> int:  # noqa: ARG002 - records hold boxes as they are
        """Return flags for boxes of a sample that were dropped or clipped; see `Annotations`."""
        return 0

    def _bytes(self, features: Features, feature: str, number: int) -> bytes:
        kind, values = features.get(feature, ("none", []))
        if kind == "bytes" and values:
            return cast("bytes", values[0])
        problem = f"no bytes under {feature!r}; it has {sorted(features)}"
        raise record_error(ExampleError, self.native.where(number), problem)

    @abstractmethod
    def load(self, number: int, position: int) -> SourceImage:
        """Return one sample, or its object at a position (-1: all of it), for a build: box classes count from 0.

        Raises:
            StokerError: It cannot be read, or is damaged.
            OSError: It cannot be read.
        """

    def plain_file(self, number: int) -> bytes | None:  # noqa: ARG002 - most have none
        """Return the path of the local file that a sample consists of; None if there is no such file."""
        return None

    def content(self, numbers: Numbers) -> bytes:  # noqa: ARG002 - for most readers the fingerprint is enough
        """Return bytes that change with the values of samples, if `fingerprint` does not."""
        return b""

    def allow(self, threads: int) -> None:  # noqa: B027 - most allow any number
        """Let this many threads read objects of a program at once, instead of one."""

    def items(self, numbers: Numbers, *, crop_objects: bool) -> Iterable[Item] | None:  # noqa: ARG002
        """Return samples, or their objects, as items in the order of a build; None if all must be read for that."""
        return None  # class and name are inside the record

    @abstractmethod
    def labels(self, numbers: Numbers) -> NDArray[np.int64]:
        """Return labels, int64 (N,)."""

    @abstractmethod
    def name_digests(self, numbers: Numbers) -> NDArray[np.uint64]:
        """Return digests of names without their folders, uint64 (N,)."""

    @abstractmethod
    def content_digests(self, numbers: Numbers) -> NDArray[np.uint64]:
        """Return digests of the bytes of images, uint64 (N,); reads all of these images."""

    @abstractmethod
    def object_counts(self) -> NDArray[np.uint32]:
        """Return the number of annotated objects of each sample of the split, uint32 (N,); reads all samples."""

    @property
    @abstractmethod
    def box_labels(self) -> NDArray[np.int64]:
        """Labels of the objects of all samples of the split, end to end; the image's label for those without one."""

    def load_boxes(self) -> None:  # noqa: B027 - records hold their boxes
        """Pass boxes to the core, unless samples hold their own."""

    @abstractmethod
    def local_paths(self, numbers: Numbers) -> list[str]:
        """Return the local files that hold samples."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the samples loaded so far."""
        return ()

    @contextmanager
    def reading_in_order(self, numbers: Numbers) -> Iterator[None]:  # noqa: ARG002 - records alone are read ahead
        """Read records in a store ahead, while the body of ``with`` goes through them in their order."""
        yield


class ShardRecords(SampleReader):
    """Records of shards."""

    native: _native.RecordSet

    def __init__(self, shards: tuple[OpenShard, ...], schema: SchemaInfo) -> None:
        super().__init__(schema)
        self.shards = shards
        self._box_labels: NDArray[np.int64] | None = None
        sizes = ";".join(f"{shard.path.name}:{shard.size_bytes}" for shard in shards)
        self.fingerprint = f"{_native.crc32c(sizes.encode()):08x}"
        self.native = _native.RecordSet()
        for shard in shards:
            if shard.index is not None:  # the core reads it when it needs the extents
                self.native.add_listed(str(shard.path), str(shard.index), shard.records, shard.size_bytes)
            else:
                path = shard.path if shard.inflated is None else shard.inflated.path
                self.native.add(str(path), shard.extents, str(shard.path))
        paths = [shard.path for shard in shards if not shard.path.is_local and shard.inflated is None]
        if paths:  # all of a split, or none
            self.remote = RemoteFiles(len(paths), paths.__getitem__)
            self.remote.attach_to(self.native)

    def __str__(self) -> str:
        return format_count(len(self.shards), "shard")

    @property
    def sizes(self) -> NDArray[np.uint64]:
        extents = [shard.extents[:, 1] for shard in self.shards]
        return np.concatenate([np.empty(0, np.uint64), *extents]) - np.uint64(FRAME_BYTES)

    def source(self, *, check: bool) -> _native.SampleSource:
        schema = self.schema
        keys = _native.RecordKeys(
            image_key=schema.image_key,
            label_key=schema.label_key,
            source_key=schema.filename_key or "",
            label_encoding=schema.label_encoding,
            label_base=schema.label_base,
            image_encoding=schema.image_encoding,
            height_key=schema.height_key or "",
            width_key=schema.width_key or "",
            order_key=schema.order_key or "",
            box_prefix=schema.box_prefix or "",
        )
        return _native.RecordSource(self.native, keys, check)

    def features(self, number: int) -> tuple[Features, dict[str, str]]:
        payload = self.native.read(number)
        try:
            return _native.parse_example(payload), {}
        except ExampleError as error:
            raise record_error(ExampleError, self.native.where(number), error) from error

    def load(self, number: int, position: int) -> SourceImage:  # noqa: ARG002 - all boxes are returned
        sample, base = self.sample(number), self.schema.label_base
        boxes = [
            box if box.label is None or box.label < 0 else replace(box, label=box.label - base) for box in sample.boxes
        ]
        data = sample.decode() if self.schema.image_encoding == "raw" else sample.encoded
        name = sample.source.encode("utf-8", "surrogateescape").rpartition(b"/")[2]
        values = stored_values(sample.features, self.schema.fields)
        return SourceImage(data, name or b"%d" % number, boxes, fields=values)  # layouts may have no names

    def labels(self, numbers: Numbers) -> NDArray[np.int64]:
        keys = (self.schema.label_key, self.schema.label_encoding == "one-hot", self.schema.label_base)
        with read_through(self.remote, self.native, numbers) as ahead:
            return self.native.labels(*keys, available_cpus(), ahead, self._chosen(numbers))

    def name_digests(self, numbers: Numbers) -> NDArray[np.uint64]:
        """Return digests of names; for records without names, of their numbers."""
        if self.schema.filename_key is None:
            return np.fromiter((_native.name_digest(b"%d" % number) for number in numbers), np.uint64, len(numbers))
        return self._digests(self.schema.filename_key, numbers)

    def content_digests(self, numbers: Numbers) -> NDArray[np.uint64]:
        return self._digests(self.schema.image_key, numbers)

    def _digests(self, key: str, numbers: Numbers) -> NDArray[np.uint64]:
        with read_through(self.remote, self.native, numbers) as ahead:
            return self.native.name_digests(key, available_cpus(), ahead, self._chosen(numbers))

    def _chosen(self, numbers: Numbers) -> NDArray[np.uint64] | None:
        return None if same_numbers(numbers, range(len(self.native))) else np.asarray(numbers).astype(np.uint64)

    def object_counts(self) -> NDArray[np.uint32]:
        prefix = self.schema.box_prefix or ""
        packed = not prefix.endswith("/")
        with read_through(self.remote, self.native) as ahead:
            counts = self.native.count_values(prefix if packed else f"{prefix}xmin", available_cpus(), ahead)
        return counts // np.uint32(4) if packed else counts

    # No `functools.cached_property`: before Python 3.12 it has a lock, which a forked process may find taken for good.
    @property
    def box_labels(self) -> NDArray[np.int64]:
        if self._box_labels is None:
            numbers = range(len(self.native))
            with self.reading_in_order(numbers):
                samples = map(self.sample, numbers)
                labels = [_label(box, each.label) for each in samples for box in each.boxes]
            self._box_labels = np.array(labels, np.int64)
        return self._box_labels

    def local_paths(self, numbers: Numbers) -> list[str]:  # noqa: ARG002 - a shard holds any of them
        return [str(shard.local_path) for shard in self.shards]

    @contextmanager
    def reading_in_order(self, numbers: Numbers) -> Iterator[None]:
        with read_through(self.remote, self.native, numbers) as ahead:
            if ahead is None or self.remote is None:
                yield
                return
            self.native.set_remote(ahead, self.remote.first)
            try:
                yield
            finally:
                self.remote.attach_to(self.native)


class ImageFiles(SampleReader):
    """The images of one split of a source, in the order of `Source.rows_as_listed`."""

    native: _native.FileSet

    def __init__(self, source: Source, split: str) -> None:
        super().__init__(replace(FILE_SCHEMA, fields=source.fields, box_names=source.reader.box_names))
        self._source, self._reader = source.without_items(), source.indexed
        self._split = split
        self._object_counts: NDArray[np.uint32] | None = None
        self._box_labels = np.empty(0, np.int64)
        rows = self._rows = source.rows_as_listed(split)
        self.fingerprint = source.fingerprint()
        if not same_numbers(rows, source.splits[split]):  # another order than that of a build
            self.fingerprint += f"[{selection_name(rows)}]"
        table = source.table.take(rows)
        extents = self._reader.extents(table)
        if extents.load is not None:
            self.given = GivenImages(extents.load, extents.table.sizes)
            extents = replace(extents, table=replace(extents.table, sizes=self.given.sizes))
        self._table = replace(table, sizes=extents.table.sizes)
        self._labels: NDArray[np.int64] = self._table.labels.astype(np.int64)
        self.native = _native.FileSet(
            os.fsdecode(extents.base),
            extents.table.paths.data[:],
            np.ascontiguousarray(extents.table.paths.starts, np.int64),
            self._labels,
            np.ascontiguousarray(extents.table.sizes, np.int64),
            [os.fsdecode(archive) for archive in extents.archives],
            *extents.slices(),
        )
        # No bound methods: what the core holds must not hold objects of the core.
        name_of = {key: name for name, field in source.fields.items() for key in field.features(name)}
        if name_of:
            self.native.set_fields(partial(_fields_record, self._reader, self._table, name_of, self.given))
        if self.given is not None:
            self.given.attach_to(self.native)
        if not extents.is_local:
            self.remote = RemoteFiles(len(extents.archives) + len(table), extents.location)
            self.remote.attach_to(self.native)

    def __str__(self) -> str:
        return "files" if self.given is None else "memory"

    @property
    def sizes(self) -> NDArray[np.uint64]:
        return np.ascontiguousarray(self._table.sizes, np.uint64)

    def source(self, *, check: bool) -> _native.SampleSource:  # noqa: ARG002 - files have no checksums
        return self.native

    def features(self, number: int) -> tuple[Features, dict[str, str]]:
        data, item = self.image(number), self._table[number]
        try:
            boxes = self._source.read_boxes(item, self._split, data)
        except SourceError as error:
            raise record_error(SourceError, self.native.where(number), error) from None
        prefix = FILE_SCHEMA.box_prefix or ""
        features: Features = {
            FILE_SCHEMA.image_key: ("bytes", [data]),
            FILE_SCHEMA.label_key: ("int64", [item.label]),
            FILE_SCHEMA.filename_key or "": ("bytes", [item.path]),
            **{prefix + side: ("float", [getattr(box, side) for box in boxes]) for side in BOX_SIDES},
        }
        if any(box.label is not None for box in boxes):
            features[prefix + "label"] = ("int64", [_label(box, item.label) for box in boxes])
        problems = {}
        for name in self.schema.fields:
            try:
                features |= _fields_of(self._reader, item, data, [name])
            except (ExampleError, ImageError) as error:
                problems[name] = str(error)
        return features, problems

    def load(self, number: int, position: int) -> SourceImage:
        return self._source.load(replace(self._table[number], object=position), self._split)

    def flaws_of_boxes(self, number: int) -> int:
        return self._source.flaws_of_boxes(self._table[number], self._split)

    def allow(self, threads: int) -> None:
        self._reader.allow(threads)

    def content(self, numbers: Numbers) -> bytes:
        return self._reader.content(self._table.numbers[np.asarray(numbers, np.int64)])

    def plain_file(self, number: int) -> bytes | None:
        return self._source.plain_file(self._table[number], self._split)

    def items(self, numbers: Numbers, *, crop_objects: bool) -> ItemTable:
        chosen = np.asarray(numbers, np.int64)
        chosen = chosen[np.argsort(self._rows[chosen], kind="stable")]
        source = replace(self._source, table=self._table.take(chosen), splits={self._split: np.arange(len(chosen))})
        table = with_objects(source).table if crop_objects else source.table
        image_of = np.cumsum(table.objects <= 0) - 1  # an image begins with its object 0, or is whole: -1
        return replace(table, sizes=np.maximum(0, table.sizes), numbers=chosen[image_of])

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._source.warnings

    def image(self, number: int) -> bytes:
        """Return the bytes of one image, as a file."""
        data = self.native.read(number)
        return data if self.given is None else self.given.as_file(data)

    def labels(self, numbers: Numbers) -> NDArray[np.int64]:
        return values_at(numbers, self._labels)

    def name_digests(self, numbers: Numbers) -> NDArray[np.uint64]:
        digests = (_native.name_digest(self._table[int(number)].name) for number in numbers)
        return np.fromiter(digests, np.uint64, len(numbers))

    def content_digests(self, numbers: Numbers) -> NDArray[np.uint64]:
        def digest(number: int) -> int:
            return _native.name_digest(self.image(number))

        at_once = available_cpus() if self.remote is None else _AT_ONCE_REMOTE
        return np.fromiter(in_order(digest, map(int, numbers), at_once), np.uint64, len(numbers))

    def local_paths(self, numbers: Numbers) -> list[str]:
        return sorted({self.native.where(int(number))[0] for number in numbers})

    def object_counts(self) -> NDArray[np.uint32]:
        """Return the number of objects of each image: of a damaged annotation none, of a damaged record one."""
        if self._object_counts is None:
            self._object_counts = self._read_boxes()
        return self._object_counts

    @property
    def box_labels(self) -> NDArray[np.int64]:
        self.load_boxes()
        return self._box_labels

    def load_boxes(self) -> None:
        """Read every annotation once, and pass the boxes to the core."""
        self.object_counts()

    def _boxes_as_stored(self, damaged: dict[int, str]) -> Iterator[list[Box]]:
        known, count = self._source.warnings, len(self._table)
        sizes = cast("NDArray[np.int32]", self._table.columns.get("annotated", np.zeros((count, 2), np.int32)))
        sided = sizes[:, 0] != sizes[:, 1]  # the headers of these images say whether these are their sides upright
        if self.remote is not None:  # where each header is a request, some decide for all
            some = np.flatnonzero(sided)[:: -(-int(sided.sum()) // _PROBED_IMAGES) or 1].tolist()
            pairs = (in_order(partial(self._boxes_of, has_header, {}), some) for has_header in (sided, sided & False))
            sided &= any(turned != boxes for turned, boxes in zip(*pairs, strict=True))
        at_once = _AT_ONCE_REMOTE if sided.any() else 1
        yield from in_order(partial(self._boxes_of, sided, damaged), range(count), at_once)
        for message in (each for each in self._source.warnings if each not in known):
            warnings.warn(f"{self._source.root}: {message}", SourceWarning, stacklevel=4)

    def _boxes_of(self, has_header: NDArray[np.bool_], damaged: dict[int, str], number: int) -> list[Box]:
        header = None
        if has_header[number]:
            with suppress(FileNotFoundError, PermissionError):  # reported where the image is used
                file = from_uri(os.fsencode(self.native.where(number)[0]))
                first = file.read_head(_FIRST_BYTES)  # in which EXIF begins in a JPEG, and a PNG seldom has it
                if sniff(first) not in ("jpeg", "png") or b"Exif" in first or b"eXIf" in first:
                    header = file.read_head(_HEADER_BYTES) if sniff(first) == "jpeg" else self.image(number)
                    header = header if is_turned(header) else None
        try:
            return self._source.read_boxes(self._table[number], self._split, header)
        except SourceError as error:
            damaged[number] = str(error)
            return [] if self._split in self._source.boxes else [Box(0, 0, 0, 0)]

    def _read_boxes(self) -> NDArray[np.uint32]:
        counts = np.zeros(len(self._table), np.int64)
        boxes: list[Box] = []
        labels: list[int] = []
        damaged: dict[int, str] = {}
        for index, (item, item_boxes) in enumerate(zip(self._table, self._boxes_as_stored(damaged), strict=True)):
            counts[index] = len(item_boxes)
            boxes += item_boxes
            labels += [_label(box, item.label) for box in item_boxes]
        if (
            damaged and self._split in self._source.boxes
        ):  # a build stores these images without boxes; it rejects records
            message = f"{len(damaged)} of {len(self._table)} annotations are damaged, their images count as one object"
            warnings.warn(f"{message}; the first: {damaged[min(damaged)]}", stacklevel=3)
            damaged = {}
        corners = np.array([box.corners for box in boxes], np.float32).reshape(-1, 4)
        starts = np.concatenate(([0], np.cumsum(counts)))
        self._box_labels = np.array(labels, np.int64)
        self.native.set_boxes(starts, corners, self._box_labels, damaged)
        return counts.astype(np.uint32)


def _label(box: Box, label: int) -> int:
    return label if box.label is None else box.label


def _fields_of(reader: IndexedReader, item: Item, image: bytes, names: Collection[str]) -> Features:
    """Return some extra fields of an item as the features that a build of the same source would store."""
    try:
        return features_beside(image, {name: reader.fields[name] for name in names}, reader.values(item, names))
    except SourceError as error:
        raise ExampleError(str(error)) from error


def _fields_record(
    reader: IndexedReader,
    table: ItemTable,
    name_of: Mapping[str, str],
    given: GivenImages | None,
    number: int,
    image: bytes,
    keys: Sequence[str],
) -> bytes:
    """Return an Example for the core, with the features of the fields that ``keys`` belong to; see `_fields_of`."""
    try:
        image = image if given is None else given.as_file(image)
        return _native.write_example(_fields_of(reader, table[number], image, {name_of[key]: None for key in keys}))
    except StorageError:
        raise
    except OSError as error:
        message = f"its fields cannot be read: {error.strerror or error}"
        raise OSError(error.errno or errno.EIO, message) from error


class GivenImages(NumberedFiles):
    """Images in the records of a program, for the core, which otherwise reads files. Safe from any thread.

    The core asks for as many bytes as are listed. An array, a PIL image, or a record that was not read yet has no known
    number of bytes; for these the core gets a token in place of a file. A token has no format that the core knows, so
    it asks Python for the pixels, as for files that Pillow decodes. This object holds nothing of the core.

    ``load`` returns the bytes or the pixels of an image by its number, in any thread; ``sizes``, int64 (N,), are the
    bytes of each, -1 where they are not known.
    """

    def __init__(self, load: Callable[[int], bytes | NDArray[Any]], sizes: NDArray[np.int64]) -> None:
        super().__init__(len(sizes))
        self._load = load
        self._has_size = sizes >= 0
        self.token = _MARK + os.urandom(_SECRET_BYTES)  # tokens begin with it, and nobody can forge a file that does
        self.sizes = np.where(self._has_size, sizes, len(self.token) + _NUMBER_BYTES)

    def read(self, number: int, offset: int, length: int) -> bytes:
        """Return the bytes of an image, or its token. See `NumberedFiles.read`."""
        number -= self.first
        if not self._has_size[number]:
            return self.token + number.to_bytes(_NUMBER_BYTES, "little")
        try:
            data = self._load(number)
        except SourceError as error:
            raise OSError(errno.EIO, str(error)) from error
        if not isinstance(data, bytes) or len(data) != length:
            raise OSError(errno.EIO, "its image is another one than when the records were listed; do not change them")
        return data[offset:]

    def as_file(self, data: bytes) -> bytes:
        """Return the file that a token stands for, pixels as a PNG; other bytes as they are."""
        image = self._image(data)
        return image if isinstance(image, bytes) else convert(image, Recipe()).data

    def pixels(self, token: bytes, max_pixels: int, mode: Mode) -> tuple[NDArray[Any], int]:
        """Return the pixels that a token stands for, as `stoker.recipe.decode_as_stored` does for a file."""
        image = self._image(token)
        if isinstance(image, bytes):
            return decode_as_stored(image, max_pixels, mode)
        if mode == "RGB" and image.dtype == np.uint8 and image.shape[2:] == (3,):
            Recipe(max_pixels=max_pixels).check_pixels(image.shape[1], image.shape[0])
            return np.ascontiguousarray(image), 1
        return decode_as_stored(convert(image, Recipe()).data, max_pixels, mode)

    def _image(self, data: bytes) -> bytes | NDArray[Any]:
        if not data.startswith(self.token):
            return data
        try:
            return self._load(int.from_bytes(data[len(self.token) :], "little"))
        except (SourceError, OSError) as error:
            raise ImageError(str(error)) from error


def converter(given: Iterable[GivenImages], max_pixels: int, mode: Mode) -> Callable[[bytes], tuple[NDArray[Any], int]]:
    """Return a function that decodes tokens, and formats that the core does not, to pixels and orientation."""
    by_token = {images.token: images for images in given}

    def pixels(data: bytes) -> tuple[NDArray[Any], int]:
        images = by_token.get(data[: len(_MARK) + _SECRET_BYTES])
        return decode_as_stored(data, max_pixels, mode) if images is None else images.pixels(data, max_pixels, mode)

    return pixels
