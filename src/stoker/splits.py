"""Names of splits: which words mean which split, as names of folders, in names of files, and where people type them.

Formats that have words of their own add these to `SPLIT_WORDS` where they use it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING

from stoker.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Collection

SPLITS = ("train", "validation", "test")
"""All possible splits, in the order of the table."""

SPLIT_WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "val", "valid", "dev"), "validation"),
    **dict.fromkeys(("test", "testing"), "test"),
}
"""Words for splits, whatever their case, and the split of each."""

ANY_SPLIT = "|".join(SPLIT_WORDS)
"""Pattern of these words."""

_CASES = (str.lower, str.capitalize, str.upper)
SPLIT_FOLDERS = {case(word).encode(): split for word, split in SPLIT_WORDS.items() for case in _CASES}
"""Names of folders that are splits if they hold classes, and the split of each; see `splits_among`."""


def full_split_name(split: str) -> str:
    """Return the name of a split as Stoker writes it, for what people type; a name without a split is unchanged."""
    return SPLIT_WORDS.get(split.lower(), split)


def splits_in(name: str, words: dict[str, str] = SPLIT_WORDS) -> list[str]:
    """Return the splits of all words in a name that are not part of longer ones, in their order."""
    return [words[word] for word in re.split("[^a-z]+", name.lower()) if word in words]


def without_year(name: str) -> str:
    """Return the name of a split without a year or number at its end, as in COCO's ``train2017``."""
    return name.rstrip("0123456789")


def splits_among(names: Collection[bytes]) -> dict[bytes, str]:
    """Return the folders named after splits, and their splits; ``valid`` and ``dev`` count only beside ``train``."""
    splits = {name: split for name, split in SPLIT_FOLDERS.items() if name in names}
    left_out = () if "train" in splits.values() else (b"valid", b"dev")
    return {name: split for name, split in splits.items() if name.lower() not in left_out}


def splits_called_like(name: bytes) -> list[bytes]:
    """Return the names of all splits in the case of one of them: ``Validation``, ``Test``, ... for ``Train``."""
    case = next(case for case in _CASES if case(os.fsdecode(name)) == os.fsdecode(name))
    return [case(word).encode() for word in SPLIT_WORDS]


def are_splits(names: Collection[bytes], where: str) -> bool:
    """Return whether all of some sibling folders are named after splits; refuse two folders of one split."""
    splits = splits_among(names)
    counts = Counter(splits.values())
    same = sorted(os.fsdecode(name) + "/" for name, split in splits.items() if counts[split] > 1)
    if len(splits) == len(names) and same:
        raise SourceError(f"{where} holds both {' and '.join(same)}; keep one of them", path=where)
    return len(splits) == len(names) > 0
