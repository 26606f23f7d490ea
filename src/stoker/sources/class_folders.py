"""Folders that are splits, classes, or neither; and classes whose folders lie beside those of a source."""

from __future__ import annotations

import contextlib
from itertools import islice
from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.imagenet.annotations import ANNOTATION_FOLDERS
from stoker.sources.imagenet.labels import DEVKIT_FOLDER
from stoker.sources.walking import folders_in, is_dataset, is_sidecar, seen_in
from stoker.storage import place_at, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stoker.storage import Location


SPLIT_FOLDERS = {b"train": "train", b"validation": "validation", b"val": "validation", b"test": "test"}
"""Folders that are splits, if they hold classes, and which."""

IMAGES_FOLDER = b"images"
"""Folder of images in a class or a split, as Tiny ImageNet has it."""

NOT_CLASSES = ANNOTATION_FOLDERS | {b"lists", DEVKIT_FOLDER.encode()}
"""Folders that are neither splits nor classes."""

_NO_CLASSES = NOT_CLASSES | SPLIT_FOLDERS.keys() | {IMAGES_FOLDER}
_LOOKED_AT = 100


def classes_beside(parents: Iterable[Location], known: set[bytes]) -> Iterator[bytes]:
    """Yield the names of folders that hold images, as it seems, and are none of the classes known, sorted.

    A few files of each of the first hundred are looked at, so a warning costs little however many there are.

    Args:
        parents: The folders that they lie in; those that cannot be listed have none.
        known: The classes.

    Raises:
        StorageError: A store cannot be reached.
    """
    others: dict[bytes, bytes] = {}
    for parent in parents:
        where = parent.spelled()
        with contextlib.suppress(SourceError):
            names = (name for name in folders_in(where) if name not in known and name not in _NO_CLASSES)
            others |= {name: within(where, name) for name in names if not name.startswith(b".")}
    for name, folder in sorted(others.items())[:_LOOKED_AT]:
        with contextlib.suppress(SourceError):
            if _may_hold_images(folder) and not is_dataset(place_at(folder)):
                yield name


def _may_hold_images(folder: bytes) -> bool:
    return any(
        name == IMAGES_FOLDER if is_folder else not is_sidecar(name) and not name.startswith(b".")
        for name, is_folder in islice(seen_in(folder), _LOOKED_AT)
    )
