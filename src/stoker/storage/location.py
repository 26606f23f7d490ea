"""Where bytes lie: one class, `BaseLocation`, for a path of this machine and for an object in a store.

Code above this package never asks which of the two a location is. What differs between them, such as how a file
appears under its name at once, or how many requests are worth making at a time, is a method or a property here.
"""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import re
import shutil
import stat
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PosixPath
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, cast, overload

from stoker.errors import ConfigError
from stoker.storage.copies import LocalCopy, store_copy
from stoker.storage.files import (
    TEMPORARY_MARK,
    LocalStaging,
    folder_has_gone,
    is_of_the_name,
    make_directory,
    open_regular,
    read_at_most,
    too_large,
    write_atomically,
)
from stoker.storage.reader import ObjectReader
from stoker.storage.scratch import StoreStaging
from stoker.storage.stores import BACKENDS, store_named

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Self

    from stoker.storage.files import Staging
    from stoker.storage.patient import PatientStore
    from stoker.storage.store import Data

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")
_LONGEST_SCHEME = 32
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<bucket>[^/]*)(?:/(?P<key>.*))?", re.DOTALL)
_REQUESTS = 32


class Child(NamedTuple):
    """Something directly in a folder.

    Attributes:
        name: Its name; bytes that are not UTF-8 are surrogates, as `os.fsdecode` makes them.
        is_folder: Whether it is a folder, or a link to one.
    """

    name: str
    is_folder: bool


