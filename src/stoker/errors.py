"""Every exception Stoker raises on purpose, as one tree.

::

    StokerError
    ├── ConfigError              a setting is out of range or unknown (also a ValueError)
    ├── DatasetNotFoundError     nothing to read at that path (also a FileNotFoundError)
    ├── DestinationError         the directory to write to holds something else
    ├── ManifestError            manifest.json is damaged, or contradicts the files beside it
    │   └── NewerManifestError   it was written by a newer version of Stoker
    ├── SourceError              the images to build from cannot be listed or used
    ├── ShardError               the bytes of a shard are not what they should be
    │   ├── TruncatedShardError  it ends inside a record
    │   ├── CorruptRecordError   a checksum does not match
    │   └── IndexMismatchError   the index beside it describes another file
    ├── ExampleError             a record is not a usable tf.train.Example
    ├── ImageError               an image cannot be decoded without losing pixels
    │   └── ImageTooLargeError   it has more pixels than the limit allows
    ├── TooManyRejectsError      more images could not be stored than a build may leave out
    ├── TooManyBadSamplesError   more samples of an epoch were bad than the loader may replace
    ├── ClusterError             a Spark cluster failed, or cannot be used as it is (also an OSError)
    ├── StorageError             a bucket or a file system on the network failed for too long (also an OSError)
    └── ClosedError              the loader was closed

    UserWarning
    ├── BadSampleWarning         samples of an epoch were bad and were replaced
    ├── SourceWarning            something about the images of a source may need attention
    │   └── LabelWarning         its classes may be a part of a larger list, in which they have other labels
    └── RankWarning              sources disagree about ranks, or other processes may read the same samples

A message says what is wrong, with which value, where, and what to do next. The *where* is also in attributes, so
that a program can act on it. Errors of the operating system (disk full, permission) stay `OSError`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeVar

    _Error = TypeVar("_Error", bound="StokerError")


def printable(text: str) -> str:
    """Return text that cannot command a terminal: what is not printable, such as a stray byte of a name, is escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


class StokerError(Exception):
    """Base of every error raised on purpose.

    A message may contain names from untrusted files. Its characters that are not printable are escaped, so that no name
    can command the terminal that shows it.

    Attributes:
        path: File the error is about, if any.
        record: Zero-based number of the record inside that file, if known.
        offset: Byte offset inside that file where the record (or the damage) starts, if known.
        source: Name of the source image, as stored in the record, if known.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(printable(message))
        self.path = path
        self.record = record
        self.offset = offset
        self.source = source

    def __str__(self) -> str:
        return str(self.args[0])  # even where OSError would show its number and the name of a file instead


def format_where(path: str, record: int | None, offset: int | None = None, source: str | None = None) -> str:
    """Return where a record or damage lies, for a message; a record number below 0 means the whole file."""
    if record is not None and record < 0:
        return path
    where = path if record is None else f"{path}, record {record}"
    return where + ("" if offset is None else f" at byte {offset}") + (f" ({source})" if source else "")


def record_error(kind: type[_Error], where: tuple[str, int, int], problem: object) -> _Error:
    """Return an error about a record, given its file, its number and its byte offset."""
    path, record, offset = where
    return kind(f"{format_where(*where)}: {problem}", path=path, record=record, offset=offset)


class ConfigError(StokerError, ValueError):
    """A setting is out of range, unknown, or contradicts another one."""


class DatasetNotFoundError(StokerError, FileNotFoundError):
    """There is no dataset, or no such split, at the path given."""


class DestinationError(StokerError):
    """The directory to write to holds something that is not an unfinished build of the same thing."""


class ManifestError(StokerError):
    """``manifest.json`` is damaged, or contradicts the files beside it."""


class NewerManifestError(ManifestError):
    """``manifest.json`` was written by a newer version of Stoker; it may be intact."""


class SourceError(StokerError):
    """The images to build from cannot be listed or used."""


class ShardError(StokerError):
    """The bytes of a shard are not what they should be."""


class TruncatedShardError(ShardError):
    """A shard ends inside a record."""


class CorruptRecordError(ShardError):
    """A checksum of a record does not match its bytes."""


class IndexMismatchError(ShardError):
    """The index beside a shard does not describe that shard."""


class ExampleError(StokerError):
    """A record is not a ``tf.train.Example`` or lacks the feature that was asked for."""


class ImageError(StokerError):
    """An image cannot be decoded, or not without losing pixels."""


class ImageTooLargeError(ImageError):
    """An image declares more pixels than the limit allows; nothing was allocated for it."""


DATA_ERRORS = (SourceError, ShardError, ExampleError, ImageError)
"""Errors of a single image or record, while others may be intact; not those of stores or of settings."""


class StorageError(StokerError, OSError):
    """A bucket or a file system on the network kept failing; the message says for how long."""


class ClusterError(StokerError, OSError):
    """A Spark cluster failed, or its executors cannot do what a job needs."""


class ClosedError(StokerError):
    """The loader was closed and gives no more batches."""


class TooManyRejectsError(StokerError):
    """More images could not be stored than a build may leave out; all others are stored, the manifest is not written.

    Attributes:
        report: The report of the build, a `stoker.BuildReport`; its ``rejects`` say which images these are, and why.
    """

    def __init__(self, message: str, *, report: Any) -> None:
        super().__init__(message)
        self.report = report


class TooManyBadSamplesError(StokerError):
    """More samples of an epoch were bad than the loader may replace."""


class BadSampleWarning(UserWarning):
    """Samples of an epoch were bad and were replaced."""


class SourceWarning(UserWarning):
    """Something about the images of a source may need attention; ``stoker plan`` prints the same.

    A program shows each text once, unless filters of `warnings` say otherwise.
    """


warnings.filterwarnings("once", category=SourceWarning, append=True)  # even if train and test are opened separately


class LabelWarning(SourceWarning):
    """The classes of a source may be a part of a larger list, in which they have other labels."""


class RankWarning(UserWarning):
    """Sources disagree about ranks, or other processes may read the same samples; see docs/reference/settings.md."""
