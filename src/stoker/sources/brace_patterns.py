r"""Brace patterns, such as ``train-{000000..000146}.tar``, as bash and the library ``webdataset`` expand them.

==============================  ======================================================================================
in a pattern                    what it stands for
==============================  ======================================================================================
``{a,b}``                       each of some texts, which may hold braces and be empty
``{0..3}``, ``{3..0}``          each number from the first to the last; of one width where one of them begins with 0
``{a..e}``                      each letter, of which capitals come before small ones
``{0..9..3}``                   every third
``\{``, ``\}``, ``\,``, ``\\``      the character itself
any other ``{...}``             itself
==============================  ======================================================================================
"""

from __future__ import annotations

import glob
import re
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.walking import is_image_name

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NAMES = 2**20
"""Most names that a pattern may stand for."""

_MAX_DEPTH = 20
_NUMBERS = re.compile(r"(-?[0-9]{1,18})\.\.(-?[0-9]{1,18})(?:\.\.-?([0-9]{1,18}))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.-?([0-9]{1,18}))?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LEADING_ZERO = re.compile(r"-?0[0-9]")
_ORDERED_LETTERS = ascii_uppercase + ascii_lowercase


def expand_braces(pattern: str) -> list[str]:
    """Return the names that a pattern stands for, in its order."""
    return [_ESCAPED.sub(r"\1", name) for name in _expanded(pattern, pattern, 0)]


def image_patterns(pattern: str) -> list[str]:
    """Return the names that a pattern stands for, if these are images or have wildcards; else nothing."""
    names = expand_braces(pattern) if "{" in pattern else []
    return (
        names if all(glob.has_magic(name) or is_image_name(name.encode("utf-8", "replace")) for name in names) else []
    )


def _expanded(text: str, pattern: str, depth: int) -> Sequence[str]:
    """Return what a part of a pattern stands for, with its escapes."""
    if depth > _MAX_DEPTH:
        raise SourceError(f"{pattern} has more than {_MAX_DEPTH} braces inside each other", path=pattern)
    expanded: Sequence[str] = [""]
    start = 0
    for first, end in _pairs(text, pattern):
        inside = text[first + 1 : end]
        chosen = _choices(inside, pattern, depth)
        if chosen is None:  # the braces mean themselves, but what is between them may be a pattern
            chosen = [f"{{{inner}}}" for inner in _expanded(inside, pattern, depth + 1)]
        _check_count(len(expanded) * len(chosen), pattern)
        expanded = [before + text[start:first] + choice for before in expanded for choice in chosen]
        start = end + 1
    return [before + text[start:] for before in expanded]


def _choices(text: str, pattern: str, depth: int) -> Sequence[str] | None:
    """Return what braces with a text between them stand for; None if that is no list and no range."""
    if numbers := _NUMBERS.fullmatch(text):
        first, last, step = int(numbers[1]), int(numbers[2]), int(numbers[3] or 1) or 1
        values = range(first, last + 1, step) if first < last else range(first, last - 1, -step)
        _check_count(len(values), pattern)
        is_padded = _LEADING_ZERO.match(numbers[1]) or _LEADING_ZERO.match(numbers[2])
        width = max(len(numbers[1]), len(numbers[2])) if is_padded else 0
        return [f"{number:0{width}d}" for number in values]
    if letters := _LETTERS.fullmatch(text):
        first, last = (_ORDERED_LETTERS.index(letter) for letter in letters.group(1, 2))
        step = int(letters[3] or 1) or 1
        some = range(first, last + 1, step) if first < last else range(first, last - 1, -step)
        return [_ORDERED_LETTERS[at] for at in some]
    starts = [0]
    pairs = dict(_pairs(text, pattern))
    at = 0
    while at < len(text):
        if text[at] == ",":
            starts.append(at + 1)
        at = pairs.get(at, at) + 1 + (text[at] == "\\")
    if len(starts) == 1:
        return None
    parts = [text[start : end - 1] for start, end in pairwise([*starts, len(text) + 1])]
    found_names: list[str] = []
    for part in parts:
        found_names += _expanded(part, pattern, depth + 1)
        _check_count(len(found_names), pattern)
    return found_names


def _pairs(text: str, pattern: str) -> list[tuple[int, int]]:
    """Return where each brace stands that lies in no other, and where its partner does."""
    pairs: list[tuple[int, int]] = []
    depth = first = at = 0
    while at < len(text):
        if text[at] == "{":
            first = at if depth == 0 else first
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                pairs.append((first, at))
            elif depth < 0:
                break
        at += 1 + (text[at] == "\\")
    if depth != 0:
        message = f"{pattern} has a brace without a partner; write it as in shards/train-{{000000..000146}}.tar"
        raise SourceError(message, path=pattern)
    return pairs


def _check_count(count: int, pattern: str) -> None:
    if count > MAX_NAMES:
        raise SourceError(f"{pattern} stands for more than {MAX_NAMES} names; name a folder", path=pattern)
