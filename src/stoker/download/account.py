"""The account of a server: who may see it, and keeping it out of everything that is shown.

A key is in no message, no ``repr``, no URL and no file. It is sent as HTTP Basic authorisation, which is a header, and
only to an origin (scheme, host and port) of which the user or the catalogue said that it gets it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Origin = tuple[str, str, int]
"""Scheme, host and port."""

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Account:
    """A user name and the key that belongs to it, which ``repr`` does not show.

    Raises:
        ConfigError: One of them is empty or cannot be sent; the message holds neither.
    """

    username: str
    key: str = field(repr=False)

    def __post_init__(self) -> None:
        for what, value in (("user name", self.username), ("access key", self.key)):
            if not value or not value.isprintable():
                raise ConfigError(f"the {what} is empty or has characters that cannot be typed; give it again")
        if ":" in self.username:
            raise ConfigError("the user name has a colon, which HTTP does not allow; give it again")

    def header(self) -> str:
        """Return the value of the ``Authorization`` header."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.key}".encode()).decode("ascii")


class Keyring:
    """Gives the account to the servers that may have it, and asks for it when it is first needed.

    Args:
        places: URLs of the servers that may have it.
        account: The account; None if it has to be asked for.
        ask: Asks a person for it; None if nobody can be asked.
    """

    def __init__(self, places: Iterable[str], account: Account | None, ask: Callable[[], Account] | None) -> None:
        self._trusted = {origin_of(place) for place in places}
        self._account = account
        self._ask = ask
        self._wanted: set[Origin] = set()

    def given_to(self, url: str) -> Account | None:
        """Return the account if this server has wanted it before."""
        return self._account if origin_of(url) in self._wanted else None

    def may_have(self, url: str) -> bool:
        """Whether this server may see the account."""
        return origin_of(url) in self._trusted

    def unlock(self, url: str, *, may_ask: bool) -> bool:
        """Give the account to a server that wants it.

        Args:
            url: What was asked of the server.
            may_ask: Whether a person may be asked for it.

        Returns:
            Whether `given_to` has the account now and had not before.
        """
        origin = origin_of(url)
        if origin not in self._trusted or origin in self._wanted:
            return False
        if self._account is None and may_ask and self._ask is not None:
            self._account = self._ask()
        if self._account is None:
            return False
        self._wanted.add(origin)
        return True


def origin_of(url: str) -> Origin:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme, 0)


def shown(url: str) -> str:
    """Return a URL for a person: without user name, password, query and fragment, all of which may hold secrets."""
    parts = urlsplit(url)
    return SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "").geturl()


def parse_base(text: str) -> tuple[str, Account | None]:
    """Take apart what a user gives as the place of the files: ``https://[USER:KEY@]HOST[:PORT]/PATH``.

    Returns:
        The place, with a slash at its end and without the account; and the account, if there is one in it.

    Raises:
        ConfigError: It is not such a URL. The message does not repeat it, since it may hold a key.
    """
    try:
        parts = urlsplit(text)
        usable = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0 and text.isascii()
    except ValueError:  # a port that is no number, half of an IPv6 address
        usable = False
    if not usable or not text.isprintable() or " " in text or parts.query or parts.fragment:
        raise ConfigError("--url is not the place of files; write for example https://mirror.example/imagenet/")
    account = None
    if parts.username is not None:
        account = Account(unquote(parts.username), unquote(parts.password or ""))
    return shown(text).rstrip("/") + "/", account
