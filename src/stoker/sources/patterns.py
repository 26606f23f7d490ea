r"""Patterns of files, such as ``photos/**/*.jpg``: images with the splits and classes that their folders have.

Folders below the part without wildcards mean the same as in a source that is a folder. If images lie both in folders
and beside these, they have no classes.

Braces, as in ``train-{000000..000146}.tar``, mean the same as in bash and in the library ``webdataset``:

==============================  ======================================================================================
in a pattern                    what it stands for
==============================  ======================================================================================
``{a,b}``                       each of these texts, which may contain braces and be empty
``{0..3}``, ``{3..0}``          each number from the first to the last; all of one width if one of them begins with 0
``{a..e}``                      each letter; capitals come before small letters
``{0..9..3}``                   every third
``\{``, ``\}``, ``\,``, ``\\``      the character itself
any other ``{...}``             itself
==============================  ======================================================================================
"""

from __future__ import annotations

import glob
import os
import re
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

from stoker.config import format_count
from stoker.errors import SourceError
from stoker.sources.files import images_among
from stoker.sources.folders import not_classes
from stoker.sources.known_layouts import check_class_folders
from stoker.sources.names import is_image_name
from stoker.sources.source import LABEL_OPTIONS, Kind, Source, SourceBuilder
from stoker.splits import SPLIT_FOLDERS, are_splits
from stoker.storage import Location, glob_matches, location

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stoker.sources.look import Look

MAX_NAMES = 2**20
"""How many names a pattern may stand for at most."""

_MAX_DEPTH = 20
_NUMBERS = re.compile(r"(-?[0-9]{1,18})\.\.(-?[0-9]{1,18})(?:\.\.-?([0-9]{1,18}))?")
_LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.-?([0-9]{1,18}))?")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LEADING_ZERO = re.compile(r"-?0[0-9]")
_ORDERED_LETTERS = ascii_uppercase + ascii_lowercase


def _claim(look: Look) -> tuple[Location, list[Sequence[str]]] | None:
    """Return the folder before the first wildcard, and the patterns below it; None for a name without wildcards."""
    if look.layout is not None or look.is_file:
        return None
    paths = [location(name).normalized() for name in image_patterns(look.root)]
    if not paths:
        pattern = look.path.normalized().pattern()
        return pattern and (pattern[0], [pattern[1]])
    patterns = [path.pattern() or (path.parent, (glob.escape(path.name),)) for path in paths]
    parts = [folder.parts for folder, _ in patterns]
    common = next((at for at, some in enumerate(zip(*parts, strict=False)) if len({*some}) > 1), min(map(len, parts)))
    top = next(folder for folder in (patterns[0][0], *patterns[0][0].parents) if len(folder.parts) == common)
    return top, [(*map(glob.escape, folder.parts[common:]), *parts) for folder, parts in patterns]


def _list(look: Look, pattern: tuple[Location, Sequence[Sequence[str]]]) -> Source:
    base, patterns = pattern[0].resolve(), pattern[1]
    builder = SourceBuilder(look, base, (base,), is_ordered=False)
    files = [
        (path, size)
        for listing in (builder.walk.list_folders([b""]) if base.is_dir() else ())
        for path, size in listing.files
        if any(glob_matches(os.fsdecode(path).split("/"), parts) for parts in patterns)
    ]
    images = images_among(files, builder.skipped)
    if not images:
        what = f"{format_count(len(files), 'file')} with no name of an image" if files else "no file matches"
        raise SourceError(f"{look.root}: {what}; give a pattern such as 'photos/**/*.jpg', or a folder", path=look.root)
    tops = {path.partition(b"/")[0] if b"/" in path else b"" for path, _ in images}
    are_in_splits = b"" not in tops and are_splits(tops, look.root)
    by_split: dict[bytes, list[tuple[bytes, int]]] = {}
    for path, size in images:
        prefix = path[: path.index(b"/") + 1] if are_in_splits else b""
        by_split.setdefault(prefix, []).append((path, size))
    classes = {prefix: _classes(builder, base, prefix, inner) for prefix, inner in by_split.items()}
    if tables := check_class_folders(look, builder, base, classes):
        message = f"{tables[0].path} may say the classes of the images that {look.root} matches"
        raise SourceError(f"{message}; give {tables[0].path} instead", path=look.root)
    for prefix, inner in by_split.items():
        split, end = SPLIT_FOLDERS[prefix[:-1]] if prefix else "train", len(prefix)
        for path, size in inner:
            name = path[end : path.index(b"/", end)] if classes[prefix] else None
            builder.collector.add(builder.collector.group(split, name, end), path, size)
    return builder.finish()


def _classes(
    builder: SourceBuilder, base: Location, prefix: bytes, images: Sequence[tuple[bytes, int]]
) -> tuple[bytes, ...]:
    """Return the class folders in the folder of a split; none, with a warning, if its folders are not classes."""
    below = [path[len(prefix) :].partition(b"/") for path, _ in images]
    folders = sorted({first for first, slash, _ in below if slash})
    names = list(map(os.fsdecode, folders))
    seen = not_classes(base / os.fsdecode(prefix), names)
    if folders and not all(slash for _, slash, _ in below):
        seen = f"images beside folders of images, such as {names[0]}/"
    if not seen or builder.options.labels is not None:
        return tuple(folders)
    builder.label_warnings.append(f"{builder.root} matches {seen}, so the images have no classes")
    return ()


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
        if parts and not commas:  # the braces are literal, but the text between them may be a pattern
            chosen = [f"{{{inner}}}" for inner in chosen]
        _check_count(len(expanded) * len(chosen), pattern)
        expanded = [before + text[start:first] + choice for before in expanded for choice in chosen]
        start = end + 1
    return [before + text[start:] for before in expanded]


def _range(text: str, pattern: str) -> list[str] | None:
    """Return the numbers or letters that a text between braces stands for; None if it is not a range."""
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
    """Return the positions of each outermost brace, of the commas directly inside it, and of its closing brace."""
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


PATTERN = Kind(
    name="pattern of image files",
    claim=_claim,
    list=_list,
    options=LABEL_OPTIONS,
)
