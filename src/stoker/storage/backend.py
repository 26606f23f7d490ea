"""The interface that each client of a store is adapted to."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

from stoker.errors import ConfigError

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterator

    Data = bytes | memoryview | mmap.mmap
    """Bytes to be written; not copied unless the client must."""


class StoreSettings(TypedDict, total=False):
    """How to reach a store, instead of what the environment says; each annotation lists the schemes that take it."""

    endpoint: Annotated[str, "s3 gs az abfs abfss hf"]
    region: Annotated[str, "s3"]
    profile: Annotated[str, "s3"]
    access_key_id: Annotated[str, "s3"]
    secret_access_key: Annotated[str, "s3"]
    session_token: Annotated[str, "s3"]
    credentials_file: Annotated[str, "gs"]
    account_name: Annotated[str, "az abfs abfss"]
    account_key: Annotated[str, "az abfs abfss"]
    sas_token: Annotated[str, "az abfs abfss"]
    token: Annotated[str, "hf"]
    anonymous: Annotated[bool, "s3 gs az abfs abfss hf"]
    requester_pays: Annotated[bool | str, "s3 gs"]


@dataclass(frozen=True, slots=True)
class Entry:
    """An object."""

    key: str  # its name in its store, parts divided by slashes, none in front
    size_bytes: int
    etag: str | None = None  # identifies its content, as the store says; None if it says nothing


@dataclass(frozen=True, slots=True)
class Children:
    """The folders and objects directly below a prefix."""

    folders: tuple[str, ...]  # keys that have something below them, without a slash at the end
    files: tuple[Entry, ...]  # the objects


@dataclass(frozen=True, slots=True)
class Blob:
    """The bytes of a whole object, and its etag."""

    data: bytes
    etag: str | None = None


class StoreError(Exception):
    """A request failed. Only `stoker.storage.retrying.RetryingStore` sees it, and raises an ``OSError`` instead."""

    def __init__(
        self,
        problem: str,
        *,
        retry: bool = True,
        busy: bool = False,
        answered: bool = True,
        advice: str = "see that the store is there, then run again",
        wait_seconds: float = 0.0,
    ) -> None:
        super().__init__(problem)
        self.retry = retry  # whether the same request may succeed later
        self.busy = busy  # whether the store asks for fewer requests
        self.answered = answered  # whether the store itself answered
        self.advice = advice  # what to do once the request is given up
        self.wait_seconds = wait_seconds  # how long the store asks to wait before the next request


@contextmanager
def needs_client(scheme: str, extra: str) -> Iterator[None]:
    """Say what to install if a client cannot be imported in the ``with`` block."""
    try:
        yield
    except ImportError as error:
        message = f"{error.name} is not installed, which {scheme}:// needs; pip install 'stoker[{extra}]'"
        raise ConfigError(message) from error


def refuse_longer(size_bytes: int, limit: int | None) -> None:
    """Refuse an object that is longer than the caller allows."""
    if limit is not None and size_bytes > limit:
        raise OSError(errno.EFBIG, f"it has {size_bytes} bytes, more than {limit}")


class Backend(ABC):
    """Requests to a store, each tried once. Safe from any thread, but not across a fork.

    Every method raises ``FileNotFoundError`` if there is no such object, ``PermissionError`` if the store refuses, and
    `StoreError` for everything else.
    """

    has_listings = True  # whether it lists what lies below a prefix; otherwise objects can only be read, by known names

    def __init__(self, name: str, settings: StoreSettings) -> None:  # noqa: ARG002 - some take none
        self.name = name  # scheme and bucket, such as ``s3://photos``

    @abstractmethod
    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:
        """Yield every object below ``prefix``, at any depth, in an order that stays the same.

        If ``after`` is given, objects before it are left out; it itself may come again.
        """

    def children(self, prefix: str) -> Children:
        """Return the folders and objects directly below ``prefix``."""
        top = len(prefix) + 1 if prefix else 0
        folders, files = dict[str, None](), []
        for entry in self.entries(prefix, None):
            name, slash, _ = entry.key[top:].partition("/")
            if slash:
                folders[entry.key[:top] + name] = None
            else:
                files.append(entry)
        return Children(tuple(folders), tuple(files))

    def has_below(self, prefix: str) -> bool:
        """Return whether there is anything below ``prefix``."""
        return next(iter(self.entries(prefix, None)), None) is not None

    @abstractmethod
    def stat(self, key: str) -> Entry:
        """Return what the store knows of one object."""

    @abstractmethod
    def get(self, key: str, limit: int | None = None) -> Blob:
        """Return a whole object; ``OSError`` (``EFBIG``) if it is longer than ``limit``."""

    @abstractmethod
    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Return a part of an object; fewer bytes where it ends."""

    @abstractmethod
    def put(self, key: str, data: Data) -> str | None:
        """Write or replace an object, whole or not at all; return its etag."""

    @abstractmethod
    def create(self, key: str, data: Data) -> None:
        """Write a new object; ``FileExistsError`` if it exists."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is not an error."""

    def delete_folder(self, prefix: str) -> bool:  # noqa: ARG002 - most have none
        """Delete a folder with everything below it at once, and return true; false if the store has no folders."""
        return False
