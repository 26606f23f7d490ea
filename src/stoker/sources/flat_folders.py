"""Folders of images without classes: images that lie in one folder, or one of each split, or in folders of dates.

An item is a file with a suffix of images, or without one: videos and documents may lie beside images.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from stoker.config import format_count, format_some
from stoker.errors import SourceError
from stoker.sources.coco import find_coco
from stoker.sources.files import Listing, Walk, folders_in, images_among, is_dataset, seen_in
from stoker.sources.image_tables import find_tables, is_submission
from stoker.sources.known_layouts import (
    CONVERT,
    VIEW,
    YEAR,
    begin_with_numbers,
    belonging_beside,
    insisting,
    masks_among,
    typed_table,
)
from stoker.sources.labels import find_validation_labels
from stoker.sources.names import SPLIT_FOLDERS, SPLIT_WORDS, are_splits, is_image_name
from stoker.sources.source import SourceBuilder
from stoker.sources.split_lists import divide_by_lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.sources.look import Look
    from stoker.sources.source import Source
    from stoker.storage import Location


_DATE = re.compile(rf"{YEAR.pattern}[-_./]({YEAR.pattern}[-_.])?(0?[1-9]|1[0-2])([-_. ].*)?")
_CAMERA = re.compile(rf"DCIM|[1-9][0-9]{{2}}(?=.*[A-Z_])[A-Z0-9_]{{5}}|Photos from {YEAR.pattern}")
"""Folders of DCF, and of Google Photos."""
_WORD_AND_NUMBER = re.compile(r"(?P<word>[^/]*[A-Za-z][^/]*)[-_. ](?P<number>[0-9]+)\.[A-Za-z]+")
_NUMBER_AND_WORD = re.compile(r"(?P<number>[0-9]+)[-_. ](?P<word>[^/0-9]*[A-Za-z][^/0-9]*)\.[A-Za-z]+")
_SPLIT_AND_MORE = re.compile(rf"({'|'.join(SPLIT_WORDS)})[-_. ].*", re.IGNORECASE)
_TO_ROWS = r"s/^(.*)[-_. ][0-9]+\.[A-Za-z]+$/&,\1/p"
_TO_ROWS_OF_WORDS = r"s/^[0-9]+[-_. ](.*)\.[A-Za-z]+$/&,\1/p"
_TO_ROWS_OF_NUMBERS = r"s/^([0-9]+)_.*$/&,\1/p"
_OF_A_CAMERA = re.compile(r"[A-Z]{1,4}|.*[0-9].*")
_ANNOTATIONS = (".txt", ".json", ".xml", ".csv", ".tsv", ".jsonl")
_FEW, _LOOKED_AT = 4, 1000


@dataclass(frozen=True, slots=True)
class _Contents:
    """What lies in the folder of each split, and what tells that folders in them are no classes."""

    base: Location
    listings: dict[bytes, Listing]
    names: Sequence[str]
    seen: str


def claim_flat_folders(look: Look) -> _Contents | None:
    """Return the images of a folder; None if they have classes, a list or a table beside them may say these."""
    options = look.options
    if look.layout is None or options.labels is not None or options.validation_labels is not None:
        return None
    base, paths = look.layout.base, [""]
    names = _folders(base)
    seen = not_classes(base, names)
    if names and not seen:
        if not are_splits(set(map(os.fsencode, names)), look.root):
            return None
        paths = [name + "/" for name in names]
        inner = {path: folders for path in paths if (folders := _folders(base / path))}
        told = [not_classes(base / path, folders) for path, folders in inner.items()]
        if not all(told):
            return None
        names, seen = sorted(set(chain(*inner.values()))), next(iter(told), "")
    listed = map(os.fsencode, paths)
    listings = dict(zip(map(os.fsencode, paths), Walk(base.to_uri(), look.without).list_folders(listed), strict=True))
    files = [name for listing in listings.values() for name, _ in listing.files]
    if not any(map(is_image_name, files)) or (not seen and any(b"/" in name for name in files)):
        return None
    for path, listing in listings.items():
        masks = masks_among(
            base / os.fsdecode(path), [os.fsdecode(name) for name, _ in listing.files], is_lone=not path
        )
        if masks is not None:
            message = f"{look.root} holds {masks}, or name the images by a pattern such as '*.jpg'"
            raise SourceError(message, path=look.root)
    # A list of validation images, a COCO file or a table may say more of the images.
    lists = find_validation_labels((*look.layout.tops, look.path.resolve().parent), None)
    is_told = lists or look.once(find_coco) or find_tables(look, base, look.files_near(base))
    return None if is_told else _Contents(base, listings, names, seen)


def _folders(folder: Location) -> list[str]:
    """Return the names of the folders in one; none if many files come first, which a walk finds out."""
    if not any(is_folder for _, is_folder in islice(seen_in(folder.to_uri()), _LOOKED_AT)):
        return []
    names = [os.fsdecode(name) for name in folders_in(folder.to_uri()) if not name.startswith(b".")]
    return names if len(names) > _FEW else [name for name in names if not is_dataset(folder / name)]


def not_classes(top: Location, names: Sequence[str]) -> str:
    """Return what tells that folders are no classes; nothing if they may be."""
    if not names:
        return ""
    if all(map(_CAMERA.fullmatch, names)) or "DCIM" in names:
        return f"the folders of a camera, such as {names[0]}/"
    if all(map(YEAR.fullmatch, names)):
        names = [f"{year}/{name}" for year in names for name in _folders(top / year)]
    return f"folders called after dates, such as {names[0]}/" if names and all(map(_DATE.fullmatch, names)) else ""


def list_flat_folders(look: Look, contents: _Contents) -> Source:
    builder = SourceBuilder(look, contents.base, is_ordered=False)
    beside, count = Counter[str](), 0
    for path, listing in contents.listings.items():
        builder.skipped.add(listing.skipped)
        images = images_among(listing.files, builder.skipped)
        beside += Counter({end: listing.skipped.ignored[end] for end in _ANNOTATIONS})
        count += len(images)
        split = SPLIT_FOLDERS[path[:-1]] if path else "train"
        builder.collector.add_folder(builder.collector.group(split, None, len(path)), path, images)
        names = [os.fsdecode(name) for name, _ in images]
        told, rows = _classes_in_names(names)
        if splits := _splits_in_names(names):
            message = f"the names of images begin with {format_some([*splits], _FEW)}, and all are {split}"
            lines = (f"ls | grep -v '[.]txt$' | grep '^{word}[-_. ]' > {own}.txt" for word, own in splits.items())
            typed = f"type: (cd {shlex.quote(str(contents.base))}; {'; '.join(lines)})"
            typed = "write train.txt, val.txt and test.txt" if path or not contents.base.is_local else typed
            builder.label_warnings.append(f"{message}; if these are splits, {typed}")
        elif told:
            message = f"the names of images {told}; if these are classes, "
            if [*contents.listings] == [b""] and contents.base.is_local:
                command = f"ls | sed -nE '{rows}'"
                message += f"type: {typed_table(contents.base, command)}"
            else:
                message += "write a table of all images with the columns file_name and label"
            builder.label_warnings.append(message)
    if beside.keys() - {".txt"} or 2 * beside.total() >= count:
        files = (name for path in contents.listings for name in look.look_into(contents.base / os.fsdecode(path)).files)
        first = next((f", such as {name}" for name in files if name.lower().endswith(_ANNOTATIONS)), "")
        hint = f"if they are boxes of YOLO's, name the classes in {look.path / 'classes.txt'}, one a line"
        hint = f"{hint}; write captions into metadata.csv" if 2 * beside[".txt"] >= count else CONVERT
        message = f"not read: {format_count(beside.total(), 'file')} beside the images ({', '.join(beside)}){first}"
        builder.warnings.append(f"{message}; {hint}")
    if contents.seen:
        message = f"{look.root} holds {contents.seen}, so its images have no classes"
        builder.label_warnings.append(f"{message}; {insisting(contents.names)}")
    if belonging := belonging_beside(look):
        builder.warnings.append(f"not read: {belonging}")
    if b"" not in contents.listings:
        names = [name for name in look.look_into(contents.base).files if not is_submission(name)]
        tables = [name for name in names if name.lower().endswith(_ANNOTATIONS[1:])]
        builder.skipped.warn(tables, "beside the splits and not used: {names}")
    divide_by_lists(builder, look)
    return builder.finish()


def _splits_in_names(names: Sequence[str]) -> dict[str, str]:
    """Return the words of several splits with which all names begin, as Hugging Face reads them, and these splits."""
    words = [match[1] for match in map(_SPLIT_AND_MORE.fullmatch, names) if match]
    splits = {word: SPLIT_WORDS[word.lower()] for word in sorted({*words})}
    return splits if len(words) == len(names) and len({*splits.values()}) == len(splits) > 1 else {}


def _classes_in_names(names: Sequence[str]) -> tuple[str, str]:
    """Return the words before the numbers of images, which may be classes, and what reads them; nothing of other names.

    The words of views of the same scenes are no classes: some of their numbers are the same.
    """
    if begin_with_numbers(names):
        return f"begin with numbers, as {names[0]} does", _TO_ROWS_OF_NUMBERS
    numbers: dict[str, list[str]] = {}
    pattern, where, rows = _WORD_AND_NUMBER, "begin", _TO_ROWS
    if names and _NUMBER_AND_WORD.fullmatch(names[0]):
        pattern, where, rows = _NUMBER_AND_WORD, "end", _TO_ROWS_OF_WORDS
    for match in filter(None, map(pattern.fullmatch, names)):
        numbers.setdefault(match["word"], []).append(match["number"])
    counts = [len(own) for own in numbers.values()]
    if not 1 < len(counts) <= len(names) // 2 or sum(counts) < len(names) or min(counts) == 1:
        return "", ""
    are_views = all(map(VIEW.fullmatch, numbers)) and set.intersection(*map(set, numbers.values()))
    if are_views or all(map(_OF_A_CAMERA.fullmatch, numbers)):
        return "", ""
    return f"{where} with {format_some(sorted(numbers), _FEW)}", rows
