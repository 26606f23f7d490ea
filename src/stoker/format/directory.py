"""The directory of a dataset: the names of its files, and its text files, labels and rejects, read up to a limit."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from stoker import _native
from stoker.errors import ManifestError, StorageError
from stoker.storage import location
from stoker.strict_json import parse_json
from stoker.types import MAX_CLASSES, Reject

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stoker.storage import Location, LocationLike


MANIFEST_NAME = "manifest.json"
LABELS_NAME = "labels.txt"
REJECTS_NAME = "rejects.jsonl"
JOURNAL_NAME = "build.journal"
"""The journal of an unfinished build on this machine."""
BUILD_FOLDER = ".stoker-build"
"""The journal of a build in a store, which cannot append to a file, or in parts, which write at the same time."""
_MANIFEST_BEGINS = re.compile(rb'\s*\{\s*"format":\s*"stoker-dataset"')
_HEAD_BYTES = 128
SIZES_NAME = "sizes.txt"
"""Written by the preset ``tiny-imagenet``."""

_HOPS_FOLDER = "tfrecords_raw"
"""Output folder of the Hops notebook, below the images. Its ``sizes.txt`` lies beside this folder, not in it."""
_MAX_LISTED_BYTES = 2**30
_MAX_REJECTS_BYTES = 2**30
_NOT_A_TEXT_FILE = (errno.EFBIG, errno.EINVAL, errno.EISDIR, errno.ELOOP)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """What a manifest says about a file that is not a shard, such as ``labels.txt``."""

    size_bytes: int
    crc32c: int  # of all its bytes

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Return what a manifest says about a file with this content."""
        return cls(len(content), _native.crc32c(content))

    def check(self, content: bytes, path: Location) -> None:
        """Check that a file has the content that the manifest lists."""
        actual = ListedFile.of(content)
        if actual != self:
            what = f"{actual.size_bytes} bytes with the CRC-32C {actual.crc32c:08x}"
            listed = f"{self.size_bytes} bytes with {self.crc32c:08x}"
            message = f"{path} was changed or damaged after the build: it has {what}, but {MANIFEST_NAME} says {listed}"
            raise ManifestError(f"{message}; restore it, or build again", path=str(path))


def sizes_path(directory: Location) -> Location:
    """Return the path of ``sizes.txt``: in the directory of the dataset, or beside it if it is named as in Hops."""
    absolute = directory.absolute()
    return (absolute.parent if absolute.name == _HOPS_FOLDER else directory) / SIZES_NAME


def is_unfinished(directory: Location) -> bool:
    """Return whether a directory holds an unfinished build.

    A build that was killed between writing the manifest and cleaning up counts too.
    """
    try:
        return (directory.is_local and (directory / JOURNAL_NAME).exists()) or (directory / BUILD_FOLDER).is_dir()
    except PermissionError as error:
        if directory.is_local:
            error.filename = str(directory)  # not the journal, which may not exist: the directory cannot be searched
        raise


def is_dataset(folder: Location) -> bool:
    """Return whether a folder is a dataset that Stoker has built or is building.

    Raises:
        StorageError: The store cannot be reached.
    """
    manifest = folder / MANIFEST_NAME  # other programs write files of that name, too
    try:
        return is_unfinished(folder) or _MANIFEST_BEGINS.match(manifest.read_head(_HEAD_BYTES)) is not None
    except StorageError:
        raise
    except OSError:
        return False


def has_journal_folder(directory: Location) -> bool:
    """Return whether the journal of a dataset is a folder: in a store always, on a disk only for a build in parts."""
    return not directory.is_local or ((directory / BUILD_FOLDER).is_dir() and not (directory / JOURNAL_NAME).lexists())


def read_text(path: Location, limit: int, kind: str, listed: ListedFile | None = None) -> bytes:
    """Return the content of a text file of a dataset; errors call it a ``kind``, such as ``manifest``.

    Raises:
        FileNotFoundError: The file does not exist.
        ManifestError: It is larger than ``limit``, differs from ``listed``, is not a regular file, or is a broken link.
    """
    try:
        content = path.read_at_most(limit)
    except FileNotFoundError:
        if not path.lexists():
            raise
        problem = "is a broken link"
    except OSError as error:
        if error.errno not in _NOT_A_TEXT_FILE:
            raise
        problem = str(error.strerror)
    else:
        if listed is not None:
            listed.check(content, path)
        return content
    message = f"{path} {problem[0].lower()}{problem[1:]}, so it is not a {kind}; restore it, or build again"
    raise ManifestError(message, path=str(path))


def write_listed(path: Location, content: bytes) -> ListedFile:
    """Write a file atomically, and return what the manifest says about it."""
    path.write_atomically(content)
    return ListedFile.of(content)


def check_listed(directory: Location, name: str, listed: ListedFile) -> None:
    """Check that a file beside the shards exists with the content that the manifest lists.

    ``sizes.txt`` of a dataset called ``tfrecords_raw`` lies outside its directory, so it may be missing.

    Raises:
        ManifestError: It is missing, or has other content.
    """
    path = sizes_path(directory) if name == SIZES_NAME else directory / name
    try:
        read_text(path, _MAX_LISTED_BYTES, f"{name} of a dataset", listed)
    except FileNotFoundError as error:
        if path.parent == directory:
            raise ManifestError(f"{path} is missing; restore it, or build again", path=str(path)) from error


