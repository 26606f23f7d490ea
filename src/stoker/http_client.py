"""HTTP for code that reads from web servers: aiohttp with settings for untrusted servers.

Headers are bounded, bodies are not decompressed, cookies are not stored, and redirects are not followed: callers decide
about them.
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
_LONGEST_LINE = 2**16  # of headers
_NAME_SECONDS = 60
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)", re.ASCII)
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SENT_AS_IS = "!#$%&'()*+,-./:;=?@[]_~"


class EventLoop(asyncio.SelectorEventLoop):
    """Looks up names in daemon threads: a look-up cannot be cancelled, and must not delay the end of a process."""

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
    """Make one request, through the proxy of the environment if there is one; the body is not read yet.

    A user name and a password in the URL are not sent; ``headers`` are sent in addition to those of any request.

    Raises:
        ClientError: There is no answer.
        ValueError: It is not a valid URL.
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
    """Return the URL of a redirect, which may be anything; None if the response is not a redirect.

    Raises:
        ValueError: The redirect is not to a URL.
    """
    if response.status not in _REDIRECTS:
        return None
    return urljoin(url, response.headers.get("Location") or "none:")


def length_of(response: ClientResponse) -> int | None:
    """Return how many bytes a response says that it has."""
    text = response.headers.get("Content-Length", "")
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def range_of(response: ClientResponse) -> tuple[int | None, int | None]:
    """Return the first byte in a response, and the length of the whole file; None for what it does not say."""
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
