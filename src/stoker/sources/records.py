"""Records that a program has: sequences, which are read by position, or iterables, which are read once, in order.

A record is a dict of values, from which `RecordFields` makes an image with its fields. `digest_of` returns digests that
tell different values apart.

Datasets of other libraries describe their records. A ``datasets.Dataset`` has ``features``, and its images are read as
files; a dataset of torchvision has ``classes`` and ``targets``, and pairs of image and label. A `stoker.Dataset` has
``source_of``.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np

from stoker import _native, fields
from stoker.config import format_some
from stoker.errors import ConfigError, SourceError, StokerError, StorageError
from stoker.forks import PerProcess
from stoker.order import random_sample
from stoker.sources.files import NO_SUCH_FILE, in_order, read_file
from stoker.sources.items import (
    GrowingBlobs,
    GrowingColumn,
    Item,
    ItemTable,
    ItemTableBuilder,
    RecordNames,
    new_column,
    row_range,
)
from stoker.sources.parquet import field_of_feature
from stoker.sources.reader import Extents, IndexedReader, Latency, Reader, SourceImage
from stoker.sources.source import Source
from stoker.sources.tables import find_label
from stoker.splits import SPLITS, full_split_name
from stoker.storage import from_uri, is_web, read_url, without_signature
from stoker.types import MAX_CLASSES, Box, Field, Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.fields import Roles


ROOT = "the source"
"""What messages call records."""

_SHOWN, _LONG_BYTES = 8, 4096
_PAIR = ("image", "label")
_LIKE_BOXES = ("objects", "bbox", "bboxes", "annotations", "detections")
_SAMPLED = 16
_REPORT_EVERY = 64
_NOT_WITNESSED = "not witnessed"
"""The version of an opened sequence, whose reader stores no digests."""
_UNREAD, _UNREADABLE = 0, 1
"""The digests of a record that was not read yet, and of a record that raises an error."""
_USUAL_BYTES = 100_000
_AHEAD = 64
"""How many records of an iterable are read ahead, to find out the fields."""


def as_record(record: object) -> Mapping[str, Any]:
    """Return a record as its values by name."""
    if isinstance(record, (tuple, list)) and len(record) == len(_PAIR):
        record = dict(zip(_PAIR, record, strict=True))
    if isinstance(record, Mapping):
        return {name: _plain(value) for name, value in record.items()}
    if type(record).__name__ == "Sample" and type(record).__module__.startswith("stoker."):
        raise SourceError("it is a sample of a stoker.Dataset; give a part of that, such as dataset[[0, 5]]")
    advice = "; of paths make [{'image': path} for path in paths]" if isinstance(record, (str, os.PathLike)) else ""
    message = f"it is of type {type(record).__name__}; a record is a dict, or a pair of image and label"
    raise SourceError(message + advice)


def _plain(value: Any) -> Any:
    """Return a tensor on the CPU as an array, an array of shape () as its number, and times as text.

    Decimal numbers become text, too, as no field of numbers has all of their digits.
    """
    if any(cls.__name__ == "Tensor" for cls in type(value).__mro__) and hasattr(value, "__array__"):
        with contextlib.suppress(RuntimeError, TypeError):  # it is on another device, or has a dtype that NumPy lacks
            value = np.asarray(value)
    if (isinstance(value, np.ndarray) and value.ndim == 0) or isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    return str(value) if isinstance(value, (date, time, timedelta, Decimal)) else value


def fields_of_first(records: Any, first: Callable[[], Any]) -> dict[str, Field]:
    """Return the fields of records; ``first`` returns the first of them."""
    try:
        record = as_record(first())
    except SourceError as error:
        message = f"the fields of the records are unknown: of record 0, {error}"
        raise SourceError(f"{message}; give fields={{...}}" if error.__cause__ else message) from error
    return find_fields(records, record)


@dataclass(frozen=True, slots=True)
class RecordFields:
    """Turns records into images to build from. Safe in any thread."""

    roles: Roles  # the fields by their roles
    label: fields.Label | None  # the field of the class; None without classes
    boxes: fields.Boxes | None  # the field of the boxes; None without boxes
    is_guess: bool  # whether the fields were inferred, not given
    # names of values that are not fields, which `read` has met if the fields are a guess
    unknown: set[str] = field(default_factory=set)
    # fields that were None in records, and what is stored in place of None
    lacking: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, record_fields: Mapping[str, Field], *, is_guess: bool) -> RecordFields:
        """Return an object that reads records with some fields."""
        if not isinstance(record_fields, Mapping):
            raise ConfigError(f"fields is of type {type(record_fields).__name__}; give a dict of names and fields")
        roles = fields.roles(record_fields)
        label = None if roles.label is None else cast("fields.Label", record_fields[roles.label])
        boxes = None if roles.boxes is None else cast("fields.Boxes", record_fields[roles.boxes])
        return cls(roles, label, boxes, is_guess)

    @property
    def classes(self) -> tuple[bytes, ...]:
        """Names of the classes; the index is the label. Empty if labels are only numbers."""
        return tuple(os.fsencode(name) for name in (self.label.names or ())) if self.label is not None else ()

    @property
    def may_be_ids(self) -> bool:
        """Whether ``label``, a float in the first record, may be the class, as pandas may store ids as floats."""
        return self.is_guess and self.label is None and isinstance(self.roles.extra.get("label"), fields.Float)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all fields."""
        roles = self.roles
        own = (roles.image, roles.label, roles.boxes)
        return (*(name for name in own if name is not None), *roles.extra)

    @property
    def box_names(self) -> tuple[str, ...]:
        """Names of the classes of boxes; empty if boxes have the classes of the images."""
        if self.boxes is None or self.boxes.names is None:
            return ()
        same = self.label is not None and self.label.names == self.boxes.names
        return () if same else tuple(self.boxes.names)

    def value(self, name: str, record: Mapping[str, Any]) -> Any:
        """Return a value of a record; refuse a value that is missing."""
        field = self.label if name == self.roles.label else self.roles.extra.get(name)
        if name in record and record[name] is None and field is not None and field.missing is not None:
            self.lacking[name] = field.missing_shown
            return field.missing
        return fields.given_value(name, record)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the records read so far."""
        label = self.roles.label
        messages = [
            f"{ROOT}: {name!r} is None in some records: {shown} there" for name, shown in sorted(self.lacking.items())
        ]
        if self.is_guess and label not in (None, "label"):
            messages.append(f"{ROOT}: nothing is called 'label'; the classes are {label!r}")
        own = self.roles.extra.get("label")
        if self.is_guess and label is None and own is not None:
            message = (
                f"{ROOT}: 'label' is a field ({own.summary}), and there are no classes; class ids are whole numbers"
            )
            messages.append(f"{message} from 0, names are text, and several of an image are stoker.fields.Labels")
        like_boxes = next((name for name in self.roles.extra if name in _LIKE_BOXES), None)
        if self.is_guess and self.boxes is None and like_boxes is not None:
            message = f"{ROOT}: {like_boxes!r} is a field, not the boxes of images; these are called 'boxes'"
            messages.append(f"{message}, each (xmin, ymin, xmax, ymax) in fractions of the image, or a dict with label")
        if not self.unknown:
            return tuple(messages)
        names = format_some(sorted(self.unknown), _SHOWN, repr)
        message = f"records have values that the first record lacks, and that are not stored: {names}"
        return (*messages, f"{message}; give fields={{...}} with the fields to store")

    def digest(self, record: Mapping[str, Any]) -> bytes:
        """Return the `digest_of` the values of a record."""
        return digest_of({name: record.get(name) for name in self.names})

    def description(self) -> str:
        """Return text that changes with the names and the kinds of the fields."""
        roles = self.roles
        kinds = [kind and kind.to_json() for kind in (self.label, self.boxes, *roles.extra.values())]
        return json.dumps([roles.image, roles.label, roles.boxes, [*roles.extra], kinds])

    def read(self, number: int, record: Mapping[str, Any]) -> SourceImage:
        """Return the image of a record, with its values, boxes and class."""
        roles = self.roles
        if self.is_guess and len(self.unknown) <= _SHOWN:
            self.unknown.update(str(name) for name in record.keys() - set(self.names))
        for name in self.names:
            self.value(name, record)
        label, boxes = self.label_of(record), self.boxes_of(record)
        data, filename = self.image_of(record)
        return SourceImage(data, filename or b"%d" % number, boxes, None, self.extra_of(record, roles.extra), label)

    def image_of(self, record: Mapping[str, Any]) -> tuple[bytes | NDArray[Any], bytes]:
        """Return the bytes or the pixels of the image of a record, and the name of its file."""
        name = self.roles.image
        data, filename = read_image(name, fields.given_value(name, record))
        return data if isinstance(data, (bytes, np.ndarray)) else _pixels(name, data), filename

    def label_of(self, record: Mapping[str, Any]) -> int:
        """Return the class of a record; -1 without one."""
        name = self.roles.label
        if self.label is None or name is None:
            return -1
        _, ids = self.label.encode(name, self.value(name, record))[name]
        return cast("int", ids[0])

    def boxes_of(self, record: Mapping[str, Any]) -> list[Box]:
        """Return the boxes of a record."""
        name = self.roles.boxes
        if self.boxes is None or name is None:
            return []
        boxes = self.boxes.boxes(name, fields.given_value(name, record))
        return [replace(box, label=-1) if box.label is None and self.box_names else box for box in boxes]

    def extra_of(self, record: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Return the values of some of the extra fields of a record."""
        values = {name: self.value(name, record) for name in names}
        return {
            name: read_image(name, value)[0] if self.roles.extra[name].is_image else value
            for name, value in values.items()
        }


