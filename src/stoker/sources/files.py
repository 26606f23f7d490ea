"""Reads the parts of a source: folders, whole files, slices of tars, lines of lists; many at a time, in order."""

from __future__ import annotations

import errno
import os
import shlex
from codecs import BOM_UTF8
from collections import Counter, defaultdict, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from stoker.config import format_count
from stoker.errors import SourceError, StorageError
from stoker.format import BUILD_FOLDER, JOURNAL_NAME, MANIFEST_NAME, is_dataset
from stoker.sources.names import JUNK, is_sidecar, may_be_image, shown_names, suffix_of
from stoker.storage import Child, Location, from_uri, join, read_at, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from concurrent.futures import Future


MAX_FILE_BYTES = 2**30
"""Largest source file that is read: a ``tf.train.Example`` cannot hold 2 GiB, and memory must stay bounded."""

_MAX_LINE_BYTES = 2**16
_MAX_LIST_BYTES = 2**28

NO_SUCH_FILE = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
"""Errors of reading a path without a readable file."""

AT_ONCE = 32
"""How many requests of a listing run at the same time."""

_WAITING_PER_THREAD = 2
_MAX_NOTED = 2**16

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

DATASET_MARKS = frozenset(map(str.encode, (MANIFEST_NAME, JOURNAL_NAME, BUILD_FOLDER)))
"""Names in a dataset of Stoker: the first one when it is built; the others, on disk and in a store, before that."""


