"""Records that a program has in sequences, which are read by position."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from stoker import _native, fields
from stoker.config import full_split_name
from stoker.errors import ConfigError, SourceError, StokerError
from stoker.forks import PerProcess
from stoker.sources.columns import GrowingBlobs, GrowingColumn, RecordNames, new_column, row_range
from stoker.sources.items import SPLITS, Item, ItemTable
from stoker.sources.known_datasets import is_sequence, stated_images, stated_labels, undecoded, version_of
from stoker.sources.reader import Extents, IndexedReader, Latency, SourceImage
from stoker.sources.reading import in_order
from stoker.sources.record_reader import (
    ROOT,
    RecordFields,
    RecordReader,
    as_record,
    digest_of,
    fields_of_first,
    latency_of,
    path_and_size,
    place_of,
    size_of,
)
from stoker.sources.source import Source
from stoker.storage import from_uri, is_web
from stoker.types import MAX_CLASSES, Box, Field, Progress

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray


_SAMPLED = 16
_REPORT_EVERY = 64
_UNREAD, _UNREADABLE = 0, 1
"""The digests of a record that was not read yet, and of one that raises an error."""
_USUAL_BYTES = 100_000


def given_splits(source: Given | Mapping[str, Given], split: str | None) -> dict[str, Given]:
    """Return the records of each split, in the order of the splits.

    Args:
        source: Records, or a mapping from names of splits to them.
        split: Which split the records are; None for train.

    Raises:
        ConfigError: A split is unknown or is named twice, or something cannot be gone through.
    """
    if not isinstance(source, Mapping):
        source = {split or "train": source}
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
            what = f"the source is of type {type(records).__name__}"
            raise ConfigError(
                f"{what}; give a path, a sequence or an iterable of records, or a mapping of splits to such"
            )
    return {name: source[named[name]] for name in SPLITS if name in named}


class RecordSequence(Protocol):
    """Records that are read by position."""

    def __len__(self) -> int:
        """Return how many there are."""

    def __getitem__(self, position: int, /) -> Any:
        """Return one record."""


Given = RecordSequence | Iterable[Any]
"""Records as a program gives them."""


class SequenceReader(RecordReader, IndexedReader):
    """Reads records of sequences: an item's ``number`` is its position in all of them, one after another.

    Args:
        given: The sequences.
        record_fields: As of `RecordReader`.
        latency: The same.
        identity: Of the source.
        version: What stands for all of their values; empty where nothing does, so that they are witnessed as read.
        readers: How many threads may read a record at the same time.
    """

    has_witness = True

    def __init__(
        self,
        given: Sequence[RecordSequence],
        record_fields: RecordFields,
        latency: Latency,
        identity: str,
        version: str,
        readers: int,
    ) -> None:
        super().__init__(record_fields, latency)
        self._given = given
        self._identity = identity
        self._version = version
        self._readers = readers
        self._turns = PerProcess(partial(threading.Semaphore, readers))
        self._starts = np.cumsum([0, *map(len, given)])
        # What stands for the values of each record, once it was read.
        self._digests = new_column(0 if version else int(self._starts[-1]), np.uint64)

    @property
    def identity(self) -> str:
        return self._identity

    def load(self, item: Item) -> SourceImage:
        sequence, position = self._place(item.number)
        image = self.record_fields.read(position, self._record(sequence, position))
        if item.label < 0 or image.label is None:
            return image
        if image.label != item.label:
            message = f"its label is the class id {image.label}, but was {item.label} when the labels were read"
            raise SourceError(f"{message}; give records that do not change")
        return replace(image, label=None)

    def values(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        record = self._record(*self._place(item.number))
        return self.record_fields.extra_of(record, self.fields if names is None else names)

    def boxes(self, item: Item) -> list[Box]:
        if self.record_fields.boxes is None:
            return []
        return self.record_fields.boxes_of(self._record(*self._place(item.number)))

    def extents(self, table: ItemTable) -> Extents:
        """Return files as they are if all images are files of this machine; otherwise records are read for them."""
        if cast("NDArray[np.int32]", table.columns["is_file"]).all():
            return Extents(b"", table)
        return Extents(os.fsencode(ROOT), table, load=partial(self._image, table.numbers))

    def _image(self, numbers: NDArray[np.int64], row: int) -> bytes | NDArray[Any]:
        return self.record_fields.image_of(self._record(*self._place(int(numbers[row]))))[0]

    def witness(self, rows: NDArray[np.int64]) -> str:
        if self._version:
            return self._version
        for _ in in_order(self._note, rows[self._digests[rows] == _UNREAD].tolist(), self._readers):
            pass
        return hashlib.sha256(self._digests[rows].astype("<u8").tobytes()).hexdigest()

    def _note(self, number: int) -> None:
        with contextlib.suppress(SourceError):
            self._record(*self._place(number))

    def _place(self, number: int) -> tuple[int, int]:
        """Return the sequence of a record, and its position there."""
        sequence = int(np.searchsorted(self._starts, number, "right")) - 1
        return sequence, number - int(self._starts[sequence])

    def _record(self, sequence: int, position: int) -> Mapping[str, Any]:
        """Return a record, and store the digest of its values."""
        digest = _UNREADABLE
        try:
            with self._turns.get():
                record = read_record(self._given[sequence], position)
            if not self._version:
                values = {name: record.get(name) for name in self.record_fields.names}
                digest = int.from_bytes(digest_of(values)[:8], "little")
        finally:
            if not self._version:
                self._digests[self._starts[sequence] + position] = digest
        return record


def read_record(records: RecordSequence, position: int) -> Mapping[str, Any]:
    """Return the record at a position."""
    try:
        record = records[position]
    except (MemoryError, StokerError):
        raise
    except Exception as error:
        raise SourceError(f"reading it raised {type(error).__name__}: {error}") from error
    return as_record(record)


def list_records(
    given: Mapping[str, RecordSequence],
    chosen: Mapping[str, Field] | None,
    progress: Progress | None = None,
    *,
    readers: int = 1,
    with_labels: bool = False,
) -> Source:
    """Return sequences of records as a source.

    Only some records are read, unless their labels are text and nothing says which classes there are, or the class of
    each is needed before any image is loaded: then the labels of all are.

    Args:
        given: The sequences, by split.
        chosen: What their fields are; None to find out.
        progress: Called after every few records whose labels are read.
        readers: How many threads may read a record at the same time.
        with_labels: Whether the table has the class of each record.

    Raises:
        ConfigError: The fields are not those of records, or cannot be found out.
        SourceError: There are no records, or the first one cannot be read.
    """
    known = _Sequences.look(given, chosen, progress)
    labels = _class_ids(known, progress) if with_labels else None
    classes = known.fields.classes
    if labels is not None and not classes:
        classes = tuple(b"%d" % number for number in range(int(labels.max()) + 1))
    starts = np.cumsum([0, *map(len, known.given.values())])
    total = int(starts[-1])
    numbers = row_range(0, total)  # the rows of the splits, too: of few bytes a record
    sample = known.sample
    return Source(
        root=ROOT,
        classes=classes,
        texts=(b"",) * len(classes),
        table=ItemTable(
            paths=RecordNames(numbers, starts[:-1]),
            labels=np.broadcast_to(np.int32(-1), total) if labels is None else labels,
            sizes=np.broadcast_to(np.int64(sample.size_bytes), total),
            numbers=numbers,
            objects=np.broadcast_to(np.int32(-1), total),
        ),
        splits={name: numbers[starts[at] : starts[at + 1]] for at, name in enumerate(known.given) if known.given[name]},
        reader=SequenceReader(
            [*known.given.values()], known.fields, sample.latency, sample.identity, known.version, readers
        ),
    )


def index_records(
    given: Mapping[str, RecordSequence],
    split: str,
    chosen: Mapping[str, Field] | None = None,
    progress: Progress | None = None,
) -> Source:
    """Return one of some sequences of records as a source to be read in any order, as often as somebody asks.

    Its table has the class of each record, and the path and the bytes of its image as far as they are known without
    making pixels. Records are read for that, once, unless their library states it; a list has them at hand.

    Args:
        given: The sequences, by split; names of classes are those of all.
        split: Which of them.
        chosen: What their fields are; None to find out.
        progress: Called after every few records that are read.

    Raises:
        ConfigError: The fields are not those of records, or cannot be found out.
        SourceError: There are no records, the first one cannot be read, or a class is none.
    """
    known = _Sequences.look(given, chosen, progress)
    if known.fields.is_guess and len(known.given[split]):
        known.fields.boxes_of(read_record(known.given[split], 0))  # all may be in pixels where the first are
    index = _RecordIndex(known.given[split], known.fields)
    index.fill(progress)
    table, missing = index.table(), index.missing
    digest = hashlib.sha256(known.sample.identity.encode() + known.version.encode())
    for column in (table.labels, table.sizes):
        digest.update(column.tobytes())
    sequence = [known.given[split]]
    reader = SequenceReader(sequence, known.fields, "disk", digest.hexdigest()[:32], "not witnessed", 1)
    message = f"{len(missing)} of the {len(table)} records of {split} have a path that leads to no file"
    return Source(
        root=ROOT,
        classes=known.fields.classes,
        texts=(b"",) * len(known.fields.classes),
        table=table,
        splits={split: row_range(0, len(table))},
        reader=reader,
        listing_warnings=(f"{message}, such as {os.fsdecode(missing[0])!r}",) if missing else (),
    )


@dataclass(frozen=True, slots=True)
class _Sequences:
    """What is known of sequences of records once a few of them were read."""

    given: Mapping[str, RecordSequence]  # the sequences, by split; of the library ``datasets`` without pixels
    fields: RecordFields  # what makes images of their records
    sample: _Sample  # what a few of them tell
    version: str  # what their library says stands for all of their values; empty where it says nothing

    @classmethod
    def look(
        cls, given: Mapping[str, RecordSequence], chosen: Mapping[str, Field] | None, progress: Progress | None
    ) -> Self:
        """Find out the fields, and the names of the classes where labels are text."""
        versions = [version_of(records) for records in given.values()]
        version = f"fingerprints {' '.join(versions)}" if all(versions) else ""
        given = {name: undecoded(records) for name, records in given.items()}
        lengths = {name: len(records) for name, records in given.items()}
        if not sum(lengths.values()):
            raise SourceError(f"{ROOT} holds no records")
        filled = next(records for records in given.values() if len(records))
        record_fields = chosen if chosen is not None else fields_of_first(filled, lambda: read_record(filled, 0))
        reader = RecordFields.of(record_fields, is_guess=chosen is None)
        name = reader.roles.label
        has_no_names = reader.label is not None and reader.label.names is None
        if has_no_names and name is not None and (names := _class_names(given, filled, name, progress)):
            reader = RecordFields.of({**record_fields, name: fields.Label(names)}, is_guess=chosen is None)
        return cls(given, reader, _Sample(given, lengths, reader), version)


class _RecordIndex:
    """The columns of the records of one sequence.

    Attributes:
        missing: Paths of images that lead to no file.
    """

    def __init__(self, records: RecordSequence, record_fields: RecordFields) -> None:
        self._records, self._fields = records, record_fields
        self._names, self._labels, self._sizes = GrowingBlobs(), GrowingColumn("i"), GrowingColumn("q")
        self._is_file = GrowingColumn("i")
        self._wrong: list[str] = []
        self.missing: list[bytes] = []

    def fill(self, progress: Progress | None) -> None:
        """Add every record; those are read of which neither their library nor a list tells enough."""
        name, image = self._fields.roles.label, self._fields.roles.image
        labels = None if name is None else _trusted_labels(self._records, name)
        images = stated_images(self._records, image)
        reads = (name is not None and labels is None) or (images is None and isinstance(self._records, (list, tuple)))
        for position in range(len(self._records)):
            if progress is not None and position % _REPORT_EVERY == 0:
                progress(done=position, total=len(self._records), size_bytes=0, rejects=0)
            record: Mapping[str, Any] | None = {}
            if reads:
                try:
                    record = read_record(self._records, position)
                except SourceError:  # said where its sample is used
                    record = None
            self._add_label(position, record if labels is None else {name: labels[position]})
            known = path_and_size((record or {}).get(image)) if images is None else images[position]
            self._add_image(position, *known)

    def _add_label(self, position: int, record: Mapping[Any, Any] | None) -> None:
        try:
            label = -1 if record is None else self._fields.label_of(record)
        except SourceError as error:
            self._wrong.append(f"record {position}: {error}")
            label = -1
        self._labels.append(label)

    def _add_image(self, position: int, path: bytes, size: int | None) -> None:
        is_file = size is None and bool(path) and not is_web(path) and from_uri(path).is_local
        if is_file:
            try:
                size = os.stat(path).st_size  # noqa: PTH116 - bytes
            except (OSError, ValueError):
                self.missing.append(path)
                size = 0
        self._names.append((os.path.abspath(path) if is_file else path) or b"%d" % position)  # noqa: PTH100 - bytes
        self._sizes.append(-1 if size is None else size)
        self._is_file.append(is_file)

    def table(self) -> ItemTable:
        """Return the columns; `SourceError` if the class of a record is none."""
        if self._wrong:
            message = f"{len(self._wrong)} of {len(self._records)} records of {ROOT} have no class that is right"
            raise SourceError(f"{message}; the first is {self._wrong[0]}")
        count = len(self._records)
        return ItemTable(
            paths=self._names.finish(),
            labels=self._labels.finish(),
            sizes=self._sizes.finish(),
            numbers=row_range(0, count),
            objects=np.broadcast_to(np.int32(-1), count),
            columns={"is_file": self._is_file.finish()},
        )


def _class_names(
    given: Mapping[str, RecordSequence], filled: RecordSequence, name: str, progress: Progress | None
) -> list[str]:
    """Return the names among the labels of all records, in the order of their bytes; empty where labels are numbers."""
    if not isinstance(_label_at(filled, 0, name), str):
        return []
    labels = _all_labels(given, name, progress)
    # Another text is no name of a class, and makes its record a reject.
    return sorted({text for text in labels if isinstance(text, str) and text and text.isprintable()}, key=os.fsencode)


def _class_ids(known: _Sequences, progress: Progress | None) -> NDArray[np.int32] | None:
    """Return the class id of each record; -1 where it has none, or is a reject; None without classes."""
    name = known.fields.roles.label
    if name is None:
        return None
    column = GrowingColumn("i")
    for value in _all_labels(known.given, name, progress):
        try:
            label = known.fields.label_of({name: value})
        except SourceError:
            label = -1
        column.append(label if label < MAX_CLASSES else -1)
    return column.finish()


def _all_labels(given: Mapping[str, RecordSequence], name: str, progress: Progress | None) -> Iterator[Any]:
    """Yield the label of each record of all splits, as `_labels` does."""
    total = sum(map(len, given.values()))
    for done, label in enumerate(chain.from_iterable(_labels(records, name) for records in given.values())):
        if progress is not None and done % _REPORT_EVERY == 0:
            progress(done=done, total=total, size_bytes=0, rejects=0)
        yield label


def _labels(records: RecordSequence, name: str) -> Iterator[Any]:
    """Yield the label of each record; None where it cannot be read, which makes the record a reject.

    No image is read where the library of the records states the labels, and some records have the same.
    """
    stated = _trusted_labels(records, name)
    yield from (_label_at(records, at, name) for at in range(len(records))) if stated is None else stated


def _trusted_labels(records: RecordSequence, name: str) -> Sequence[Any] | None:
    """Return the labels that the library of the records states, if some records have the same."""
    stated = stated_labels(records, name)
    trusted = stated is not None and all(
        _label_at(records, at, name) in (None, stated[at]) for at in _sampled(len(records))
    )
    return stated if trusted else None


def _label_at(records: RecordSequence, position: int, name: str) -> Any:
    try:
        return read_record(records, position).get(name)
    except SourceError:
        return None


def _sampled(length: int) -> list[int]:
    """Return the positions of some records, the same each time."""
    return [*map(int, _native.permute(0, min(_SAMPLED, length), length, 0, 0))]


class _Sample:
    """What a few records tell of all.

    Attributes:
        size_bytes: Mean bytes of their images.
        latency: What reading these waits for.
        identity: Of the whole source.
    """

    def __init__(self, given: Mapping[str, RecordSequence], lengths: Mapping[str, int], reader: RecordFields) -> None:
        digest = hashlib.sha256()
        roles = reader.roles
        digest.update(repr((sorted(lengths.items()), reader.description())).encode())
        sizes, places = [], []
        for name, length in lengths.items():
            for position in _sampled(length):
                try:
                    record = read_record(given[name], position)
                except SourceError:
                    continue
                digest.update(digest_of({field_name: record.get(field_name) for field_name in reader.names}))
                sizes.append(size_of(record.get(roles.image)))
                places.append(place_of(record.get(roles.image)))
        self.latency = latency_of(places)
        known = [size for size in sizes if size]
        self.size_bytes = max(1, sum(known) // len(known)) if known else _USUAL_BYTES
        self.identity = digest.hexdigest()[:32]
