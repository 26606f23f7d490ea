"""One split of a dataset, opened for random access."""

from __future__ import annotations

import operator
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stoker import _native
from stoker.config import available_cpus, format_count, format_size
from stoker.errors import ConfigError, ExampleError, ImageError, StokerError
from stoker.format import FRAME_BYTES
from stoker.loader.image_files import to_jpeg
from stoker.loader.pictures import class_title, draw_boxes, fit, usable_boxes
from stoker.loader.read_ahead import read_through
from stoker.loader.shards import record_set
from stoker.recipe import dimensions, sniff
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from PIL import Image

    from stoker.format import ClassLabel, Manifest
    from stoker.loader.image_files import ImageFiles
    from stoker.loader.shards import OpenShard
    from stoker.types import Features, SchemaInfo


_JPEG = b"\xff\xd8"
_STRIP_IMAGES, _STRIP_SECONDS = 8, 1.0
_NAMED_CLASSES = 12


@dataclass(frozen=True, slots=True)
class Sample:
    """One record, or one file.

    Attributes:
        index: Its number in the split.
        features: Everything it holds.
        encoded: The bytes of its image, as stored: a file, or pixels.
        label: Its class, as the loader gives it; -1 when there is none.
        source: Name of the image it was made from; empty when the record does not say.
        schema: Which feature means what.
    """

    index: int
    features: Features
    encoded: bytes
    label: int
    source: str
    schema: SchemaInfo

    def __repr__(self) -> str:
        size = f"{format_size(len(self.encoded))} of {self.schema.image_encoding}"
        source = f" from {self.source!r}" if self.source else ""
        label = f"label {self.label}" if self.label >= 0 else "no label"
        return f"<stoker.Sample #{self.index}{source}: {label}, {size}, {len(self.features)} features>"

    def _repr_html_(self) -> str:
        from stoker.loader import notebook  # noqa: PLC0415 - only notebooks need it

        facts = []
        try:
            picture: Image.Image | str = self.thumbnail(notebook.SIDE_PIXELS, notebook.MAX_PIXELS)
            boxes = len(usable_boxes(self.boxes))
            facts = [f"{boxes} box{'es' * (boxes != 1)}"] if boxes else []
        except StokerError as error:
            picture = f"damaged: {error}"
        shown = notebook.figure(picture, [class_title((), self.label)])
        return notebook.block(f"<b>{notebook.escaped(repr(self)[1:-1])}</b>", facts, [shown])

    @property
    def boxes(self) -> list[Box]:
        """Its annotated objects, in fractions of the image, with their labels as the record has them.

        Raises:
            ExampleError: Their corners are not of type float, or there are not as many of each as boxes, or not as many
                labels.
        """
        prefix = self.schema.box_prefix
        if prefix is None:
            return []
        above = prefix[: prefix.rfind("bbox")] if "bbox" in prefix else prefix
        if prefix.endswith("/"):
            keys = [prefix + side for side in ("xmin", "ymin", "xmax", "ymax")]
            sides = [self._floats(key) for key in keys]
            for key, side in zip(keys, sides, strict=True):
                self._check_as_many(key, len(side), len(sides[0]))
            label_key = prefix + "label" if self._labels(prefix + "label") else above + "class/label"
        else:
            packed = self._floats(prefix)
            if len(packed) % 4:
                raise self._box_error(f"{prefix!r} has {len(packed)} values, which are not four for each box")
            sides = [packed[first::4] for first in (1, 0, 3, 2)]
            label_key = above + "label"
        boxes = [Box(*corners) for corners in zip(*sides, strict=True)]
        labels = self._labels(label_key)
        if not labels:
            return boxes
        self._check_as_many(label_key, len(labels), len(boxes))
        return [replace(box, label=label) for box, label in zip(boxes, labels, strict=True)]

    def _check_as_many(self, key: str, values: int, boxes: int) -> None:
        if values != boxes:
            raise self._box_error(f"{key!r} has {values} values for {boxes} boxes")

    def _box_error(self, message: str) -> ExampleError:
        return ExampleError(f"sample {self.index} ({self.source}): {message}", source=self.source)

    def _labels(self, key: str) -> list[int]:
        kind, values = self.features.get(key, ("", []))
        return [int(value) for value in values] if kind == "int64" else []

    def _floats(self, key: str) -> list[float]:
        kind, values = self.features.get(key, ("float", []))
        if values and kind != "float":
            raise self._box_error(f"{key!r} holds {kind} values; corners of boxes are float")
        return [float(value) for value in cast("list[float]", values)]

    def decode(self) -> NDArray[np.uint8]:
        """Return the whole image, uint8 (H, W, 3), RGB.

        Raises:
            ImageError: It cannot be decoded without losing pixels.
            ExampleError: It is raw, and its length is not that of its shape.
        """
        if self.schema.image_encoding == "raw":
            return self._raw_pixels()
        return _native.decode_jpeg(self.encoded if self.encoded.startswith(_JPEG) else to_jpeg(self.encoded))

    def thumbnail(self, side: int, max_pixels: int | None = None) -> Image.Image:
        """Return the image with its annotated boxes drawn, as large as fits into a square, its aspect kept.

        Args:
            side: Of the square, in pixels.
            max_pixels: Largest image that is decoded for it, in pixels; None: any that `decode` does.

        Raises:
            ImageError: It cannot be decoded, or is larger than ``max_pixels``.
            ExampleError: It is raw, and its length is not that of its shape; or corners of boxes are not of type float.
        """
        if max_pixels is not None and self.schema.image_encoding == "jpeg":
            kind = sniff(self.encoded)
            info = _native.probe_jpeg(self.encoded) if kind == "jpeg" else None
            width, height = (info.width, info.height) if info else dimensions(self.encoded, kind)
            if width * height > max_pixels:
                raise ImageError(f"{width} x {height} pixels are too many for a small picture")
        picture = fit(self.decode(), side, side)
        draw_boxes(picture, usable_boxes(self.boxes))
        return picture

    def _raw_pixels(self) -> NDArray[np.uint8]:
        height, width = self._raw_extent()
        if min(height, width) < 1 or height * width * 3 != len(self.encoded):
            message = f"{len(self.encoded)} bytes of pixels are not {height} x {width} x 3"
            raise ExampleError(f"sample {self.index} ({self.source}): {message}", source=self.source)
        pixels = np.frombuffer(self.encoded, np.uint8)
        if self._text(self.schema.order_key) == b"CHW":
            return np.ascontiguousarray(pixels.reshape(3, height, width).transpose(1, 2, 0))
        return pixels.reshape(height, width, 3).copy()

    def _raw_extent(self) -> tuple[int, int]:
        if self.schema.height_key is None or self.schema.width_key is None:
            side = round((len(self.encoded) / 3) ** 0.5)
            return side, side
        try:
            height, width = (int(self.features[key][1][0]) for key in (self.schema.height_key, self.schema.width_key))
        except (KeyError, IndexError, ValueError):
            raise ImageError(f"sample {self.index} ({self.source}) has no height or width") from None
        return height, width

    def _text(self, key: str | None) -> bytes:
        kind, values = self.features.get(key or "", ("", []))
        return cast("bytes", values[0]) if kind == "bytes" and values else b""