def read_image(name: str, value: Any) -> tuple[Any, bytes]:
    """Return the bytes, the array or the PIL image that the value of a field stands for, and the name of its file.

    The value is a path or URL, the bytes of a file, an array of pixels, a PIL image, or a dict with ``bytes`` or
    ``path`` as ``datasets`` has it.
    """
    if isinstance(value, Mapping) and ("bytes" in value or "path" in value):
        path, data = value.get("path"), value.get("bytes")
        filename = os.path.basename(without_signature(os.fsencode(path))) if isinstance(path, str) else b""  # noqa: PTH119
        if data is not None or path is None:
            return read_image(name, data)[0], filename
        value = path
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), b""
    if isinstance(value, (str, os.PathLike)):
        uri = os.fsencode(value)
        unsigned = without_signature(uri)
        try:
            return (read_url if is_web(uri) else read_file)(uri), unsigned[unsigned.rfind(b"/") + 1 :]
        except NO_SUCH_FILE as error:
            raise SourceError(f"field {name!r}: {os.fsdecode(unsigned)}: {error.strerror or error}") from error
    if isinstance(value, np.ndarray) or fields.is_pil_image(value):
        return value, b""
    must = "an image: a path, a URL, bytes of a file, an array or a PIL image"
    raise SourceError(f"field {name!r} is of type {type(value).__name__}, but must be {must}")