class BaseLocation(ABC):
    """A file or folder that Stoker reads or writes: a path of this machine, or an object or prefix in a store.

    Make one with `location`. Immutable, hashable, comparable among its kind, can be pickled; every method may be called
    from any thread. Errors of the system and of a store are ``OSError`` and have the location as their ``filename``;
    a store that keeps failing raises ``StorageError``, which is an ``OSError`` too.
    """

    __slots__ = ()

    # Names. None of these looks at the disk or asks the store, but for `resolve` and what calls it.

    @property
    @abstractmethod
    def name(self) -> str:
        """The last part."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """The end of the name from its last dot on, if it has one inside."""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """All parts; the first is ``/`` or the bucket with its scheme where there is one."""

    @property
    @abstractmethod
    def parent(self) -> Self:
        """The folder it lies in; the root lies in itself."""

    @property
    @abstractmethod
    def parents(self) -> Sequence[Self]:
        """The parent, its parent, and so on up to the root."""

    @abstractmethod
    def __truediv__(self, below: str) -> Self:
        """Return what lies below it under a relative path."""

    @abstractmethod
    def with_name(self, name: str) -> Self:
        """Return what lies beside it under another name."""

    @abstractmethod
    def absolute(self) -> Self:
        """Return the same location so that it does not depend on the working directory."""

    @abstractmethod
    def resolve(self) -> Self:
        """Return the same location, absolute and without symbolic links; a loop of links is left as it is."""

    def spelled(self) -> bytes:
        """Return it as tables of items and the native core spell it: the resolved path, or the URL."""
        return os.fsencode(str(self.resolve()))

    @abstractmethod
    def lies_in(self, other: BaseLocation) -> bool:
        """Return whether it is ``other`` or lies below it, also by way of links."""

    # What is there.

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """Whether it has a path that the native core and other programs can open."""

    @property
    @abstractmethod
    def requests_at_once(self) -> int:
        """How many files are worth looking at, listing or reading at a time; 1 where nothing waits for a network."""

    @abstractmethod
    def is_file(self) -> bool:
        """Return whether it is a regular file or an object."""

    @abstractmethod
    def is_dir(self) -> bool:
        """Return whether it is a folder; in a store: whether anything lies below it."""

    @abstractmethod
    def exists(self) -> bool:
        """Return whether it is anything; a link counts as what it leads to."""

    @abstractmethod
    def lexists(self) -> bool:
        """Return whether something has this name: an object, or anything on a disk, also a link that leads nowhere."""

    @abstractmethod
    def size(self) -> int:
        """Return the length of a file in bytes.

        Raises:
            FileNotFoundError: There is none.
            OSError: It cannot be looked at.
        """

    @abstractmethod
    def sizes_of(self, names: Sequence[str]) -> list[int | None]:
        """Return the length of each of some files below it, None for what is not a file; lists a store only once.

        Args:
            names: Relative paths with slashes.

        Raises:
            OSError: They cannot be looked at.
        """

    @abstractmethod
    def free_bytes(self) -> int | None:
        """Return the space that is free where it is or will be; None where a store does not say."""

    @abstractmethod
    def children(self) -> list[Child]:
        """Return what lies directly in it, sorted by the bytes of the names; nothing for a store without such a folder.

        Raises:
            FileNotFoundError: There is no such folder on this machine.
            OSError: It cannot be listed.
        """

    @abstractmethod
    def some_children(self) -> Iterator[Child]:
        """Yield what lies directly in it as it comes, in any order, perhaps repeatedly.

        For callers that need a few names of very many: what is not taken is not listed.

        Raises:
            OSError: As `children`.
        """

    @abstractmethod
    def files_below(self) -> Iterator[tuple[str, int]]:
        """Yield the relative path and the size of every file at any depth, in any order.

        Of a store every object comes, also empty ones that only mark folders; takes the memory of one page. On a disk
        links to folders are not followed, and what is not a regular file or a link to one has no size and is left out.

        Raises:
            OSError: It cannot be listed.
        """

    @abstractmethod
    def matching(self) -> list[Self]:
        """Return what a pattern matches (``*``, ``?``, ``[...]``), sorted; empty for a name without any of these.

        Folders are left out. In a store only the last part may have wildcards.

        Raises:
            ConfigError: A folder of a pattern in a store has wildcards.
            OSError: The store cannot be listed.
        """

    @abstractmethod
    def still_answers(self, error: OSError) -> bool:
        """Return whether, after an error with one file below this folder, others may still be read.

        A store that refuses one object is asked whether it refuses everything, as it does when credentials have
        expired. On this machine it is seen whether the folder of the file has gone as well, as those of a disk have
        that was taken away. Of a location that is a file, such as a list, the files named in it may lie anywhere.

        Raises:
            StorageError: The store fails now.
        """

    # Reading.

    @abstractmethod
    def reader(self) -> AbstractContextManager[IO[bytes]]:
        """Open the file for reading bytes, back and forth, in a ``with`` block.

        Raises:
            OSError: It cannot be opened, or is a pipe, a device or a folder.
        """

    @abstractmethod
    def read_bytes(self) -> bytes:
        """Return the whole file.

        Raises:
            OSError: It cannot be read.
        """

    @abstractmethod
    def read_at_most(self, limit: int) -> bytes:
        """Return the whole of a file that must not be large.

        Args:
            limit: Most bytes that it may have.

        Raises:
            OSError: It is larger (``EFBIG``), is a pipe or a device (``EINVAL``), or cannot be read.
        """

    @abstractmethod
    def read_range(self, start: int, length: int) -> bytes:
        """Return bytes of the file from ``start`` on; fewer on this machine where the file ends.

        Raises:
            StorageError: The object ends before ``start + length``.
            OSError: It cannot be read.
        """

    @abstractmethod
    def read_head(self, count: int) -> bytes:
        """Return the first bytes of the file; fewer where it ends.

        Raises:
            OSError: It cannot be read.
        """

    @abstractmethod
    def local_copy(self) -> AbstractContextManager[LocalCopy]:
        """Give the bytes of the file as a file of this machine in a ``with`` block: itself, or a copy of an object.

        A copy lies in the folder for temporary files (``$TMPDIR``), takes at most the bytes of the object there, and
        has no name, so that nothing is left of it when the process is killed. Nothing is fetched before it is asked
        for.

        Raises:
            FileNotFoundError: There is no such object.
            OSError: The store cannot be read; or there is no space for the copy, see `stoker.storage.is_scratch_full`.
        """

    # Writing.

    @abstractmethod
    def write_atomically(self, data: Data) -> None:
        """Write the file, whole or not at all, in place of any there is; it lasts when this returns.

        Raises:
            OSError: The disk is full, the store has gone, or the like; nothing is left of the attempt.
        """

    @abstractmethod
    def make_directory(self, within: BaseLocation | None = None) -> None:
        """Make a folder and those above it that are missing; does nothing in a store, which has none.

        Args:
            within: A folder that is not made anew if it has gone, such as a dataset's with all that was in it.

        Raises:
            OSError: One of them cannot be made, or is a file.
        """

    @abstractmethod
    def stage(self, name: str, stop: threading.Event | None = None) -> Staging:
        """Begin a file below this folder that takes its name when it is complete.

        Args:
            name: Its name, relative to this folder, which must exist if it is on this machine.
            stop: Ends the waits for a store that does not answer.

        Raises:
            OSError: There is no space for it.
        """

    @abstractmethod
    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the file.

        Raises:
            FileNotFoundError: There is none, and that is not ``missing_ok``.
            OSError: It cannot be deleted.
        """

    @abstractmethod
    def remove_temporaries(self) -> None:
        """Remove the unfinished files below this folder that dead processes have left.

        Raises:
            OSError: It cannot be listed, or something in it cannot be removed.
        """


