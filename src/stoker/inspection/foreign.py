"""TFRecords that Stoker did not write: which files there are, and what their first records hold."""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stoker import _native
from stoker.config import check_range
from stoker.errors import IndexMismatchError, ShardError
from stoker.records.index import FRAME_BYTES, read_index
from stoker.records.inflate import holds_records, plain_shard
from stoker.records.layout import find_shards, parse_shard_name
from stoker.schema import recognise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stoker.types import Feature, SchemaInfo


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


def foreign_info(place: Path, records: int) -> ForeignInfo | None:
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
    for payload in _leading([path for paths, _ in groups.values() for path in paths], records):
        looked_at += 1
        features = _native.parse_example(payload)
        if looked_at == 1:
            layout = recognise(features)
        for key, feature in features.items():
            summary = KeySummary.of(feature)
            keys[key] = keys[key].merged(summary) if key in keys else summary
    splits = {name: _split(paths, missing) for name, (paths, missing) in groups.items()}
    return ForeignInfo(str(place), splits, looked_at, dict(sorted(keys.items())), layout)


def _groups(place: Path) -> dict[str, tuple[Sequence[Path], tuple[int, ...]]]:
    """Return the files of each split, and the numbers of the missing ones."""
    if place.is_dir():
        return {name: (found.paths, found.missing) for name, found in find_shards(place).items()}
    # pathlib takes no pattern that may be absolute
    matches = [place] if place.is_file() else sorted(Path(match) for match in glob.glob(str(place)))  # noqa: PTH207
    groups: dict[str, list[Path]] = {}
    for path in matches:
        said = parse_shard_name(path.name)
        if path.is_file() and (said is not None or (path == place and holds_records(path))):
            groups.setdefault(said.split if said else "train", []).append(path)
    return {name: (paths, ()) for name, paths in sorted(groups.items())}


def _split(paths: Sequence[Path], missing: tuple[int, ...]) -> ForeignSplit:
    sizes = [path.stat().st_size for path in paths]
    records: int | None = 0
    for path, size in zip(paths, sizes, strict=True):
        try:
            records = None if records is None else records + len(read_index(path, size))
        except (FileNotFoundError, IndexMismatchError):
            records = None
    return ForeignSplit(len(paths), sum(sizes), records, missing)


def _leading(paths: Sequence[Path], limit: int) -> Iterator[bytes]:
    """Yield the payloads of the first records, their checksums verified."""
    left = limit
    for path in paths:
        with plain_shard(path) as plain:
            for payload in _leading_of(plain, left):
                left -= 1
                yield payload
        if not left:
            return


def _leading_of(path: Path, limit: int) -> Iterator[bytes]:
    size, offset = path.stat().st_size, 0
    with path.open("rb", buffering=0) as file:
        for _ in range(limit):
            if offset == size:
                return
            file.seek(offset)
            length = int.from_bytes(file.read(8), "little")
            frame = FRAME_BYTES + min(length, size)  # a hostile length must fit into the 64 bits of the call
            try:
                yield _native.read_record(str(path), offset, frame)
            except ShardError:
                _native.scan_shard(str(path), check=False)  # says it better, where a header is what is damaged
                raise
            offset += frame
