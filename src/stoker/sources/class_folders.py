"""Folders that are splits, classes, or neither, by their names."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING

from stoker.config import SPLIT_NAMES
from stoker.errors import SourceError
from stoker.sources.boxes import ANNOTATION_FOLDERS
from stoker.sources.labels import DEVKIT_FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection


SPLIT_WORDS = {**SPLIT_NAMES, "training": "train", "testing": "test"}
"""Words for splits in tables, and in names of folders and lists."""

_CASES = (str.lower, str.capitalize, str.upper)
SPLIT_FOLDERS = {case(word).encode(): split for word, split in SPLIT_WORDS.items() for case in _CASES}
"""Folders that are splits, if they hold classes, and which; see `splits_among`."""

IMAGE_WORDS = "images?|imgs?|jpegimages|leftimg8bit|rgb|frames|photos?|pictures|inputs?"
"""Words in names of folders of images, which say nothing of what is in these."""

_SPLIT_FOLDER = re.compile(
    rf"(?:stage_?[0-9]_)?({'|'.join(SPLIT_WORDS)})[0-9]?([-_ ]?({IMAGE_WORDS}|jpe?gs?|pngs?|tiffs?|set))?",
    re.IGNORECASE,
)

MASK_WORDS = (
    "ann(?:ot(?:ation)?s?)?|ground[-_ .]?truths?|gt(?:fine|coarse)?|labels?(?:txt)?|masks?"
    "|seg(?:mentation(?:class(?:png)?)?)?s?|trimaps?|targets?"
)
"""Words in names of masks or annotations, and of their folders."""

IMAGES_FOLDER = b"images"
"""Folder of images in a class or a split, as Tiny ImageNet has it."""

NOT_CLASSES = ANNOTATION_FOLDERS | {b"lists", DEVKIT_FOLDER.encode()}
"""Folders that are neither splits nor classes."""


def without_year(name: str) -> str:
    """Return the name of a split without the year or number behind it, as that of COCO's ``train2017``."""
    return name.rstrip("0123456789")


def split_of_folder(name: bytes) -> str | None:
    """Return the split of which a folder has the images by its name, as Kaggle has them: ``test1``, ``test-jpg``."""
    words = _SPLIT_FOLDER.fullmatch(os.fsdecode(name))
    return SPLIT_WORDS[words[1].lower()] if words else None


def splits_among(names: Collection[bytes]) -> dict[bytes, str]:
    """Return which folders, side by side, are called after splits; ``valid`` and ``dev`` only beside ``train``."""
    splits = {name: split for name, split in SPLIT_FOLDERS.items() if name in names}
    left_out = () if "train" in splits.values() else (b"valid", b"dev")
    return {name: split for name, split in splits.items() if name.lower() not in left_out}


def splits_called_like(name: bytes) -> list[bytes]:
    """Return the names of all splits in the letters of one of them: ``Validation``, ``Test``, ... for ``Train``."""
    case = next(case for case in _CASES if case(os.fsdecode(name)) == os.fsdecode(name))
    return [case(word).encode() for word in SPLIT_WORDS]


def are_splits(names: Collection[bytes], where: str) -> bool:
    """Return whether all of some folders side by side are called after splits; refuse two of one."""
    splits = splits_among(names)
    counts = Counter(splits.values())
    same = sorted(os.fsdecode(name) + "/" for name, split in splits.items() if counts[split] > 1)
    if len(splits) == len(names) and same:
        raise SourceError(f"{where} holds both {' and '.join(same)}; keep one of them", path=where)
    return len(splits) == len(names) > 0