def _pixels(name: str, image: Any) -> NDArray[Any]:
    if image.mode in ("I", "F"):
        message = f"field {name!r} is a PIL image of mode {image.mode!r}, whose range of values is unknown"
        raise SourceError(f"{message}; give an array of uint8 or uint16")
    others = {"1": "L", "La": "LA", "PA": "RGBA", "RGBa": "RGBA"}
    try:
        if image.mode not in ("L", "LA", "RGB", "RGBA", "I;16"):
            image = image.convert(others.get(image.mode, "RGBA" if "transparency" in image.info else "RGB"))
        return np.asarray(image)
    except (OSError, SyntaxError, ValueError) as error:  # raised by a file that it has not read yet
        raise SourceError(f"field {name!r}: the pixels of the PIL image cannot be read: {error}") from error


class RecordReader(Reader):
    """Reads records of a program; ``latency`` was found from a few of them."""

    def __init__(self, record_fields: RecordFields, latency: Latency) -> None:
        self.record_fields = record_fields
        self.latency = latency
        self.fields = record_fields.roles.extra
        self.box_names = record_fields.box_names

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.record_fields.warnings


def size_of(value: Any) -> int:
    """Return the approximate size of an image in bytes; 0 if it is not known."""
    path, size = path_and_size(value)
    if path and not size:
        try:
            return os.stat(path).st_size  # noqa: PTH116 - of a URL there is none
        except (OSError, ValueError):
            return 0
    if size is not None or isinstance(value, np.ndarray):
        return value.nbytes if size is None else size
    width, height = getattr(value, "size", (0, 0))
    return 3 * width * height


def path_and_size(value: Any) -> tuple[bytes, int | None]:
    """Return the path or the URL of an image, empty without one, and its size in bytes, None if it is not known."""
    path, data = (value.get("path"), value.get("bytes")) if isinstance(value, Mapping) else (value, value)
    size = len(data) if isinstance(data, (bytes, bytearray, memoryview)) else None
    return os.fsencode(path) if isinstance(path, (str, os.PathLike)) else b"", size


def uri_of(value: Any) -> bytes:
    """Return the path or the URL of an image; empty if the record holds the image itself."""
    path, size = path_and_size(value)
    return path if size is None else b""


def latency_of(uris: Iterable[bytes]) -> Latency:
    """Return what reading images waits for, given paths or URLs of some; they are empty for images in records."""
    others = [uri for uri in uris if uri]
    if any(map(is_web, others)):
        return "web"
    return "disk" if all(from_uri(uri).is_local for uri in others) else "store"


def digest_of(value: Any) -> bytes:
    """Return 32 bytes that change with a value of any type: an image counts by bytes or pixels, a path by its text.

    Long values count by their CRC-32C.
    """
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.digest()


def image_digest(data: bytes | NDArray[Any]) -> bytes:
    """Return 16 bytes that only equal files have, or equal pixels of the same shape and type."""
    if isinstance(data, bytes):
        return hashlib.sha256(data).digest()[:16]
    digest = hashlib.sha256(f"{data.dtype}{data.shape}".encode())
    digest.update(np.ascontiguousarray(data).data)
    return digest.digest()[:16]


def _add(digest: Any, value: Any) -> None:
    """Add a value to a digest, after its type and length, so that different values never give the same bytes."""
    if isinstance(value, Mapping):
        digest.update(b"m%d " % len(value))
        for name in sorted(value, key=str):
            _add(digest, str(name))
            _add(digest, value[name])
    elif isinstance(value, (list, tuple)):
        digest.update(b"l%d " % len(value))
        for item in value:
            _add(digest, item)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _add_bytes(digest, b"b", bytes(value))
    elif isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        _add_bytes(digest, b"s", data)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        _add_bytes(digest, f"a{value.dtype.str}{value.shape} ".encode(), value.tobytes())
    elif fields.is_pil_image(value):
        _add_pixels(digest, value)
    elif value is None or isinstance(value, (bool, int, float, np.generic, Box)):
        text = f"{type(value).__name__} {value!r}".encode()
        digest.update(b"n%d " % len(text) + text)
    else:  # no field takes it
        name = f"{type(value).__module__}.{type(value).__qualname__}".encode()
        digest.update(b"t%d " % len(name) + name)


def _add_bytes(digest: Any, kind: bytes, data: bytes) -> None:
    digest.update(kind + b"%d " % len(data))
    # SHA-256 of an image would take as long as storing it.
    digest.update(data if len(data) <= _LONG_BYTES else _native.crc32c(data).to_bytes(4, "little"))


def _add_pixels(digest: Any, image: Any) -> None:
    digest.update(f"i{image.mode}{image.size} ".encode())
    with contextlib.suppress(OSError, SyntaxError, ValueError):  # the file is damaged
        _add_bytes(digest, b"p", image.tobytes())
        if image.mode in ("P", "PA"):
            _add(digest, [image.getpalette(None), image.info.get("transparency")])


