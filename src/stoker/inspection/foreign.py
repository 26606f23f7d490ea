"""TFRecords that Stoker did not write: which files there are, and what their first records hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from stoker import _native
from stoker.config import check_range
from stoker.errors import IndexMismatchError, ShardError, StokerError
from stoker.inspection.listing import files_matching
from stoker.inspection.problem import renamed
from stoker.records.index import FRAME_BYTES, read_index
from stoker.records.inflate import compression_of, holds_records, inflate
from stoker.records.layout import find_shards, parse_shard_name
from stoker.schema import recognise
from stoker.storage import LocalCopy, RemotePath, local_copy, stoppable_pool
from stoker.storage.named import naming

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stoker.storage import Location
    from stoker.types import Feature, SchemaInfo

_AT_ONCE = 32
_FIRST_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class ForeignSplit:
    """Files of one split.

    Attributes:
        shards: How many there are.
        size_bytes: Sum of their lengths.
        records: Records in them; None unless each has a right index.
        missing: Numbers of shards that the names of the others promise.
    """

    shards: int
    size_bytes: int
    records: int | None
    missing: tuple[int, ...]


@dataclass(slots=True)
class KeySummary:
    """What was seen under one key.

    Attributes:
        kinds: Kinds of its values, in the order they were met.
        records: Records that have the key.
        shortest: Fewest values in one record.
        longest: Most values in one record.
        size_bytes: Bytes of its values over all records looked at; 0 for numbers.
    """

    kinds: tuple[str, ...]
    records: int
    shortest: int
    longest: int
    size_bytes: int

    @classmethod
    def of(cls, feature: Feature) -> KeySummary:
        """Return the summary of one record's feature."""
        kind, values = feature
        size = sum(map(len, cast("list[bytes]", values))) if kind == "bytes" else 0
        return cls((kind,), 1, len(values), len(values), size)

    def merged(self, other: KeySummary) -> KeySummary:
        """Return the summary of both."""
        kinds = tuple(dict.fromkeys(self.kinds + other.kinds))
        return KeySummary(
            kinds,
            self.records + other.records,
            min(self.shortest, other.shortest),
            max(self.longest, other.longest),
            self.size_bytes + other.size_bytes,
        )


@dataclass(frozen=True, slots=True)
class ForeignInfo:
    """TFRecords of other origin.

    Attributes:
        path: Directory, pattern or file.
        splits: By the split that the names of the files say.
        looked_at: Records that ``keys`` is about, the first ones of the first files.
        keys: What they hold.
        layout: What `stoker.open` takes them for, by the first of them; None if it is none that is known.
    """

    path: str
    splits: Mapping[str, ForeignSplit]
    looked_at: int
    keys: Mapping[str, KeySummary]
    layout: SchemaInfo | None


def foreign_info(place: Location, records: int) -> ForeignInfo | None:
    """Return what TFRecords of other origin hold, or None if there are none.

    Args:
        place: Directory, pattern or file.
        records: How many records to look at.

    Raises:
        ConfigError: ``records`` is out of range.
        ShardError: One of the records looked at is damaged.
        ExampleError: One of them is no Example.
        OSError: A file cannot be read.
    """
    check_range("--records", records, 1, 2**31)
    groups = _groups(place)
    if not groups:
        return None
    keys: dict[str, KeySummary] = {}
    looked_at, layout = 0, None
    for payload in leading_records([path for paths, _ in groups.values() for path in paths], records):
        looked_at += 1
        features = _native.parse_example(payload)
        if looked_at == 1:
            layout = recognise(features)
        for key, feature in features.items():
            summary = KeySummary.of(feature)
            keys[key] = keys[key].merged(summary) if key in keys else summary
    splits = {name: _split(paths, missing) for name, (paths, missing) in groups.items()}
    return ForeignInfo(str(place), splits, looked_at, dict(sorted(keys.items())), layout)


def _groups(place: Location) -> dict[str, tuple[Sequence[Location], tuple[int, ...]]]:
    """Return the files of each split, and the numbers of the missing ones."""
    if place.is_dir():
        return {name: (found.paths, found.missing) for name, found in find_shards(place).items()}
    groups: dict[str, list[Location]] = {}
    for path in [place] if place.is_file() else files_matching(place):
        said = parse_shard_name(path.name)
        is_file = isinstance(path, RemotePath) or path.is_file()
        if is_file and (said is not None or (path == place and holds_records(path))):
            groups.setdefault(said.split if said else "train", []).append(path)
    return {name: (paths, ()) for name, paths in sorted(groups.items())}


def _split(paths: Sequence[Location], missing: tuple[int, ...]) -> ForeignSplit:
    with stoppable_pool(_AT_ONCE, "stoker-info") as pool:
        found = list(pool.map(_size_and_records, paths))
    counts = [records for _, records in found if records is not None]
    return ForeignSplit(
        len(paths), sum(size for size, _ in found), sum(counts) if len(counts) == len(paths) else None, missing
    )


def _size_and_records(path: Location) -> tuple[int, int | None]:
    size = path.stat().st_size
    try:
        return size, len(read_index(path, size))
    except (FileNotFoundError, IndexMismatchError):
        return size, None


def leading_records(paths: Sequence[Location], limit: int) -> Iterator[bytes]:
    """Yield the payloads of the first records, their checksums verified; no more is read of a store than is needed.

    Raises:
        ShardError: One of them is damaged.
        OSError: A file cannot be read.
    """
    left = limit
    for path in paths:
        with local_copy(path) as copy:
            try:
                for payload in _leading_of(copy, left):
                    left -= 1
                    yield payload
            except StokerError as error:
                raise renamed(error, copy.path, path) from error
        if not left:
            return


def _leading_of(copy: LocalCopy, limit: int) -> Iterator[bytes]:
    copy.fetch(_FIRST_BYTES)
    if compression_of(copy.path) == "none":
        yield from _leading_plain(copy, limit)
        return
    copy.fetch()
    with inflate(copy.path) as inflated:
        try:
            yield from _leading_plain(LocalCopy(inflated.path), limit)
        except StokerError as error:
            raise renamed(error, inflated.path, copy.path) from error


def _leading_plain(copy: LocalCopy, limit: int) -> Iterator[bytes]:
    size, offset = copy.path.stat().st_size, 0
    for _ in range(limit):
        if offset == size:
            return
        try:
            payload = _payload(copy, offset, size)
        except ShardError:
            copy.confirm()
            _native.scan_shard(str(copy.path), check=False)  # says it better, where a header is what is damaged
            payload = _payload(copy, offset, size)
        yield payload
        offset += FRAME_BYTES + len(payload)


def _payload(copy: LocalCopy, offset: int, size: int) -> bytes:
    copy.fetch(offset + FRAME_BYTES)
    with naming(copy.path), copy.path.open("rb", buffering=0) as file:
        file.seek(offset)
        length = int.from_bytes(file.read(8), "little")
    frame = FRAME_BYTES + min(length, size)  # a hostile length must fit into the 64 bits of the call
    copy.fetch(offset + frame)
    return _native.read_record(str(copy.path), offset, frame)
