"""``manifest.json``: what a dataset holds. Written last; without it a directory is an unfinished build.

Its last field is the SHA-256 of all lines before it, so that a manifest in which any byte has changed is refused. It
lists length and checksum of every other file except the indexes, which are checked against their shards.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from stoker import fields
from stoker.errors import ConfigError, ManifestError, NewerManifestError
from stoker.format.directory import (
    LABELS_NAME,
    MANIFEST_NAME,
    REJECTS_NAME,
    ClassLabel,
    ListedFile,
    read_labels,
    read_text,
)
from stoker.storage import location
from stoker.strict_json import parse_json
from stoker.types import Compression, FeatureKind, FeatureSpec, Field, ImageEncoding, LabelEncoding, SchemaInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stoker.storage import Location, LocationLike


FORMAT = "stoker-dataset"
VERSION = 2
"""The version that is written, and the newest that is read; version 2 added ``files`` and ``checksum``."""
SCHEMA_KEYS = (
    "image_key",
    "label_key",
    "filename_key",
    "label_base",
    "label_encoding",
    "image_encoding",
    "height_key",
    "width_key",
    "order_key",
    "box_prefix",
)
"""Fields of `SchemaInfo` that ``schema`` holds under the same names, beside ``preset`` and ``features``."""

_MAX_MANIFEST_BYTES = 2**28
_CHECKSUM_LINE = re.compile(rb' "checksum": "([0-9a-f]{64})"\n}\n\Z')
_CLASS_ID = re.compile("0|[1-9][0-9]{0,9}")
_SINCE_2 = ("files", "checksum")
_ALWAYS_LISTED = (LABELS_NAME, REJECTS_NAME)
_IMAGE_ENCODINGS: Mapping[str, ImageEncoding] = {"jpeg": "file", "raw": "raw"}  # in manifests -> in the schema
_OPTIONAL_KEYS = ("filename_key", "height_key", "width_key", "order_key", "box_prefix")
_T = TypeVar("_T")


FormatCounts = Mapping[str, Mapping[str, int]]
"""Numbers of records by the format of their image, then by how it was made: ``kept`` or ``encoded``."""


def nested_counts(counts: Mapping[tuple[str, str], int]) -> FormatCounts:
    """Return counts of pairs (format, how it was made) as `FormatCounts`, sorted by name."""
    nested: dict[str, dict[str, int]] = {}
    for (name, origin), count in sorted(counts.items()):
        nested.setdefault(name, {})[origin] = count
    return nested


def sum_of_formats(counts: Iterable[FormatCounts]) -> FormatCounts:
    """Return the sums of the counts of several datasets or shards."""
    total: Counter[tuple[str, str]] = Counter()
    for formats in counts:
        total.update({(name, origin): count for name, some in formats.items() for origin, count in some.items()})
    return nested_counts(total)


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard that is complete."""

    name: str  # path, relative to the dataset's directory
    records: int  # how many records it holds
    size_bytes: int  # length of the file, after any compression
    crc32c: int  # of all these bytes


