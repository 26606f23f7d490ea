"""Which scheme of a URL leads to which store, and what requests need beside a URL: settings, and signatures in queries.

To add a store: a backend like `objects` or `hdfs`, and a row here. Settings and queries may be secret. They are given
where a `Location` is made, and from then on belong to the process: tables, plans and lists hold URLs as bytes, which
are looked up here when a request is made. So nothing that is printed, stored or hashed has them. A pickled `Location`
takes them along, for processes that read the same.
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
            stores.opened[root] = RetryingStore(kind(root, settings_of(root)))
        store = stores.opened[root]
    stop = stop_of_this_thread()
    return store if stop is None else store.stoppable(stop)


def configure(root: str, settings: StoreSettings) -> None:
    """Have a store opened with settings of its own, instead of those of the environment, from now on."""
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
        # A store that never answered was probably a typing error.
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
    """Return a repository of the Hugging Face Hub at the commit that a revision is, asked for once in a process.

    Raises:
        FileNotFoundError, PermissionError: There is no such repository or revision, or it is not for everybody.
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
        except (FileNotFoundError, PermissionError) as error:  # it does not tell what is private from what is not there
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
    """What was given in this process."""

    settings: dict[str, StoreSettings] = field(default_factory=dict, repr=False)  # by `scope_of` of a store
    # by URL without its query; that of everything below, too
    queries: dict[str, str] = field(default_factory=dict, repr=False)
    commits: dict[str, str] = field(default_factory=dict)  # of repositories of the Hub, by URL with a revision

    def __reduce__(self) -> tuple[Callable[..., Given], tuple[dict[str, Any], ...]]:
        return _received, (dict(self.settings), dict(self.queries), dict(self.commits))


given = Given()


def _received(*theirs: dict[str, Any]) -> Given:
    """Take over what another process was given and this one was not."""
    all_mine: tuple[dict[str, Any], ...] = (given.settings, given.queries, given.commits)
    for mine, other in zip(all_mine, theirs, strict=True):
        mine.update((key, value) for key, value in other.items() if key not in mine)
    return given


def settings_of(root: str) -> StoreSettings:
    """Return the settings that a store was given; none where it has those of the environment."""
    return given.settings.get(scope_of(root), {})


def scope_of(root: str) -> str:
    """Return what settings of a store are for: all revisions of a repository of the Hub have the same."""
    return root.partition("@")[0] if root.startswith("hf://") else root


# Queries of URLs.


def set_query(url: str, query: str) -> None:
    """Send a query with requests for a URL and for what lies below it."""
    if "{" in url:  # which stands for several files of one folder, or of several
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
    """Return a URL of a list as it may be shown: without its query, if that has a secret in it."""
    return url.partition(b"?")[0] if is_signed(url) else url


def is_beside_signed(url: str) -> bool:
    """Return whether a URL is not one that was given, but others of its server were, with queries.

    Servers that keep files for those who have a signature do not tell the others whether there is one.
    """
    server = "/".join(url.split("/", 3)[:3])
    return url not in given.queries and any(other.startswith(f"{server}/") for other in given.queries)


def end_of(query: str) -> datetime | None:
    """Return when a signature ends, as S3, Google Cloud Storage, Azure and CloudFront write it."""
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
    """Return whether a signature is known to have ended."""
    end = end_of(query)
    return end is not None and end < datetime.now(UTC)


def refusal_of(query: str) -> str:
    """Return what a server means that refuses a URL with this query."""
    if has_expired(query):
        return f"the signature of its URL has expired ({end_of(query):%Y-%m-%d %H:%M %Z}); sign it again"
    return "the signature of its URL does not allow this, or not any more; sign it again"