class LocalLocation(PosixPath, BaseLocation):
    """A path of this machine: a `pathlib.Path` with the methods of `BaseLocation`."""

    __slots__ = ()

    is_local = True
    requests_at_once = 1

    def resolve(self, strict: bool = False) -> Self:  # noqa: FBT001, FBT002 - as pathlib has it
        """Return the same location, absolute and without symbolic links; a loop of links is left as it is."""
        return type(self)(os.path.realpath(self, strict=strict))

    def lies_in(self, other: BaseLocation) -> bool:
        """Return whether it is ``other`` or lies below it, also by way of links."""
        return isinstance(other, LocalLocation) and self.resolve().is_relative_to(other.resolve())

    def lexists(self) -> bool:
        """Return whether something has this name, also a link that leads nowhere."""
        return os.path.lexists(self)

    def size(self) -> int:
        """Return the length of a file in bytes."""
        return self.stat().st_size

    def sizes_of(self, names: Sequence[str]) -> list[int | None]:
        """Return the length of each of some files below it, None for what is not a file."""
        paths = [self / name for name in names]
        return [path.size() if path.is_file() else None for path in paths]

    def free_bytes(self) -> int | None:
        """Return the space that is free where it is or will be."""
        place = self.absolute()
        while not place.exists():
            place = place.parent
        return shutil.disk_usage(place).free

    def children(self) -> list[Child]:
        """Return what lies directly in it, sorted by the bytes of the names."""
        return sorted(self.some_children(), key=lambda child: os.fsencode(child.name))

    def some_children(self) -> Iterator[Child]:
        """Yield what lies directly in it, in any order; a link that leads round in a circle is not a folder."""
        with os.scandir(self) as entries:
            for entry in entries:
                yield Child(entry.name, _is_folder(entry))

    def files_below(self) -> Iterator[tuple[str, int]]:
        """Yield the relative path and the size of every file at any depth, in any order."""
        top = len(str(self)) + 1 if self.parts else 0
        for folder, _, names in os.walk(self, onerror=_raise):
            for name in names:
                path = os.path.join(folder, name)  # noqa: PTH118 - a Path for each of millions takes too long
                try:
                    info = os.stat(path)  # noqa: PTH116
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(info.st_mode):
                    yield path[top:], info.st_size

    def matching(self) -> list[Self]:
        """Return what a pattern matches, sorted; folders are left out."""
        # pathlib takes no pattern that may be absolute
        found = (type(self)(match) for match in glob.glob(str(self)))  # noqa: PTH207
        return sorted(path for path in found if not path.is_dir())

    def still_answers(self, error: OSError) -> bool:
        """Return whether, after an error with one file below this folder, others may still be read."""
        # A list may name folders that never were, each of which is the fault of the lines that do.
        return self.is_file() or not folder_has_gone(error)

    def reader(self) -> AbstractContextManager[IO[bytes]]:
        """Open the file for reading bytes in a ``with`` block; a named pipe is not waited for."""
        return open_regular(self)

    def read_at_most(self, limit: int) -> bytes:
        """Return the whole of a file that must not be large."""
        return read_at_most(self, limit)

    def read_range(self, start: int, length: int) -> bytes:
        """Return bytes of the file from ``start`` on; fewer where the file ends."""
        with open_regular(self) as file:
            file.seek(start)
            return file.read(length)

    def read_head(self, count: int) -> bytes:
        """Return the first bytes of the file; fewer where it ends."""
        with open_regular(self) as file:
            return file.read(count)

    @contextmanager
    def local_copy(self) -> Iterator[LocalCopy]:
        """Give the file itself in a ``with`` block."""
        yield LocalCopy(self)

    def write_atomically(self, data: Data) -> None:
        """Write the file under a temporary name, bring it to the disk, and give it its name."""
        write_atomically(self, data)

    def make_directory(self, within: BaseLocation | None = None) -> None:
        """Make a folder and those above it that are missing; their names are on the disk when this returns."""
        make_directory(self, within if isinstance(within, Path) else None)

    def stage(self, name: str, stop: threading.Event | None = None) -> Staging:  # noqa: ARG002 - a disk answers
        """Begin a file beside its final name, which it is given by a rename once it is on the disk."""
        return LocalStaging(self, name)

    def remove_temporaries(self) -> None:
        """Remove the unfinished files below this folder; only for the holder of the journal's lock."""
        for path in self.rglob(f"*{TEMPORARY_MARK}*"):
            path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """The part of ``os.stat_result`` that stores know.

    Attributes:
        st_size: Length in bytes.
    """

    st_size: int


