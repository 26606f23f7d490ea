"""One class, `Location`, for a path of this machine and for an object in a store.

Code above this package never asks which of the two a location is. What differs between them, such as how to publish a
file at once, or how many requests to make at a time, is a method or a property here.
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import io
import os
import posixpath
import re
import shutil
import stat
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PosixPath
from typing import IO, TYPE_CHECKING, ClassVar, NamedTuple, cast

from stoker.errors import ConfigError, SourceWarning, StorageError
from stoker.storage import stores
from stoker.storage.backend import StoreError
from stoker.storage.copies import LocalCopy, ObjectReader, StoreStaging, store_copy
from stoker.storage.files import (
    TEMPORARY_MARK,
    LocalStaging,
    attach_filename,
    create_file,
    folder_has_gone,
    is_path_error,
    make_directory,
    open_regular,
    read_at_most,
    refuse_hole,
    regular_descriptor,
    too_large,
    write_file,
)
from stoker.storage.stores import BACKENDS, configure, open_store, pinned

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from typing import Self, Unpack

    from stoker.storage.backend import Data, StoreSettings
    from stoker.storage.retrying import RetryingStore

_SCHEME = re.compile(rb"[a-z][a-z0-9+.-]{1,28}://", re.IGNORECASE)  # one letter is a drive of Windows
_URL = re.compile(r"[a-z][a-z0-9+.-]*://(?P<bucket>[^/]*)(?:/(?P<key>.*))?", re.DOTALL)
_HUB = re.compile(r"hf://(?P<bucket>datasets/[^/@]+/[^/@]+(?:@(?:refs/\w+/)?[^/@]+)?)(?:/(?P<key>.*))?", re.DOTALL)
_REQUESTS = 32
_MAX_WAYS = 1000
"""How often a walk may enter a folder through links: a few links to each other's folders make millions of paths."""


Staging = LocalStaging | StoreStaging
"""An unfinished file; see `Location.stage`."""


class Child(NamedTuple):
    """Something directly in a folder."""

    name: bytes  # its name, as in tables of items
    is_folder: bool  # whether it is a folder, or a link to one
    is_file: bool  # whether it is a regular file or an object, or a link to one
    is_link: bool = False  # whether it is a symbolic link


class FileInfo(NamedTuple):
    """What is known of a file without reading it."""

    size_bytes: int
    stamp: str  # changes with its content: the modification time, or the etag of a store; may be empty


Enters = Callable[[bytes, bool], bool]
"""Whether a walk enters a folder, given its path below the top and whether it is a link to one of its parents.

A link to a parent is not entered, whatever the answer is.
"""