def features_of(records: _native.RecordSet, index: int) -> Features:
    """Return what a record holds.

    Raises:
        ShardError: It is damaged.
        ExampleError: It is not a ``tf.train.Example``; the message says where it is.
        OSError: It cannot be read.
    """
    payload = records.read(index)
    try:
        return _native.parse_example(payload)
    except ExampleError as error:
        path, record, offset = records.where(index)
        message = f"{path}, record {record} at byte {offset}: {error}"
        raise ExampleError(message, path=path, record=record, offset=offset) from error


def label_of(features: Features, schema: SchemaInfo) -> int:
    """Return the class that features hold, as the loader gives it; -1 when there is none.

    Raises:
        ExampleError: It is not a number; or it should be one-hot, and holds something else than zeros and at most a
            single 1.
    """
    if schema.label_key not in features:
        return -1
    kind, values = features[schema.label_key]
    if schema.label_encoding == "id":
        if kind != "int64" or not values:
            raise ExampleError(f"{schema.label_key!r} has {len(values)} values of kind {kind}, not an int64")
        return int(values[0])
    digits = list(cast("bytes", values[0])) if kind == "bytes" and values else values
    ones = [place for place, digit in enumerate(digits) if digit == 1]
    if len(ones) > 1 or any(digit not in (0, 1) for digit in digits):
        raise ExampleError(f"{schema.label_key!r} is not one-hot: {len(ones)} of its {len(digits)} values are 1")
    return ones[0] + schema.label_base if ones else -1


