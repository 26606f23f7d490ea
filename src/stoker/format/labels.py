"""``labels.txt``: line number (from 0) = class id; the name of the class, then, where known, a tab and its text.

In the numbered form, which TF-Slim's readers expect, each line begins with its number and a colon: ``0:background``. A
reader tells the two apart by that: it is the numbered form if every line begins so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import ManifestError
from stoker.format.directory import LABELS_NAME, ListedFile, read_text, write_listed
from stoker.storage import location
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.format.manifest import Manifest
    from stoker.storage import Location, LocationLike


BACKGROUND = "background"
"""Name of class 0 when labels start at 1."""

_MAX_LABELS_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class ClassLabel:
    """One class.

    Attributes:
        name: Name of the class folder; bytes that are not UTF-8 as surrogate escapes.
        text: The class in words; empty when unknown.
    """

    name: str
    text: str


def write_labels(
    directory: LocationLike,
    names: Sequence[bytes],
    texts: Sequence[bytes],
    label_base: int,
    *,
    numbered: bool = False,
) -> ListedFile:
    """Write the labels of a dataset atomically, and return what the manifest says about the file.

    Names have no control characters; texts are empty where unknown. With the label base 1, line 0 is `BACKGROUND`.
    Names that would pass for the numbered form are written in it all the same.
    """
    lines = [BACKGROUND.encode()] * label_base
    lines += [name + b"\t" + text if text else name for name, text in zip(names, texts, strict=True)]
    if numbered or all(line.startswith(b"%d:" % number) for number, line in enumerate(lines)):
        lines = [b"%d:%b" % (number, line) for number, line in enumerate(lines)]
    content = b"".join(line + b"\n" for line in lines)
    return write_listed(location(directory) / LABELS_NAME, content)


def read_labels(directory: LocationLike, listed: ListedFile | None = None) -> tuple[ClassLabel, ...]:
    """Return the classes of a dataset; the index is the class id.

    Raises:
        FileNotFoundError: There is no ``labels.txt``.
        ManifestError: It is not as ``listed``, too large to be a list of classes, or no regular file.
    """
    return _read_list(location(directory) / LABELS_NAME, "restore it, or build again", listed)


def read_classes(directory: LocationLike, manifest: Manifest) -> tuple[ClassLabel, ...]:
    """Return the classes of a dataset, of which its manifest counts the records.

    Raises:
        ManifestError: As `read_labels`; or there is no ``labels.txt``, or one of other classes than are counted.
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


def read_class_names(folder: Location, label_key: str) -> tuple[ClassLabel, ...]:
    """Return the classes that a list beside shards of other origin names, by their label; empty without a list.

    Looked for are ``KEY.labels.txt``, where TFDS keeps the names of the label called ``KEY``, and ``labels.txt``.

    Raises:
        ManifestError: It is too large to be a list of classes, no regular file, or names one twice.
    """
    keys = [label_key] if label_key and "/" not in label_key else []
    for name in [*(f"{key}.labels.txt" for key in keys), LABELS_NAME]:
        try:
            classes = _read_list(folder / name, "repair it, or move it away")
        except FileNotFoundError:
            continue
        seen: set[ClassLabel] = set()
        for number, label in enumerate(classes):
            if label in seen or not label.name:
                what = f"names {label.name!r} twice" if label.name else f"has an empty line, line {number + 1}"
                message = f"{folder / name} {what}, so it is not a list of classes"
                raise ManifestError(message, path=str(folder / name))
            seen.add(label)
        return classes
    return ()


def _read_list(path: Location, remedy: str, listed: ListedFile | None = None) -> tuple[ClassLabel, ...]:
    content = read_text(path, _MAX_LABELS_BYTES, "list of classes", listed)
    if content.count(b"\n") > MAX_CLASSES:
        message = f"{path} has more than {MAX_CLASSES} lines, so it is not a list of classes; {remedy}"
        raise ManifestError(message, path=str(path))
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    if all(line.startswith(f"{number}:") for number, line in enumerate(lines)):
        lines = [line.partition(":")[2] for line in lines]
    pairs = (line.partition("\t") for line in lines)
    return tuple(ClassLabel(name, text) for name, _, text in pairs)