class Location(ABC):
    """A file or folder that Stoker reads or writes: a path of this machine, or an object or prefix in a store.

    Make one with `location`. Immutable, hashable, comparable with its kind, picklable; every method is safe from any
    thread. Errors of the system and of a store are ``OSError`` and have the location as their ``filename``; a store
    that keeps failing raises ``StorageError``, which is an ``OSError``, too. Methods that have a body here are right
    for stores, where there are no links and no working directory.

    Attributes:
        is_local: Whether it is on this machine: the core can open it, a file can be appended to and locked, and nothing
            waits for a network. In a store objects are written once and whole.
        requests_at_once: Number of files to check, list or read at a time; 1 on this machine.
    """

    __slots__ = ()
    is_local: ClassVar[bool]
    requests_at_once: ClassVar[int]

    # Names. Except for `resolve` and its callers, these use neither the disk nor the store.

    @property
    @abstractmethod
    def name(self) -> str:
        """The last part."""

    @property
    def suffix(self) -> str:
        """The end of the name from its last dot on, if there is a dot inside the name."""
        stem, dot, end = self.name.rpartition(".")
        return dot + end if stem and end else ""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """All parts; the first may be ``/`` or the bucket with its scheme."""

    @property
    @abstractmethod
    def parent(self) -> Self:
        """The folder that it lies in; the root is its own parent."""

    @property
    def parents(self) -> Sequence[Self]:
        """The parent, its parent, and so on up to the root."""
        parents = [self]
        while parents[-1].parent != parents[-1]:
            parents.append(parents[-1].parent)
        return parents[1:]

    @abstractmethod
    def __truediv__(self, below: str) -> Self:
        """Return the location at a relative path below it."""

    def with_name(self, name: str) -> Self:
        """Return the location beside it with another name."""
        return self.parent / name

    def absolute(self) -> Self:
        """Return the same location, independent of the working directory."""
        return self

    def resolve(self) -> Self:
        """Return the same location, absolute and without symbolic links; a loop of links is left as it is."""
        return self

    @abstractmethod
    def to_uri(self) -> bytes:
        """Return it in the form of tables of items and of the native core: the resolved path, or the URL."""

    def beside(self, text: str) -> Location:
        """Return the location of a path or URL that this file contains; paths are relative to the file's folder."""
        return from_uri(join(self.parent.to_uri(), os.fsencode(text)))

    def normalized(self) -> Self:
        """Return the same location, absolute, and without ``..``; links stay."""
        return self

    def pattern(self) -> tuple[Self, Sequence[str]] | None:
        """Return the folder before the first wildcard, and the parts from it on; None without a wildcard.

        A part that is the name of an existing folder is not a wildcard.
        """
        top = (self, *self.parents)[-1]
        for at, part in enumerate(self.parts[len(top.parts) :], len(top.parts)):
            if glob.has_magic(part) and not (top / part).is_dir():
                return top, self.parts[at:]
            top /= part
        return None

    def lies_in(self, other: Location) -> bool:
        """Return whether it is ``other`` or lies below it, also through links."""
        return other == self or other in self.parents

    # Properties and contents.

    @abstractmethod
    def local_path(self) -> Path:
        """Return its path on this machine, for code that reads only local files.

        Raises:
            ConfigError: It is in a store.
        """

    @abstractmethod
    def is_file(self) -> bool:
        """Return whether it is a regular file or an object."""

    @abstractmethod
    def is_dir(self) -> bool:
        """Return whether it is a folder; in a store: whether anything lies below it."""

    def exists(self) -> bool:
        """Return whether it is a file or a folder; links are followed."""
        return self.is_file() or self.is_dir()

    @abstractmethod
    def lexists(self) -> bool:
        """Return whether something has this name: an object, or anything on a disk, even a broken link."""

    @abstractmethod
    def size(self) -> int:
        """Return the length of a file in bytes.

        Raises:
            FileNotFoundError: There is none.
        """

    def info(self) -> FileInfo | None:
        """Return what tells whether this file has changed; None if there is none."""
        return self.parent.snapshot()(self.name)

    @abstractmethod
    def snapshot(self) -> Callable[[str], FileInfo | None]:
        """Return a function that looks up files below this folder by relative path; it returns None if there is none.

        A store is listed once, now; a disk is asked for each file.
        """

    def free_bytes(self) -> int | None:
        """Return the free space where it is or will be; None if a store does not say."""
        return None

    @abstractmethod
    def children(self) -> list[Child]:
        """Return what lies directly in it, sorted by the bytes of the names; empty if a store has no such folder.

        Raises:
            FileNotFoundError: There is no such folder on this machine.
        """

    def folders(self) -> list[bytes]:
        """Return the names of the folders directly in it, sorted; on a disk, only these take memory."""
        return [child.name for child in self.children() if child.is_folder]

    @abstractmethod
    def some_children(self) -> Iterator[Child]:
        """Yield what lies directly in it, in any order, perhaps repeatedly.

        For callers that need a few of very many names: the rest is not listed.
        """

    @abstractmethod
    def files_below(self, enters: Enters | None = None, folder: bytes = b"") -> Iterator[tuple[bytes, int | None]]:
        """Yield the path and the size of every file at any depth below a folder, in any order.

        On a disk, a broken link is a file of size 0, and anything but a regular file has no size. An object that only
        marks a folder in a store is not a file. Takes the memory of one folder, or of one page of a listing.

        Args:
            enters: Called for each folder on a disk. Links to folders are entered like folders, except for links to a
                folder on their own path. By default no link to a folder is entered. A store is listed without looking
                at folders.
            folder: A path below this location; empty for the location itself. The paths that are yielded are relative
                to this folder.

        Raises:
            OSError: A folder cannot be listed, or more than a thousand paths through links lead to it (``ELOOP``).
        """

    def leads_back(self, folder: bytes) -> bool:  # noqa: ARG002 - only a disk has links
        """Return whether a path below it leads, through links, to one of the folders on that path."""
        return False

    def is_same(self, other: Location) -> bool:
        """Return whether both are the same file or folder, also through links; false if one does not exist."""
        return self == other

    @abstractmethod
    def matching(self, *, regular: bool = False) -> list[Self]:
        """Return the files that a pattern matches, sorted; without wildcards, the file itself if it exists.

        ``*``, ``?`` and ``[...]`` match inside a name, ``**`` any number of folders. Names that begin with a dot match
        only a pattern with that dot. Links stay links; ``**`` follows links to folders, except for a link to a folder
        that it lies in, for which there is a ``SourceWarning``.

        Args:
            regular: Whether to leave out anything but regular files on a disk, such as a broken link.
        """

    @abstractmethod
    def is_readable_after(self, error: OSError) -> bool:
        """Return whether other files may still be readable after an error of one file below this folder.

        A store that refuses one object is asked whether it refuses everything, as it does when credentials have
        expired. On this machine, the folder of the file is checked, which is gone, too, if a disk was removed. If the
        location is a file, such as a list, the files named in it may lie anywhere.

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
        """Return the whole file."""

    @abstractmethod
    def read_at_most(self, limit: int) -> bytes:
        """Return the whole of a file that must not have more than ``limit`` bytes.

        Raises:
            OSError: It is larger (``EFBIG``), is a pipe or a device (``EINVAL``), or cannot be read.
        """

    @abstractmethod
    def read_range(self, start: int, length: int, known_size: int = 0) -> bytes:
        """Return ``length`` bytes of the file from ``start`` on; fewer only where the file ends.

        The file is probably at least ``known_size`` long; if that is ``start + length``, a request is saved.
        """

    def read_head(self, count: int) -> bytes:
        """Return the first bytes of the file; fewer where it ends."""
        return self.read_range(0, count)

    @abstractmethod
    def local_copy(self) -> AbstractContextManager[LocalCopy]:
        """Give a file of this machine in a ``with`` block: the file itself, or a copy of the object.

        A copy lies in the folder for temporary files (``$TMPDIR``), takes at most the bytes of the object, and has no
        name, so that nothing is left if the process is killed. Bytes are fetched only when they are requested.

        Raises:
            FileNotFoundError: There is no such object.
            OSError: The store cannot be read; or there is no space for the copy, see `stoker.storage.is_scratch_full`.
        """

    # Writing.

    @abstractmethod
    def write_atomically(self, data: Data) -> None:
        """Write or replace the file, whole or not at all; it is durable when this returns."""

    @abstractmethod
    def create(self, data: Data) -> bool:
        """Write the file unless it exists; return whether it was written. Of several writers, one succeeds."""

    @abstractmethod
    def make_directory(self, within: Location | None = None) -> None:
        """Make a folder and those above it that are missing; does nothing in a store, which has none.

        If the folder ``within``, such as that of a dataset, is gone, it is not created again.
        """

    @abstractmethod
    def stage(self, name: str, stop: threading.Event | None = None) -> Staging:
        """Begin a file below this folder that takes its name when it is complete.

        Args:
            name: Its name, relative to this folder, which must exist if it is on this machine.
            stop: Ends the waits for a store that does not answer.
        """

    @abstractmethod
    def unlink(self, *, missing_ok: bool = False) -> None:
        """Delete the file.

        Raises:
            FileNotFoundError: There is none, and ``missing_ok`` is false.
        """

    @abstractmethod
    def remove_folder(self) -> None:
        """Delete this folder and everything below it; a missing folder is not an error."""

    @abstractmethod
    def remove_temporaries(self) -> None:
        """Remove the unfinished files below this folder that dead processes have left."""


class LocalLocation(PosixPath, Location):
    """A path of this machine: a `pathlib.Path` with the methods of `Location`."""

    __slots__ = ()

    is_local = True
    requests_at_once = 1

    def resolve(self, strict: bool = False) -> Self:  # noqa: FBT001, FBT002 - as pathlib has it
        return type(self)(os.path.realpath(self, strict=strict))

    def normalized(self) -> Self:
        return type(self)(os.path.abspath(self))  # noqa: PTH100 - pathlib keeps ".."

    def to_uri(self) -> bytes:
        return os.path.realpath(os.fsencode(self))

    def lies_in(self, other: Location) -> bool:
        return isinstance(other, LocalLocation) and self.resolve().is_relative_to(other.resolve())

    def local_path(self) -> Path:
        return self

    def is_file(self) -> bool:
        """Return whether it is a regular file; false if the name is too long for one."""
        return _unless_too_long(super().is_file)

    def is_dir(self) -> bool:
        """Return whether it is a folder; false if the name is too long for one."""
        return _unless_too_long(super().is_dir)

    def exists(self) -> bool:
        """Return whether it is there; false if the name is too long for that."""
        return _unless_too_long(super().exists)

    def lexists(self) -> bool:
        return os.path.lexists(self)

    def size(self) -> int:
        return self.stat().st_size

    def snapshot(self) -> Callable[[str], FileInfo | None]:
        top = os.path.join(self, "")  # noqa: PTH118 - there may be millions of names, and a Path of each takes time

        def look_up(name: str) -> FileInfo | None:
            try:
                info = os.stat(top + name)  # noqa: PTH116
            except OSError as error:
                if not is_path_error(error):
                    raise
                return None
            return FileInfo(info.st_size, str(info.st_mtime_ns)) if stat.S_ISREG(info.st_mode) else None

        return look_up

    def free_bytes(self) -> int | None:
        folder = self.absolute()
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free

    def children(self) -> list[Child]:
        return sorted(self.some_children())

    def folders(self) -> list[bytes]:
        with os.scandir(os.fsencode(self)) as entries:
            return sorted(entry.name for entry in entries if _answered(entry.is_dir))

    def some_children(self) -> Iterator[Child]:
        """Yield what lies directly in it, in any order; a loop of links is not a folder."""
        with os.scandir(os.fsencode(self)) as entries:
            for entry in entries:
                is_folder = _answered(entry.is_dir)
                is_file = not is_folder and _answered(entry.is_file)
                yield Child(entry.name, is_folder, is_file, entry.is_symlink())

    def files_below(self, enters: Enters | None = None, folder: bytes = b"") -> Iterator[tuple[bytes, int | None]]:
        top = os.path.join(os.fsencode(self), folder)  # noqa: PTH118 - pathlib has no bytes paths
        ways: Counter[_Identity] = Counter()
        pending = [_Visit(b"", [*self._on_the_way(folder), _identity(top)])]
        while pending:
            visit = pending.pop()
            with os.scandir(os.path.join(top, visit.path)) as entries:  # noqa: PTH118
                for entry in entries:
                    path = visit.path + entry.name
                    if not _answered(entry.is_dir):
                        yield path, _size_of(entry)
                        continue
                    is_link = entry.is_symlink()
                    if is_link and enters is None:
                        continue
                    identity = _identity(entry.path)
                    leads_back = identity in visit.folders
                    if not (enters is None or enters(path, leads_back)) or leads_back:
                        continue
                    by_link = visit.by_link or is_link
                    if by_link:
                        ways[identity] += 1
                        if ways[identity] > _MAX_WAYS:
                            problem = f"links lead to it in more than {_MAX_WAYS} ways"
                            raise OSError(errno.ELOOP, problem, os.fsdecode(entry.path))
                    pending.append(_Visit(path + b"/", [*visit.folders, identity], by_link))

    def leads_back(self, folder: bytes) -> bool:
        return _identity(os.path.join(os.fsencode(self), folder)) in self._on_the_way(folder)  # noqa: PTH118

    def _on_the_way(self, folder: bytes) -> list[_Identity]:
        """Return the folders on the path from this folder to one below it, without the last."""
        top, parts = os.fsencode(self), [part for part in folder.split(b"/") if part]
        return [_identity(os.path.join(top, *parts[:count])) for count in range(len(parts))]  # noqa: PTH118

    def is_same(self, other: Location) -> bool:
        if not isinstance(other, LocalLocation):
            return False
        with suppress(OSError):
            return _identity(os.fsencode(self)) == _identity(os.fsencode(other))
        return False

    def matching(self, *, regular: bool = False) -> list[Self]:
        if "**" in self.parts:
            return sorted(path for path in self._matching_below() if not regular or path.is_file())
        # pathlib takes no pattern that may be absolute
        paths = (type(self)(match) for match in glob.iglob(str(self), recursive=True))  # noqa: PTH207
        return sorted(path for path in paths if (path.is_file() if regular else not path.is_dir()))

    def _matching_below(self) -> list[Self]:
        """Return the files that a pattern with ``**`` matches; `glob` would follow links to a parent up to 40 times."""
        fixed = next(at for at, part in enumerate(self.parts) if glob.has_magic(part))
        top, pattern = type(self)(*self.parts[:fixed]), self.parts[fixed:]
        if not top.is_dir():
            return []
        enters_hidden = any(part.startswith(".") for part in pattern[:-1])

        def enters(path: bytes, leads_back: bool) -> bool:  # noqa: FBT001 - as a walk calls it
            name = path[path.rfind(b"/") + 1 :]
            if name.startswith(b".") and not enters_hidden:
                return False
            if leads_back:
                link = top / os.fsdecode(path)
                message = f"{link} is a link to {link.resolve()}, a folder that it lies in: not followed again"
                warnings.warn(message, SourceWarning, stacklevel=4)
            return True

        names = (os.fsdecode(path) for path, _ in top.files_below(enters))
        return [top / name for name in names if glob_matches(name.split("/"), pattern)]

    def is_readable_after(self, error: OSError) -> bool:
        # A list may name folders that never existed; only the lines that name them are at fault.
        return self.is_file() or not folder_has_gone(error)

    reader = open_regular
    read_at_most = read_at_most

    def read_range(self, start: int, length: int, known_size: int = 0) -> bytes:  # noqa: ARG002 - a disk knows
        with attach_filename(self):
            file = regular_descriptor(self)
            try:
                refuse_hole(file, start, length)
                data = os.pread(file, length, start)
                while len(data) < length and (more := os.pread(file, length - len(data), start + len(data))):
                    data += more
                return data
            finally:
                os.close(file)

    @contextmanager
    def local_copy(self) -> Iterator[LocalCopy]:
        yield LocalCopy(self)

    write_atomically = write_file
    create = create_file

    def make_directory(self, within: Location | None = None) -> None:
        """Make a folder and those above it that are missing; their names are on the disk when this returns."""
        make_directory(self, within if isinstance(within, Path) else None)

    def stage(self, name: str, stop: threading.Event | None = None) -> Staging:  # noqa: ARG002 - a disk answers
        """Begin a file beside its final name; a rename publishes it once it is on the disk."""
        return LocalStaging(self, name)

    def remove_folder(self) -> None:
        while self.exists():  # another process may be removing it, too
            with suppress(FileNotFoundError):
                shutil.rmtree(self)

    def remove_temporaries(self) -> None:
        """Remove the unfinished files below this folder; only for the holder of the journal's lock."""
        for path in self.rglob(f"*{TEMPORARY_MARK}*"):
            path.unlink(missing_ok=True)


