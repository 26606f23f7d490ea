"""The store of each scheme, and what requests need beside a URL: settings, and signatures in queries.

To add a store, write a backend like `objects` or `hdfs`, and add a row here. Settings and queries may be secret. They
are given where a `Location` is made, and belong to the process from then on: tables, plans and lists hold plain URLs as
bytes, for which a request looks up its settings here. So nothing that is printed, stored or hashed contains them. A
pickled `Location` takes them along, for processes that read the same.
"""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, get_args, get_type_hints
from urllib.parse import parse_qs

from stoker.errors import ConfigError
from stoker.forks import PerProcess
from stoker.storage.backend import StoreSettings
from stoker.storage.pools import stop_of_this_thread
from stoker.storage.retrying import RetryingStore

if TYPE_CHECKING:
    from collections.abc import Callable

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
"""Module and class that open the stores of each scheme; the module is imported when needed, as clients are extras.

The class is called with scheme and bucket, and with the settings that were given for them.
"""


@dataclass(slots=True)
class _Stores:
    lock: threading.Lock = field(default_factory=threading.Lock)
    opened: dict[str, RetryingStore] = field(default_factory=dict)


_stores = PerProcess(_Stores)


def open_store(root: str) -> RetryingStore:
    """Return the store of a scheme and bucket such as ``s3://photos``.

    Each is opened once per process, with the settings that it was given (`configure`); a forked process opens its own.
    In a thread of a `stoppable_pool`, requests stop waiting when the pool does.
    """
    stores = _stores.get()
    with stores.lock:
        if root not in stores.opened:
            module, name = BACKENDS[root.partition("://")[0]]
            kind: type[Backend] = getattr(import_module(f"stoker.storage.{module}"), name)
            stores.opened[root] = RetryingStore(kind(root, settings_of(root)))
        store = stores.opened[root]
    stop = stop_of_this_thread()
    return store if stop is None else store.stoppable(stop)


def configure(root: str, settings: StoreSettings) -> None:
    """From now on, open a store with these settings instead of those of the environment."""
    scheme, hints = root.partition("://")[0], get_type_hints(StoreSettings, include_extras=True)
    taken = {name for name, hint in hints.items() if scheme in get_args(hint)[1].split()}
    for name in settings.keys() - taken:
        known = f"it takes {', '.join(sorted(taken))}" if taken else "it takes none"
        raise ConfigError(f"{root} takes no setting {name!r}; {known}")
    before = settings_of(root)
    if settings == before:
        return
    stores = _stores.get()
    with stores.lock:
        same = [other for other in stores.opened if scope_of(other) == scope_of(root)]
        # Settings of a store that never answered were probably mistyped.
        in_use = any(stores.opened[other].has_answered for other in same) if same else bool(before)
        if in_use and any(before.get(name) != settings.get(name) for name in _WHERE):
            message = f"{root} has another {' or '.join(_WHERE)} in this process"
            raise ConfigError(
                f"{message}, which cannot have two stores of one name; read one of them in another process"
            )
        given.settings[scope_of(root)] = settings
        for other in same:
            del stores.opened[other]


def pinned(root: str) -> str:
    """Return a repository of the Hugging Face Hub at the commit of its revision, which is requested once per process.

    Raises:
        FileNotFoundError, PermissionError: There is no such repository or revision, or it is private or gated.
        OSError: The Hub does not say.
    """
    repository, _, revision = root.partition("@")
    root = f"{repository}@{revision or 'main'}"
    if _COMMIT.fullmatch(revision):
        return root
    commits = given.commits
    if root not in commits:
        try:
            commits[root] = str(open_store(root).stat("").etag)
        except (FileNotFoundError, PermissionError) as error:  # the Hub does not tell which
            message = "the Hugging Face Hub has no such dataset or revision, or it is private or gated; see HF_TOKEN"
            raise type(error)(error.errno, message, root) from None
    return f"{repository}@{commits[root]}"


_SECRET = re.compile(
    rb"\?(?:.*[&;])?(?:[\w-]*signature|sig|[\w-]*token_*|(?:[\w-]*_)?(?:key|secret|password)|apikey|hmac|jwt|hdn\w+)=",
    re.IGNORECASE,
)


