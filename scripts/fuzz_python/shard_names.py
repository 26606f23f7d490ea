"""Names of shards, and what a record's features tell of its layout: a name is parsed into what spells it again."""

from __future__ import annotations

from stoker import _native
from stoker.format.layouts import recognise
from stoker.format.shard_names import group_shards, parse_shard_name
from stoker.storage import LocalLocation


def one_input(data: bytes) -> None:
    """Parse any lines as names, and any bytes as a record."""
    names = data.decode("utf-8", "surrogateescape").split("\n")
    paths = [LocalLocation("d") / name for name in names if name and "/" not in name and "\0" not in name]
    known = []
    for path in paths:
        parsed = parse_shard_name(path.name)
        if parsed is not None:
            known.append(path)
            assert (parsed.shard or 0) < (parsed.shards or 2**63)
    for split in group_shards(known, {}).values():
        assert split.paths
    recognise(_native.parse_example(data))


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    return [
        b"train-00000-of-00004\nd-validation.tfrecord-00001-of-00002\n10.tfrecords",
        _native.write_example({"image/encoded": ("bytes", [b"\xff\xd8"]), "image/class/label": ("int64", [3])}),
    ]
