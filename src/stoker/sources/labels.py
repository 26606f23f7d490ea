"""Lists of classes in all formats: labels, texts, and classes of validation images; and ImageNet's 1,000 classes.

A label map (`read_label_map`) fixes which class has which label:

====================================  ==============================================================================
list                                  a label is
====================================  ==============================================================================
one class a line, or a JSON list      the number of the line or class
``CLASS<TAB>TEXT``                    the number of the line
``LOC_synset_mapping.txt`` (Kaggle)   the number of the line ``WNID TEXT, TEXT``
``imagenet_labels.json[.gz]``         ``{"WNID": {"label": 0, "human_labels": "TEXT"}}``, counted from 0 or from 1
any ``.json``                         ``{"0": "CLASS"}`` or ``{"CLASS": 0}``, counted in the same way
``map_clsloc.txt`` (devkit)           the middle column of ``WNID ID NAME``, from 1
``labels.txt`` of a dataset           the number of the line, without the background where labels start at 1
``0:CLASS``, ``1:CLASS`` (TF-Slim)    the number, likewise without the background; also ``0,CLASS`` below a header
the word ``imagenet``                 the number of the line in ``imagenet_classes.tsv``
====================================  ==============================================================================

A text never identifies a class: two synsets of ImageNet are called "crane", and two "maillot". In a `LabelMap` labels
always count from 0; the label base of the schema decides which numbers are written.

A list of texts (`class_texts`) names each class in words.

A list of validation labels (`read_validation_labels`) gives the classes of validation images that lie in one folder or
one tar, without a folder for each class:

====================================================  ==============================================================
list                                                  the class of an image
====================================================  ==============================================================
``imagenet_2012_validation_synset_labels.txt``,       line i is the class of ``ILSVRC2012_val_%08d`` i
``synset_labels.txt``
``LOC_val_solution.csv`` (Kaggle)                     ``NAME,WNID x1 y1 x2 y2 [WNID ...]``; the first class counts
``ILSVRC2012_validation_ground_truth.txt`` (devkit)   line i is the devkit's number of the class of image i
``ILSVRC2012_devkit_t12.tar.gz``                      the list above, which is in it
``val_annotations.txt`` (Tiny ImageNet)               ``NAME.JPEG<TAB>WNID<TAB>...``
====================================================  ==============================================================

A line of ``imagenet_classes.tsv`` is a WordNet id, the number that the development kit of the challenge gives to that
class, and its text. The lines are in the order of the WordNet ids, so line 1 is label 0, or 1 where labels start at 1:
Google's scripts, torchvision and most pretrained models number them in this way. The development kit's own numbers are
in another order; only its list of the classes of the validation images needs them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shlex
import zlib
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from stoker.config import option
from stoker.errors import ConfigError, SourceError
from stoker.format import BACKGROUND, LABELS_NAME, MANIFEST_NAME
from stoker.sources.files import nonblank_lines, text_of
from stoker.sources.names import DEVKIT_FOLDER, image_stem
from stoker.sources.tar_format import FileWindow, may_be_tar, open_stream, read_member, tar_members
from stoker.storage import Location, location
from stoker.strict_json import parse_json
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


BUNDLED_LIST = "imagenet"
"""The word that stands for ImageNet's own list, in place of the name of a file."""

TEXT_LISTS = ("imagenet_metadata.txt", "words.txt", "LOC_synset_mapping.txt")
"""Lists of texts, in the order in which they are looked for."""

CLASS_LISTS = ("synsets.txt", "wnids.txt")
"""Names of lists beside images that have all their classes, by WordNet id."""

DEVKIT = "ILSVRC2012_devkit_t12.tar.gz"
"""The development kit of ILSVRC 2012 as a file."""


_GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"

LABEL_LISTS = (
    "imagenet_2012_validation_synset_labels.txt",
    "synset_labels.txt",
    "LOC_val_solution.csv",
    _GROUND_TRUTH,
    f"{DEVKIT_FOLDER}/data/{_GROUND_TRUTH}",
    DEVKIT,
)
"""Lists of validation labels, in the order in which they are looked for."""