@dataclass(frozen=True, slots=True, order=True)
class StoreLocation(BaseLocation):
    """An object or a prefix in a store; every method that looks at it asks the store.

    It has no ``__fspath__``, so that a function of ``os`` that is given one fails at once.

    Attributes:
        root: Scheme and bucket or host, such as ``s3://photos``.
        key: The rest, without slashes around it.
    """

    root: str
    key: str

    @classmethod
    def parse(cls, url: str) -> StoreLocation:
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

    def __truediv__(self, below: str | os.PathLike[str]) -> StoreLocation:
        more = os.fspath(below).strip("/")
        return StoreLocation(self.root, f"{self.key}/{more}" if self.key and more else self.key or more)

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
    def parent(self) -> StoreLocation:
        """What it lies in; the bucket lies in itself."""
        return StoreLocation(self.root, self.key.rpartition("/")[0])

    @property
    def parents(self) -> tuple[StoreLocation, ...]:
        """The parent, its parent, up to the bucket."""
        found = [self]
        while found[-1].key:
            found.append(found[-1].parent)
        return tuple(found[1:])

    def with_name(self, name: str) -> StoreLocation:
        """Return what lies beside it under another name."""
        return self.parent / name

    def resolve(self) -> StoreLocation:
        """Return itself: there are no links and no working directory."""
        return self

    absolute = resolve

    def lies_in(self, other: BaseLocation) -> bool:
        """Return whether it is ``other`` or lies below it."""
        return other == self or other in self.parents

    is_local = False
    requests_at_once = _REQUESTS

    def stat(self) -> ObjectStat:
        """Return its length.

        Raises:
            OSError: It is no object, or cannot be asked for.
        """
        return ObjectStat(self.size())

    def size(self) -> int:
        """Return the length of the object in bytes."""
        return self.store.size(self.key)

    def sizes_of(self, names: Sequence[str]) -> list[int | None]:
        """Return the length of each of some objects below it, from one listing."""
        found = dict(self.files_below())
        return [found.get(name) for name in names]

    def free_bytes(self) -> int | None:
        """Return None: a store does not say."""
        return None

    def is_file(self) -> bool:
        """Return whether it is an object."""
        return bool(self.key) and self.store.is_object(self.key)

    lexists = is_file

    def is_dir(self) -> bool:
        """Return whether anything lies below it."""
        try:
            return self.store.has_below(self.key)
        except FileNotFoundError:  # there is not even such a bucket
            return False

    def exists(self) -> bool:
        """Return whether it is an object, or anything lies below it."""
        return self.is_file() or self.is_dir()

    def children(self) -> list[Child]:
        """Return what lies directly in it, sorted by the bytes of the names."""
        found = self.store.children(self.key)
        keys = [(key, True) for key in found.folders] + [(entry.key, False) for entry in found.files]
        named = (Child(key.rpartition("/")[2], is_folder) for key, is_folder in keys)
        return sorted(named, key=lambda child: os.fsencode(child.name))

    def some_children(self) -> Iterator[Child]:
        """Yield what lies directly in it as the pages of a listing bring it, perhaps repeatedly."""
        for path, _ in self.files_below():
            name, slash, _ = path.partition("/")
            yield Child(name, bool(slash))

    def files_below(self) -> Iterator[tuple[str, int]]:
        """Yield the relative path and the size of every object at any depth, in any order."""
        top = len(self.key) + 1 if self.key else 0
        return ((entry.key[top:], entry.size_bytes) for entry in self.store.entries(self.key))

    def iterdir(self) -> Iterator[StoreLocation]:
        """Yield what lies directly below it, in the order of the names."""
        children = self.store.children(self.key)
        keys = {*children.folders, *(entry.key for entry in children.files)}
        return (StoreLocation(self.root, key) for key in sorted(keys))

    def matching(self) -> list[StoreLocation]:
        """Return the objects that a pattern matches, sorted; only its last part may have wildcards."""
        if glob.has_magic(self.parent.key):
            raise ConfigError(f"{self}: in a store only the last part of a pattern may have *, ?, [")
        if not glob.has_magic(self.name):
            return []
        keys = sorted(entry.key for entry in self.store.children(self.parent.key).files)
        found = (StoreLocation(self.root, key) for key in keys)
        return [place for place in found if fnmatch.fnmatchcase(place.name, self.name)]

    def still_answers(self, error: OSError) -> bool:
        """Return whether, after an error with one object below it, others may still be read."""
        if not isinstance(error, PermissionError):
            return True
        try:
            self.is_dir()
        except PermissionError:
            return False
        return True

    def reader(self) -> AbstractContextManager[IO[bytes]]:
        """Open the object for reading bytes, which come in long chunks, the next one fetched ahead."""
        return cast("IO[bytes]", io.BufferedReader(ObjectReader(self.store, self.key)))

    def read_bytes(self) -> bytes:
        """Return the whole object."""
        return self.store.read(self.key)

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the whole object as text."""
        return self.read_bytes().decode(encoding, errors)

    def read_at_most(self, limit: int) -> bytes:
        """Return the whole of an object that must not be large."""
        if self.size() > limit:
            raise too_large(self, limit)
        return self.read_bytes()

    def read_range(self, start: int, length: int) -> bytes:
        """Return bytes of the object from ``start`` on."""
        return self.store.read(self.key, start, length)

    def read_head(self, count: int) -> bytes:
        """Return the first bytes of the object; fewer where it ends."""
        return self.read_range(0, min(count, self.size()))

    def local_copy(self) -> AbstractContextManager[LocalCopy]:
        """Give a copy of the object as a file of this machine in a ``with`` block."""
        return store_copy(self.store, self.key)

    def write_atomically(self, data: Data) -> None:
        """Write the object, whole or not at all."""
        self.store.write(self.key, data)

    write_bytes = write_atomically

    def make_directory(self, within: BaseLocation | None = None) -> None:
        """Do nothing: a store has no folders to be made."""

    def stage(self, name: str, stop: threading.Event | None = None) -> Staging:
        """Begin an object in a scratch file of this machine; publishing sends it to the store."""
        store = self.store if stop is None else self.store.stoppable(stop)
        return StoreStaging(store, self.key, name)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the object."""
        if not missing_ok:
            self.size()
        self.store.delete(self.key)

    def remove_temporaries(self) -> None:
        """Remove the unfinished files below it; a build that writes there now writes once more what it misses."""
        self.store.delete_all([entry.key for entry in self.store.entries(self.key) if TEMPORARY_MARK in entry.key])

    @overload
    def open(self, mode: Literal["rb"]) -> IO[bytes]: ...
    @overload
    def open(self, mode: Literal["r"] = "r", encoding: str = "utf-8", errors: str = "strict") -> IO[str]: ...
    def open(
        self, mode: Literal["r", "rb"] = "r", encoding: str = "utf-8", errors: str = "strict"
    ) -> IO[bytes] | IO[str]:
        """Open the object for reading, which may go back and forth; bytes come in long chunks."""
        file = cast("IO[bytes]", io.BufferedReader(ObjectReader(self.store, self.key)))
        return file if mode == "rb" else io.TextIOWrapper(file, encoding=encoding, errors=errors)


