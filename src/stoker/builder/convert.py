"""Items to framed records or rejects: reading, converting, framing."""

from __future__ import annotations

import errno
import resource
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from stoker import _native
from stoker.errors import DATA_ERRORS, SourceError, StorageError
from stoker.fields import encode_fields
from stoker.format import FramedRecords, ItemReject, StoredSample
from stoker.recipe import SNIFF_BYTES, StoredImage, Storing, check, convert, is_turned, plain_storing, sniff
from stoker.sources import RecordPixels
from stoker.storage import location, new_pool
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from stoker.format import Schema
    from stoker.recipe import Recipe
    from stoker.sources import Item, Source, SourceImage
    from stoker.types import Box, Features

    _PlainFile = tuple[bytes, int, _native.RecordTemplate]
    """Path, bytes if known, and template of its record."""

    Load = Callable[[Item, str], SourceImage]
    """Returns the image of an item of a split, as `stoker.sources.Source.load` does."""

AT_ONCE_IN_STORES = 64
"""Images of a store that are requested at the same time: at 200 ms a request these are 320 a second."""

AT_ONCE_BY_URL = 128
"""Images of web servers that are requested at the same time: some servers take seconds to answer or to fail."""

_FILES_OF_A_REQUEST = 6
"""Open files that a request may need: a socket, its twin, idle connections and others. If this process may open fewer
for each, it makes fewer requests."""

_AHEAD_BYTES = 2**28
"""The most bytes that may wait to be written while an image is slow to arrive: no more is requested."""
_LOOK_SECONDS = 0.2

_TEMPLATE_BYTES = 2**26
"""The most bytes of templates of records in memory: one for each class, and one-hot labels make them long."""
_TEMPLATE_OVERHEAD = 4096

# Placeholders in a template for the values that differ between records. They are recognised by their identity.
_IMAGE, _FILENAME, _WIDTH, _HEIGHT = b"the image", b"the name", 2**40, 2**41
_SLOTS = {"image": _IMAGE, "filename": _FILENAME, "width": _WIDTH, "height": _HEIGHT}

UNREADABLE = "unreadable"
"""The content of an item whose file cannot be read."""

ITEM_ERRORS = (*DATA_ERRORS, OSError)
"""Errors of a single item; for an ``OSError``, see `is_item_error`."""

# Not the item is at fault, but the machine or the server of its file system: to continue would reject everything.
_OF_THE_MACHINE = frozenset(
    {
        errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.ENODEV,
        errno.ENXIO, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ECONNREFUSED,
    }
)  # fmt: skip


@dataclass(slots=True)
class Outcome:
    """The records and rejects of some consecutive items."""

    records: list[FramedRecords] = field(default_factory=list)  # the framed records, in the order of the items
    rejects: list[ItemReject] = field(default_factory=list)  # the items without a record
    formats: Counter[tuple[str, str]] = field(default_factory=Counter)  # records by image format and how it was made
    # records whose image has another format than its source, counted by the format of the source
    converted: Counter[str] = field(default_factory=Counter)
    annotation_errors: list[str] = field(default_factory=list)  # damaged annotations: their images have no boxes
    # records counted by their class, where only the source image, and not the item, tells the class
    labels: Counter[int] = field(default_factory=Counter)
    boxes: Counter[int] = field(default_factory=Counter)  # boxes with classes of their own, counted by class

    def add(self, other: Outcome) -> None:
        """Append the outcome of the items that follow."""
        self.records += other.records
        self.add_notes(other)

    def add_notes(self, other: Outcome) -> None:
        """Append everything of an outcome but its records."""
        self.rejects += other.rejects
        self.formats += other.formats
        self.converted += other.converted
        self.annotation_errors += other.annotation_errors
        self.labels += other.labels
        self.boxes += other.boxes


