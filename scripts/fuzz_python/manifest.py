"""``manifest.json``: what is accepted is written and read again as the same manifest."""

from __future__ import annotations

import json

from scripts.fuzz_python.made import dataset
from stoker.format.manifest import format_manifest, parse_manifest


def one_input(data: bytes) -> None:
    """Parse any bytes."""
    manifest = parse_manifest(data, "manifest.json")
    text = format_manifest(manifest)
    assert format_manifest(parse_manifest(text, "manifest.json")) == text
    assert sum(shard.records for split in manifest.splits.values() for shard in split.shards) == manifest.records


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    text = (dataset() / "manifest.json").read_bytes()
    return [text, json.dumps(json.loads(text)).encode(), b"{}"]
