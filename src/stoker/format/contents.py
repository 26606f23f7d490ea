"""What lies at a path: a dataset, an unfinished one, TFRecords, or images."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal

from stoker.config import option
from stoker.errors import DatasetNotFoundError
from stoker.format.directory import JOURNAL_NAME, LABELS_NAME, MANIFEST_NAME, REJECTS_NAME, is_dataset, is_unfinished
from stoker.format.index import INDEX_FOLDER, INDEX_SUFFIX
from stoker.format.shard_names import find_shards, has_image_suffix, may_hold_records, parse_shard_name, shards_among

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.format.shard_names import SplitShards
    from stoker.storage import Child, Location

_BESIDE = {MANIFEST_NAME, LABELS_NAME, REJECTS_NAME, JOURNAL_NAME, INDEX_FOLDER, "dataset_info.json", "features.json"}
_FOLDERS_TRIED, _NAMES_TRIED, _DEEPEST, _PROBED, _HEAD_BYTES = 8, 64, 3, 2, 512


@dataclass(frozen=True, slots=True)
class Contents:
    """What lies at a path."""

    kind: Literal["dataset", "unfinished", "TFRecords", "images"]
    splits: Mapping[str, SplitShards] = field(default_factory=dict)  # the shards of TFRecords


def contents_of(path: Location) -> Contents:
    """Return what lies at a path, which is looked at in this order; images are what is none of the others.

    Raises:
        DatasetNotFoundError: Nothing lies there, or TFRecords in folders below, which would pass for class folders.
        OSError: The directory cannot be listed, or a file that may be a shard cannot be read.
    """
    if (path / MANIFEST_NAME).lexists():
        return Contents("dataset")
    if is_unfinished(path):
        return Contents("unfinished")
    if splits := find_shards(path):
        return Contents("TFRecords", splits)
    below = records_below(path)
    if below is not None or not ("{" in str(path) or path.pattern() is not None or path.exists()):  # "{": several tars
        raise no_records(path, below)
    return Contents("images")


def is_companion(path: Location) -> bool:
    """Return whether something lies beside shards, by its name; a shell names it, too, if it expands ``dataset/*``."""
    return path.suffix == INDEX_SUFFIX or path.name in _BESIDE or path.name.endswith(".labels.txt")


def records_below(top: Location, *, in_datasets: bool = False) -> Location | None:
    """Return a folder with shards below a directory without any, such as that of a version in TFDS; None without one.

    Only some folders of each level are tried, and some names in each: a tree of images costs a few listings. A folder
    with an image counts as a folder of images, and a folder that cannot be listed as empty.
    """
    level = [top] if top.is_dir() else []
    for _ in range(_DEEPEST):
        below: list[Location] = []
        for folder in level:
            children = _some_children(folder)
            names = sorted({os.fsdecode(child.name) for child in children if child.is_folder})
            inner = [folder / name for name in names if not name.startswith(".")][:_FOLDERS_TRIED]
            below += [candidate for candidate in inner if in_datasets or not is_dataset(candidate)]
        for folder in below[:_FOLDERS_TRIED]:
            files = [os.fsdecode(child.name) for child in _some_children(folder) if child.is_file]
            if any(map(has_image_suffix, files)):
                continue
            if any(parse_shard_name(name) is not None for name in files):
                return folder
            unknown = [folder / name for name in sorted(set(files)) if may_hold_records(name)]
            if shards_among(unknown[:_PROBED]):
                return folder
        level = below[:_FOLDERS_TRIED]
    return None


def _some_children(folder: Location) -> list[Child]:
    try:
        return list(islice(folder.some_children(), _NAMES_TRIED))
    except PermissionError:  # listing it as a folder of images gives a better error
        return []


def no_records(path: Location, below: Location | None = None) -> DatasetNotFoundError:
    """Return the error for a path without shards, or unfinished: it says what the path holds, and what to give."""
    message = f"{path} is not a dataset: "
    if path.is_dir() and is_unfinished(path):
        message = f"{path} is an unfinished build, repack or merge; run the same command again to finish it"
        message += f", with more {option('max_rejects')} where these ended it"
    elif path.is_dir() and next(iter(path.some_children()), None) is None:
        message += "the directory is empty"
    elif path.is_dir():
        below = below or records_below(path, in_datasets=True)
        images = f"'stoker audit {shlex.quote(str(path))}' checks images, and 'stoker build' makes a dataset of them"
        remedy = images if below is None else f"the TFRecords are in {below}, give that"
        message += f"no {MANIFEST_NAME} and no TFRecord lies in it; {remedy}"
    elif path.exists():
        message = _what_file(path)
    elif matches := len(path.matching()):
        files = "1 file matches" if matches == 1 else f"{matches} files match"
        message += f"{files} it, but none begins as a TFRecord does"
    else:
        message += "there is no such file or directory, and no file matches it"
    return DatasetNotFoundError(message, path=str(path))


def _what_file(path: Location) -> str:
    if path.suffix == INDEX_SUFFIX:
        return f"{path} is not a TFRecord, but the index of one; give the TFRecord itself"
    if is_companion(path):
        return f"{path} is not a TFRecord, but the {path.name} of a dataset; give the directory, {path.parent}"
    head = path.read_head(_HEAD_BYTES) if path.is_file() else b""
    if not path.is_file():
        what = "is a pipe or a device"
    elif not head:
        what = "is empty"
    elif all(byte in b"\t\n\f\r" or 32 <= byte != 127 for byte in head):
        what = "is a text file"
    else:
        what = f"begins with the bytes {head[:4].hex(' ')}"
    return f"{path} is not a TFRecord: it {what}; give a TFRecord, a directory of them, or a dataset"
