"""Places as bytes, which is how items and tables spell them: an absolute path of this machine, or a URL."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.storage import RemotePath, is_remote

if TYPE_CHECKING:
    from stoker.storage import Location


def spelled(place: Location) -> bytes:
    """Return a place as bytes: absolute, links resolved."""
    if isinstance(place, RemotePath):
        return str(place).encode("utf-8", "surrogateescape")
    return os.path.realpath(os.fsencode(place))


def place_at(where: bytes) -> Location:
    """Return the place that an absolute path or a URL means.

    As in paths of files, an empty part or ``.`` of a URL means nothing, and ``..`` the folder above.

    Raises:
        ConfigError: It is a URL that Stoker cannot read.
    """
    if not is_remote(where):
        return Path(os.fsdecode(where))
    return object_at(where)


def object_at(where: bytes) -> RemotePath:
    """Return the object or the folder that a URL means; see `place_at`."""
    bucket, key = split_bucket(where)
    plain = posixpath.normpath(b"/" + key.lstrip(b"/"))
    return RemotePath.parse((bucket + plain).decode("utf-8", "surrogateescape"))


def split_bucket(where: bytes) -> tuple[bytes, bytes]:
    """Return the scheme and the bucket of a URL, and the rest without slashes in front; a path has no bucket."""
    if not is_remote(where):
        return b"", where
    scheme, _, rest = where.partition(b"://")
    bucket, _, key = rest.partition(b"/")
    return scheme + b"://" + bucket, key


def is_absolute(path: bytes) -> bool:
    """Return whether a path of an item is not relative to the base of its source."""
    return path.startswith(b"/") or is_remote(path)


def within(base: bytes, path: bytes) -> bytes:
    """Return the absolute path or the URL of an item."""
    return path if is_absolute(path) else base + b"/" + path


def beside(place: Location, text: str) -> Location:
    """Return what a path or URL means that is written in a file: relative to the folder of that."""
    if isinstance(place, Path) and not is_remote(text):
        return place.parent / text
    return place_at(within(spelled(place.parent), os.fsencode(text)))
