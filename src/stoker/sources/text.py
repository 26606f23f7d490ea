"""What classes are called in words, from the lists that come with ImageNet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LISTS = ("imagenet_metadata.txt", "words.txt")
_MAX_LIST_BYTES = 2**26


def class_texts(root: str, classes: Sequence[bytes], explicit: str | None) -> tuple[bytes, ...]:
    """Return the text of each class, empty where no list names it.

    A list has one class a line: its name, a tab (or, without any tab in the line, the first blank), its text in UTF-8.

    Args:
        root: Tree of the images; ``imagenet_metadata.txt`` or ``words.txt`` in it are used when ``explicit`` is None.
        classes: Names of the classes.
        explicit: A list named by the user.

    Raises:
        OSError: The list cannot be read.
        SourceError: ``explicit`` names none of the classes, or the list is too large to be one.
    """
    path = Path(explicit) if explicit is not None else _find_list(root)
    if path is None:
        return (b"",) * len(classes)
    if path.stat().st_size > _MAX_LIST_BYTES:
        raise SourceError(
            f"{path} is larger than {_MAX_LIST_BYTES} bytes, too large for a list of classes", path=str(path)
        )
    known = dict(_entry(line) for line in path.read_bytes().splitlines())
    texts = tuple(known.get(name, b"") for name in classes)
    if explicit is not None and not any(texts):
        message = f"{path} names none of the {len(classes)} classes; each line must be a class, a tab and its text"
        raise SourceError(message, path=str(path))
    return texts


def _find_list(root: str) -> Path | None:
    for name in _LISTS:
        path = Path(root, name)
        if path.is_file():
            return path
    return None


def _entry(line: bytes) -> tuple[bytes, bytes]:
    name, _, text = line.partition(b"\t") if b"\t" in line else line.strip().partition(b" ")
    # A tab separates the columns of labels.txt too.
    return name.strip(), text.replace(b"\t", b" ").strip()