def _unless_too_long(check: Callable[[], bool]) -> bool:
    try:
        return check()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise


@dataclass(frozen=True, slots=True, order=True)
class StoreLocation(Location):
    """An object or a prefix in a store; every method that needs its properties asks the store.

    It has no ``__fspath__``, so that functions of ``os`` refuse it at once.
    """

    root: str  # scheme and bucket or host, such as ``s3://photos``
    key: str  # the rest, without slashes around it

    @classmethod
    def parse(cls, url: str) -> StoreLocation:
        """Return the location of a URL; the query of a web URL is stored separately (`stoker.storage.stores`).

        Raises:
            ConfigError: It has an unknown scheme, no bucket, or a part that stores treat differently.
            OSError: The Hugging Face Hub does not say which commit a revision is.
        """
        root, key, query = _split(url)
        if root.startswith("hf://"):
            root = pinned(root)
        if query:
            stores.set_query(f"{root}/{key}", query)
        return cls(root, key)

    def __reduce__(self) -> tuple[Callable[..., StoreLocation], tuple[object, ...]]:
        return _restored, (self.root, self.key, stores.given)

    @property
    def store(self) -> RetryingStore:
        """The store, which is opened at the first use in this process."""
        return open_store(self.root)

    def __str__(self) -> str:
        return f"{self.root}/{self.key}" if self.key else self.root

    def __truediv__(self, below: str | os.PathLike[str]) -> StoreLocation:
        more = os.fspath(below).strip("/")
        return StoreLocation(self.root, f"{self.key}/{more}" if self.key and more else self.key or more)

    @property
    def parts(self) -> tuple[str, ...]:
        return (self.root, *(self.key.split("/") if self.key else ()))

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> StoreLocation:
        return StoreLocation(self.root, self.key.rpartition("/")[0])

    def to_uri(self) -> bytes:
        return str(self).encode("utf-8", "surrogateescape")

    is_local = False
    requests_at_once = _REQUESTS

    def local_path(self) -> Path:
        raise ConfigError(f"{self} is in a store, and this reads only files of this machine; copy the dataset")

    def size(self) -> int:
        return self.store.size(self.key)

    def snapshot(self) -> Callable[[str], FileInfo | None]:
        """Return a function that looks up objects below this prefix: in one listing, or without listings one by one."""
        if not self.store.has_listings:
            return lambda name: (self / name).info()
        top = self._top()
        entries = self.store.entries(self.key)
        return {entry.key[top:]: FileInfo(entry.size_bytes, entry.etag or "") for entry in entries}.get

    def info(self) -> FileInfo | None:
        try:
            entry = self.store.stat(self.key)
        except FileNotFoundError:
            return None
        return FileInfo(entry.size_bytes, entry.etag or "")

    def is_file(self) -> bool:
        return bool(self.key) and self.store.is_object(self.key)

    lexists = is_file

    def is_dir(self) -> bool:
        try:
            return self.store.has_below(self.key)
        except FileNotFoundError:  # there is no such bucket
            return False

    def children(self) -> list[Child]:
        top = self._top()
        children = self.store.children(self.key)
        folders = (Child(_encoded(key[top:]), is_folder=True, is_file=False) for key in children.folders)
        files = (Child(_encoded(entry.key[top:]), is_folder=False, is_file=True) for entry in children.files)
        return sorted((*folders, *files))

    def some_children(self) -> Iterator[Child]:
        """Yield what lies directly in it, page by page of a listing, perhaps repeatedly."""
        top = self._top()
        for entry in self.store.entries(self.key):
            name, slash, _ = entry.key[top:].partition("/")
            yield Child(_encoded(name), is_folder=bool(slash), is_file=not slash)

    def files_below(
        self,
        enters: Enters | None = None,  # noqa: ARG002 - there are no folders to enter
        folder: bytes = b"",
    ) -> Iterator[tuple[bytes, int | None]]:
        if folder:
            yield from cast("StoreLocation", from_uri(join(self.to_uri(), folder))).files_below()
            return
        top = self._top()
        empty = []
        for entry in self.store.entries(self.key):
            if entry.size_bytes:
                yield _encoded(entry.key[top:]), entry.size_bytes
            else:
                empty.append(entry.key)
        # Some programs mark a folder with an empty object named after the folder, with a slash at the end. Clients show
        # it without the slash, but no object has that name.
        yield from ((_encoded(key[top:]), 0) for key in empty if self.store.is_object(key))

    def matching(self, *, regular: bool = False) -> list[StoreLocation]:  # noqa: ARG002 - all objects are
        parts = self.key.split("/")
        fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), None)
        if fixed is None:
            return [self] if self.is_file() else []
        top = StoreLocation(self.root, "/".join(parts[:fixed]))
        if fixed == len(parts) - 1 and parts[-1] != "**":
            names = [os.fsdecode(child.name) for child in top.children() if child.is_file]
        else:
            names = sorted(os.fsdecode(path) for path, _ in top.files_below())
        return [top / name for name in names if glob_matches(name.split("/"), parts[fixed:])]

    def is_readable_after(self, error: OSError) -> bool:
        if not isinstance(error, PermissionError):
            return True
        try:
            self.is_dir()
        except PermissionError:
            return False
        return True

    def reader(self) -> AbstractContextManager[IO[bytes]]:
        """Open the object for reading bytes, in long chunks, the next of which is fetched ahead."""
        return cast("IO[bytes]", io.BufferedReader(ObjectReader(self.store, self.key)))

    def read_bytes(self) -> bytes:
        return self.store.read(self.key)

    def read_at_most(self, limit: int) -> bytes:
        try:
            return self.store.read(self.key, limit=limit)
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise too_large(self, limit) from error
            raise

    def read_range(self, start: int, length: int, known_size: int = 0) -> bytes:
        if 0 < length <= known_size - start:
            try:
                return self.store.read(self.key, start, length)
            except StorageError as error:
                given_up = isinstance(error.__cause__, StoreError) and error.__cause__.retry
                if given_up or self.size() >= start + length:  # the object has not become shorter
                    raise
        available = min(length, self.size() - start)
        return self.store.read(self.key, start, available) if available > 0 else b""

    def local_copy(self) -> AbstractContextManager[LocalCopy]:
        return store_copy(self.store, self.key)

    def write_atomically(self, data: Data) -> None:
        self.store.write(self.key, data)

    def create(self, data: Data) -> bool:
        return self.store.create(self.key, data)

    def make_directory(self, within: Location | None = None) -> None:
        """Do nothing: a store has no folders to be made."""

    def stage(self, name: str, stop: threading.Event | None = None) -> Staging:
        """Begin an object in a scratch file of this machine; publishing sends it to the store."""
        store = self.store if stop is None else self.store.stoppable(stop)
        return StoreStaging(store, self.key, name)

    def unlink(self, *, missing_ok: bool = False) -> None:
        if not missing_ok:
            self.size()
        self.store.delete(self.key)

    def remove_folder(self) -> None:
        """Delete everything below it; in a store without folders, object by object."""
        self.store.delete_below(self.key)

    def remove_temporaries(self) -> None:
        """Remove the unfinished files below it; a build that writes there now writes missing ones again."""
        keys = (entry.key for entry in self.store.entries(self.key))
        self.store.delete_all([key for key in keys if TEMPORARY_MARK in key.rpartition("/")[2]])

    def _top(self) -> int:
        return len(self.key) + 1 if self.key else 0


