"""What classes are called in words, from the lists that come with ImageNet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.lines import list_lines
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stoker.storage import Location

TEXT_LISTS = ("imagenet_metadata.txt", "words.txt", "LOC_synset_mapping.txt")
"""Lists of texts, in the order in which they are looked for."""

_BREED_FOLDER = re.compile(rb"n[0-9]{8}-(.+)", re.DOTALL)


def class_texts(
    folders: Iterable[Location], classes: Sequence[bytes], explicit: str | None, mapped: Mapping[bytes, bytes]
) -> tuple[bytes, ...]:
    """Return the text of each class, empty where nothing names it.

    A list has one class a line: its name, a tab (or, without any tab in the line, the first blank), its text in UTF-8.
    A class that no list names but that is called as those of Stanford Dogs are (``n02085620-Chihuahua``) has what
    follows the dash as its text.

    Args:
        folders: Where one of `TEXT_LISTS` is looked for when ``explicit`` is None.
        classes: Names of the classes.
        explicit: A list named by the user.
        mapped: Texts of the label map; they come before those of a list that was found.

    Raises:
        OSError: The list cannot be read.
        SourceError: ``explicit`` names none of the classes, or the list is too large to be one.
    """
    path = location(explicit) if explicit is not None else _find_list(folders)
    listed = _read_list(path, frozenset(classes)) if path is not None else {}
    if explicit is not None and not any(listed.values()):
        message = f"{path} names none of the {len(classes)} classes; each line must be a class, a tab and its text"
        raise SourceError(message, path=str(path))
    known = {**mapped, **listed} if explicit is not None else {**listed, **mapped}
    return tuple(known.get(name) or _breed(name) for name in classes)


def split_text(line: bytes) -> tuple[bytes, bytes]:
    """Return the name and the text of a line of a list."""
    name, _, text = line.partition(b"\t") if b"\t" in line else line.strip().partition(b" ")
    # A tab separates the columns of labels.txt too.
    return name.strip(), text.replace(b"\t", b" ").strip()


def has_control_character(text: bytes) -> bool:
    """Return whether a name or a text would break a line of ``labels.txt``, or its columns."""
    return any(byte < 32 for byte in text)


def one_line(text: bytes) -> bytes:
    """Return a text with a blank for each control character, so that it can stand in ``labels.txt``."""
    return bytes(32 if byte < 32 else byte for byte in text)


def _find_list(folders: Iterable[Location]) -> Location | None:
    places = list(folders)
    candidates = (place / name for name in TEXT_LISTS for place in places)
    return next((path for path in candidates if path.is_file()), None)


def _read_list(path: Location, classes: frozenset[bytes]) -> dict[bytes, bytes]:
    entries = (split_text(line) for _, line in list_lines(path))
    return {name: text for name, text in entries if name in classes}


def _breed(name: bytes) -> bytes:
    found = _BREED_FOLDER.fullmatch(name)
    return found[1].replace(b"_", b" ") if found else b""