class ItemConverter:
    """Turns items into framed records. Safe in any thread. Pickled without the list of items and without ``known``."""

    def __init__(self, source: Source, recipe: Recipe, schema: Schema) -> None:
        self.source = source
        self.recipe = recipe
        self.schema = schema.with_fields(source.fields)
        self.is_local = source.latency == "disk"  # whether no image waits for a network
        self._stores_boxes = schema.info(0).box_prefix is not None
        # Outcomes of items that were converted before, and rejects of items that are left out without being read. Both
        # are read-only once items are converted; only the rejects are pickled.
        self.known: Mapping[tuple[Item, str], Outcome] = {}
        self.dropped: Mapping[tuple[Item, str], ItemReject] = {}
        self._templates = _Templates()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "source": self.source.without_items(), "known": {}, "_templates": _Templates()}

    def convert(
        self, items: Sequence[Item], split: str, stopped: Callable[[], bool] | None = None, load: Load | None = None
    ) -> Outcome:
        """Convert items one after another, until ``stopped()``; ``load`` returns them if they are loaded ahead.

        One call of the core makes records of many plain local JPEGs, without the GIL.

        Raises:
            OSError: The process has run out of files or memory, or the store of the source fails or refuses
                everything. An item that is damaged itself becomes a reject.
        """
        outcome = Outcome()
        storing = plain_storing(self.recipe) if load is None and self.is_local else None
        plain = [] if storing is None else [self._plain_file(item, split) for item in items]
        at = 0
        while at < len(items) and not (stopped is not None and stopped()):
            built = 0 if storing is None else _build_plain(plain, at, storing, outcome)
            if built == 0:
                self._convert_one(items[at], split, load or self.source.load, outcome)
            at += built or 1
        return outcome

    def _convert_one(self, item: Item, split: str, load: Load, outcome: Outcome) -> None:
        if (item, split) in self.dropped:
            outcome.rejects.append(self.dropped[item, split])
            return
        known = self.known.get((item, split))
        if known is not None:
            outcome.add(known)
            return
        try:
            outcome.records.append(FramedRecords.of(self._record(item, load(item, split), outcome)))
        except ITEM_ERRORS as error:
            if isinstance(error, OSError) and not is_item_error(error, self.source.root):
                raise
            outcome.rejects.append(ItemReject(item.key, item.label, _reason(error)))

    def is_decided(self, item: Item, split: str) -> bool:
        """Return whether the outcome of an item is known, so that it need not be read."""
        return (item, split) in self.known or (item, split) in self.dropped

    def _plain_file(self, item: Item, split: str) -> _PlainFile | None:
        """Return an item as `_native.build_records` takes it; None if it has more than a file and a class."""
        path = self.source.plain_file(item, split)
        if path is None or item.label >= MAX_CLASSES or self.is_decided(item, split):
            return None
        return path, item.size_bytes, self._templates.of(item.label, self._features_of_class)

    def _features_of_class(self, label: int) -> Features:
        return self.schema.to_features(self._sample(label, _FILENAME, StoredImage(_IMAGE, _WIDTH, _HEIGHT), ()))

    def check(self, item: Item, split: str) -> tuple[str, Storing | ItemReject, bool]:
        """Return what an item holds and how a build will store it; only items with extra fields are converted.

        Damage inside a JPEG, or in an image that will be kept, is noticed only if the recipe's ``check`` is ``entropy``
        or ``decode``.

        Returns:
            The format in the words of `stoker.recipe.sniff`, or ``unreadable``, or ``pixels`` for those of a program;
            how the image will be stored, or its reject; and whether its EXIF orientation turns it.
        """
        kind = UNREADABLE
        try:
            loaded = self.source.load(item, split)
            kind = sniff(loaded.data[:SNIFF_BYTES]) if isinstance(loaded.data, bytes) else "pixels"
            _refuse_missing_object(item, loaded)
            storing = check(loaded.data, self.recipe, _crop(item, loaded))
            if self.source.fields:
                image = convert(loaded.data, self.recipe, _crop(item, loaded))
                encode_fields(self.source.fields, loaded.fields, RecordPixels(self.recipe, image))
            return kind, storing, isinstance(loaded.data, bytes) and is_turned(loaded.data)
        except ITEM_ERRORS as error:
            if isinstance(error, OSError) and not is_item_error(error, self.source.root):
                raise
            return kind, ItemReject(item.key, item.label, _reason(error)), False

    def _record(self, item: Item, loaded: SourceImage, outcome: Outcome) -> bytes:
        boxes = loaded.boxes
        if loaded.annotation_error is not None:
            outcome.annotation_errors.append(f"{item.key}: {loaded.annotation_error}")
        _refuse_missing_object(item, loaded)
        label = item.label if loaded.label is None else loaded.label
        if label >= MAX_CLASSES:
            raise SourceError(f"its label is {label}; the largest class id is {MAX_CLASSES - 1}")
        image = convert(loaded.data, self.recipe, _crop(item, loaded))
        sample = self._sample(label, loaded.filename, image, image.geometry.place(boxes) if boxes else boxes)
        if self.source.fields:
            features = encode_fields(self.source.fields, loaded.fields, RecordPixels(self.recipe, image))
            sample = replace(sample, fields=features)
        frame = _native.frame_example(self.schema.to_features(sample))
        if loaded.label is not None:
            outcome.labels[label] += 1
        if self._stores_boxes:
            outcome.boxes.update(box.label for box in sample.boxes if box.label is not None and box.label >= 0)
        outcome.formats[image.storing.format, image.storing.method] += 1
        if image.storing.converted is not None:
            outcome.converted[image.storing.converted] += 1
        return frame

    def _sample(self, label: int, filename: bytes, image: StoredImage, boxes: Sequence[Box]) -> StoredSample:
        classes, texts = self.source.classes, self.source.texts
        is_named = 0 <= label < len(classes)
        return StoredSample(
            image=image.data,
            format=image.storing.format,
            width=image.width,
            height=image.height,
            order=image.order,
            filename=filename,
            label=label,
            classes=len(classes),
            class_name=classes[label] if is_named else class_number(label),
            class_text=texts[label] if is_named else b"",
            boxes=boxes,
        )