_BREED_FOLDER = re.compile(rb"n[0-9]{8}-(.+)", re.DOTALL)
_WNID = re.compile(rb"n[0-9]{8}")
_WNID_IN_FRONT = re.compile(rb"\s*n[0-9]{8}(?!\S)")
_DEVKIT_LINE = re.compile(rb"\s*(n[0-9]{8})\s+([0-9]{1,9})\s+(\S.*)", re.DOTALL)
_NUMBERED_LINE = re.compile(rb"([0-9]{1,9})[:,](.*)", re.DOTALL)
"""``0:CLASS`` or ``0,CLASS``."""
_MAX_JSON_BYTES = 2**26
_MAX_GROUND_TRUTH_BYTES = 2**24
_VALIDATION_IMAGES = 50_000
_GROUND_TRUTH_SHA256 = (
    "323ca84ec5546dccc4dd11dbd2b3fc0094818728b5613f6089bd2f1428a04eaf"  # of its numbers, joined by LF
)
_GZIP_MAGIC = b"\x1f\x8b"
_NUMBER = re.compile(rb"ILSVRC2012_val_([0-9]{8})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ImagenetClasses:
    """The 1,000 classes of ILSVRC 2012."""

    texts: dict[bytes, bytes]  # WordNet id and text of each class, in the order of the ids
    devkit: tuple[bytes, ...]  # the WordNet id of number i of the development kit at index i - 1


@cache
def imagenet_classes() -> ImagenetClasses:
    """Return the 1,000 classes of ILSVRC 2012."""
    lines = resources.files(__package__).joinpath("imagenet_classes.tsv").read_bytes().splitlines()
    entries = [line.split(b"\t") for line in lines]
    by_number = sorted((int(number), name) for name, number, _ in entries)
    return ImagenetClasses({name: text for name, _, text in entries}, tuple(name for _, name in by_number))


@dataclass(frozen=True, slots=True)
class LabelMap:
    """Classes in the order of their labels.

    Attributes:
        where: File it comes from.
        names: Names of the classes.
        texts: Their texts; empty where the list has none.
        counts_from_1: Whether it gives its classes numbers, the first of which is 1.
    """

    where: str
    names: tuple[bytes, ...]
    texts: tuple[bytes, ...]
    counts_from_1: bool = False


def bundled_label_map() -> LabelMap:
    """Return the 1,000 classes of ImageNet in the order of their WordNet ids; `class_texts` has their texts."""
    names = tuple(imagenet_classes().texts)
    return LabelMap(BUNDLED_LIST, names, (b"",) * len(names))


def read_label_map(where: str) -> LabelMap:
    """Read a label map; its kind is recognised by its content.

    Args:
        where: The list, or the word ``imagenet`` for the one that comes with Stoker; a file of that name is
            ``./imagenet``.

    Raises:
        SourceError: It does not exist, or is not one of the lists above.
        ConfigError: It names a class twice or one that cannot be written into ``labels.txt``, or its labels have gaps.
        OSError: It cannot be read.
    """
    if where == BUNDLED_LIST:
        return bundled_label_map()
    path = location(where)
    if not path.is_file():
        raise SourceError(f"the label map {where} does not exist or is not a file", path=where)
    head = path.read_head(128)
    if head.startswith(b"MATLAB 5.0 MAT-file") or ".tar" in PurePosixPath(path.name).suffixes or path.suffix == ".tgz":
        message = f"{where} is the development kit of ImageNet or a part of it, not a list of classes; use"
        message += f" {option('labels')} imagenet for the 1,000 classes in the order of their WordNet ids, and"
        raise SourceError(f"{message} {option('validation_labels')} for the development kit", path=where)
    if head.startswith(_GZIP_MAGIC) or head.lstrip()[:1] in (b"{", b"["):
        return _from_json(where, _read_json(path))
    lines = list(islice(nonblank_lines(path), MAX_CLASSES + 1))
    if len(lines) > MAX_CLASSES:
        message = f"the label map {where} has more than {MAX_CLASSES} lines, so it is not a list of classes"
        raise SourceError(f"{message}; give one with a class a line", path=where)
    for number, line in lines:
        text_of(path, number, line)
    return _from_lines(where, path, lines)


def _starts_at_1(manifest: Location) -> bool:
    try:
        return bool(parse_json(manifest.read_at_most(_MAX_JSON_BYTES))["schema"]["label_base"] == 1)
    except (FileNotFoundError, ValueError, LookupError, TypeError):
        return False


def _from_lines(where: str, path: Location, lines: list[tuple[int, bytes]]) -> LabelMap:
    if not lines:
        raise SourceError(f"the label map {where} is empty", path=where)
    matches = list(filter(None, (_DEVKIT_LINE.fullmatch(line) for _, line in lines)))
    if len(matches) == len(lines):
        return _numbered(where, ((match[1], int(match[2]), match[3].strip()) for match in matches))
    manifest = path.with_name(MANIFEST_NAME)
    starts_at_1 = path.name == LABELS_NAME and _starts_at_1(manifest)
    has_header = b"," in lines[0][1] and not lines[0][1][:1].isdigit()
    matches = list(filter(None, (_NUMBERED_LINE.fullmatch(line) for _, line in lines)))
    if matches and len(matches) + has_header == len(lines):
        background = (b"0", BACKGROUND.encode()) if starts_at_1 or not manifest.is_file() else ()
        entries = ((_entry(match[2].strip(b'"')), int(match[1])) for match in matches if match.groups() != background)
        return _numbered(where, ((name, number, text) for (name, text), number in entries))
    if starts_at_1 and lines[0][1] == BACKGROUND.encode():
        lines = lines[1:]
    first: dict[bytes, int] = {}
    texts = []
    for number, line in lines:
        name, text = _entry(line)
        if name in first:
            shown = name.decode("utf-8", "replace")
            raise ConfigError(f"the label map {where} names {shown} twice: in line {first[name]} and in line {number}")
        first[name] = number
        texts.append(text)
    return _map(where, tuple(first), texts)


def _entry(line: bytes) -> tuple[bytes, bytes]:
    # Without a tab only a WordNet id ends at the first blank: folders may be called "golden retriever".
    if b"\t" in line or _WNID_IN_FRONT.match(line):
        return split_text(line)
    return line.strip(), b""


def _numbered(where: str, entries: Iterable[tuple[bytes, int, bytes]]) -> LabelMap:
    """Return a map of numbered classes: without gaps, from 0 or from 1."""
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
    label_map = _map(where, [name for name, _, _ in ordered], [text for _, _, text in ordered])
    return replace(label_map, counts_from_1=base == 1)


def _map(where: str, names: Sequence[bytes], texts: Sequence[bytes]) -> LabelMap:
    """Return a label map; refuse names that JSON allows and ``labels.txt`` does not."""
    for name in names:
        if not name or has_control_character(name):
            shown = name.decode("utf-8", "replace")
            message = f"the label map {where} names the class {shown!r}, which no folder with images can be called"
            raise ConfigError(f"{message}; give it a name without control characters")
    return LabelMap(where, tuple(names), tuple(map(one_line, texts)))


def _read_json(path: Location) -> bytes:
    data = path.read_head(_MAX_JSON_BYTES + 1)
    if data.startswith(_GZIP_MAGIC):
        try:
            with gzip.open(io.BytesIO(data)) as file:
                data = file.read(_MAX_JSON_BYTES + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise SourceError(f"the label map {path} is damaged: {error}", path=str(path)) from error
    if len(data) > _MAX_JSON_BYTES:
        raise SourceError(f"{path} is larger than {_MAX_JSON_BYTES} bytes, too large for a list", path=str(path))
    return data


def _from_json(where: str, data: bytes) -> LabelMap:
    form = (
        '["CLASS", ...], {"0": "CLASS", ...}, {"CLASS": 0, ...}, {"CLASS": {"label": 0, "human_labels": "TEXT"}, ...}'
    )
    try:
        pairs = json.loads(data, object_pairs_hook=lambda pairs: pairs)
        if data.lstrip().startswith(b"["):
            pairs = [(str(number), name) for number, name in enumerate(pairs)]
        entries = [_json_entry(name, fields) for name, fields in pairs]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SourceError(f"the label map {where} is not one of {form}: {error}", path=where) from error
    return _numbered(where, entries)


def _json_entry(name: Any, fields: Any) -> tuple[bytes, int, bytes]:
    if isinstance(fields, str) and name.isdigit():
        return fields.encode(), int(name), b""
    values = {"label": fields} if isinstance(fields, int) else dict(fields)
    label, text = values["label"], values.get("human_labels", "")
    if not isinstance(name, str) or type(label) is not int or not isinstance(text, str):
        raise TypeError(f"{name!r} has label {label!r} and text {text!r}")
    return name.encode(), label, text.encode()


def class_texts(
    folders: Iterable[Location],
    classes: Sequence[bytes],
    explicit: str | None,
    mapped: Mapping[bytes, bytes],
    warnings: list[str],
) -> tuple[bytes, ...]:
    """Return the text of each class, empty where nothing names it.

    A list has one class a line: its name, a tab (or the first blank of a line without tabs), its text in UTF-8. The
    list is ``explicit``, or the first of `TEXT_LISTS` in ``folders``. Texts of a label map (``mapped``) come before
    those of a list that was found. A class that no list names has its text in `imagenet_classes` if it is one of
    ImageNet's 1,000. If it is named as in Stanford Dogs (``n02085620-Chihuahua``), the text is what follows the dash.
    """
    listed_in = list(folders)
    files = (folder / name for name in TEXT_LISTS for folder in listed_in)
    path = location(explicit) if explicit is not None else next((file for file in files if file.is_file()), None)
    listed = _read_list(path, frozenset(classes), warnings) if path is not None else {}
    if explicit is not None and not any(listed.values()):
        message = f"{path} names none of the {len(classes)} classes; each line must be a class, a tab and its text"
        raise SourceError(message, path=str(path))
    known = {**mapped, **listed} if explicit is not None else {**listed, **mapped}
    return tuple(known.get(name) or _text_of_name(name) for name in classes)


def _read_list(path: Location, classes: frozenset[bytes], warnings: list[str]) -> dict[bytes, bytes]:
    texts: dict[bytes, bytes] = {}
    bad: list[int] = []
    for number, line in nonblank_lines(path):
        name, text = split_text(line)
        if not name or not text:
            bad.append(number)
        elif name in classes:
            text_of(path, number, line)
            texts[name] = text
    if bad:
        what = f"line {bad[0]} names" if len(bad) == 1 else f"{len(bad)} lines, the first of them line {bad[0]}, name"
        warnings.append(f"{path}: {what} no class or no text; each must be a class, a tab and its text")
    return texts


def _text_of_name(name: bytes) -> bytes:
    if _WNID.fullmatch(name):
        return imagenet_classes().texts.get(name, b"")
    match = _BREED_FOLDER.fullmatch(name)
    return match[1].replace(b"_", b" ") if match else b""


def split_text(line: bytes) -> tuple[bytes, bytes]:
    """Return the name and the text of a line of a list."""
    name, _, text = line.partition(b"\t") if b"\t" in line else line.strip().partition(b" ")
    # A tab separates the columns of labels.txt too.
    return name.strip(), text.replace(b"\t", b" ").strip()


def is_wordnet_id(name: bytes) -> bool:
    """Return whether the name of a class is a WordNet id, as ImageNet's are."""
    return _WNID.fullmatch(name) is not None


def has_control_character(text: bytes) -> bool:
    """Return whether a name or a text would break the lines or columns of ``labels.txt``."""
    return any(byte < 32 for byte in text)


def one_line(text: bytes) -> bytes:
    """Return a text with a blank for each control character, so that it can stand in ``labels.txt``."""
    return bytes(32 if byte < 32 else byte for byte in text)


@dataclass(slots=True)
class ValidationLabels:
    """The class of each validation image."""

    where: str  # the list
    by_number: Sequence[bytes] = ()  # the class of image i at index i - 1; empty if the list has names of images
    by_name: dict[bytes, bytes] = field(default_factory=dict)  # the class by the name of the image, without suffix
    # whether an image that the list does not name is an item without a label instead of an error
    tolerant: bool = False
    bad_lines: int = 0  # lines without an image or a class

    def class_of(self, file_name: bytes) -> bytes | None:
        """Return the class of an image; None if it has none."""
        stem = image_stem(file_name)
        if self.by_number:
            match = _NUMBER.fullmatch(stem)
            number = int(match[1]) if match else 0
            if 1 <= number <= len(self.by_number):
                return self.by_number[number - 1]
        elif stem in self.by_name:
            return self.by_name[stem]
        if self.tolerant:
            return None
        shown = os.fsdecode(file_name)
        message = f"{self.where} has no label for {shown}"
        if self.by_number:
            message += f": it has {len(self.by_number)} lines, for ILSVRC2012_val_00000001.JPEG and so on"
        message += f"; give the list of these images with {option('validation_labels')}"
        raise SourceError(message, path=self.where)

    def class_names(self) -> set[bytes]:
        """Return all classes that the list names."""
        return {*self.by_number, *self.by_name.values()}


def missing_labels_advice(folders: Sequence[Location], file_name: bytes) -> str:
    """Return what to do about validation images without class folders when no list of their classes was found.

    The list was looked for in ``folders``; the advice is to put it into the first. ``file_name`` is an image's.
    """
    if not _NUMBER.fullmatch(image_stem(file_name)):
        return f"give their classes with {option('validation_labels')}"
    looked = " and ".join(dict.fromkeys(map(str, folders)))
    fetch = f"stoker download imagenet {shlex.quote(str(folders[0]))} --devkit"
    return (
        f"their classes are in {DEVKIT}, which was looked for in {looked}; run '{fetch}' to fetch it (3 MB), "
        f"or give it, or a list of WordNet ids, with {option('validation_labels')}"
    )


def find_validation_labels(folders: Iterable[Location], explicit: str | None) -> Location | None:
    """Return the list named by the user, or the first of `LABEL_LISTS` that lies in one of some folders.

    The user may also name the development kit, or the folder that it unpacks to.
    """
    if explicit is not None:
        path = location(explicit)
        if path.is_dir():
            path = path / "data" / _GROUND_TRUTH
        if not path.is_file():
            raise SourceError(f"{option('validation_labels')} {path} does not exist or is not a file", path=explicit)
        return path
    listed_in = list(folders)
    return next((folder / name for name in LABEL_LISTS for folder in listed_in if (folder / name).is_file()), None)


def read_validation_labels(path: Location) -> ValidationLabels:
    """Read a list, or the development kit that contains one; its kind is recognised by its content."""
    in_devkit = may_be_tar(path)
    lines = _lines_of_devkit(path) if in_devkit else list(nonblank_lines(path))
    if not lines:
        raise SourceError(f"{path} is empty; it must say the classes of the validation images", path=str(path))
    first = lines[0][1]
    if b"," in first or b"\t" in first:
        return _by_name(path, lines, is_tiny=b"," not in first)
    _refuse_blank_lines(path, lines)
    named = in_devkit or path.name == _GROUND_TRUTH
    if named or first.strip().isdigit():
        return _from_devkit(path, lines, named=named)
    return ValidationLabels(str(path), [line.strip() for _, line in lines])


def _lines_of_devkit(path: Location) -> list[tuple[int, bytes]]:
    """Return the nonblank lines of the list in the development kit, with their numbers."""
    with open_stream(path) as stream:
        source = FileWindow(stream, 0, None, str(path))
        for member in tar_members(source):
            if member.isreg() and member.name.rpartition("/")[2] == _GROUND_TRUTH:
                lines = read_member(source, member, _MAX_GROUND_TRUTH_BYTES).splitlines()
                return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    message = f"{path} holds no {_GROUND_TRUTH}, so it is not the development kit of ILSVRC 2012"
    raise SourceError(f"{message}; fetch it with 'stoker download imagenet DIR --devkit'", path=str(path))


def _refuse_blank_lines(path: Location, lines: Sequence[tuple[int, bytes]]) -> None:
    for expected, (number, _) in enumerate(lines, 1):
        if number != expected:
            message = f"line {expected} of {path} is blank, so the images after it would get wrong labels"
            raise SourceError(f"{message}; give a complete list", path=str(path))


def _by_name(path: Location, lines: Sequence[tuple[int, bytes]], *, is_tiny: bool) -> ValidationLabels:
    labels = ValidationLabels(str(path), tolerant=is_tiny)
    for _, line in lines:
        name, _, rest = line.partition(b"\t" if is_tiny else b",")
        name, class_name = name.strip(), next(iter(rest.split(b"\t" if is_tiny else None)), b"").strip()
        if name == b"ImageId" and not is_tiny:
            continue
        if name and class_name:
            labels.by_name[image_stem(name) if is_tiny else name] = class_name
        else:
            labels.bad_lines += 1
    return labels


def _from_devkit(path: Location, lines: Sequence[tuple[int, bytes]], *, named: bool) -> ValidationLabels:
    """Read the development kit's numbers, which are recognised by the name of the list, or by their checksum."""
    classes = imagenet_classes().devkit
    names: list[bytes] = []
    digest = hashlib.sha256()
    for number, line in lines:
        label = int(line) if line.strip().isdigit() and len(line) < 20 else 0
        if not 1 <= label <= len(classes):
            message = f"line {number} of {path} is {line[:40]!r}, not a number from 1 to {len(classes)}"
            message += " of the development kit of ILSVRC 2012; give a list of WordNet ids, one for each image, with"
            raise SourceError(f"{message} {option('validation_labels')}", path=str(path))
        digest.update(b"\n%d" % label if names else b"%d" % label)
        names.append(classes[label - 1])
    whole = len(names) == _VALIDATION_IMAGES or not named
    if whole and digest.hexdigest() != _GROUND_TRUTH_SHA256:
        message = f"the {len(names):,} numbers in {path} are not those of the development kit of ILSVRC 2012"
        message += (
            "; fetch it with 'stoker download imagenet DIR --devkit', or give a list of WordNet ids, one for each"
        )
        raise SourceError(f"{message} image, with {option('validation_labels')}", path=str(path))
    return ValidationLabels(str(path), names)
