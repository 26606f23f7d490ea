"""``labels.txt``: line number (from 0) = class id; the name of the class, then, where known, a tab and its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import ManifestError
from stoker.format.directory import LABELS_NAME, read_text
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.storage import LocationLike


BACKGROUND = "background"
"""Name of class 0 when labels start at 1."""

_MAX_LABELS_BYTES = 2**28
MAX_CLASSES = 2**22
"""Most classes that a dataset may have."""


@dataclass(frozen=True, slots=True)
class ClassLabel:
    """One class.

    Attributes:
        name: Name of the class folder; bytes that are not UTF-8 as surrogate escapes.
        text: The class in words; empty when unknown.
    """

    name: str
    text: str


def write_labels(directory: LocationLike, names: Sequence[bytes], texts: Sequence[bytes], label_base: int) -> None:
    """Write the labels of a dataset atomically.

    Args:
        directory: Directory of the dataset.
        names: Class names in the order of their ids; without control characters.
        texts: Their texts, empty where unknown.
        label_base: Id of the first class; with 1, line 0 is `BACKGROUND`.

    Raises:
        OSError: The file cannot be written.
    """
    lines = [BACKGROUND.encode()] * label_base
    lines += [name + b"\t" + text if text else name for name, text in zip(names, texts, strict=True)]
    (location(directory) / LABELS_NAME).write_atomically(b"".join(line + b"\n" for line in lines))


def read_labels(directory: LocationLike) -> tuple[ClassLabel, ...]:
    """Return the classes of a dataset; the index is the class id.

    Raises:
        FileNotFoundError: There is no ``labels.txt``.
        ManifestError: It is too large to be a list of classes, or no regular file.
    """
    path = location(directory) / LABELS_NAME
    content = read_text(path, _MAX_LABELS_BYTES, "list of classes")
    if content.count(b"\n") > MAX_CLASSES:
        message = (
            f"{path} has more than {MAX_CLASSES} lines, so it is not a list of classes; restore it, or build again"
        )
        raise ManifestError(message, path=str(path))
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    pairs = (line.partition("\t") for line in lines)
    return tuple(ClassLabel(name, text) for name, _, text in pairs)