class _Templates:
    """The templates of records of many classes, as far as they fit into `_TEMPLATE_BYTES`. Safe in any thread."""

    def __init__(self) -> None:
        self._templates: dict[int, _native.RecordTemplate] = {}
        self._size_bytes = 0

    def of(self, label: int, features_of: Callable[[int], Features]) -> _native.RecordTemplate:
        template = self._templates.get(label)
        if template is None:
            features = features_of(label)
            slots = {key: slot for key, (_, values) in features.items() if (slot := _slot_of(values)) is not None}
            same = {key: feature for key, feature in features.items() if key not in slots}
            template = _native.RecordTemplate(same, slots)
            self._size_bytes += template.size_bytes + _TEMPLATE_OVERHEAD
            if self._size_bytes > _TEMPLATE_BYTES:
                self._templates, self._size_bytes = {}, 0
            self._templates[label] = template
        return template


def _slot_of(values: Sequence[object]) -> str | None:
    return next((name for name, value in _SLOTS.items() if any(element is value for element in values)), None)


def _build_plain(files: Sequence[_PlainFile | None], at: int, storing: _native.JpegStoring, outcome: Outcome) -> int:
    """Convert some of the files from a position on, as far as they are plain, and return how many."""
    plain: list[_PlainFile] = []
    for file in islice(files, at, None):
        if file is None:
            break
        plain.append(file)
    if not plain:
        return 0
    data, sizes, crc32c, kept = _native.build_records(plain, storing)
    if sizes:
        outcome.records.append(FramedRecords(data.data, sizes, crc32c))
        for method, count in (("kept", kept), ("encoded", len(sizes) - kept)):
            if count:
                outcome.formats["jpeg", method] += count
    return len(sizes)