def read_file(path: bytes, size_hint: int = 0) -> bytes:
    """Return the bytes of a file or a URL; refuse one that is too large, without opening it if ``size_hint`` is."""
    if size_hint > MAX_FILE_BYTES:
        raise _too_large()
    try:
        return read_at(path, MAX_FILE_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise _too_large() from error
        raise


def size_or_zero(base: bytes, path: bytes) -> int:
    """Return the size of a file below a folder in bytes; 0 if it does not exist, so that a build rejects it."""
    try:
        return from_uri(join(base, path)).size()
    except StorageError:
        raise
    except OSError:
        return 0


def sizes_of(base: bytes, paths: Iterable[bytes]) -> dict[bytes, int]:
    """Return `size_or_zero` of each file, by path, for files that no listing has; a missing file is still an item."""
    each = dict.fromkeys(paths)
    return dict(zip(each, in_order(partial(size_or_zero, base), each, from_uri(base).requests_at_once), strict=True))


def first_file(folders: Iterable[Location], names: Collection[str]) -> Location | None:
    """Return the first file with one of some names, folder by folder; None if no such file exists."""
    return next((folder / name for folder in folders for name in names if (folder / name).is_file()), None)


def read_annotation(path: bytes) -> bytes | None:
    """Return the bytes of the file of an annotation; None if it does not exist."""
    try:
        return read_file(path, 2**12)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except StorageError:
        raise  # the store fails, not this annotation
    except OSError as error:
        raise SourceError(f"cannot read the annotation: {error.strerror or error}", path=os.fsdecode(path)) from error


def read_slice(path: bytes, offset: int, size: int) -> bytes:
    """Return ``size`` bytes of a file from ``offset`` on."""
    if size > MAX_FILE_BYTES:
        raise _too_large()
    data = from_uri(path).read_range(offset, size, known_size=offset + size)
    if len(data) < size:
        where = os.fsdecode(path)
        message = f"{where} has become shorter since it was listed: it ends at byte {offset + len(data)}"
        raise SourceError(f"{message}, inside an image that ends at {offset + size}", path=where)
    return data


def _too_large() -> SourceError:
    return SourceError(f"the file is larger than {MAX_FILE_BYTES} bytes, the most that fits into one record")


def raw_lines(path: Location, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the text of each line, with its end, but without a byte order mark.

    Lines are held in memory, so a line longer than ``most_bytes`` is refused.
    """
    number = 0
    with path.reader() as file:
        while line := file.readline(most_bytes + 1):
            number += 1
            if len(line) > most_bytes:
                message = f"{path}: line {number} is longer than {most_bytes} bytes; is it a text file?"
                raise SourceError(message, path=str(path))
            yield number, line.removeprefix(BOM_UTF8) if number == 1 else line


def numbered_lines(path: Location) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the text of each line, also of blank ones, without its end (LF or CR LF)."""
    for number, line in raw_lines(path, _MAX_LINE_BYTES):
        yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def nonblank_lines(path: Location) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each line that is not blank, of a list small enough for memory."""
    if path.size() > _MAX_LIST_BYTES:
        raise SourceError(f"{path} is larger than {_MAX_LIST_BYTES} bytes, too large for a list", path=str(path))
    for number, line in numbered_lines(path):
        if line.strip():
            yield number, line


def text_of(path: Location, number: int, line: bytes, first: int = 0, errors: str = "strict") -> str:
    """Return the text of a line from a byte on; if it is not UTF-8, say what to type to convert the file."""
    try:
        return line[first:].decode("utf-8", errors)
    except UnicodeDecodeError as error:
        message = f"line {number} of {path}: it is not UTF-8 at byte {first + error.start}; {conversion_of(path)}"
        raise SourceError(message, path=str(path)) from error


def conversion_of(path: Location) -> str:
    """Return what to type to convert a file to UTF-8."""
    where = shlex.quote(str(path))
    typed = f"iconv -f WINDOWS-1252 -t UTF-8 {where} > {where}.utf8 && mv {where}.utf8 {where}"
    return f"if it is Windows-1252, as Excel writes it, type: {typed}"


def in_order(work: Callable[[_Task], _Result], tasks: Iterable[_Task], at_once: int = AT_ONCE) -> Iterator[_Result]:
    """Yield the result of each task in the order of the tasks; with ``at_once`` 1 no threads are used.

    Tasks are taken from their iterable in the calling thread: at most twice as many as there are threads are running or
    done but not yielded. The first error of a task, in the order of the tasks, ends the iteration.
    """
    if at_once == 1:
        yield from map(work, tasks)
        return
    waiting: deque[Future[_Result]] = deque()
    with stoppable_pool(at_once, "stoker-list") as pool:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) == at_once * _WAITING_PER_THREAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@dataclass(slots=True)
class Skipped:
    """Files that a listing skipped, as they are not items."""

    # how many, by suffix or by kind (``hidden``, ``junk``, ``special file``, ``link out of the tree``, ...)
    ignored: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)  # warnings for the user, in order
    noted: defaultdict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))  # names, by kind

    def warn(self, names: Sequence[bytes | str], message: str, kind: str | None = None) -> None:
        """Warn of names if there are any, ``{names}`` in the message being the first few; count them by kind."""
        if kind is not None:
            self.ignored[kind] += len(names)
        if names:
            self.warnings.append(message.replace("{names}", shown_names(names)))

    def note(self, kind: str, name: bytes) -> None:
        """Count a name, and store it for a warning, unless there are very many."""
        self.ignored[kind] += 1
        if len(self.noted[kind]) < _MAX_NOTED:
            self.noted[kind].append(name)

    def count_sidecar(self, name: bytes) -> None:
        """Count a file for which `is_sidecar` is true."""
        self.ignored[suffix_of(name).decode()] += 1

    def add(self, other: Skipped) -> None:
        """Add what another listing skipped."""
        self.ignored += other.ignored
        self.warnings += other.warnings


def images_among(files: Sequence[tuple[bytes, int]], skipped: Skipped) -> list[tuple[bytes, int]]:
    """Return those of the files, paths and sizes, that may be images; count the others and warn of them."""
    others = [name for name, _ in files if not may_be_image(name)]
    skipped.ignored.update(suffix_of(name).decode("ascii", "replace") for name in others)
    skipped.warn(others, f"{format_count(len(others), 'file')} with no name of an image, not used: {{names}}")
    return [file for file in files if may_be_image(file[0])] if others else list(files)


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a folder at any depth."""

    # path below the folder and size in bytes of every item, in the byte order of the paths
    files: list[tuple[bytes, int]]
    skipped: Skipped = field(default_factory=Skipped)  # what is not an item
    # whether the folder is a dataset that Stoker has built or is building, so that nothing in it is an item
    is_dataset: bool = False


def folders_in(where: bytes) -> list[bytes]:
    """Return the names of the folders that lie directly in a folder, in the order of their bytes, without `JUNK`."""
    with _listing(where):
        return [name for name in from_uri(where).folders() if name not in JUNK]


def some_entries(where: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the name of each entry of a folder and whether it is a folder, in any order, perhaps repeatedly.

    For callers that need only a few of very many names.
    """
    with _listing(where):
        yield from ((child.name, child.is_folder) for child in from_uri(where).some_children())


@dataclass(frozen=True, slots=True)
class Walk:
    """Walks over the folders of a source. Links are followed, except to a folder that they lie in."""

    root: bytes  # absolute path or URL of the folder that the paths are below
    # A folder in the source to ignore: where a dataset is being built
    without: Location | None = None

    def scan(self, folder: bytes, skipped: Skipped) -> list[Child]:
        """Return the entries of a folder in the byte order of their names, without `JUNK` and links to parent folders.

        The path of the folder below the root is empty, or ends in a slash, as it does in `list_folders`.
        """
        top, children = from_uri(self.root), []
        with _listing(self._at(folder)):
            for child in from_uri(self._at(folder)).children():
                path = folder + child.name
                if child.is_folder and self._is_without(path):
                    continue
                if child.is_folder and child.name in JUNK:
                    skipped.ignored["junk"] += 1
                    continue
                if child.is_folder and child.is_link and top.leads_back(path):
                    self._add_loop(path, skipped)
                    continue
                children.append(child)
        return children

    def list_folders(self, folders: Iterable[bytes]) -> Iterator[Listing]:
        """Yield the contents of each of some folders, in their order; a store lists several folders at a time."""
        return in_order(self._list_items, folders, from_uri(self.root).requests_at_once)

    def _list_items(self, folder: bytes) -> Listing:
        skipped = Skipped()
        files: list[tuple[bytes, int]] = []
        hidden: set[bytes] = set()
        marks: set[bytes] = set()
        # Only in a store, whose folders are not entered one by one.
        left_out = None if self.without is None or self.without.is_local else self.without.to_uri() + b"/"

        def enters(path: bytes, leads_back: bool) -> bool:  # noqa: FBT001 - as a walk calls it
            if (top := _hidden_part(path + b"/")) is not None:
                hidden.add(top)
                return False
            return self._enters(folder + path, skipped, leads_back=leads_back)

        with _listing(self._at(folder)):
            for path, size in from_uri(self.root).files_below(enters, folder):
                if left_out is not None and self._at(folder + path).startswith(left_out):
                    continue
                if (top := _hidden_part(path)) is not None:
                    hidden.add(top)
                elif is_sidecar(path):
                    skipped.count_sidecar(path)
                    if path in DATASET_MARKS:
                        marks.add(path)
                elif size is None:
                    skipped.ignored["special file"] += 1
                else:
                    files.append((path, size))
        skipped.ignored.update("junk" if top.rpartition(b"/")[2] in JUNK else "hidden" for top in hidden)
        files.sort()
        marks |= hidden & DATASET_MARKS
        return Listing(files, skipped, is_dataset=bool(marks) and is_dataset(from_uri(self._at(folder))))

    def _enters(self, folder: bytes, skipped: Skipped, *, leads_back: bool) -> bool:
        """Return whether a folder is part of the source; count it if it is not."""
        if leads_back:
            self._add_loop(folder, skipped)
        elif not self._is_without(folder):
            if not is_dataset(from_uri(self._at(folder))):
                return True
            skipped.ignored["dataset"] += 1
        return False

    def _at(self, path: bytes) -> bytes:
        return (self.root + b"/" + path).rstrip(b"/")

    def _is_without(self, folder: bytes) -> bool:
        return self.without is not None and from_uri(self._at(folder)).is_same(self.without)

    def _add_loop(self, path: bytes, skipped: Skipped) -> None:
        skipped.ignored["loop of links"] += 1
        where = os.fsdecode(self._at(path))
        target = os.fsdecode(from_uri(self._at(path)).to_uri())
        skipped.warnings.append(f"{where} is a link to {target}, a folder that it lies in: not followed again")


def _hidden_part(path: bytes) -> bytes | None:
    """Return the path up to the first part that is hidden, or a folder of `JUNK`; a folder itself ends in a slash."""
    if b"/" not in path:
        return path if path.startswith(b".") else None
    *folders, name = path.split(b"/")
    for depth, part in enumerate(folders, 1):
        if part.startswith(b".") or part in JUNK:
            return b"/".join(folders[:depth])
    return path if name.startswith(b".") else None


@contextmanager
def _listing(where: bytes) -> Iterator[None]:
    """Raise a `SourceError` if a folder cannot be listed, unless the store cannot be reached."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        folder = os.fsdecode(error.filename or where).rstrip("/")
        problem = error.strerror or str(error)
        if error.errno == errno.EINVAL:
            advice = "no client can read an object of such a name; rename or delete it"
        else:
            advice = "make it readable or move it out of the source"
        raise SourceError(f"cannot list the folder {folder}: {problem}; {advice}", path=folder) from error