@dataclass(frozen=True, slots=True)
class Split:
    """One split of a dataset, as the manifest counts it."""

    records: int  # sum over its shards
    size_bytes: int  # sum over its shards
    rejects: int  # source items of this split that are not in the dataset
    class_counts: tuple[int, ...]  # records of each class; the index is the class id
    shards: tuple[Shard, ...]
    unlabelled: int = 0  # records without a class
    box_counts: Mapping[int, int] = field(default_factory=dict)  # boxes by their own class ids; empty if unknown


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What the dataset was made from; ``items`` and ``size_bytes`` include items that were rejected."""

    items: int
    size_bytes: int
    fingerprint: str
    ignored: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole of ``manifest.json``; `docs/reference/format.md` defines each field.

    ``formats`` counts records by the format of their image, and by whether it is that of the source (``kept``) or was
    encoded from pixels (``encoded``). ``encoders`` has the versions of the libraries that encoded PNG and WebP, if any.
    Both are empty in datasets of an older Stoker. ``shard_names`` is the text of a `stoker.format.ShardNaming`;
    ``limit`` is the number of images of train that the dataset was restricted to, if any. ``files`` lists the other
    files by name, and is empty in version 1. ``version`` is that of the format.

    There are no dates in it: the same input and settings give the same bytes.
    """

    stoker_version: str
    schema: SchemaInfo
    recipe: Mapping[str, Any]
    seed: int
    source: SourceInfo
    converted: Mapping[str, int]
    annotation_errors: int
    splits: Mapping[str, Split]
    compression: Compression = "none"
    shard_names: str = "default"
    limit: int | None = None
    files: Mapping[str, ListedFile] = field(default_factory=dict)
    version: int = VERSION
    formats: FormatCounts = field(default_factory=dict)
    encoders: Mapping[str, str] = field(default_factory=dict)

    @property
    def dataset_id(self) -> str:
        """32 hex digits that identify the bytes of all shards."""
        return dataset_id(self.splits)

    @property
    def records(self) -> int:
        """Number of records in all splits."""
        return sum(split.records for split in self.splits.values())

    @property
    def rejects(self) -> int:
        """Number of rejects in all splits."""
        return sum(split.rejects for split in self.splits.values())

    @property
    def classes(self) -> int:
        """Number of classes, with or without records."""
        return max(0, self.class_ids - self.schema.label_base)

    @property
    def class_ids(self) -> int:
        """Number of class ids, including those below the first class."""
        return max((len(split.class_counts) for split in self.splits.values()), default=0)


def dataset_id(splits: Mapping[str, Split]) -> str:
    r"""Return the identity of a dataset.

    The first 32 hex digits of the SHA-256 of: for each split, in the order of the names' bytes, ``NAME\n``, then for
    each of its shards ``NAME RECORDS BYTES CRC32C\n``, with the checksum as 8 hex digits.
    """
    digest = hashlib.sha256()
    for name in sorted(splits):
        digest.update(f"{name}\n".encode())
        for shard in splits[name].shards:
            digest.update(f"{shard.name} {shard.records} {shard.size_bytes} {shard.crc32c:08x}\n".encode())
    return digest.hexdigest()[:32]


def write_manifest(directory: LocationLike, manifest: Manifest) -> None:
    """Write ``manifest.json`` atomically."""
    (location(directory) / MANIFEST_NAME).write_atomically(format_manifest(manifest))


def read_manifest(directory: LocationLike) -> Manifest:
    """Return the manifest of a dataset.

    Raises:
        FileNotFoundError: There is none: the directory is an unfinished build, or not a Stoker dataset.
        ManifestError: It is damaged, contradicts itself, or is of a newer version.
    """
    path = location(directory) / MANIFEST_NAME
    return parse_manifest(read_text(path, _MAX_MANIFEST_BYTES, "manifest"), path)


def read_classes(directory: LocationLike, manifest: Manifest) -> tuple[ClassLabel, ...]:
    """Return the classes of a dataset, as many as its manifest counts.

    Raises:
        ManifestError: As for `read_labels`; or ``labels.txt`` is missing, or names another number of classes.
    """
    where = location(directory) / LABELS_NAME
    try:
        classes = read_labels(directory, manifest.files.get(LABELS_NAME))
    except FileNotFoundError as error:
        raise ManifestError(f"{where} is missing; restore it, or build again", path=str(where)) from error
    if len(classes) != manifest.class_ids:
        message = f"{where} names {len(classes)} classes, but the manifest counts {manifest.class_ids}"
        raise ManifestError(f"{message}; restore it, or build again", path=str(where))
    return classes


