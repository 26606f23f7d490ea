"""Files that a pattern matches, such as ``photos/**/*.jpg``: with the splits and classes that their folders have.

Folders are those below the part without wildcards, and mean what they do in a folder that is given itself. Images that
lie in several folders and beside them have no classes.
"""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

from stoker.config import format_count
from stoker.errors import SourceError
from stoker.sources.brace_patterns import image_patterns
from stoker.sources.class_folders import SPLIT_FOLDERS, are_splits
from stoker.sources.flat_folders import not_classes
from stoker.sources.kind import LABEL_OPTIONS, Kind, Look
from stoker.sources.known_layouts import check_class_folders
from stoker.sources.source_builder import SourceBuilder
from stoker.sources.walking import images_among
from stoker.storage import Location, glob_matches, location

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.sources.source import Source


def _claim(look: Look) -> tuple[Location, list[Sequence[str]]] | None:
    """Return the folder before the first wildcard, and the patterns below it; None of a name without wildcards."""
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
    """Return the folders of classes in that of a split; none, with a warning, where folders are no classes."""
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


PATTERN = Kind(
    name="pattern of image files",
    claim=_claim,
    list=_list,
    options=LABEL_OPTIONS,
)