def _restored(root: str, key: str, given: stores.Given) -> StoreLocation:
    """Return a location from another process; ``given`` is what that process was given."""
    del given  # unpickling it has added it to what this process was given
    return StoreLocation(root, key)


def _split(url: str) -> tuple[str, str, str]:
    """Return the store of a URL, the key, and the query, which only web URLs have."""
    query, scheme = "", url.partition("://")[0].lower()
    url = scheme + url[len(scheme) :]
    if is_web(os.fsencode(url)):
        url, _, query = url.partition("?")
    match = (_HUB if scheme == "hf" else _URL).fullmatch(url)
    if match is None and scheme == "hf":
        raise ConfigError(f"{url} names no dataset; write hf://datasets/OWNER/NAME/PATH or .../NAME@REVISION/PATH")
    if match is None or scheme not in BACKENDS:
        known = ", ".join(f"{scheme}://" for scheme in BACKENDS)
        raise ConfigError(f"{url} is not a URL that Stoker reads; give a path, or one that begins with {known}")
    if not match["bucket"] and scheme != "hdfs":
        what, example = ("server", "HOST") if is_web(os.fsencode(url)) else ("bucket", "BUCKET")
        raise ConfigError(f"{url} names no {what}; write {scheme}://{example}/PATH")
    if "@" in match["bucket"] and scheme not in ("hf", "abfs", "abfss"):
        raise ConfigError(f"{scheme}://...@... has credentials in it; give them as docs/how-to/buckets.md says")
    key = (match["key"] or "").strip("/")
    if is_web(os.fsencode(url)) and "#" in key + query:
        raise ConfigError(f"{url} has a fragment; give the URL without it")
    if key and any(part in ("", ".", "..") for part in key.split("/")):
        raise ConfigError(f"{url} has an empty part, '.' or '..' in it; write the path without them")
    return f"{scheme}://{match['bucket']}", key, query