def format_manifest(manifest: Manifest) -> bytes:
    """Return the text of ``manifest.json``, in the version that the manifest has."""
    schema, source = manifest.schema, manifest.source
    content = {
        "format": FORMAT,
        "version": manifest.version,
        "dataset_id": manifest.dataset_id,
        "stoker_version": manifest.stoker_version,
        "schema": {
            "preset": schema.preset,
            "features": {key: {"kind": f.kind, "length": f.length} for key, f in schema.features.items()},
            **{key: getattr(schema, key) for key in SCHEMA_KEYS},
            "image_encoding": next(word for word, kind in _IMAGE_ENCODINGS.items() if kind == schema.image_encoding),
            **({"fields": {name: kind.to_json() for name, kind in schema.fields.items()}} if schema.fields else {}),
            **({"box_names": list(schema.box_names)} if schema.box_names else {}),
        },
        "recipe": dict(manifest.recipe),
        "seed": manifest.seed,
        "source": {
            "items": source.items,
            "bytes": source.size_bytes,
            "fingerprint": source.fingerprint,
            "ignored": dict(source.ignored),
        },
        "converted": dict(sorted(manifest.converted.items())),
        "annotation_errors": manifest.annotation_errors,
        "compression": manifest.compression,
        "shard_names": manifest.shard_names,
        "limit": manifest.limit,
        "splits": {name: _split_content(split) for name, split in manifest.splits.items()},
    }
    if manifest.version == 1:
        return json.dumps(content, indent=1).encode() + b"\n"
    if manifest.formats:
        content["formats"] = manifest.formats
    if manifest.encoders:
        content["encoders"] = dict(manifest.encoders)
    content["files"] = {name: _file_content(file) for name, file in sorted(manifest.files.items())}
    return with_checksum(content)


def with_checksum(content: Mapping[str, Any]) -> bytes:
    """Return the text of a manifest with these fields, and last of all the checksum of the lines before it."""
    lines = json.dumps(content, indent=1).encode().removesuffix(b"\n}") + b",\n"
    return lines + b' "checksum": "%b"\n}\n' % hashlib.sha256(lines).hexdigest().encode()


def _file_content(file: ListedFile | Shard) -> dict[str, Any]:
    return {"bytes": file.size_bytes, "crc32c": f"{file.crc32c:08x}"}


def _split_content(split: Split) -> dict[str, Any]:
    return {
        "records": split.records,
        "bytes": split.size_bytes,
        "rejects": split.rejects,
        "class_counts": list(split.class_counts),
        "unlabelled": split.unlabelled,
        **({"box_counts": {str(label): n for label, n in split.box_counts.items()}} if split.box_counts else {}),
        "shards": [{"name": s.name, "records": s.records, **_file_content(s)} for s in split.shards],
    }


def parse_manifest(text: bytes, path: str | Location) -> Manifest:
    """Return the manifest in ``text``; ``path`` is named in errors.

    Every field is checked in spite of the checksum: version 1 has none, and a checksum is no signature.
    """
    where = str(path)
    try:
        content = _Node(parse_json(text), "", where)
    except json.JSONDecodeError as error:
        message = f"{where} is damaged at line {error.lineno}, column {error.colno} (byte {error.pos}): {error.msg}"
        raise ManifestError(f"{message}; restore it, or build again", path=where, offset=error.pos) from error
    except ValueError as error:
        raise ManifestError(f"{where} is damaged: {error}; restore it, or build again", path=where) from error
    if content.get("format", str) != FORMAT:
        raise content.wrong("format", f"is not {FORMAT!r}, so this is not a Stoker dataset")
    version = _checked_version(text, content)
    manifest = _manifest(content, version)
    if content.get("dataset_id", str) != manifest.dataset_id:
        raise content.wrong("dataset_id", f"is not that of the shards listed, {manifest.dataset_id}")
    return manifest


def _checked_version(text: bytes, content: _Node) -> int:
    """Return the version of a manifest, after its checksum has shown that damage has not changed it."""
    checksum = _CHECKSUM_LINE.search(text, max(0, len(text) - 128))
    if checksum is not None:
        digest = hashlib.sha256(memoryview(text)[: checksum.start()]).hexdigest()
        if digest != checksum[1].decode():
            raise content.changed(f"the SHA-256 of its lines is {digest[:16]}..., not {checksum[1][:16].decode()}...")
    version = content.count("version")
    if version > VERSION:
        raise content.newer()
    if version < 1:
        raise content.wrong("version", "is not a version; the first was 1")
    if version > 1 and checksum is None:
        raise content.changed("it does not end in a line with its checksum")
    for key in _SINCE_2:
        if version == 1 and key in content.value:
            raise content.changed(f"its version is 1, but {key!r} is a field of version 2")
    return version


