"""Records that a program has in iterables, which are gone through once, in order."""

from __future__ import annotations

import contextlib
import hashlib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stoker import fields
from stoker.errors import ConfigError, SourceError, StokerError
from stoker.sources.columns import row_range
from stoker.sources.items import Item, ItemTableBuilder
from stoker.sources.known_datasets import undecoded
from stoker.sources.record_reader import (
    ROOT,
    RecordFields,
    RecordReader,
    as_record,
    digest_of,
    fields_of_first,
    latency_of,
    place_of,
    size_of,
)
from stoker.sources.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.sources.reader import SourceImage
    from stoker.sources.records import Given
    from stoker.types import Field

_AHEAD = 64


class RecordStream(RecordReader):
    """Reads iterables of records, each of which is gone through once, in order.

    The column ``record`` of an item is its record, or what is wrong with it. For one thread, but for `load`.

    Args:
        given: The iterables, by split.
        chosen: What their fields are; None to find out.

    Attributes:
        names: The splits, in order.
        size_bytes: Bytes of the images that were taken.
        shard_digests: What stands for the values of each shard; filled in by whoever makes the shards.

    Raises:
        ConfigError: The fields are not those of records, or cannot be found out.
        SourceError: There are no records, or the first one is none.
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
        super().__init__(values, latency_of([place_of(record.get(values.roles.image)) for record in records]))
        with contextlib.suppress(SourceError):
            self._refuse_texts(as_record(ahead[0][1]), record_fields)
        self.size_bytes = 0
        self.shard_digests: list[str] = []
        self._first = np.empty(len(ahead), object)

    def source(self) -> Source:
        """Return the first records as a source, of the first split that has some; they are not taken by that."""
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
        """Refuse labels that are text, or may be ids, where nothing says which classes there are."""
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
        """Yield the position and the record of each that was not yielded before; the table frees its own."""
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
        """Return the item of a record, and what stands for the values of that."""
        try:
            values: Mapping[str, Any] | SourceError = as_record(record)
        except SourceError as error:
            values = error
        size_bytes, digest = 0, digest_of(str(values))
        if isinstance(values, Mapping):
            size_bytes = size_of(values.get(self.record_fields.roles.image))
            digest = digest_of({name: values.get(name) for name in self.record_fields.names})
        self.size_bytes += size_bytes
        return Item(b"record %d" % position, -1, size_bytes, position, columns={"record": values}), digest

    def load(self, item: Item) -> SourceImage:
        values = item.columns["record"]
        if isinstance(values, SourceError):
            raise values
        return self.record_fields.read(item.number, values)