LocationLike = str | os.PathLike[str] | Location
"""What `location` accepts."""


def location(text: LocationLike, **settings: Unpack[StoreSettings]) -> Location:
    """Return the location of a path or a URL; every function that takes a path takes locations, too.

    Args:
        text: The path or the URL.
        **settings: How to reach its store, instead of what the environment says. They hold for the whole bucket, and
            for everything that this process reads from it from now on; they are not printed and not stored. A pickled
            location takes them along, with all secrets in them.

            ``endpoint`` is the URL of another server for S3, Azure, the Hugging Face Hub or Google Cloud Storage. S3
            takes ``region``, ``profile`` (of ``~/.aws``) or ``access_key_id``, ``secret_access_key`` and
            ``session_token``; Google Cloud Storage ``credentials_file``; Azure ``account_name``, and ``account_key`` or
            ``sas_token``; the Hub ``token``. ``anonymous=True`` sends no credentials. ``requester_pays`` is true for
            S3, and for Google Cloud Storage the project that pays.

    Raises:
        ConfigError: It is empty, or a URL that Stoker cannot read; or its store takes no such setting.
        OSError: The Hugging Face Hub does not say which commit a revision is.
    """
    if isinstance(text, Location):
        if settings:
            _configure(str(text), settings)
        return text
    if not isinstance(text, (str, os.PathLike)):
        message = f"a path or a URL is wanted here, and not a value of type {type(text).__name__}"
        raise ConfigError(f"{message}; of a part of a dataset, or of records, stoker.build(them, 'folder') makes one")
    plain = os.fspath(text)
    if not plain:
        raise ConfigError("the path is empty; for the current directory write a dot")
    scheme, slash, rest = plain.partition(":/")
    if slash and scheme.lower() in BACKENDS and not rest.startswith("/"):  # pathlib makes one slash of two
        message = f"{plain.partition('?')[0]} looks like a URL that has lost a slash"
        rest = rest.partition("?")[0]
        raise ConfigError(f"{message}; write {scheme}://{rest}, not as a pathlib.Path, or a folder's absolute path")
    if settings:
        _configure(plain, settings)
    return StoreLocation.parse(plain) if _is_url(os.fsencode(plain)) else LocalLocation(plain)