class _Node:
    """A JSON object, with its name and the path of the manifest for messages."""

    def __init__(self, value: object, name: str, path: str) -> None:
        if not isinstance(value, dict):
            raise _damaged(path, name or "the manifest", f"is {_shown(value)}, not an object")
        self.value: dict[str, Any] = value
        self.name = name
        self.path = path

    def wrong(self, key: str, problem: str) -> ManifestError:
        return _damaged(self.path, f"{self.name}{key}", f"{_shown(self.value.get(key))} {problem}")

    def changed(self, how: str) -> ManifestError:
        message = f"{self.path} was changed or damaged after the build: {how}"
        return ManifestError(f"{message}; restore it, or build again", path=self.path)

    def newer(self) -> NewerManifestError:
        version, writer = _shown(self.value["version"]), self.value.get("stoker_version")
        known = isinstance(writer, str) and re.fullmatch(r"[0-9][0-9A-Za-z.+-]{0,40}", writer)
        versions = f"format version {version}, this one reads up to {VERSION}"
        remedy = f"install Stoker >= {writer}" if known else "install a newer Stoker"
        return NewerManifestError(f"{self.path} was written by a newer Stoker ({versions}): {remedy}", path=self.path)

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

    def crc32c(self) -> int:
        checksum = self.get("crc32c", str)
        if not re.fullmatch(r"[0-9a-f]{8}", checksum):
            raise self.wrong("crc32c", "is not 8 hex digits")
        return int(checksum, 16)

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.get(key, str)
        if value not in choices:
            raise self.wrong(key, f"is not one of {', '.join(choices)}")
        return value

    def node(self, key: str) -> _Node:
        return _Node(self.value.get(key), f"{self.name}{key}.", self.path)

    def values(self, key: str, read: Callable[[_Node, str], _T]) -> dict[str, _T]:
        """Return what each key of an inner object holds, which ``read`` reads and checks."""
        inner = self.node(key)
        return {name: read(inner, name) for name in inner.value}

    def counts(self, key: str) -> dict[str, int]:
        return self.values(key, _Node.count)

    def nodes(self, key: str, make: Callable[[_Node], _T]) -> dict[str, _T]:
        for name in self.node(key).value:
            if not _is_text(name):
                raise _damaged(self.path, f"{self.name}{key}", f"has the name {_shown(name)}, which is not text")
        return self.values(key, lambda inner, name: make(inner.node(name)))


def _manifest(content: _Node, version: int) -> Manifest:
    content.value = {"shard_names": "default", "formats": {}, "encoders": {}} | content.value
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
        compression=cast("Compression", content.choice("compression", get_args(Compression))),
        shard_names=content.get("shard_names", str),
        limit=content.count("limit") if content.value.get("limit") is not None else None,
        splits=content.nodes("splits", _split),
        files={} if version == 1 else _files(content),
        version=version,
        formats=content.values("formats", _Node.counts),
        encoders=content.values("encoders", lambda encoders, name: encoders.get(name, str)),
    )


def _files(content: _Node) -> dict[str, ListedFile]:
    files = content.nodes("files", lambda node: ListedFile(node.count("bytes"), node.crc32c()))
    for name in _ALWAYS_LISTED:
        if name not in files:
            raise content.wrong("files", f"does not list {name}")
    for name in files:
        if not _lies_below(name) or "/" in name:
            raise content.wrong("files", f"lists {_shown(name)}, which is not the name of a file beside the manifest")
    return files


def _schema(node: _Node) -> SchemaInfo:
    # A manifest of an earlier Stoker may lack some keys, whose defaults apply then.
    given = {key: node.value[key] for key in SCHEMA_KEYS if key in node.value}
    for key in ("image_key", "label_key"):
        node.get(key, str)
    node.count("label_base")
    if "filename_key" not in given:
        raise _damaged(node.path, f"{node.name}filename_key", "is missing")
    for key in given.keys() & set(_OPTIONAL_KEYS):
        if given[key] is not None:
            node.get(key, str)
    if "label_encoding" in given:
        node.choice("label_encoding", get_args(LabelEncoding))
    if "image_encoding" in given:
        given["image_encoding"] = _IMAGE_ENCODINGS[node.choice("image_encoding", tuple(_IMAGE_ENCODINGS))]
    features = node.nodes("features", _feature)
    return SchemaInfo(
        preset=node.get("preset", str),
        features=features,
        fields=_fields(node, features),
        box_names=_box_names(node),
        **given,
    )


