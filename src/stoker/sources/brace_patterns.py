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
    from collections.abc import Callable, Sequence

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
    are_images = all(glob.has_magic(name) or is_image_name(name.encode("utf-8", "replace")) for name in names)
    return names if are_images else []


def _expanded(text: str, pattern: str, depth: int) -> Sequence[str]:
    """Return what a part of a pattern stands for, with its escapes."""
    if depth > _MAX_DEPTH:
        raise SourceError(f"{pattern} has more than {_MAX_DEPTH} braces inside each other", path=pattern)
    expanded: Sequence[str] = [""]
    start = 0
    for first, *commas, end in _braces(text, pattern):
        chosen = _range(text[first + 1 : end], pattern) or []
        parts = pairwise((first, *commas, end)) if commas else () if chosen else ((first, end),)
        for before, after in parts:
            chosen += _expanded(text[before + 1 : after], pattern, depth + 1)
            _check_count(len(chosen), pattern)
        if parts and not commas:  # the braces mean themselves, but what is between them may be a pattern
            chosen = [f"{{{inner}}}" for inner in chosen]
        _check_count(len(expanded) * len(chosen), pattern)
        expanded = [before + text[start:first] + choice for before in expanded for choice in chosen]
        start = end + 1
    return [before + text[start:] for before in expanded]


def _range(text: str, pattern: str) -> list[str] | None:
    """Return the numbers or letters that a text between braces stands for; None if it is no range."""
    show: Callable[[int], str]
    if match := _NUMBERS.fullmatch(text):
        first, last = int(match[1]), int(match[2])
        is_padded = _LEADING_ZERO.match(match[1]) or _LEADING_ZERO.match(match[2])
        show = f"{{:0{max(len(match[1]), len(match[2])) if is_padded else 0}d}}".format
    elif match := _LETTERS.fullmatch(text):
        first, last = map(_ORDERED_LETTERS.index, match.group(1, 2))
        show = _ORDERED_LETTERS.__getitem__
    else:
        return None
    step = int(match[3] or 1) or 1
    values = range(first, last + 1, step) if first < last else range(first, last - 1, -step)
    _check_count(len(values), pattern)
    return [*map(show, values)]


def _braces(text: str, pattern: str) -> list[list[int]]:
    """Return where each brace stands that lies in no other, the commas that lie in no other one, and its partner."""
    braces: list[list[int]] = []
    depth = at = 0
    while at < len(text):
        character = text[at]
        depth += (character == "{") - (character == "}")
        if depth < 0:
            break
        if (character, depth) == ("{", 1):
            braces.append([at])
        elif (character, depth) in ((",", 1), ("}", 0)):
            braces[-1].append(at)
        at += 1 + (character == "\\")
    if depth != 0:
        message = f"{pattern} has a brace without a partner; write it as in shards/train-{{000000..000146}}.tar"
        raise SourceError(message, path=pattern)
    return braces


def _check_count(count: int, pattern: str) -> None:
    if count > MAX_NAMES:
        raise SourceError(f"{pattern} stands for more than {MAX_NAMES} names; name a folder", path=pattern)