class Dataset:
    """One split of a dataset: ``len(dataset)`` samples, ``dataset[i]``, its labels and classes.

    Opening reads the manifest, the indexes unless they are very many, and of TFRecords of other origin the first
    record. Reading is safe from any thread. Make one with `stoker.open`. Pickled, it is opened again where it is
    unpickled, from the same place; what then lies there must be the same dataset.

    Attributes:
        path: Directory, or the pattern or file it was opened from.
        split: Name of the split.
        schema: Which features hold the image, the label and the name.
        shards: Shards in their order; none where the samples are image files.
        classes: Name and text of each class, by label; empty when the dataset does not say.
        manifest: What the build recorded; None for what Stoker did not write.
        records: The native reader of the samples.
        remote: Its files, if they are in a store.
        opener: Opens it again; can be pickled. None for what `stoker.open` did not open.
    """

    def __init__(
        self,
        *,
        path: str,
        split: str,
        schema: SchemaInfo,
        shards: tuple[OpenShard, ...] = (),
        files: ImageFiles | None = None,
        classes: tuple[ClassLabel, ...] = (),
        manifest: Manifest | None = None,
    ) -> None:
        self.path = path
        self.split = split
        self.schema = schema
        self.shards = shards
        self.classes = classes
        self.manifest = manifest
        self.opener: Callable[[], Dataset] | None = None
        self._files = files
        self._labels: NDArray[np.int64] | None = None
        self._object_counts: NDArray[np.uint32] | None = None
        self.records: _native.RecordSet | _native.FileSet
        self.records, self.remote = (files.records, files.remote) if files else record_set(shards)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> Sample:
        """Return one sample; negative numbers count from the end.

        Raises:
            IndexError: There is no such sample.
            ShardError: Its bytes are damaged.
            ExampleError: It is not an Example, or lacks the image.
            OSError: It is a file and cannot be read.
        """
        size, index = len(self), operator.index(index)
        if not -size <= index < size:
            raise IndexError(f"there is no sample {index}; split {self.split} of {self.path} has {size}")
        index %= size
        features = self._features(index)
        encoded = self._bytes(features, self.schema.image_key, index)
        name = self.schema.filename_key
        source = self._bytes(features, name, index).decode("utf-8", "replace") if name and name in features else ""
        return Sample(index, features, encoded, label_of(features, self.schema), source, self.schema)

    def __repr__(self) -> str:
        shards = len(self.shards)
        where = format_count(shards, "shard") if self._files is None else "files"
        classes = f", {self._classes}" if self.classes else ""
        samples = format_count(len(self), "sample")
        return f"<stoker.Dataset {self.path!r} split={self.split!r}: {samples} in {where}{classes}>"

    @property
    def _classes(self) -> str:
        """How many classes there are, and where their ids start unless that is 0."""
        count, note = len(self.classes) - self.schema.label_base, self.schema.label_note
        return f"{format_count(count, 'class')}{', ' * bool(note)}{note}"

    def _repr_html_(self) -> str:
        from stoker.loader.notebook import block, escaped  # noqa: PLC0415 - only notebooks need it

        shards = len(self.shards)
        where = format_count(shards, "shard") if shards else "files"
        facts = [f"{format_count(len(self), 'sample')} in {where}, {format_size(self.size_bytes)}"]
        if self.classes:
            labels = range(self.schema.label_base, len(self.classes))
            names = [class_title(self.classes, label) for label in labels[:_NAMED_CLASSES]]
            names += ["…"] * (len(labels) > _NAMED_CLASSES)
            facts.append(f"{self._classes}: {', '.join(names)}")
        figures = () if self.remote is not None else self._strip()  # what a store holds would take too long
        return block(f"<b>{escaped(self.path)}</b> / {escaped(self.split)}", facts, figures)

    def _strip(self) -> Iterator[str]:
        """Yield some of the images for a notebook, and no more after a second."""
        from stoker.loader import notebook  # noqa: PLC0415 - only notebooks need it

        count = min(_STRIP_IMAGES, len(self))
        indices = _native.permute(0, count, len(self), 17, 0).tolist() if count else []
        end = time.monotonic() + _STRIP_SECONDS
        for index in indices:
            if time.monotonic() > end:
                return
            lines = [f"#{index}"]
            try:
                sample = self[index]
                picture: Image.Image | str = sample.thumbnail(notebook.SIDE_PIXELS, notebook.MAX_PIXELS)
                lines = [class_title(self.classes, sample.label), *lines]
            except (StokerError, OSError) as error:
                picture = f"damaged: {error}"
            yield notebook.figure(picture, lines)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if self.opener is None:
            raise TypeError(f"{self!r} cannot be pickled, because stoker.open did not open it")
        return _reopened, (self.opener, self.identity)

    def _features(self, index: int) -> Features:
        if self._files is not None:
            return self._files.features(index, self.records.read(index))
        return features_of(cast("_native.RecordSet", self.records), index)

    def _bytes(self, features: Features, feature: str, index: int) -> bytes:
        kind, values = features.get(feature, ("none", []))
        if kind == "bytes" and values:
            return cast("bytes", values[0])
        path, record, offset = self.records.where(index)
        message = f"{path}, record {record} at byte {offset}: no bytes under {feature!r}; it has {sorted(features)}"
        raise ExampleError(message, path=path, record=record, offset=offset)

    @property
    def labels(self) -> NDArray[np.int64]:
        """Labels of all samples, int64 (len(dataset),). Of TFRecords, the first use reads every record once."""
        if self._files is not None:
            return self._files.labels
        if self._labels is None:
            self._labels = self._read_labels()
        return self._labels

    def _read_labels(self) -> NDArray[np.int64]:
        one_hot = self.schema.label_encoding == "one-hot"
        records = cast("_native.RecordSet", self.records)
        with read_through(self.remote, records) as ahead:
            return records.labels(self.schema.label_key, one_hot, self.schema.label_base, available_cpus(), ahead)

    @property
    def object_counts(self) -> NDArray[np.uint32]:
        """How many annotated objects each sample has, uint32 (len(dataset),).

        The first use reads every record, or every annotation, once.
        """
        if self._files is not None:
            return self._files.object_counts
        if self._object_counts is None:
            self._object_counts = self._read_object_counts()
        return self._object_counts

    def _read_object_counts(self) -> NDArray[np.uint32]:
        prefix = self.schema.box_prefix
        if prefix is None:
            message = f"{self.path} has no boxes: its records follow the layout {self.schema.preset!r}"
            raise ConfigError(f"{message}; ObjectCrops needs records with {'image/object/bbox/xmin'!r} and so on")
        records = cast("_native.RecordSet", self.records)
        packed = not prefix.endswith("/")
        with read_through(self.remote, records) as ahead:
            counts = records.count_values(prefix if packed else f"{prefix}xmin", available_cpus(), ahead)
        return counts // np.uint32(4) if packed else counts

    @property
    def size_bytes(self) -> int:
        """Length of its shards, or of its image files, in bytes."""
        if self._files is not None:
            return int(self._files.table.sizes.sum())
        return sum(shard.size_bytes for shard in self.shards)

    @property
    def sample_bytes(self) -> NDArray[np.uint64]:
        """Bytes of each sample as its source gives them, uint64 (len(dataset),): of a record, or of a file."""
        if self._files is not None:
            return np.ascontiguousarray(self._files.table.sizes, np.uint64)
        extents = [shard.extents[:, 1] for shard in self.shards]
        return np.concatenate([np.empty(0, np.uint64), *extents]) - np.uint64(FRAME_BYTES)

    def stamps(self) -> Iterator[bytes]:
        """Yield what changes, or `sample_bytes` does, when the content does, as far as that shows without reading it.

        - Of a dataset with a manifest its ``dataset_id``, which stands for every byte of it, and the split;
        - of other datasets in stores the URL, the size and the etag of each shard, and the listing of images;
        - of other shards, and of images in archives, path, size and time of change of each file;
        - of images that are files the listing (names, sizes, labels), and path and time of change of each folder.

        Raises:
            OSError: A file is not there any more.
        """
        yield self.identity.encode("utf-8", "surrogateescape")
        if self.manifest is not None:
            return
        if self.remote is not None:
            yield self.path.encode("utf-8", "surrogateescape")
            yield from (f"{shard.path} {shard.size_bytes} {shard.stamp}".encode() for shard in self.shards)
            return
        if self._files is None:
            places = [shard.local_path for shard in self.shards]
        else:
            yield os.fsencode(Path(self.path).absolute())
            places = self._file_places()
        for place in places:
            status = place.stat()
            yield b"%b\0%d\0%d" % (os.fsencode(place.absolute()), status.st_size, status.st_mtime_ns)

    def _file_places(self) -> list[Path]:
        """Return the archives that hold images, and the folders of those that are files of their own."""
        found = set()
        for number in range(len(self)):
            path, _, offset = self.records.where(number)
            found.add(path if offset else os.path.dirname(path))  # noqa: PTH120 - a million of them
        return [Path(path) for path in sorted(found)]

    @property
    def has_boxes(self) -> bool:
        """Whether its layout has a place for annotated objects."""
        return self._files is not None or self.schema.box_prefix is not None

    def load_boxes(self) -> None:
        """Read the annotations of image files and pass them to the native reader; records hold theirs themselves."""
        if self._files is not None:
            _ = self._files.object_counts

    @property
    def identity(self) -> str:
        """Stands for this split's content: ``dataset_id`` and split, or the shards' names and lengths."""
        if self.manifest is not None:
            return f"{self.manifest.dataset_id}/{self.split}"
        if self._files is not None:
            return f"{self._files.fingerprint}-{len(self)}/{self.split}"
        sizes = ";".join(f"{s.path.name}:{s.size_bytes}" for s in self.shards)
        return f"{_native.crc32c(sizes.encode()):08x}-{len(self)}/{self.split}"


def _reopened(opener: Callable[[], Dataset], identity: str) -> Dataset:
    """Open a pickled dataset again.

    Raises:
        ConfigError: Another dataset lies there now.
    """
    found = opener()
    if found.identity != identity:
        message = f"{found.path} holds the dataset {found.identity}, but the one that was pickled is {identity}"
        raise ConfigError(f"{message}; do not change a dataset while it is read, or open it again in each process")
    return found
