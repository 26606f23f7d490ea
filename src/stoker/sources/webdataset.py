"""WebDataset: tars of samples. The members of a sample are consecutive and share a key, their name up to a dot.

docs/reference/images.md says what each member is. As in the library ``webdataset``, a key is a path up to the first dot
of its last part, suffixes may be in capitals, and the next key begins the next sample. A sample without exactly one
image, or with a class that is not a number, is not an item, and a warning names it. The values of fields stay in the
tar until they are needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from stoker.config import IMAGE_SUFFIXES, format_count
from stoker.errors import ConfigError, SourceError
from stoker.fields import Json, Text, field_of_image
from stoker.sources.items import GrowingColumn, chunks, new_column
from stoker.sources.labels import LabelMap, read_label_map
from stoker.sources.names import is_sidecar
from stoker.sources.source import LABEL_OPTIONS, Kind, Source, SourceBuilder
from stoker.sources.tables import BOXES_AS_JSON, has_boxes
from stoker.sources.tar_format import FileWindow, MemberReader, is_compressed, read_member, tar_members
from stoker.sources.tars import TarImages, find_tars, folder_of, named_tars, split_of
from stoker.splits import are_splits, splits_among
from stoker.strict_json import parse_json
from stoker.types import MAX_CLASSES, Field

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Iterable, Iterator, Mapping

    from stoker.sources.look import Layout, Look
    from stoker.storage import Child, Location


IMAGES = frozenset(map(str.encode, IMAGE_SUFFIXES))
_CLASS = b"cls"
_FIELDS: dict[bytes, Field] = {b"txt": Text(), b"json": Json()}

_RESERVED = frozenset({"image", "label", "boxes", "file_name", "class", "cls", *map(bytes.decode, _FIELDS)})
"""Names that no mask or other image can have."""

_NAMED_IMAGE = re.compile(rb"([a-z_][a-z0-9_-]{0,63})\.(" + b"|".join(sorted(IMAGES)) + rb")")
_MAX_NAMED_IMAGES = 16
_LABELS = "labels.txt"
_TABLE = b".parquet"
_KEY = re.compile(rb"((?:.*/)?[^./]+)\.([^/]*)", re.DOTALL)
_META = re.compile(rb"__[^/]*__(/|$)")
_CLASS_ID = re.compile(rb"\s*(-1|[0-9]{1,18})\s*")
_PLAIN_SUFFIX = re.compile(rb"[a-z0-9._-]{1,20}")
_MAX_CLASS_BYTES, _MAX_JSON_BYTES = 64, 2**20
_HEAD_MEMBERS = 64
_HEAD_SHARDS = 16
_HEAD_NAMES = 64

_PROBLEMS = {
    "sample without an image": "samples without an image are not used (a key is a name up to its first dot): {names}",
    "sample with several images": "samples with several images are not used: {names}",
    "sample with a member twice": "samples that have a member twice are not used: {names}",
    "sample with a bad class": "samples whose .cls is not a class id, such as 7, are not used: {names}",
    "repeated key": "samples with the key of an earlier one are not used: {names}",
}
"""Reasons why a sample is not an item: the kind that is counted, and the warning."""
_OF_NAMES = "; if they are names of classes, unpack the tars, and there type: (echo file_name,label; for each in *.cls;"
_OF_NAMES += ' do echo "$(ls "${each%.cls}".* | grep -vE "[.](cls|json|txt)$"),$(cat "$each")"; done) > metadata.csv'


def _find(look: Look, layout: Layout) -> dict[Location, str]:
    """Return the tars of a WebDataset in a folder, in the order of their names, and the split of each.

    They lie in the folder itself, or in folders of splits, and no class folder lies beside them.
    """
    children = look.beside_images(layout.base)
    shards = {path: split_of(path.name) for path in _tars_of(layout.base, children)}
    if shards and look.holds_folders:
        shards = {}
    if not shards:
        folders = {child.name for child in children if child.is_folder}
        inner = {layout.base / os.fsdecode(name): split for name, split in splits_among(folders).items()}
        shards = {path: split for folder, split in inner.items() for path in _tars_in_split(folder)}
    are_samples = hold_samples(shards)
    if are_samples is None and shards:  # none is readable; listing them reports what is wrong
        parents = {path.parent for path in shards}
        are_samples = not find_tars(look, layout.base) and all(_are_alone(folder.children()) for folder in parents)
    if are_samples:
        are_splits({os.fsencode(path.parent.name) for path in shards}, str(layout.base))
    return shards if are_samples else {}


def _are_alone(children: Iterable[Child]) -> bool:
    names = (child.name for child in children if child.is_file)
    return all(name.endswith(b".tar") or name.startswith(b".") or is_sidecar(name) for name in names)


def _tars_of(folder: Location, children: Iterable[Child]) -> list[Location]:
    names = (child.name for child in children if child.is_file)
    return [folder / os.fsdecode(name) for name in names if name.endswith(b".tar") and not name.startswith(b".")]


def _tars_in_split(folder: Location) -> list[Location]:
    """Return the tars in the folder of a split; none if there are class folders, or its first files have no tar."""
    some = list(islice(folder.some_children(), _HEAD_NAMES))
    if any(child.is_folder for child in some) or not _tars_of(folder, some):
        return []
    children = folder.children()
    return [] if any(child.is_folder for child in children) else _tars_of(folder, children)


def hold_samples(tars: Iterable[Location]) -> bool | None:
    """Return whether tars hold samples: whether one of their first members belongs to an image with the same key.

    Such a member is a ``.cls``; or, if images do not lie in folders (which may be classes), a ``.txt``, a ``.json`` or
    an image with a name, such as ``.seg.png``. The first tar that is neither empty, damaged nor compressed decides;
    None if the first few have no such tar.
    """
    return next((holds for holds in map(_holds_samples, islice(tars, _HEAD_SHARDS)) if holds is not None), None)


def _holds_samples(path: Location) -> bool | None:
    if is_compressed(path):
        return None
    images, classes, others, named, is_whole = set[bytes](), set[bytes](), set[bytes](), set[bytes](), False
    with path.reader() as file, contextlib.suppress(SourceError):  # listing it reports the error
        for member in islice(tar_members(FileWindow(file, 0, path.size(), str(path))), _HEAD_MEMBERS):
            name = member.name.encode("utf-8", "surrogateescape").removeprefix(b"./")
            key, suffix = _split(name)
            if member.isreg() and key is not None:
                kinds = {_CLASS: classes, **dict.fromkeys(_FIELDS, others), **dict.fromkeys(IMAGES, images)}
                kinds.get(suffix, set() if _name_of_image(suffix) is None else named).add(key)
        is_whole = True
    if images & classes or any(b"/" not in key for key in images & (others | named)):
        return True
    return False if is_whole and (images or classes or others) else None


def _split(name: bytes) -> tuple[bytes | None, bytes]:
    """Return the key of a member, None if it is not part of a sample, and its suffix in lower case."""
    match = _KEY.fullmatch(name)
    return (match[1], match[2].lower()) if match else (None, b"")


def _claim(look: Look) -> dict[Location, str]:
    if look.layout is not None:
        return _find(look, look.layout)
    tars = look.once(named_tars)
    return tars if tars and hold_samples(tars) else {}


def _list(look: Look, shards: Mapping[Location, str]) -> Source:
    folder = folder_of(look, shards)
    builder = SourceBuilder(look, folder, (folder,))
    if look.layout is not None:  # img2dataset writes tables of their contents beside the tars
        builder.skipped.ignored[_TABLE.decode()] += sum(child.name.endswith(_TABLE) for child in folder.children())
    samples = _Samples(builder)
    for path, split in shards.items():
        samples.add(path, split)
    samples.finish()
    if not len(builder.collector):
        reasons = "".join(f"; {warning}" for warning in builder.warnings)
        reasons += _OF_NAMES if builder.skipped.ignored["sample with a bad class"] else ""
        raise SourceError(f"{look.root} has no sample that can be used{reasons}", path=look.root)
    builder.labels = builder.labels or samples.labels_beside(folder)
    return builder.finish_in(MemberReader(builder.base, tuple(builder.archives), samples.fields()))


@dataclasses.dataclass(slots=True)
class _Sample:
    """One sample while it is read."""

    # path, size and offset of each image
    images: list[tuple[bytes, int, int]] = dataclasses.field(default_factory=list)
    class_id: int = -1  # its class; -1 for none
    # offset and length of the value of each field, by its name
    slices: dict[str, tuple[int, int]] = dataclasses.field(default_factory=dict)
    suffixes: set[bytes] = dataclasses.field(default_factory=set)  # the suffixes of its members so far
    problem: str | None = None  # why it is not an item: a key of `_PROBLEMS`


class _Samples:
    def __init__(self, builder: SourceBuilder) -> None:
        self._builder = builder
        self._images = TarImages(builder)
        self._slices: dict[str, GrowingColumn] = {}
        self._most = -1  # the largest class id

    def add(self, path: Location, split: str) -> None:
        keys = set[bytes]()
        with self._images.open(path) as window:
            for key, members in groupby(self._members(window), itemgetter(0)):
                sample = _Sample()
                for _, suffix, name, member in members:
                    self._add_member(sample, name, suffix, window, member)
                self._add_sample(key, sample, path, split, is_repeated=key in keys)
                keys.add(key)

    def _members(self, window: FileWindow) -> Iterator[tuple[bytes, bytes, bytes, tarfile.TarInfo]]:
        for member, name in self._images.named(window):
            key, suffix = _split(name)
            if member.isdir():
                continue
            if key is None or _META.match(name):
                self._builder.skipped.ignored["not in a sample"] += 1
            else:
                yield key, suffix, name, member

    def _add_member(
        self, sample: _Sample, name: bytes, suffix: bytes, window: FileWindow, member: tarfile.TarInfo
    ) -> None:
        if suffix in sample.suffixes:
            sample.problem = "sample with a member twice"
        sample.suffixes.add(suffix)
        field = suffix.decode() if suffix in _FIELDS else _name_of_image(suffix)
        if suffix in IMAGES:
            sample.images.append((name, member.size, member.offset_data))
        elif suffix == _CLASS:
            class_id = _read_class(window, member)
            if class_id is None:
                sample.problem = sample.problem or "sample with a bad class"
            else:
                sample.class_id = class_id
        elif field is None:
            kind = f".{suffix.decode()}" if _PLAIN_SUFFIX.fullmatch(suffix) else "other member"
            self._builder.skipped.ignored[kind] += 1
        else:
            if field == "json" and field not in self._slices:
                self._warn_of_boxes(window, member)
            sample.problem = "sample with a member twice" if field in sample.slices else sample.problem
            sample.slices[field] = member.offset_data, member.size

    def _warn_of_boxes(self, window: FileWindow, member: tarfile.TarInfo) -> None:
        """Warn of boxes in the JSON of the first sample with JSON."""
        with contextlib.suppress(SourceError, RecursionError, ValueError):  # reported when its sample is used
            values = parse_json(read_member(window.inner(member), member, _MAX_JSON_BYTES))
            named = BOXES_AS_JSON.items() if isinstance(values, dict) else ()
            self._builder.warnings += [message for name, message in named if has_boxes(values.get(name))]

    def _add_sample(self, key: bytes, sample: _Sample, path: Location, split: str, *, is_repeated: bool) -> None:
        """Add a complete sample, or note why it is not an item."""
        problem = "repeated key" if is_repeated else sample.problem
        if len(sample.images) != 1 and problem is None:
            problem = "sample with several images" if sample.images else "sample without an image"
        if problem is not None:
            self._builder.skipped.note(problem, os.fsencode(path.name) + b": " + key)
            return
        self._most = max(self._most, sample.class_id)
        for field, value in sample.slices.items():
            self._add_value(field, value)
        group = self._builder.collector.group(split, b"%d" % sample.class_id if sample.class_id >= 0 else None)
        self._images.add(group, *sample.images[0])

    def _add_value(self, name: str, value: tuple[int, int]) -> None:
        """Add the value of a field of the sample that is being added."""
        if name not in self._slices:
            if name.encode() not in _FIELDS and len(self._slices) == _MAX_NAMED_IMAGES + len(_FIELDS):
                self._builder.skipped.ignored["other member"] += 1
                return
            self._slices[name] = GrowingColumn("q")
        column = self._slices[name]
        _fill(column, len(self._images))
        for number in value:
            column.append(number)

    def finish(self) -> None:
        """Set the positions of images, and warn of samples and members that are not used."""
        self._images.finish()
        for problem, message in _PROBLEMS.items():
            self._builder.skipped.warn(self._builder.skipped.noted[problem], message)
        self._builder.numbered = self._most >= 0
        self._builder.names_may_be_numbers = False

    def labels_beside(self, folder: Location) -> LabelMap | None:
        """Return the label map beside the tars; None if there is none, or it does not fit their classes."""
        path = folder / _LABELS
        if not self._builder.numbered or not path.is_file():
            return None
        try:
            label_map = read_label_map(str(path))
            if self._most >= len(label_map.names):
                held = format_count(len(label_map.names), "line")
                raise SourceError(f"{path} has {held}, but there is the class {self._most}")
        except (ConfigError, SourceError) as error:
            self._builder.warnings.append(f"{error}; so it is not used, and the classes are called by their ids")
            return None
        return label_map

    def fields(self) -> dict[str, Field]:
        """Return the fields of the samples; to be called when all samples were added.

        It sets the column ``slices``: where the value of each field begins, and its length.
        """
        samples = len(self._images)
        fields: dict[str, Field] = {
            name.decode(): field for name, field in _FIELDS.items() if name.decode() in self._slices
        }
        fields |= {name: field_of_image(name) for name in sorted(self._slices) if name not in fields}
        slices = new_column(2 * len(fields) * samples, np.int64).reshape(samples, -1)
        for number, name in enumerate(fields):
            _fill(self._slices[name], samples)
            column = self._slices[name].finish().reshape(-1, 2)
            for first, end in chunks(samples):
                slices[first:end, 2 * number : 2 * number + 2] = column[first:end]
        if fields:
            self._builder.collector.columns["slices"] = slices
        return fields


def _name_of_image(suffix: bytes) -> str | None:
    """Return the field of a mask or other image beside the image of a sample; None for any other suffix."""
    match = _NAMED_IMAGE.fullmatch(suffix)
    return None if match is None or match[1].decode() in _RESERVED else match[1].decode()


def _fill(column: GrowingColumn, samples: int) -> None:
    """Add missing values until the column has values for this many samples."""
    lacking = 2 * samples - len(column)
    for first, end in chunks(lacking):
        column.extend(np.full(end - first, -1, np.int64))


def _read_class(window: FileWindow, member: tarfile.TarInfo) -> int | None:
    if member.size > _MAX_CLASS_BYTES:
        return None
    match = _CLASS_ID.fullmatch(read_member(window.inner(member), member, _MAX_CLASS_BYTES))
    return int(match[1]) if match and int(match[1]) < MAX_CLASSES else None


WEBDATASET = Kind(
    name="WebDataset",
    claim=_claim,
    list=_list,
    options=LABEL_OPTIONS | {"boxes"},
    reader=MemberReader,
)