def _box_names(node: _Node) -> tuple[str, ...]:
    if "box_names" not in node.value:
        return ()
    try:
        return tuple(fields.Boxes(node.get("box_names", list)).names or ())
    except ConfigError as error:
        raise _damaged(node.path, f"{node.name}box_names", f"are not names of classes: {error}") from error


def _fields(node: _Node, features: Mapping[str, FeatureSpec]) -> dict[str, Field]:
    """Return the extra fields; check that no two share a key, and that their features are in the schema."""
    if "fields" not in node.value:
        return {}
    inner = node.node("fields")
    extra: dict[str, Field] = {}
    for name, content in inner.value.items():
        try:
            extra[name] = fields.from_json(content)
        except ConfigError as error:
            raise _damaged(node.path, f"{inner.name}{_shown(name)}", f"is not a field: {error}") from error
    try:
        fields.check_extra(extra)
    except ConfigError as error:
        raise _damaged(node.path, f"{node.name}fields", f"cannot be the fields of a record: {error}") from error
    own = {node.value[key] for key in ("image_key", "label_key", *_OPTIONAL_KEYS) if key in node.value}
    for name, kind in extra.items():
        for key, spec in kind.features(name).items():
            if key in own:
                raise _damaged(node.path, f"{inner.name}{_shown(name)}", f"has the key {_shown(key)} of the image")
            if features.get(key) != spec:
                problem = f"needs {spec.length or 'any number of'} {spec.kind} under {_shown(key)}, unlike the features"
                raise _damaged(node.path, f"{inner.name}{_shown(name)}", problem)
    return extra


def _feature(node: _Node) -> FeatureSpec:
    kind = cast("FeatureKind", node.choice("kind", get_args(FeatureKind)))
    return FeatureSpec(kind, node.count("length") if node.value.get("length") is not None else None)


def _split(node: _Node) -> Split:
    node.value = {"unlabelled": 0, "box_counts": {}} | node.value
    shards = tuple(
        _shard(_Node(value, f"{node.name}shards[{number}].", node.path))
        for number, value in enumerate(node.get("shards", list))
    )
    counts = node.get("class_counts", list)
    if not all(type(count) is int and count >= 0 for count in counts):
        raise _damaged(node.path, f"{node.name}class_counts", "holds something that is not a count")
    records, size_bytes, rejects, unlabelled = map(node.count, ("records", "bytes", "rejects", "unlabelled"))
    split = Split(records, size_bytes, rejects, tuple(counts), shards, unlabelled, _box_counts(node))
    for key, total in (
        ("records", sum(shard.records for shard in shards)),
        ("records", sum(counts) + unlabelled),
        ("bytes", sum(shard.size_bytes for shard in shards)),
    ):
        if node.value[key] != total:
            raise node.wrong(key, f"is not the sum over the shards or classes, {total}")
    return split


def _box_counts(node: _Node) -> dict[int, int]:
    counts = node.counts("box_counts")
    for label in counts:
        if not _CLASS_ID.fullmatch(label):
            raise _damaged(node.path, f"{node.name}box_counts", f"has {_shown(label)}, which is not the id of a class")
    return {int(label): count for label, count in counts.items()}


def _shard(node: _Node) -> Shard:
    name = node.get("name", str)
    if not _lies_below(name):
        raise node.wrong("name", "is not the name of a file below the manifest")
    return Shard(name, node.count("records"), node.count("bytes"), node.crc32c())


def _lies_below(name: str) -> bool:
    """Return whether a name is that of a file in the directory of the manifest, or in a folder of it."""
    leads_out = any(part in ("", ".", "..") for part in name.split("/"))
    return not leads_out and not any(char in name for char in "\\\0") and _is_text(name)


def _is_text(name: str) -> bool:
    """Return whether a name can be encoded in UTF-8, as a lone surrogate cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _damaged(path: str, name: str, problem: str) -> ManifestError:
    return ManifestError(f"{path}: {name.rstrip('.')} {problem}; restore the file, or build again", path=path)
