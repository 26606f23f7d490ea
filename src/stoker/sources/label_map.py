"""Which class has which label, from every kind of list there is for ImageNet.

====================================  ==============================================================================
list                                  a label is
====================================  ==============================================================================
one class a line                      the number of the line
``CLASS<TAB>TEXT``                    the number of the line
``LOC_synset_mapping.txt`` (Kaggle)   the number of the line ``WNID TEXT, TEXT``
``imagenet_labels.json[.gz]``         ``{"WNID": {"label": 0, "human_labels": "TEXT"}}``, counted from 0 or from 1
``map_clsloc.txt`` (devkit)           the middle column of ``WNID ID NAME``, from 1
``meta.mat`` (devkit)                 ``ILSVRC2012_ID`` of the synsets without children, from 1
``ILSVRC2012_devkit_t12.tar.gz``      as in the ``meta.mat`` in it
====================================  ==============================================================================

Nothing is ever keyed by text: two synsets of ImageNet are called "crane", and two "maillot". In a `LabelMap` labels
always count from 0; what is written is decided by the label base of the schema.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from stoker.errors import ConfigError, SourceError
from stoker.sources.devkit import MAX_META_BYTES, meta_of_devkit, read_meta
from stoker.sources.lines import list_lines
from stoker.sources.reading import read_start
from stoker.sources.text import has_control_character, one_line, split_text
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stoker.storage import Location

_WNID = re.compile(rb"n[0-9]{8}")
_DEVKIT_LINE = re.compile(rb"\s*(n[0-9]{8})\s+([0-9]{1,9})\s+(\S.*)", re.DOTALL)
_MAX_JSON_BYTES = 2**26
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class LabelMap:
    """The classes in the order of their labels.

    Attributes:
        where: File it comes from.
        names: Names of the classes.
        texts: Their texts; empty where the list has none.
        devkit: Whether the order is that of the devkit, whose numbers ``ILSVRC2012_validation_ground_truth.txt`` uses.
    """

    where: str
    names: tuple[bytes, ...]
    texts: tuple[bytes, ...]
    devkit: bool = False


def read_label_map(where: str) -> LabelMap:
    """Read a label map; its kind is told by its content.

    Raises:
        SourceError: It does not exist, or is none of the lists of `stoker.sources.label_map`.
        ConfigError: It names a class twice or one that cannot be written into ``labels.txt``, its labels have gaps, or
            SciPy is needed and not there.
        OSError: It cannot be read.
    """
    path = location(where)
    if not path.is_file():
        raise SourceError(f"the label map {where} is not there or is no file", path=where)
    head = read_start(path, 128)
    if head.startswith(b"MATLAB 5.0 MAT-file"):
        return _numbered(where, read_meta(read_start(path, MAX_META_BYTES + 1), where), devkit=True)
    if ".tar" in PurePosixPath(path.name).suffixes or path.suffix == ".tgz":
        return _numbered(where, read_meta(meta_of_devkit(path), where), devkit=True)
    if head.startswith(_GZIP_MAGIC) or head.lstrip().startswith(b"{"):
        return _numbered(where, _json_entries(_read_json(path), where), devkit=False)
    return _from_lines(where, list(list_lines(path)))


def _from_lines(where: str, lines: Sequence[tuple[int, bytes]]) -> LabelMap:
    if not lines:
        raise SourceError(f"the label map {where} is empty", path=where)
    devkit = [_DEVKIT_LINE.fullmatch(line) for _, line in lines]
    found = [match for match in devkit if match]
    if len(found) == len(lines):
        return _numbered(where, [(match[1], int(match[2]), match[3].strip()) for match in found], devkit=True)
    entries = [(number, *_entry(line)) for number, line in lines]
    first: dict[bytes, int] = {}
    for number, name, _ in entries:
        if name in first:
            shown = name.decode("utf-8", "replace")
            raise ConfigError(f"the label map {where} names {shown} twice: in line {first[name]} and in line {number}")
        first[name] = number
    return _map(where, tuple(first), [text for _, _, text in entries], devkit=False)


def _entry(line: bytes) -> tuple[bytes, bytes]:
    # Without a tab only a WordNet id ends at the first blank: folders may be called "golden retriever".
    if b"\t" in line or _WNID.fullmatch(line.split()[0]):
        return split_text(line)
    return line.strip(), b""


def _numbered(where: str, entries: Iterable[tuple[bytes, int, bytes]], *, devkit: bool) -> LabelMap:
    """Return a map of classes that carry their numbers: without gaps, from 0 or from 1."""
    ordered = sorted(entries, key=lambda entry: entry[1])
    if not ordered:
        raise SourceError(f"the label map {where} names no class", path=where)
    base = 1 if ordered[0][1] == 1 else 0
    names: set[bytes] = set()
    for label, (name, number, _) in enumerate(ordered, base):
        shown = name.decode("utf-8", "replace")
        if name in names:
            raise ConfigError(f"the label map {where} names {shown} twice")
        if number != label:
            message = f"the label map {where} gives {shown} the label {number} where {label} must follow"
            raise ConfigError(f"{message}; labels must be 0, 1, 2, ... or 1, 2, 3, ..., each of them once")
        names.add(name)
    return _map(where, [name for name, _, _ in ordered], [text for _, _, text in ordered], devkit=devkit)


def _map(where: str, names: Sequence[bytes], texts: Sequence[bytes], *, devkit: bool) -> LabelMap:
    """Return a map whose names and texts can stand in ``labels.txt``, which JSON and MATLAB do not see to."""
    for name in names:
        if not name or has_control_character(name):
            shown = name.decode("utf-8", "replace")
            message = f"the label map {where} names the class {shown!r}, which no folder with images can be called"
            raise ConfigError(f"{message}; give it a name without control characters")
    return LabelMap(where, tuple(names), tuple(map(one_line, texts)), devkit)


def _read_json(path: Location) -> bytes:
    data = read_start(path, _MAX_JSON_BYTES + 1)
    if data.startswith(_GZIP_MAGIC):
        try:
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(_MAX_JSON_BYTES + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise SourceError(f"the label map {path} is damaged: {error}", path=str(path)) from error
    if len(data) > _MAX_JSON_BYTES:
        raise SourceError(f"{path} is larger than {_MAX_JSON_BYTES} bytes, too large for a list", path=str(path))
    return data


def _json_entries(data: bytes, where: str) -> list[tuple[bytes, int, bytes]]:
    form = '{"CLASS": {"label": 0, "human_labels": "TEXT"}, ...}'
    try:
        pairs = json.loads(data, object_pairs_hook=lambda pairs: pairs)
        return [_json_entry(name, fields) for name, fields in pairs]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SourceError(f"the label map {where} is not of the form {form}: {error}", path=where) from error


def _json_entry(name: Any, fields: Any) -> tuple[bytes, int, bytes]:
    values = dict(fields)
    label, text = values["label"], values.get("human_labels", "")
    if not isinstance(name, str) or type(label) is not int or not isinstance(text, str):
        raise TypeError(f"{name!r} has label {label!r} and text {text!r}")
    return name.encode(), label, text.encode()
