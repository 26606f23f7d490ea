"""What requests need beside a URL: the settings of one source, and the signatures that URLs have for a query.

Both may be secret. They are given where a `Location` is made, and from then on belong to the process: tables, plans and
lists hold URLs as bytes, which are looked up here when a request is made. So nothing that is printed, stored or hashed
has them. A pickled `Location` takes them along, for processes that read the same.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_args, get_type_hints
from urllib.parse import parse_qs

from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

_SECRET = re.compile(
    rb"\?(?:.*[&;])?(?:[\w-]*signature|sig|[\w-]*token_*|(?:[\w-]*_)?(?:key|secret|password)|apikey|hmac|jwt|hdn\w+)=",
    re.IGNORECASE,
)


class StoreSettings(TypedDict, total=False):
    """How a store is reached, where the environment does not say so; the second part says which stores take it."""

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


_WHERE = ("endpoint", "account_name")
"""Settings with which the same URL means another store."""


@dataclass(slots=True)
class Given:
    """What was given in this process.

    Attributes:
        settings: By `scope_of` of a store.
        queries: By URL without its query; it is that of everything below, too.
        commits: Of the repositories of the Hugging Face Hub, by URL with a revision.
    """

    settings: dict[str, StoreSettings] = field(default_factory=dict, repr=False)
    queries: dict[str, str] = field(default_factory=dict, repr=False)
    commits: dict[str, str] = field(default_factory=dict)

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


def set_settings(root: str, settings: StoreSettings, *, in_use: bool) -> None:
    """Give a store, by scheme and bucket, all the settings that it is to have."""
    scheme, hints = root.partition("://")[0], get_type_hints(StoreSettings, include_extras=True)
    taken = {name for name, hint in hints.items() if scheme in get_args(hint)[1].split()}
    for name in settings.keys() - taken:
        known = f"it takes {', '.join(sorted(taken))}" if taken else "it takes none"
        raise ConfigError(f"{root} takes no setting {name!r}; {known}")
    before = settings_of(root)
    if in_use and any(before.get(name) != settings.get(name) for name in _WHERE):
        message = f"{root} has another {' or '.join(_WHERE)} in this process"
        raise ConfigError(f"{message}, which cannot have two stores of one name; read one of them in another process")
    given.settings[scope_of(root)] = settings


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