class LoadingAhead:
    """Loads many images at a time, in the order of the calls of `begin`. Serves one thread.

    Images that are loaded or converted, but not yet written, are bounded in bytes, whatever sizes the source claimed.
    The owner sets ``stop`` before `close`, so that no load waits for its store any longer.
    """

    def __init__(self, converter: ItemConverter, stop: threading.Event) -> None:
        self._converter = converter
        self._stop = stop
        self._pool = new_pool(request_threads(converter.source, 1), "stoker-load", stop)
        self._begun = self._written = 0
        self._held: Counter[int] = Counter()  # bytes, by the number of the call of `begin`
        self._changed = threading.Condition()

    def begin(self, items: Iterable[Item], split: str) -> Load:
        """Begin to load some items of a split, after those of the calls before.

        Returns:
            A function that returns the image of an item, in any thread. It waits for the image, raises what loading it
            raised, and holds the images as long as it lives.
        """
        loads: dict[Item, Future[SourceImage]] = {}
        for item in items:
            if item not in loads and not self._converter.is_decided(item, split):
                loads[item] = self._pool.submit(self._load, self._begun, item, split)
        self._begun += 1

        def load(item: Item, _split: str) -> SourceImage:
            return loads[item].result()

        return load

    def _load(self, number: int, item: Item, split: str) -> SourceImage:
        with self._changed:
            # The images that are written next are always loaded, so that the others do not wait for ever.
            while self._held.total() > _AHEAD_BYTES and number != self._written and not self._stop.is_set():
                self._changed.wait(_LOOK_SECONDS)
        image = self._converter.source.load(item, split)
        with self._changed:
            size_bytes = len(image.data) if isinstance(image.data, bytes) else image.data.nbytes
            self._held[number] += max(size_bytes, self._converter.recipe.fixed_bytes() or 0)
        return image

    def written(self) -> None:
        """Note that the records of the oldest call of `begin` are written."""
        with self._changed:
            self._held.pop(self._written, None)
            self._written += 1
            self._changed.notify_all()

    def close(self) -> None:
        """End the threads; waits for at most one request of each."""
        self._pool.shutdown(cancel_futures=True)


def class_number(label: int) -> bytes:
    """Return the number of a class as its name, if it has none; empty for no class."""
    return b"%d" % label if label >= 0 else b""


def request_threads(source: Source, threads: int) -> int:
    """Return the number of threads that load and process images, one each; ``threads`` for images on this machine."""
    if source.latency != "web":
        return threads if source.latency == "disk" else max(threads, AT_ONCE_IN_STORES)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    few = AT_ONCE_BY_URL if files == resource.RLIM_INFINITY else min(AT_ONCE_BY_URL, files // _FILES_OF_A_REQUEST)
    return max(threads, few)


def is_machine_error(error: OSError) -> bool:
    """Return whether the process has run out of files or memory, or the server of a file system does not answer."""
    return error.errno in _OF_THE_MACHINE


def is_item_error(error: OSError, root: str) -> bool:
    """Return whether other items may still be readable after an error of one item.

    A store that refuses one item is asked whether it refuses everything, as it does when credentials have expired. On
    this machine, the folder of the item is checked, which is gone, too, if a disk was removed.

    Raises:
        StorageError: The store fails now.
    """
    if isinstance(error, StorageError) or is_machine_error(error):
        return False
    return location(root).is_readable_after(error)


def _refuse_missing_object(item: Item, loaded: SourceImage) -> None:
    if item.object >= len(loaded.boxes):
        message = f"its annotation has {len(loaded.boxes)} objects, fewer than when it was listed; build again"
        raise SourceError(message)


def _crop(item: Item, loaded: SourceImage) -> Box | None:
    return loaded.boxes[item.object] if item.object >= 0 else None


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.ENOENT:
        return "the file is not there: what names it is wrong, it has been removed, or it is a link that leads nowhere"
    return f"the file cannot be read: {error.strerror or error}"