def _configure(plain: str, settings: StoreSettings) -> None:
    if not _is_url(os.fsencode(plain)):
        raise ConfigError(
            f"{plain} is a path of this machine, which takes no settings of a store; omit {', '.join(settings)}"
        )
    configure(_split(plain)[0], settings)


# Tables of items and lists of files hold locations as bytes: an absolute path or a URL, or a path below a base.


def from_uri(where: bytes) -> Location:
    """Return the location of an absolute path or a URL.

    As in paths of files, empty parts and ``.`` in a URL are ignored, and ``..`` is the folder above.

    Raises:
        ConfigError: It is a URL that Stoker cannot read.
    """
    if not _is_url(where):
        return LocalLocation(os.fsdecode(where))
    bucket, key = split_bucket(where)
    key, question, query = key.partition(b"?") if is_web(where) else (key, b"", b"")
    plain = posixpath.normpath(b"/" + key.lstrip(b"/"))
    return StoreLocation.parse((bucket + plain + question + query).decode("utf-8", "surrogateescape"))


def read_at(where: bytes, limit: int) -> bytes:
    """Return the whole file at an absolute path or a URL; see `from_uri` and `Location.read_at_most`.

    For files read once each by the million: making a `LocalLocation` takes half as long as reading a small file.
    """
    return from_uri(where).read_at_most(limit) if _is_url(where) else read_at_most(os.fsdecode(where), limit)


