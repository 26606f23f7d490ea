"""Reading ``manifest.json``: every field is checked, because the file may have been damaged or edited by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from stoker.errors import ManifestError, NewerManifestError
from stoker.records.layout import MANIFEST_NAME
from stoker.records.manifest import FORMAT, VERSION, Feature, Manifest, SchemaInfo, Shard, SourceInfo, Split

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.types import FeatureKind

_MAX_MANIFEST_BYTES = 2**28
_KINDS = ("bytes", "int64", "float")
_T = TypeVar("_T")


def read_manifest(directory: str | Path) -> Manifest:
    """Return the manifest of a dataset.

    Raises:
        FileNotFoundError: There is none: the directory is an unfinished build, or no dataset of Stoker's.
        ManifestError: It is damaged, contradicts itself, or is of a newer version.
    """
    path = Path(directory, MANIFEST_NAME)
    if path.stat().st_size > _MAX_MANIFEST_BYTES:
        raise ManifestError(f"{path} is larger than {_MAX_MANIFEST_BYTES} bytes, so it is no manifest", path=str(path))
    return parse_manifest(path.read_bytes(), path)


def parse_manifest(text: bytes, path: str | Path) -> Manifest:
    """Return the manifest in ``text``; ``path`` is named in errors.

    Raises:
        ManifestError: It is damaged, contradicts itself, or is of a newer version.
    """
    where = str(path)
    try:
        content = _Node(json.loads(text), "", where)
    except json.JSONDecodeError as error:
        message = f"{where} is damaged at line {error.lineno}, column {error.colno} (byte {error.pos}): {error.msg}"
        raise ManifestError(f"{message}; restore it, or build again", path=where, offset=error.pos) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(f"{where} is damaged: {error}; restore it, or build again", path=where) from error
    if content.get("format", str) != FORMAT:
        raise content.wrong("format", f"is not {FORMAT!r}, so this is no dataset of Stoker's")
    version = content.count("version")
    if version > VERSION:
        raise content.newer("version")
    if version < 1:
        raise content.wrong("version", "is no version; the first was 1")
    manifest = _manifest(content)
    if content.get("dataset_id", str) != manifest.dataset_id:
        raise content.wrong("dataset_id", f"is not that of the shards listed, {manifest.dataset_id}")
    return manifest


class _Node:
    """A JSON object and where it stands, for messages that a person can act on."""

    def __init__(self, value: object, name: str, path: str) -> None:
        if not isinstance(value, dict):
            raise _damaged(path, name or "the manifest", f"is {_shown(value)}, not an object")
        self.value: dict[str, Any] = value
        self.name = name
        self.path = path

    def wrong(self, key: str, problem: str) -> ManifestError:
        return _damaged(self.path, f"{self.name}{key}", f"{_shown(self.value.get(key))} {problem}")

    def newer(self, key: str) -> NewerManifestError:
        """Return the error of a version that only a newer Stoker reads."""
        problem = f"{_shown(self.value.get(key))} is newer than {VERSION}, the newest that this Stoker reads"
        return NewerManifestError(f"{self.path}: {key} {problem}; install a newer Stoker", path=self.path)

    def get(self, key: str, kind: type[_T]) -> _T:
        value = self.value.get(key)
        # A bool is an int in Python, and not in JSON.
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.wrong(key, f"is not of the type {kind.__name__}")
        return value

    def count(self, key: str) -> int:
        value = self.get(key, int)
        if not 0 <= value < 2**63:
            raise self.wrong(key, "is not a count")
        return value

    def node(self, key: str) -> _Node:
        return _Node(self.value.get(key), f"{self.name}{key}.", self.path)

    def counts(self, key: str) -> dict[str, int]:
        inner = self.node(key)
        return {name: inner.count(name) for name in inner.value}

    def nodes(self, key: str, make: Callable[[_Node], _T]) -> dict[str, _T]:
        inner = self.node(key)
        return {name: make(inner.node(name)) for name in inner.value}


def _manifest(content: _Node) -> Manifest:
    source = content.node("source")
    return Manifest(
        stoker_version=content.get("stoker_version", str),
        schema=_schema(content.node("schema")),
        recipe=content.node("recipe").value,
        seed=content.count("seed"),
        source=SourceInfo(
            source.count("items"), source.count("bytes"), source.get("fingerprint", str), source.counts("ignored")
        ),
        converted=content.counts("converted"),
        annotation_errors=content.count("annotation_errors"),
        compression=content.get("compression", str),
        splits=content.nodes("splits", _split),
    )


def _schema(node: _Node) -> SchemaInfo:
    return SchemaInfo(
        preset=node.get("preset", str),
        features=node.nodes("features", _feature),
        image_key=node.get("image_key", str),
        label_key=node.get("label_key", str),
        filename_key=node.get("filename_key", str) if node.value.get("filename_key") is not None else None,
        label_base=node.count("label_base"),
    )


def _feature(node: _Node) -> Feature:
    kind = node.get("kind", str)
    if kind not in _KINDS:
        raise node.wrong("kind", f"is none of {', '.join(_KINDS)}")
    return Feature(cast("FeatureKind", kind), node.count("length") if node.value.get("length") is not None else None)


def _split(node: _Node) -> Split:
    shards = tuple(
        _shard(_Node(value, f"{node.name}shards[{number}].", node.path))
        for number, value in enumerate(node.get("shards", list))
    )
    counts = node.get("class_counts", list)
    if not all(type(count) is int and count >= 0 for count in counts):
        raise _damaged(node.path, f"{node.name}class_counts", "holds something that is not a count")
    split = Split(node.count("records"), node.count("bytes"), node.count("rejects"), tuple(counts), shards)
    for key, total in (
        ("records", sum(shard.records for shard in shards)),
        ("records", sum(counts)),
        ("bytes", sum(shard.size_bytes for shard in shards)),
    ):
        if node.count(key) != total:
            raise node.wrong(key, f"is not the sum over the shards or classes, {total}")
    return split


def _shard(node: _Node) -> Shard:
    name, checksum = node.get("name", str), node.get("crc32c", str)
    # A name leads to a file in the directory of the manifest and nowhere else.
    if name in ("", ".", "..") or any(char in name for char in "/\\\0"):
        raise node.wrong("name", "is not a plain file name")
    if not re.fullmatch(r"[0-9a-f]{8}", checksum):
        raise node.wrong("crc32c", "is not 8 hex digits")
    return Shard(name, node.count("records"), node.count("bytes"), int(checksum, 16))


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _damaged(path: str, name: str, problem: str) -> ManifestError:
    return ManifestError(f"{path}: {name.rstrip('.')} {problem}; restore the file, or build again", path=path)
