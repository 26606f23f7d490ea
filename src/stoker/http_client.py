"""HTTP for all that reads from web servers: aiohttp with the settings that untrusted servers call for.

Heads are bounded, bodies come as they are sent, no cookies are kept, and no redirect is followed: callers decide where
one may lead.
"""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from concurrent.futures import Future
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from aiohttp import ClientSession, DummyCookieJar, TCPConnector
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import ClientResponse, ClientTimeout

PORTS = {"http": 80, "https": 443}

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which the same request may succeed."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LONGEST_LINE = 2**16  # of a head
_NAME_SECONDS = 60
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)", re.ASCII)
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SENT_AS_IS = "!#$%&'()*+,-./:;=?@[]_~"


class EventLoop(asyncio.SelectorEventLoop):
    """Looks up names in daemon threads: nothing can end a look-up, and no process should wait for one to exit."""

    async def getaddrinfo(self, host: Any, port: Any, **settings: Any) -> Any:
        """Return what ``socket.getaddrinfo`` returns."""
        addresses: Future[Any] = Future()
        addresses.set_running_or_notify_cancel()

        def look_up() -> None:
            try:
                addresses.set_result(socket.getaddrinfo(host, port, **settings))
            except UnicodeError:  # a name of more than 63 letters
                addresses.set_exception(socket.gaierror(socket.EAI_NONAME, "no name of a server"))
            except OSError as error:
                addresses.set_exception(error)

        threading.Thread(target=look_up, name="stoker-names", daemon=True).start()
        return await asyncio.wrap_future(addresses, loop=self)


def new_session() -> ClientSession:
    """Return a session of the running event loop."""
    return ClientSession(
        connector=TCPConnector(limit=0, ttl_dns_cache=_NAME_SECONDS),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        max_line_size=_LONGEST_LINE,
        max_field_size=_LONGEST_LINE,
    )


async def get(session: ClientSession, url: str, headers: Mapping[str, str], timeout: ClientTimeout) -> ClientResponse:
    """Make one request, by way of the proxy of the environment; the body is not read yet.

    A user name and a password in the URL are not sent; ``headers`` are what is sent beside those of any request.

    Raises:
        ClientError: There is no answer.
        ValueError: It is not a URL that can be asked for.
    """
    address = URL(quote(_NO_ESCAPE.sub("%25", url), safe=_SENT_AS_IS), encoded=True).with_user(None)
    headers = {"Accept-Encoding": "identity", **headers}
    return await session.get(address, headers=headers, allow_redirects=False, proxy=proxy_of(url), timeout=timeout)


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment (``https_proxy``, ``no_proxy``) has for a URL; None for none."""
    parts = urlsplit(url)
    port = parts.port or PORTS.get(parts.scheme, 0)
    return None if proxy_bypass(f"{(parts.hostname or '').lower()}:{port}") else getproxies().get(parts.scheme)


def redirect_of(response: ClientResponse, url: str) -> str | None:
    """Return the URL that a response leads to, which may be anything; None if it is no redirect.

    Raises:
        ValueError: It leads to something that is not a URL.
    """
    if response.status not in _REDIRECTS:
        return None
    return urljoin(url, response.headers.get("Location") or "none:")


def length_of(response: ClientResponse) -> int | None:
    """Return how many bytes a response says that it has."""
    text = response.headers.get("Content-Length", "")
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def range_of(response: ClientResponse) -> tuple[int | None, int | None]:
    """Return the first byte that a response brings and the length of the whole file; None where it does not say."""
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    start, total = (None, None) if match is None else match.groups()
    return None if start is None else int(start), None if total in (None, "*") else int(total)


def retry_after(response: ClientResponse) -> float:
    """Return for how many seconds a server asks to wait; 0.0 if it does not."""
    text = response.headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,18}", text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):  # neither seconds nor a date
        return 0.0
