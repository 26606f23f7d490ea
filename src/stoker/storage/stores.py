"""Which scheme of a URL leads to which store. To add one: a backend like `objects` or `hdfs`, and a row here."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from stoker.forks import PerProcess
from stoker.storage import access
from stoker.storage.pools import stop_of_this_thread
from stoker.storage.retrying import RetryingStore

if TYPE_CHECKING:
    from stoker.storage.access import StoreSettings
    from stoker.storage.backend import Backend


_COMMIT = re.compile(r"[0-9a-f]{40}")


BACKENDS = {
    "gs": ("objects", "GcsBackend"),
    "s3": ("objects", "S3Backend"),
    "hdfs": ("hdfs", "HdfsBackend"),
    "az": ("objects", "AzureBackend"),
    "abfs": ("objects", "AzureBackend"),
    "abfss": ("objects", "AzureBackend"),
    "hf": ("hub", "HubBackend"),
    "http": ("web", "WebBackend"),
    "https": ("web", "WebBackend"),
}
"""What opens the stores of each scheme: a module, imported when it is needed, for the clients are extras, and a class.

It is called with scheme and bucket, and with the settings that a source has of its own.
"""


@dataclass(slots=True)
class _Stores:
    lock: threading.Lock = field(default_factory=threading.Lock)
    opened: dict[str, RetryingStore] = field(default_factory=dict)


_stores = PerProcess(_Stores)


def open_store(root: str) -> RetryingStore:
    """Return the store of a scheme and bucket such as ``s3://photos``.

    Each is opened once in a process, with the settings that it was given (`configure`); a forked process opens one of
    its own. What a pool of `stoppable_pool` asks for stops waiting with the pool.
    """
    stores = _stores.get()
    with stores.lock:
        if root not in stores.opened:
            module, name = BACKENDS[root.partition("://")[0]]
            kind: type[Backend] = getattr(import_module(f"stoker.storage.{module}"), name)
            stores.opened[root] = RetryingStore(kind(root, access.settings_of(root)))
        store = stores.opened[root]
    stop = stop_of_this_thread()
    return store if stop is None else store.stoppable(stop)


def configure(root: str, settings: StoreSettings) -> None:
    """Have a store opened with settings of its own, instead of those of the environment, from now on."""
    before = access.settings_of(root)
    if settings == before:
        return
    stores = _stores.get()
    with stores.lock:
        same = [other for other in stores.opened if access.scope_of(other) == access.scope_of(root)]
        # What never answered was nothing but a slip.
        in_use = any(stores.opened[other].has_answered for other in same) if same else bool(before)
        access.set_settings(root, settings, in_use=in_use)
        for other in same:
            del stores.opened[other]


def pinned(root: str) -> str:
    """Return a repository of the Hugging Face Hub at the commit that a revision is, asked for once in a process.

    Raises:
        FileNotFoundError, PermissionError: There is no such repository or revision, or it is not for everybody.
        OSError: The Hub does not say.
    """
    repository, _, revision = root.partition("@")
    root = f"{repository}@{revision or 'main'}"
    if _COMMIT.fullmatch(revision):
        return root
    commits = access.given.commits
    if root not in commits:
        try:
            commits[root] = str(open_store(root).stat("").etag)
        except (FileNotFoundError, PermissionError) as error:  # it does not tell what is private from what is not there
            message = "the Hugging Face Hub has no such dataset or revision, or it is private or gated; see HF_TOKEN"
            raise type(error)(error.errno, message, root) from None
    return f"{repository}@{commits[root]}"