def split_bucket(where: bytes) -> tuple[bytes, bytes]:
    """Return the scheme and the bucket of a URL, and the rest without slashes in front; a path has no bucket."""
    if not _is_url(where):
        return b"", where
    scheme, _, rest = where.partition(b"://")
    bucket, _, key = rest.partition(b"/")
    return scheme + b"://" + bucket, key


def is_absolute(path: bytes) -> bool:
    """Return whether a path of an item does not depend on the base of its source."""
    return path.startswith(b"/") or _is_url(path)


def is_web(path: bytes) -> bool:
    """Return whether a path of an item is the URL of something on a web server."""
    return path[:8].lower().startswith((b"http://", b"https://"))


def join(base: bytes, path: bytes) -> bytes:
    """Return the absolute path or the URL of an item."""
    return path if is_absolute(path) else base + b"/" + path


def glob_matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the parts of a path match those of a pattern, as `glob` would have it."""
    states = {0}  # positions in the pattern that the parts so far can have reached
    for part in parts:
        hidden = part.startswith(".")
        states = _past_stars(states, pattern)
        after = {at for at in states if at < len(pattern) and pattern[at] == "**" and not hidden}
        for at in states:
            if at < len(pattern) and pattern[at] != "**" and (not hidden or pattern[at].startswith(".")):
                after |= {at + 1} if fnmatch.fnmatchcase(part, pattern[at]) else set()
        states = after
    return len(pattern) in _past_stars(states, pattern)


def _past_stars(states: set[int], pattern: Sequence[str]) -> set[int]:
    """Return the states, and those that are reached if ``**`` matches no folder."""
    reached = set(states)
    for at in sorted(states):
        while at < len(pattern) and pattern[at] == "**":
            at += 1  # noqa: PLW2901
            reached.add(at)
    return reached


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _is_url(text: bytes) -> bool:
    return _SCHEME.match(text) is not None


def _answered(question: Callable[[], bool]) -> bool:
    """Return the answer to a question about a path; false if the path cannot be looked at."""
    try:
        return question()
    except OSError as error:
        if not is_path_error(error):
            raise
        return False


def _size_of(entry: os.DirEntry[bytes]) -> int | None:
    """Return the size of a file; 0 for a broken link, None for anything but a regular file."""
    try:
        info = entry.stat()
    except OSError as error:
        if not is_path_error(error):
            raise
        return 0
    return info.st_size if stat.S_ISREG(info.st_mode) else None


_Identity = tuple[int, int]
"""Device and inode number of a file."""


class _Visit(NamedTuple):
    path: bytes  # its path below the top: empty, or ending in a slash
    folders: list[_Identity]  # its parents below the top, and itself
    by_link: bool = False  # whether one of them was reached by a link


def _identity(path: bytes) -> _Identity:
    info = os.stat(path)  # noqa: PTH116 - pathlib has no bytes paths
    return info.st_dev, info.st_ino