_WHERE = ("endpoint", "account_name")
"""Settings with which the same URL means another store."""


@dataclass(slots=True)
class Given:
    """Settings, queries and commits that this process was given."""

    settings: dict[str, StoreSettings] = field(default_factory=dict, repr=False)  # by `scope_of` of a store
    # by URL without its query; they hold for everything below it, too
    queries: dict[str, str] = field(default_factory=dict, repr=False)
    commits: dict[str, str] = field(default_factory=dict)  # of repositories of the Hub, by URL with a revision

    def __reduce__(self) -> tuple[Callable[..., Given], tuple[dict[str, Any], ...]]:
        return _received, (dict(self.settings), dict(self.queries), dict(self.commits))


given = Given()


def _received(*theirs: dict[str, Any]) -> Given:
    """Take over what another process was given, unless this one was given something else."""
    all_mine: tuple[dict[str, Any], ...] = (given.settings, given.queries, given.commits)
    for mine, other in zip(all_mine, theirs, strict=True):
        mine.update((key, value) for key, value in other.items() if key not in mine)
    return given


def settings_of(root: str) -> StoreSettings:
    """Return the settings that a store was given; empty if it has those of the environment."""
    return given.settings.get(scope_of(root), {})


def scope_of(root: str) -> str:
    """Return the part of a URL that has settings: all revisions of a repository of the Hub share them."""
    return root.partition("@")[0] if root.startswith("hf://") else root


# Queries of URLs.


def set_query(url: str, query: str) -> None:
    """Send a query with requests for a URL and for what lies below it."""
    if "{" in url:  # braces stand for several files of one or more folders
        url = url[: url.index("{")].rpartition("/")[0]
    before = given.queries.get(url, query)
    if before != query and not all(is_signed(b"?" + text.encode()) for text in (before, query)):
        raise ConfigError(
            f"two URLs of {url} differ in their queries alone; download one of the files, and give the copy"
        )
    given.queries[url] = query


def query_of(url: str) -> str:
    """Return the query that requests for a URL need; empty without one."""
    while url not in given.queries and "://" in url[:-1]:
        url = url.rpartition("/")[0]
    return given.queries.get(url, "")


def is_signed(url: bytes) -> bool:
    """Return whether the query of a URL has a secret in it, such as a signature."""
    return _SECRET.search(url) is not None


def without_signature(url: bytes) -> bytes:
    """Return a URL of a list so that it can be shown: without its query, if that contains a secret."""
    return url.partition(b"?")[0] if is_signed(url) else url


def is_beside_signed(url: str) -> bool:
    """Return whether a URL was not given, but others of its server were, with queries.

    Servers that require signatures do not say without one whether a file exists.
    """
    server = "/".join(url.split("/", 3)[:3])
    return url not in given.queries and any(other.startswith(f"{server}/") for other in given.queries)


def end_of(query: str) -> datetime | None:
    """Return when a signature expires, as S3, Google Cloud Storage, Azure and CloudFront write it; None if unknown."""
    values = {name.lower(): value[0] for name, value in parse_qs(query).items()}
    with suppress(KeyError, ValueError, OverflowError):
        for cloud in ("x-amz", "x-goog"):
            if f"{cloud}-expires" in values:
                start = datetime.strptime(values[f"{cloud}-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
                return start + timedelta(seconds=int(values[f"{cloud}-expires"]))
        if "se" in values:
            end = datetime.fromisoformat(values["se"])
            return end if end.tzinfo else end.replace(tzinfo=UTC)
        return datetime.fromtimestamp(int(values["expires"]), UTC)
    return None


def has_expired(query: str) -> bool:
    """Return whether a signature is known to have expired."""
    end = end_of(query)
    return end is not None and end < datetime.now(UTC)


def refusal_of(query: str) -> str:
    """Return why a server has probably refused a URL with this query."""
    if has_expired(query):
        return f"the signature of its URL has expired ({end_of(query):%Y-%m-%d %H:%M %Z}); sign it again"
    return "the signature of its URL does not allow this, or not any more; sign it again"