def given_splits(source: Given | Mapping[str, Given], split: str | None) -> dict[str, Given]:
    """Return the records of each split, in the order of the splits.

    Args:
        source: Records, or a mapping from names of splits to them.
        split: Split of the records. Default: train, or that of a `stoker.Dataset`.

    Raises:
        ConfigError: A split is unknown or is named twice, or a value cannot be iterated over.
    """
    if not isinstance(source, Mapping):
        own = getattr(source, "split", "train") if hasattr(source, "source_of") else "train"
        source = {split or own: source}
    elif split is not None:
        raise ConfigError(f"split is {split!r}, but the source says itself which splits it has: {', '.join(source)}")
    named = {full_split_name(str(name)): name for name in source}
    for name in named:
        if name not in SPLITS:
            message = f"split {name!r} is unknown; there are {', '.join(SPLITS)}"
            raise ConfigError(f"{message}: a mapping gives the records of each; give a list of records without splits")
    if len(named) < len(source):
        raise ConfigError(f"two of the splits {', '.join(source)} are the same")
    for records in source.values():
        if type(records).__name__ == "DataFrame":
            raise ConfigError("the source is a DataFrame, whose items are columns; give df.to_dict('records')")
        if isinstance(records, (str, bytes)) or not (isinstance(records, Iterable) or is_sequence(records)):
            message = (
                f"the source is of type {type(records).__name__}; give a path, a sequence or an iterable of records"
            )
            raise ConfigError(f"{message}, or a mapping of splits to such")
    return {name: source[named[name]] for name in SPLITS if name in named}


class RecordSequence(Protocol):
    """Records that are read by position."""

    def __len__(self) -> int:
        """Return how many records there are."""

    def __getitem__(self, position: int, /) -> Any:
        """Return one record."""


Given = RecordSequence | Iterable[Any]
"""Records as a program gives them."""