# ``rejects.jsonl``: a line with a JSON object for each source item that is not in the dataset.


def write_rejects(directory: LocationLike, rejects: Iterable[Reject]) -> ListedFile:
    """Write the rejects of a dataset atomically, and return what the manifest says about the file.

    Without rejects the file is empty.
    """
    lines = [json.dumps({"key": r.key, "split": r.split, "reason": r.reason}) + "\n" for r in rejects]
    return write_listed(location(directory) / REJECTS_NAME, "".join(lines).encode())


def read_rejects(directory: LocationLike, listed: ListedFile | None = None) -> tuple[Reject, ...]:
    """Return the rejects of a dataset in the order of the build; none when there is no file.

    Raises:
        ManifestError: The file differs from ``listed``, or a line is not a reject; the message names the line.
    """
    path = location(directory) / REJECTS_NAME
    if not path.lexists():
        return ()
    content = read_text(path, _MAX_REJECTS_BYTES, "list of rejects", listed)
    rejects = []
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n")):
        if not line and not number:
            continue  # nothing was rejected
        try:
            rejects.append(_reject(parse_json(line)))
        except (ValueError, TypeError, KeyError) as error:
            message = f"{path} line {number + 1} is not a reject: {error}; the dataset itself is not affected"
            raise ManifestError(message, path=str(path), record=number) from error
    return tuple(rejects)


def _reject(entry: dict[str, object]) -> Reject:
    key, split, reason = (entry[name] for name in ("key", "split", "reason"))
    if not (isinstance(key, str) and isinstance(split, str) and isinstance(reason, str)):
        raise TypeError("key, split and reason must be texts")
    return Reject(key, split, reason)


BACKGROUND = "background"
"""Name of class 0 when labels start at 1."""

_MAX_LABELS_BYTES = 2**28


@dataclass(frozen=True, slots=True)
class ClassLabel:
    """A class, as ``labels.txt`` lists it."""

    name: str  # of the class folder; bytes that are not UTF-8 as surrogate escapes
    text: str  # the class in words; empty when unknown


def write_labels(
    directory: LocationLike,
    names: Sequence[bytes],
    texts: Sequence[bytes],
    label_base: int,
    *,
    numbered: bool = False,
) -> ListedFile:
    """Write the labels of a dataset atomically, and return what the manifest says about the file.

    Names have no control characters; texts are empty where unknown. With the label base 1, line 0 is `BACKGROUND`.
    Names that look like the numbered form are written in that form as well.
    """
    lines = [BACKGROUND.encode()] * label_base
    lines += [name + b"\t" + text if text else name for name, text in zip(names, texts, strict=True)]
    if numbered or all(line.startswith(b"%d:" % number) for number, line in enumerate(lines)):
        lines = [b"%d:%b" % (number, line) for number, line in enumerate(lines)]
    content = b"".join(line + b"\n" for line in lines)
    return write_listed(location(directory) / LABELS_NAME, content)


def read_labels(directory: LocationLike, listed: ListedFile | None = None) -> tuple[ClassLabel, ...]:
    """Return the classes of a dataset; the index is the class id.

    Raises:
        FileNotFoundError: There is no ``labels.txt``.
        ManifestError: It differs from ``listed``, is too large to be a list of classes, or is not a regular file.
    """
    return _read_list(location(directory) / LABELS_NAME, "restore it, or build again", listed)


def read_class_names(folder: Location, label_key: str) -> tuple[ClassLabel, ...]:
    """Return the classes that a list beside shards of other origin names, by label; empty without a list.

    The list is ``KEY.labels.txt``, in which TFDS names the classes of the label ``KEY``, or else ``labels.txt``.

    Raises:
        ManifestError: It is too large to be a list of classes, is not a regular file, or names a class twice.
    """
    keys = [label_key] if label_key and "/" not in label_key else []
    for name in [*(f"{key}.labels.txt" for key in keys), LABELS_NAME]:
        try:
            classes = _read_list(folder / name, "repair it, or move it away")
        except FileNotFoundError:
            continue
        seen: set[ClassLabel] = set()
        for number, label in enumerate(classes):
            if label in seen or not label.name:
                what = f"names {label.name!r} twice" if label.name else f"has an empty line, line {number + 1}"
                message = f"{folder / name} {what}, so it is not a list of classes"
                raise ManifestError(message, path=str(folder / name))
            seen.add(label)
        return classes
    return ()


def _read_list(path: Location, remedy: str, listed: ListedFile | None = None) -> tuple[ClassLabel, ...]:
    content = read_text(path, _MAX_LABELS_BYTES, "list of classes", listed)
    if content.count(b"\n") > MAX_CLASSES:
        message = f"{path} has more than {MAX_CLASSES} lines, so it is not a list of classes; {remedy}"
        raise ManifestError(message, path=str(path))
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    if all(line.startswith(f"{number}:") for number, line in enumerate(lines)):
        lines = [line.partition(":")[2] for line in lines]
    pairs = (line.partition("\t") for line in lines)
    return tuple(ClassLabel(name, text) for name, _, text in pairs)
