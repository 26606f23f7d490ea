"""``manifest.json``: what is accepted, with its own checksum or a right one, is written and read again as the same."""

from __future__ import annotations

import json

from scripts.fuzz_python.seed_data import dataset
from stoker.errors import ManifestError
from stoker.format.manifest import Manifest, format_manifest, parse_manifest, with_checksum
from stoker.strict_json import parse_json


def one_input(data: bytes) -> None:
    """Parse any bytes, and an object of them with the checksum that it should have."""
    try:
        _write_again(parse_manifest(data, "manifest.json"))
    except ManifestError:
        _write_again(parse_manifest(_with_right_checksum(data), "manifest.json"))


def _with_right_checksum(data: bytes) -> bytes:
    """Return what has a chance to be accepted: a fuzzer does not find a SHA-256."""
    try:
        content = parse_json(data)
    except ValueError:
        return data
    return with_checksum({k: v for k, v in content.items() if k != "checksum"}) if isinstance(content, dict) else data


def _write_again(manifest: Manifest) -> None:
    text = format_manifest(manifest)
    assert format_manifest(parse_manifest(text, "manifest.json")) == text
    assert sum(shard.records for split in manifest.splits.values() for shard in split.shards) == manifest.records


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    text = (dataset() / "manifest.json").read_bytes()
    return [text, json.dumps(json.loads(text)).encode(), b"{}"]