@dataclass(frozen=True, slots=True)
class _Sequences:
    """What is known about sequences of records once a few records were read."""

    given: Mapping[str, RecordSequence]  # the sequences, by split; those of ``datasets`` with encoded images
    fields: RecordFields  # makes images of their records
    # changes with any of their values; empty if their library has no such thing, so that digests of values replace it
    version: str
    size_bytes: int  # mean size of a few of their images
    latency: Latency  # what reading these images waits for
    identity: str  # of the whole source

    @classmethod
    def inspect(
        cls, given: Mapping[str, RecordSequence], chosen: Mapping[str, Field] | None, progress: Progress | None
    ) -> Self:
        """Find out the fields, and the names of the classes if labels are text."""
        versions = [version_of(records) for records in given.values()]
        version = f"fingerprints {' '.join(versions)}" if all(versions) else ""
        given = {name: undecoded(records) for name, records in given.items()}
        filled = next((records for records in given.values() if len(records)), None)
        if filled is None:
            raise SourceError(f"{ROOT} holds no records")
        record_fields = chosen if chosen is not None else fields_of_first(filled, lambda: read_record(filled, 0))
        reader = RecordFields.of(record_fields, is_guess=chosen is None)
        name = "label" if reader.may_be_ids else reader.roles.label
        has_no_names = reader.label is None or reader.label.names is None
        if has_no_names and name is not None and (label := _label_of_all(given, filled, name, progress)) is not None:
            reader = RecordFields.of({**record_fields, name: label}, is_guess=chosen is None)
        lengths = sorted((name, len(records)) for name, records in given.items())
        digest = hashlib.sha256(repr((lengths, reader.description())).encode())
        sizes, uris = [], []
        for records in given.values():
            for position in random_sample(_SAMPLED, len(records)).tolist():
                if (record := _readable(records, position)) is not None:
                    digest.update(reader.digest(record))
                    sizes.append(size_of(record.get(reader.roles.image)))
                    uris.append(uri_of(record.get(reader.roles.image)))
        known = [size for size in sizes if size]
        size_bytes = max(1, sum(known) // len(known)) if known else _USUAL_BYTES
        return cls(given, reader, version, size_bytes, latency_of(uris), digest.hexdigest()[:32])


class SequenceReader(RecordReader, IndexedReader):
    """Reads records of sequences: an item's ``number`` is its position, counted over all sequences."""

    identity = ""
    has_witness = True

    def __init__(self, known: _Sequences, readers: int) -> None:
        super().__init__(known.fields, known.latency)
        self._given = [*known.given.values()]
        self.identity, self._version = known.identity, known.version
        self.allow(readers)
        self._starts = np.cumsum([0, *map(len, self._given)])
        # a digest of the values of each record that was read
        self._digests = new_column(0 if known.version else int(self._starts[-1]), np.uint64)

    def allow(self, threads: int) -> None:
        self._readers, self._turns = threads, PerProcess(partial(threading.Semaphore, threads))

    def load(self, item: Item) -> SourceImage:
        image = self.record_fields.read(*self._record(item.number))
        if item.label < 0 or image.label is None:
            return image
        if image.label != item.label:
            message = f"its label is the class id {image.label}, but was {item.label} when the labels were read"
            raise SourceError(f"{message}; give records that do not change")
        return replace(image, label=None)

    def values(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        _, record = self._record(item.number)
        return self.record_fields.extra_of(record, self.fields if names is None else names)

    def boxes(self, item: Item) -> list[Box]:
        return [] if self.record_fields.boxes is None else self.record_fields.boxes_of(self._record(item.number)[1])

    def extents(self, table: ItemTable) -> Extents:
        """Return files if all images are local files; otherwise records are read for the images."""
        if cast("NDArray[np.int32]", table.columns["is_file"]).all():
            return Extents(b"", table)
        return Extents(os.fsencode(ROOT), table, load=partial(self._image, table.numbers))

    def _image(self, numbers: NDArray[np.int64], row: int) -> bytes | NDArray[Any]:
        return self.record_fields.image_of(self._record(int(numbers[row]))[1])[0]

    def witness(self, rows: NDArray[np.int64]) -> str:
        if self._version:
            return self._version
        for _ in in_order(self._note, rows[self._digests[rows] == _UNREAD].tolist(), self._readers):
            pass
        return hashlib.sha256(self._digests[rows].astype("<u8").tobytes()).hexdigest()

    def content(self, numbers: NDArray[np.int64]) -> bytes:
        if self._version != _NOT_WITNESSED:
            return b""
        digest = hashlib.sha256()
        for number in numbers.tolist():
            digest.update(b"%d " % number)
            with contextlib.suppress(SourceError):
                digest.update(self.record_fields.digest(self._record(number)[1]))
        return digest.digest()

    def _note(self, number: int) -> None:
        with contextlib.suppress(SourceError):
            self._record(number)

    def _record(self, number: int) -> tuple[int, Mapping[str, Any]]:
        """Return the position of a record in its sequence, and the record; store the digest of its values."""
        sequence = int(np.searchsorted(self._starts, number, "right")) - 1
        position, digest = number - int(self._starts[sequence]), _UNREADABLE
        try:
            with self._turns.get():
                record = read_record(self._given[sequence], position)
            if not self._version:
                digest = int.from_bytes(self.record_fields.digest(record)[:8], "little")
        finally:
            if not self._version:
                self._digests[number] = digest
        return position, record


def read_record(records: RecordSequence, position: int) -> Mapping[str, Any]:
    """Return the record at a position."""
    try:
        return as_record(records[position])
    except (MemoryError, SourceError, StorageError):
        raise
    except Exception as error:
        raise SourceError(f"reading it raised {type(error).__name__}: {error}") from error


def list_records(
    given: Mapping[str, RecordSequence],
    chosen: Mapping[str, Field] | None,
    progress: Progress | None = None,
    *,
    readers: int = 1,
    with_labels: bool = False,
) -> Source:
    """Return sequences of records as a source.

    Only some records are read, unless labels are text and the classes are not known, or ``with_labels`` needs the class
    of each record before any image is loaded: then the labels of all records are read.

    Args:
        given: The sequences, by split.
        chosen: Their fields; None to find them out.
        progress: Called after every few records whose labels are read.
        readers: How many threads may read records at the same time.
        with_labels: Whether the table has the class of each record.

    Raises:
        ConfigError: The fields are not those of records, or cannot be found out.
        SourceError: There are no records, or the first one cannot be read.
    """
    known = _Sequences.inspect(given, chosen, progress)
    labels = _class_ids(known, progress) if with_labels else None
    classes = known.fields.classes
    if labels is not None and not classes:
        classes = _numbered(labels)
    starts = np.cumsum([0, *map(len, known.given.values())])
    total = int(starts[-1])
    numbers = row_range(0, total)  # the rows of the splits, too: of few bytes a record
    table = ItemTable(
        paths=RecordNames(numbers, starts[:-1]),
        labels=np.broadcast_to(np.int32(-1), total) if labels is None else labels,
        sizes=np.broadcast_to(np.int64(known.size_bytes), total),
        numbers=numbers,
        objects=np.broadcast_to(np.int32(-1), total),
    )
    splits = {name: numbers[starts[at] : starts[at + 1]] for at, name in enumerate(known.given) if known.given[name]}
    return Source(ROOT, classes, (b"",) * len(classes), table, splits, SequenceReader(known, readers))


def index_records(
    given: Mapping[str, RecordSequence],
    split: str,
    chosen: Mapping[str, Field] | None = None,
    progress: Progress | None = None,
) -> Source:
    """Return one of several sequences of records as a source that is read in any order, any number of times.

    Its table has the class of each record, and the path and the size of its image if these are known without decoding
    it. Records are read once for that, unless their library states it; those of a list are in memory anyway.

    Args:
        given: The sequences, by split; names of classes come from all of them.
        split: The split to return.
        chosen: Their fields; None to find them out.
        progress: Called after every few records that are read.

    Raises:
        ConfigError: The fields are not those of records, or cannot be found out.
        SourceError: There are no records, the first one cannot be read, or the class of a record is not valid.
    """
    known = _Sequences.inspect(given, chosen, progress)
    if known.fields.is_guess and len(known.given[split]):
        known.fields.boxes_of(read_record(known.given[split], 0))  # refuses boxes in pixels at once, not in each record
    table, missing = _index(known.given[split], known.fields, progress)
    digest = hashlib.sha256(known.identity.encode() + known.version.encode())
    for column in (table.labels, table.sizes):
        digest.update(column.tobytes())
    classes, warnings = known.fields.classes, list[str]()
    if known.fields.label is not None and not classes:  # counted over all splits, as in a build
        others = replace(known, given={name: records for name, records in known.given.items() if name != split})
        ids = [labels for labels in (table.labels, _class_ids(others, progress)) if labels is not None]
        classes = max(map(_numbered, ids), key=len)
        empty = sorted({*range(len(classes))}.difference(*map(np.ndarray.tolist, ids)))
        if empty and known.fields.is_guess:
            message = (
                f"class ids run from 0 to {len(classes) - 1}, and these have no records: {format_some(empty, _SHOWN)}"
            )
            warnings.append(f"{message}; -1 is no class")
    identity, version = digest.hexdigest()[:32], known.version or _NOT_WITNESSED
    known = replace(known, given={split: known.given[split]}, latency="disk", identity=identity, version=version)
    splits = {split: row_range(0, len(table))}
    source = Source(ROOT, classes, (b"",) * len(classes), table, splits, SequenceReader(known, 1))
    if missing:
        message = f"{len(missing)} of the {len(table)} records of {split} have a path that leads to no file"
        warnings.append(f"{message}, such as {os.fsdecode(missing[0])!r}")
    return replace(source, listing_warnings=tuple(warnings))


def _index(
    records: RecordSequence, record_fields: RecordFields, progress: Progress | None
) -> tuple[ItemTable, list[bytes]]:
    """Return the table of a sequence, and the paths of images that lead to no file; refuse a class that is not valid.

    Records are read if their library states no labels; those of a list are read for their images, too.
    """
    name, image = record_fields.roles.label, record_fields.roles.image
    fillable = {extra for extra, field in record_fields.roles.extra.items() if field.missing is not None}
    stated = None if name is None else _trusted_labels(records, name)
    images = stated_images(records, image)
    reads = (name is not None and stated is None) or (images is None and isinstance(records, (list, tuple)))
    names, labels, sizes, are_files = GrowingBlobs(), GrowingColumn("i"), GrowingColumn("q"), GrowingColumn("i")
    wrong: list[str] = []
    missing: list[bytes] = []
    for position in range(len(records)):
        if progress is not None and position % _REPORT_EVERY == 0:
            progress(done=position, total=len(records), size_bytes=0, rejects=0)
        record = _readable(records, position) if reads else {}
        labelled = record if name is None or stated is None else {name: stated[position]}
        for extra in fillable & (record or {}).keys():
            record_fields.value(extra, record or {})
        label = -1
        try:
            label = -1 if labelled is None else record_fields.label_of(labelled)
        except SourceError as error:
            wrong.append(f"record {position}: {error}")
        path, size = path_and_size((record or {}).get(image)) if images is None else images[position]
        is_file = size is None and bool(path) and not is_web(path) and from_uri(path).is_local
        if is_file:
            try:
                size = os.stat(path).st_size  # noqa: PTH116 - bytes
            except (OSError, ValueError):
                missing.append(path)
                size = 0
        names.append((os.path.abspath(path) if is_file else path) or b"%d" % position)  # noqa: PTH100 - bytes
        labels.append(label)
        sizes.append(-1 if size is None else size)
        are_files.append(is_file)
    if wrong:
        message = f"{len(wrong)} of {len(records)} records of {ROOT} have no class that is right"
        raise SourceError(f"{message}; the first is {wrong[0]}")
    table = ItemTable(
        paths=names.finish(),
        labels=labels.finish(),
        sizes=sizes.finish(),
        numbers=row_range(0, len(records)),
        objects=np.broadcast_to(np.int32(-1), len(records)),
        columns={"is_file": are_files.finish()},
    )
    return table, missing


def _label_of_all(
    given: Mapping[str, RecordSequence], filled: RecordSequence, name: str, progress: Progress | None
) -> fields.Label | None:
    """Return the field of the labels of all records, with the names among them in the order of their bytes.

    None if the first is a whole number, or any is a fraction.
    """
    if not isinstance(_label_at(filled, 0, name), (str, float, np.floating)):
        return None
    labels = [*_all_labels(given, name, progress)]
    if any(isinstance(label, (float, np.floating)) and label % 1 for label in labels if label == label):  # noqa: PLR0124 - NaN
        return None
    # Any other text cannot be the name of a class, and makes its record a reject.
    names = {text for text in labels if isinstance(text, str) and text and text.isprintable()}
    return fields.Label(sorted(names, key=os.fsencode) or None)


def _numbered(labels: NDArray[np.int32] | None) -> tuple[bytes, ...]:
    """Return names for classes without names, up to the largest id in ``labels`` that a class can have."""
    ids = np.empty(0, np.int32) if labels is None else labels[labels < MAX_CLASSES]
    return tuple(b"%d" % number for number in range(int(ids.max(initial=-1)) + 1))


def _class_ids(known: _Sequences, progress: Progress | None) -> NDArray[np.int32] | None:
    """Return the class id of each record; -1 where it has none, or is a reject; None without classes."""
    name = known.fields.roles.label
    if name is None:
        return None
    column = GrowingColumn("i")
    for value in _all_labels(known.given, name, progress):
        try:
            label = -1 if value is None else known.fields.label_of({name: value})
        except SourceError:
            label = -1
        column.append(label if label < MAX_CLASSES else -1)
    return column.finish()


def _all_labels(given: Mapping[str, RecordSequence], name: str, progress: Progress | None) -> Iterator[Any]:
    """Yield the label of each record of all splits; None if it cannot be read, which makes the record a reject.

    No image is read if the library of the records states the labels, and some records agree.
    """
    done, total = 0, sum(map(len, given.values()))
    for records in given.values():
        stated = _trusted_labels(records, name)
        for label in (_label_at(records, at, name) for at in range(len(records))) if stated is None else stated:
            if progress is not None and done % _REPORT_EVERY == 0:
                progress(done=done, total=total, size_bytes=0, rejects=0)
            yield label
            done += 1


def _trusted_labels(records: RecordSequence, name: str) -> Sequence[Any] | None:
    """Return the labels that the library of the records states, if some records agree."""
    stated = stated_labels(records, name)
    trusted = stated is not None and all(
        _label_at(records, at, name) in (None, stated[at]) for at in random_sample(_SAMPLED, len(records)).tolist()
    )
    return stated if trusted else None


def _label_at(records: RecordSequence, position: int, name: str) -> Any:
    return (_readable(records, position) or {}).get(name)


def _readable(records: RecordSequence, position: int) -> Mapping[str, Any] | None:
    """Return a record; None if it cannot be read, which is reported when its sample is used."""
    try:
        return read_record(records, position)
    except SourceError:
        return None


class RecordStream(RecordReader):
    """Reads iterables of records, each once and in order.

    The column ``record`` of an item is its record, or what is wrong with it. For one thread, except `load`.

    Args:
        given: The iterables, by split.
        chosen: Their fields; None to find them out.

    Attributes:
        names: The splits, in order.
        size_bytes: Bytes of the images of all records so far.
        shard_digests: A digest of the values of each shard; added by the code that writes the shards.

    Raises:
        ConfigError: The fields are not those of records, or cannot be found out.
        SourceError: There are no records, or the first one is not a record.
    """

    def __init__(self, given: Mapping[str, Given], chosen: Mapping[str, Field] | None) -> None:
        given = {name: undecoded(records) for name, records in given.items()}
        self.names = tuple(given)
        self._following = {name: enumerate(cast("Iterable[Any]", records)) for name, records in given.items()}
        self._ahead: dict[str, deque[tuple[int, Any]]] = {name: deque() for name in given}
        for name, ahead in self._ahead.items():
            ahead.extend(islice(self._read(name), _AHEAD))
            if ahead:
                break
        else:
            raise SourceError(f"{ROOT} holds no records")
        record_fields = chosen if chosen is not None else fields_of_first(given[name], lambda: ahead[0][1])
        values = RecordFields.of(record_fields, is_guess=chosen is None)
        records = []
        for _, record in ahead:
            with contextlib.suppress(SourceError):
                records.append(as_record(record))
        super().__init__(values, latency_of([uri_of(record.get(values.roles.image)) for record in records]))
        with contextlib.suppress(SourceError):
            self._refuse_texts(as_record(ahead[0][1]), record_fields)
        self.size_bytes = 0
        self.shard_digests: list[str] = []
        self._first = np.empty(len(ahead), object)

    def source(self) -> Source:
        """Return the first records of the first split that has any as a source, without consuming them."""
        name, ahead = next((name, ahead) for name, ahead in self._ahead.items() if ahead)
        builder = ItemTableBuilder()
        for at, pair in enumerate(ahead):
            item = self.item(*pair)[0]
            builder.add(replace(item, columns={}))
            self._first[at] = item.columns["record"]
        table = replace(builder.finish(), columns={"record": self._first})
        self.size_bytes = 0
        classes = self.record_fields.classes
        return Source(ROOT, classes, (b"",) * len(classes), table, {name: row_range(0, len(table))}, self)

    def _refuse_texts(self, first: Mapping[str, Any], record_fields: Mapping[str, Field]) -> None:
        """Refuse labels that are text, or may be ids, if the classes are not known."""
        if self.record_fields.may_be_ids and not first["label"] % 1 > 0:
            message = f"field 'label' of the first record is {first['label']}, which may be the id of a class"
            typed = fields.as_typed({**record_fields, "label": fields.Label()})
            raise ConfigError(f"{message}, and records without a length are read only once; give {typed}, or Float()")
        label, name = self.record_fields.label, self.record_fields.roles.label
        if label is not None and name is not None and label.names is None and isinstance(first.get(name), str):
            message = f"field {name!r} of the first record is text, and records without a length are read only once"
            remedy = f"give the names of all classes: fields={{{name!r}: stoker.fields.Label([...]), ...}}"
            raise ConfigError(f"{message}; {remedy}")

    @property
    def identity(self) -> str:
        content = [self.record_fields.description(), *self.shard_digests]
        return hashlib.sha256("\n".join(content).encode()).hexdigest()[:32]

    def records(self, split: str) -> Iterator[tuple[int, Any]]:
        """Yield the position of each record not yielded yet, and the record; those in the table are freed."""
        self._first[:] = None
        ahead = self._ahead[split]
        while ahead:
            yield ahead.popleft()
        yield from self._read(split)

    def _read(self, split: str) -> Iterator[tuple[int, Any]]:
        following, position = self._following[split], -1
        while True:
            try:
                position, record = next(following)
            except StopIteration:
                return
            except (MemoryError, StokerError):
                raise
            except Exception as error:
                where = "before its first record" if position < 0 else f"after record {position}"
                message = f"the source raised {type(error).__name__} {where} of {split}: {error}"
                raise SourceError(f"{message}; what is finished is kept: build again to resume") from error
            yield position, record

    def item(self, position: int, record: Any) -> tuple[Item, bytes]:
        """Return the item of a record and a digest of its values."""
        try:
            values: Mapping[str, Any] | SourceError = as_record(record)
        except SourceError as error:
            values = error
        size_bytes, digest = 0, digest_of(str(values))
        if isinstance(values, Mapping):
            size_bytes = size_of(values.get(self.record_fields.roles.image))
            digest = self.record_fields.digest(values)
        self.size_bytes += size_bytes
        return Item(b"record %d" % position, -1, size_bytes, position, columns={"record": values}), digest

    def load(self, item: Item) -> SourceImage:
        values = item.columns["record"]
        if isinstance(values, SourceError):
            raise values
        return self.record_fields.read(item.number, values)


def is_sequence(records: object) -> bool:
    """Return whether records are read by position, as they have a length and items.

    An ``IterableDataset`` of PyTorch may have a length, and inherits a method for items that raises.
    """
    if any(cls.__name__ == "IterableDataset" for cls in type(records).__mro__):
        return False
    return hasattr(records, "__len__") and hasattr(records, "__getitem__")


def undecoded(records: Any) -> Any:
    """Return a dataset of the library ``datasets`` with images as files instead of pixels; anything else unchanged.

    Its format is set to Python: in other formats structs hold arrays or tensors, and rows of tables are not records. A
    transform that the user has set stays, with pixels if it fails on files.
    """
    given = records
    features = getattr(records, "features", None)
    form = getattr(records, "format", None) if isinstance(features, Mapping) else None
    if isinstance(form, Mapping) and form.get("type") not in (None, "custom"):
        records = records.with_format(None, columns=form.get("columns"))
    for name, feature in features.items() if isinstance(features, Mapping) else ():
        if type(feature).__name__ == "Image" and hasattr(records, "cast_column"):
            records = records.cast_column(name, type(feature)(decode=False))
    if isinstance(form, Mapping) and form.get("type") == "custom" and len(given):
        try:
            records[0]
        except Exception:  # noqa: BLE001 - any function may raise any
            return given
    return records


def version_of(records: Any) -> str:
    """Return the fingerprint of a dataset of the library ``datasets``; empty for anything else."""
    fingerprint = getattr(records, "_fingerprint", None)
    return fingerprint if isinstance(fingerprint, str) and hasattr(records, "features") else ""


def open_datasets(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `stoker.Dataset` of each split; empty if all splits are records of a program.

    Raises:
        ConfigError: Only some of the splits are a `stoker.Dataset`.
    """
    ours = {split: records for split, records in given.items() if hasattr(records, "source_of")}
    if ours and len(ours) < len(given):
        other = next(split for split in given if split not in ours)
        message = f"{next(iter(ours))} is a stoker.Dataset, and {other} is not"
        raise ConfigError(f"{message}; open what it is of, too: stoker.open(records)")
    return ours


def find_fields(records: Any, first: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields of records: as their library states them, otherwise from the first record."""
    features: Any = getattr(records, "features", None)
    schema: Any = getattr(features, "arrow_schema", ())
    specs = features.to_dict() if schema else {}
    known = {each.name: field_of_feature(each.name, each.type, specs[each.name]) for each in schema}
    stated = {name: _named(name, field, features[name]) for name, field in known.items() if field is not None}
    record_fields = stated | fields.infer({name: value for name, value in first.items() if name not in stated})
    if isinstance(record_fields.get("label"), fields.Label) and (names := _names_of_classes(records)):
        record_fields["label"] = fields.Label(names)
    if "label" not in record_fields and not any(isinstance(field, fields.Label) for field in record_fields.values()):

        def advice(name: str) -> str:
            return fields.as_typed({**record_fields, name: fields.Label()})

        values = {
            name: [value] for name, value in first.items() if record_fields[name] in (fields.Int(), fields.Text())
        }
        if (name := find_label("the source", values, [], advice)) is not None:
            record_fields[name] = fields.Label()
    return {name: record_fields[name] for name in first} if first else record_fields


def _names_of_classes(records: Any) -> list[str]:
    """Return the names of the classes of a dataset of torchvision; empty if two are the same.

    Classes of ImageNet have several names, which two classes may share, and a WordNet id each. A ``Subset`` of PyTorch
    has the classes of its dataset, a ``ConcatDataset`` those of its datasets if all have the same.
    """
    kinds = {cls.__name__ for cls in type(records).__mro__}
    if "Subset" in kinds and hasattr(records, "dataset"):
        return _names_of_classes(records.dataset)
    if "ConcatDataset" in kinds and getattr(records, "datasets", None):
        first, *others = map(_names_of_classes, records.datasets)
        return first if all(other == first for other in others) else []
    for classes in (getattr(records, "classes", None), getattr(records, "wnids", None)):
        if isinstance(classes, Sequence) and not isinstance(classes, str):
            names = [", ".join(map(str, name)) if isinstance(name, (list, tuple)) else str(name) for name in classes]
            if len(set(names)) == len(names):
                return names
    return []


def _named(name: str, field: Field, feature: Any) -> Field:
    """Return the field that its name tells, as in `stoker.fields.infer`, if the feature says only how it is stored."""
    if name == "label" and isinstance(field, (fields.Int, fields.Text)) and feature.dtype != "bool":
        return fields.Label()
    image = fields.field_of_image(name) if field == fields.Image() else fields.named_image(name)
    if image is not None and field in (fields.Image(), fields.Text(), fields.Bytes()):
        return image
    return fields.Boxes() if name == "boxes" and isinstance(field, fields.Array) else field


def stated_images(records: Any, name: str) -> list[tuple[bytes, int | None]] | None:
    """Return the path and the size of each image, as `path_and_size` does; None if they are not stated."""
    features = getattr(records, "features", None)
    kind = features.get(name) if isinstance(features, Mapping) else None
    if getattr(records, "format", {}).get("type", "") is not None:
        return None
    if type(kind).__name__ == "Value" and str(getattr(kind, "dtype", "")) == "string":
        return [(os.fsencode(path or ""), None) for path in records[name]]
    if type(kind).__name__ != "Image":
        return None
    compute = importlib.import_module("pyarrow.compute")  # `datasets` has imported it
    column = records.data.column(name)
    paths, sizes = compute.struct_field(column, "path"), compute.binary_length(compute.struct_field(column, "bytes"))
    if (chosen := records._indices) is not None:
        paths, sizes = paths.take(chosen.column(0)), sizes.take(chosen.column(0))
    return [(os.fsencode(path or ""), size) for path, size in zip(paths.to_pylist(), sizes.to_pylist(), strict=True)]


def stated_labels(records: Any, name: str) -> Sequence[Any] | None:
    """Return the labels of all records, without reading an image; None if they are not stated.

    Those of torchvision may differ from the labels of its records, which a ``target_transform`` changes.
    """
    labels: Any = None
    features = getattr(records, "features", None)
    if isinstance(features, Mapping) and name in features:
        labels = records[name] if getattr(records, "format", {}).get("type", "") is None else None
    elif name == "label":
        labels = getattr(records, "targets", None)
        labels = labels.tolist() if hasattr(labels, "tolist") else labels
    return labels if hasattr(labels, "__len__") and len(labels) == len(records) else None