RemotePath = StoreLocation
"""The former name, until every caller is converted."""

Location = Path | StoreLocation
"""The former type; `BaseLocation` takes its name when every caller is converted."""


def is_remote(text: str | bytes) -> bool:
    """Return whether a text is the URL of something in a store, rather than a path."""
    return _SCHEME.match(text[:_LONGEST_SCHEME].decode("latin-1") if isinstance(text, bytes) else text) is not None


def location(text: str | os.PathLike[str] | StoreLocation) -> LocalLocation | StoreLocation:
    """Return the location that a path or a URL means.

    Raises:
        ConfigError: It is a URL that Stoker cannot read.
    """
    if isinstance(text, (LocalLocation, StoreLocation)):
        return text
    plain = os.fspath(text)
    return StoreLocation.parse(plain) if is_remote(plain) else LocalLocation(plain)


def matches(pattern: StoreLocation) -> list[StoreLocation]:
    """Return the objects whose name matches that of a pattern (``*``, ``?``, ``[...]``), in the order of the names.

    None for a name without any of these.
    """
    if not glob.has_magic(pattern.name):
        return []
    return [path for path in pattern.parent.iterdir() if fnmatch.fnmatchcase(path.name, pattern.name)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if is_of_the_name(error):
            return False
        raise


def _raise(error: OSError) -> None:
    raise error
