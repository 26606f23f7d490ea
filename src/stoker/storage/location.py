"""Where something lies: a path on this machine, or the URL of something in a store."""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal, cast, overload

from stoker.errors import ConfigError
from stoker.storage.reader import ObjectReader
from stoker.storage.stores import BACKENDS, store_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.storage.patient import PatientStore
    from stoker.storage.store import Data

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")
_LONGEST_SCHEME = 32
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<bucket>[^/]*)(?:/(?P<key>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """The part of ``os.stat_result`` that stores know.

    Attributes:
        st_size: Length in bytes.
    """

    st_size: int


@dataclass(frozen=True, slots=True, order=True)
class RemotePath:
    """Something in a store, with the methods of ``pathlib.Path`` that Stoker uses.

    It has no ``__fspath__``, so that a function of ``os`` that is given one fails at once. Immutable, hashable, can be
    pickled; every method may be called from any thread, and each asks the store.

    Attributes:
        root: Scheme and bucket or host, such as ``s3://photos``.
        key: The rest, without slashes around it.
    """

    root: str
    key: str

    @classmethod
    def parse(cls, url: str) -> RemotePath:
        """Return what a URL means.

        Raises:
            ConfigError: It is of another scheme, names no bucket, or has a part that stores do not agree about.
        """
        found = _URL.fullmatch(url)
        if found is None or found["scheme"] not in BACKENDS:
            raise ConfigError(
                f"{url} is not a URL of Stoker's; it may begin with {', '.join(f'{scheme}://' for scheme in BACKENDS)}"
            )
        if not found["bucket"] and found["scheme"] != "hdfs":
            raise ConfigError(f"{url} names no bucket; write {found['scheme']}://BUCKET/PATH")
        if "@" in found["bucket"]:
            raise ConfigError(
                f"{found['scheme']}://...@... holds credentials; give them as docs/remote.md says instead"
            )
        key = (found["key"] or "").strip("/")
        if key and any(part in ("", ".", "..") for part in key.split("/")):
            raise ConfigError(f"{url} has an empty part, '.' or '..' in it; write the path without them")
        return cls(f"{found['scheme']}://{found['bucket']}", key)

    @property
    def store(self) -> PatientStore:
        """The store, which is opened with the first use in this process."""
        return store_named(self.root)

    def __str__(self) -> str:
        return f"{self.root}/{self.key}" if self.key else self.root

    def __truediv__(self, below: str | os.PathLike[str]) -> RemotePath:
        more = os.fspath(below).strip("/")
        return RemotePath(self.root, f"{self.key}/{more}" if self.key and more else self.key or more)

    @property
    def parts(self) -> tuple[str, ...]:
        """The bucket and each part of the key."""
        return (self.root, *(self.key.split("/") if self.key else ()))

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot on, if it has one inside."""
        stem, dot, end = self.name.rpartition(".")
        return dot + end if stem and end else ""

    @property
    def parent(self) -> RemotePath:
        """What it lies in; the bucket lies in itself."""
        return RemotePath(self.root, self.key.rpartition("/")[0])

    @property
    def parents(self) -> tuple[RemotePath, ...]:
        """The parent, its parent, up to the bucket."""
        found = [self]
        while found[-1].key:
            found.append(found[-1].parent)
        return tuple(found[1:])

    def with_name(self, name: str) -> RemotePath:
        """Return what lies beside it under another name."""
        return self.parent / name

    def resolve(self) -> RemotePath:
        """Return itself: there are no links and no working directory."""
        return self

    absolute = resolve

    def stat(self) -> ObjectStat:
        """Return its length.

        Raises:
            OSError: It is no object, or cannot be asked for.
        """
        return ObjectStat(self.store.size(self.key))

    def is_file(self) -> bool:
        """Return whether it is an object."""
        return bool(self.key) and self.store.is_object(self.key)

    def is_dir(self) -> bool:
        """Return whether anything lies below it."""
        try:
            return self.store.has_below(self.key)
        except FileNotFoundError:  # there is not even such a bucket
            return False

    def exists(self) -> bool:
        """Return whether it is an object, or anything lies below it."""
        return self.is_file() or self.is_dir()

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield what lies directly below it, in the order of the names."""
        children = self.store.children(self.key)
        keys = {*children.folders, *(entry.key for entry in children.files)}
        return (RemotePath(self.root, key) for key in sorted(keys))

    def read_bytes(self) -> bytes:
        """Return the whole object."""
        return self.store.read(self.key)

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the whole object as text."""
        return self.read_bytes().decode(encoding, errors)

    def write_bytes(self, data: Data) -> None:
        """Write the object, whole or not at all."""
        self.store.write(self.key, data)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the object.

        Raises:
            FileNotFoundError: There is none, and that is not ``missing_ok``.
        """
        if not missing_ok:
            self.stat()
        self.store.delete(self.key)

    @overload
    def open(self, mode: Literal["rb"]) -> IO[bytes]: ...
    @overload
    def open(self, mode: Literal["r"] = "r", encoding: str = "utf-8", errors: str = "strict") -> IO[str]: ...
    def open(
        self, mode: Literal["r", "rb"] = "r", encoding: str = "utf-8", errors: str = "strict"
    ) -> IO[bytes] | IO[str]:
        """Open the object for reading, which may go back and forth; bytes come in long strokes."""
        file = cast("IO[bytes]", io.BufferedReader(ObjectReader(self.store, self.key)))
        return file if mode == "rb" else io.TextIOWrapper(file, encoding=encoding, errors=errors)


Location = Path | RemotePath
"""A place that Stoker reads or writes."""


def is_remote(text: str | bytes) -> bool:
    """Return whether a text is the URL of something in a store, rather than a path."""
    return _SCHEME.match(text[:_LONGEST_SCHEME].decode("latin-1") if isinstance(text, bytes) else text) is not None


def location(text: str | os.PathLike[str] | RemotePath) -> Location:
    """Return the place that a text means.

    Raises:
        ConfigError: It is a URL that Stoker cannot read.
    """
    if isinstance(text, RemotePath):
        return text
    plain = os.fspath(text)
    return RemotePath.parse(plain) if is_remote(plain) else Path(plain)


def matches(pattern: RemotePath) -> list[RemotePath]:
    """Return the objects whose name matches that of a pattern (``*``, ``?``, ``[...]``), in the order of the names.

    None for a name without any of these.
    """
    if not glob.has_magic(pattern.name):
        return []
    return [path for path in pattern.parent.iterdir() if fnmatch.fnmatchcase(path.name, pattern.name)]
