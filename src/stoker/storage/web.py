"""Files on web servers, by ``http(s)://`` URL: many at a time, from many servers, none of which is trusted.

One event loop makes all requests in a thread of its own (`stoker.http_client`), for which callers in other threads
wait. An exchange ends when its time is over, however slowly a server sends, and at once when the caller stops. No more
bytes are taken than the caller allows. The number of requests at a time to a server is limited
(`stoker.storage.retrying.RateLimit`). Messages of errors are short and always the same, so that they can be counted.
"""

from __future__ import annotations

import asyncio
import errno
import http
import logging
import os
import random
import re
import socket
import threading
import time
from collections import OrderedDict
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import aiohttp

from stoker import http_client
from stoker.config import format_size, stoker_version
from stoker.errors import ClosedError, SourceError, StorageError
from stoker.forks import PerProcess
from stoker.storage import stores
from stoker.storage.backend import Backend, Blob, Entry, StoreError, refuse_longer
from stoker.storage.pools import stop_of_this_thread
from stoker.storage.retrying import RateLimit

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping
    from typing import Any

    from aiohttp import ClientResponse, ClientSession

    from stoker.storage.backend import Data

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

MAX_WEB_BYTES = 2**25
"""Largest image that is taken from a web server."""

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 10.0
"""A server that sends no byte for this long has failed."""
ALL_SECONDS = 60.0
"""Longest time from the first byte of a request to the last one of the answer, with all redirects."""
LONGEST_WAIT = 30.0
"""If a server asks to wait longer, the request is not retried."""
NETWORK_SECONDS = 30.0
"""If no server has answered for this long, the network of this machine has failed."""

_MAX_URL_BYTES = 2**13
_TRIES = 3
_FIRST_WAIT = 0.5
_REDIRECTS = 10
_AT_ONCE = 16  # requests to one server
_SERVERS = 4096  # the most servers whose state is remembered
_DEAD_AFTER = 8  # requests in a row without an answer
_DEAD_SECONDS = 60.0
_FAMILIAR_SECONDS = 15.0  # after a request to a server, the next one keeps its connection
_LOOK_SECONDS = 0.1

_BUSY = frozenset({429, 503})
_FORBIDDING = frozenset({"noai", "noimageai", "noindex", "noimageindex"})
_MISSING = frozenset({404, 410})
_REFUSED = frozenset({400, 401, 403})
_PAST_THE_END = 416
_OF_PARTS = frozenset({206, _PAST_THE_END})
_FIRST_BYTE = (0, 1)
_AGENT = "stoker"
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_NO_NETWORK = frozenset({errno.ENETDOWN, errno.ENETUNREACH})


def read_url(url: bytes) -> bytes:
    """Return what a web server sends for a URL.

    While the server is busy or does not answer, the request is made up to three times. This takes a few minutes at
    most, and ends at once when the event of `stop_waiting_when` is set. No more than `MAX_WEB_BYTES` are taken.

    Raises:
        SourceError: Nothing can be read from this URL; the message says why, without the URL.
        StorageError: No server can be reached from this machine.
        OSError: This process has run out of files or memory.
        ClosedError: The caller has stopped.
    """
    stop = stop_of_this_thread() or threading.Event()
    client, started, tries = _client.get(), time.monotonic(), 0
    while True:
        try:
            return client.get(checked(url), Wanted(MAX_WEB_BYTES), stop).data
        except StoreError as error:
            tries += 1
            now = time.monotonic()
            is_lost = not error.answered and client.is_lost(now)
            if is_lost and now - started > NETWORK_SECONDS:
                message = f"no server can be reached from this machine: {error}"
                raise StorageError(f"{message}; see that its network works, then run again") from error
            if not is_lost and (not error.retry or tries == _TRIES or now - started > ALL_SECONDS):
                raise SourceError(str(error)) from error
            wait = max(error.wait_seconds, min(_FIRST_WAIT * 2.0**tries, NETWORK_SECONDS / 8))
            if stop.wait(wait * random.uniform(0.5, 1) if not error.wait_seconds else wait):  # noqa: S311
                raise ClosedError("stopped while waiting for a web server") from error


def checked(url: bytes) -> str:
    """Return a URL in the form that a request needs, or raise a `StoreError`."""
    if len(url) > _MAX_URL_BYTES:
        raise StoreError(f"it is longer than {_MAX_URL_BYTES:,} bytes", retry=False)
    try:
        text = url.decode().strip()
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        if parts.scheme not in http_client.PORTS:
            what = f"{parts.scheme[:20]}:// is not read" if "://" in text and parts.scheme else "it is not a URL"
            raise StoreError(f"{what}; only http:// and https:// are", retry=False)
        if not host or port == 0 or re.search(r"[\s\x00-\x1f\x7f]", text):
            raise ValueError(text)
        if not host.isascii():
            text = parts._replace(netloc=host.encode("idna").decode() + (f":{port}" if port else "")).geturl()
    except ValueError:  # its text may show a signature
        raise StoreError("it is not a URL that can be asked for", retry=False) from None
    return text


# The client.


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request asks for."""

    limit: int | None  # the most bytes that are taken; None for any number
    span: tuple[int, int] | None = None  # first byte and the one after the last; None for all
    is_stored: bool = False  # whether the server is used as a store: it is trusted and waited for
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # more headers, for one server only
    trusted: str = ""  # scheme and host of that server


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer, and values of its headers."""

    data: bytes
    size_bytes: int | None  # of the whole file; None if the server does not say
    etag: str | None  # header ``ETag``, which identifies the content
    link: str = ""  # header ``Link``
    url: str = field(default="", repr=False)  # the URL after all redirects


@dataclass(slots=True)
class _Server:
    rate: RateLimit = field(default_factory=lambda: RateLimit(_AT_ONCE))  # how many requests it gets at a time
    last_request: float = -_FAMILIAR_SECONDS  # time of the last request to it
    failures: int = 0  # requests in a row that found no server
    dead_until: float = 0.0  # it gets no request before this time
    problem: str = ""  # the error of the last failure


class _Client:
    """The client of web servers of a process. Safe in any thread."""

    def __init__(self) -> None:
        self._loop: http_client.EventLoop | None = None
        self._session: ClientSession | None = None
        self._servers: OrderedDict[str, _Server] = OrderedDict()
        self._lock = threading.Lock()
        self._answered = time.monotonic() - NETWORK_SECONDS

    def is_lost(self, now: float) -> bool:
        return now - self._answered > NETWORK_SECONDS

    def get(self, url: str, wanted: Wanted, stop: threading.Event) -> Answer:
        """Return the answer to one request, and follow redirects."""
        seconds_left, first_url = ALL_SECONDS, url
        for _ in range(_REDIRECTS + 1):
            server = self._server(url, is_stored=wanted.is_stored)
            with server.rate.turn(stop):
                began = time.monotonic()
                # A list may name thousands of servers, and each would leave an idle connection here.
                keep = wanted.is_stored or began - server.last_request < _FAMILIAR_SECONDS
                server.last_request = began
                try:
                    answer = self._wait_for(self._exchange(url, wanted, seconds_left, keep=keep), stop)
                except StoreError as error:
                    self._note(server, error)
                    if isinstance(error, RefusedError) and stores.is_signed(first_url.encode()):
                        why = stores.refusal_of(urlsplit(first_url).query)
                        raise RefusedError(f"{error}: {why}", retry=False) from error
                    raise
                self._note(server, None)
                seconds_left -= time.monotonic() - began
            if isinstance(answer, Answer):
                return replace(answer, url=url)
            url = answer
        raise StoreError(f"it leads on and on: more than {_REDIRECTS} redirects", retry=False)

    def _server(self, url: str, *, is_stored: bool) -> _Server:
        parts = urlsplit(url)
        with self._lock:
            server = self._servers.setdefault(parts.netloc, _Server())
            self._servers.move_to_end(parts.netloc)
            if len(self._servers) > _SERVERS:
                self._servers.popitem(last=False)
        if time.monotonic() < server.dead_until and not is_stored:
            raise StoreError(server.problem, retry=False)
        return server

    def _note(self, server: _Server, error: StoreError | None) -> None:
        if not isinstance(error, _NoServerError):
            if error is None or error.answered:
                self._answered = time.monotonic()
                server.failures = 0
            if error is None:
                server.rate.succeeded()
            else:
                server.rate.failed(busy=error.busy, answered=error.answered)
            return
        server.failures += 1
        if server.failures >= _DEAD_AFTER:
            server.dead_until, server.problem = time.monotonic() + _DEAD_SECONDS, str(error)

    def _wait_for(self, exchange: Coroutine[Any, Any, _T], stop: threading.Event) -> _T:
        """Return the result of an exchange; it is cancelled when this thread stops waiting for it."""
        future = asyncio.run_coroutine_threadsafe(exchange, self._running_loop())
        try:
            while not wait([future], _LOOK_SECONDS).done:
                if stop.is_set():
                    raise ClosedError("stopped while waiting for a web server")
            return future.result()
        finally:
            future.cancel()

    def _running_loop(self) -> http_client.EventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = http_client.EventLoop()
                self._loop.set_exception_handler(_log_quietly)
                threading.Thread(target=self._run, name="stoker-web", daemon=True).start()
            return self._loop

    def _run(self) -> None:
        # This frame refers to the session for ever, so that nothing closes it, neither at exit nor in a forked process,
        # where that would act on connections of the parent.
        assert self._loop is not None
        self._loop.run_forever()

    async def _exchange(self, url: str, wanted: Wanted, seconds: float, *, keep: bool) -> Answer | str:
        """Make one request; return the answer, or the URL of a redirect."""
        if self._session is None:
            self._session = http_client.new_session()
        is_trusted = urlsplit(url)[:2] == urlsplit(wanted.trusted)[:2]
        headers = {
            **(wanted.headers if is_trusted else {}),
            "User-Agent": f"Mozilla/5.0 (compatible; {_AGENT}/{stoker_version()})",
            "Accept": "image/*,*/*;q=0.8",
        }
        if not keep:
            headers["Connection"] = "close"
        if wanted.span is not None:
            headers["Range"] = f"bytes={wanted.span[0]}-{wanted.span[1] - 1}"
        silence = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS)
        try:
            async with asyncio.timeout(seconds) as limit:
                async with await http_client.get(self._session, url, headers, silence) as response:
                    return _moved(response, url) or await _answer(response, wanted)
        except FileNotFoundError:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if limit.expired():
                raise StoreError("it was not all there in time", retry=False) from error
            cause = None if isinstance(error, ValueError) else error  # its text may be a URL with a signature
            raise _translated(error, by_proxy=http_client.proxy_of(url) is not None) from cause


def _log_quietly(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log errors of connections as debug messages; callers that wait for an answer get an error of their own."""
    _log.debug("%s", context.get("message"), exc_info=context.get("exception"))


def _moved(response: ClientResponse, url: str) -> str | None:
    """Return the URL of a redirect; None if the response is not one."""
    try:
        location = http_client.redirect_of(response, url)
        return None if location is None else checked(location.encode())
    except (StoreError, ValueError) as error:
        raise StoreError("it leads to something that is not http:// or https://", retry=False) from error


async def _answer(response: ClientResponse, wanted: Wanted) -> Answer:
    status, size, etag = response.status, http_client.length_of(response), response.headers.get("ETag")
    if wanted.is_stored and status in _MISSING:
        raise FileNotFoundError(errno.ENOENT, f"HTTP {status}")
    if wanted.span is not None and status in _OF_PARTS:
        return await _part(response, wanted.span)
    if status != 200:
        name = http.HTTPStatus(status).phrase if status in http.HTTPStatus._value2member_map_ else ""
        if status in _REFUSED:
            raise RefusedError(f"HTTP {status} {name}".rstrip(), retry=False)
        seconds = min(http_client.retry_after(response), 1e6)
        retry = status in http_client.RETRIED and seconds <= LONGEST_WAIT
        raise StoreError(f"HTTP {status} {name}".rstrip(), retry=retry, busy=status in _BUSY, wait_seconds=seconds)
    forbidden = None if wanted.is_stored else _forbidden_use(response.headers.getall("X-Robots-Tag", []))
    if forbidden is not None:
        raise StoreError(f"its server forbids this use (X-Robots-Tag: {forbidden})", retry=False)
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise StoreError("it comes compressed, which was not asked for", retry=False)
    if wanted.span is not None and wanted.span != _FIRST_BYTE:
        raise StoreError(
            "its server does not send parts of files, and lists no folders; download it, and give the copy", retry=False
        )
    if wanted.span is not None:
        return Answer(await response.content.read(1), size, etag)
    if wanted.limit is not None and size is not None and size > wanted.limit:
        raise _too_long(wanted.limit)
    data = await _body(response, wanted.limit)
    return Answer(data, len(data), etag, response.headers.get("Link", ""))


async def _part(response: ClientResponse, span: tuple[int, int]) -> Answer:
    """Return the part of a file that a response holds; empty if the file ends before it."""
    (start, total), etag = http_client.range_of(response), response.headers.get("ETag")
    if response.status == _PAST_THE_END:
        return Answer(b"", total, etag)
    if start != span[0] or response.headers.get("Content-Encoding", "identity") != "identity":
        sent = response.headers.get("Content-Range", "")[:80]
        raise StoreError(f"the server sends {sent!r} where bytes {span[0]} to {span[1] - 1} were asked for")
    return Answer(await _body(response, span[1] - span[0]), total, etag)


def _forbidden_use(values: list[str]) -> str | None:
    """Return a use that headers ``X-Robots-Tag`` forbid, as img2dataset understands them; None without one."""
    for value in values:
        agent, colon, rest = value.partition(":")
        if colon and agent.strip().lower() != _AGENT:
            continue
        for directive in (rest if colon else agent).split(","):
            if directive.strip().lower() in _FORBIDDING:
                return directive.strip().lower()
    return None


async def _body(response: ClientResponse, limit: int | None) -> bytes:
    parts, arrived = [], 0
    async for data in response.content.iter_any():
        arrived += len(data)
        if limit is not None and arrived > limit:
            raise _too_long(limit)
        parts.append(data)
    return b"".join(parts)


def _too_long(limit: int) -> StoreError:
    return StoreError(f"it has more than {format_size(limit)}", retry=False)


class RefusedError(StoreError):
    """A server refuses a request, for example because a signature has expired."""


class _NoServerError(StoreError):
    """There is no server at an address."""


_PROBLEMS: tuple[tuple[type[Exception], str, bool], ...] = (
    (aiohttp.ClientConnectorCertificateError, "the certificate of its server is not trusted", False),
    (aiohttp.ClientConnectorSSLError, "its server and this machine do not agree about TLS", False),
    (aiohttp.ClientPayloadError, "the connection ended before all of it was there", True),
    (aiohttp.SocketTimeoutError, "its server fell silent", True),
    (ValueError, "it is not a URL that can be asked for", False),
)
"""Kinds of errors, the most specific first, what they mean, and whether to retry."""


def _translated(error: Exception, *, by_proxy: bool) -> StoreError | OSError:
    """Return an error in plain words; never with the text of another library, which may contain anything."""
    number = error.errno if isinstance(error, OSError) else None
    if number in _OUT_OF_RESOURCES:
        return OSError(number, os.strerror(number))
    for kind, problem, retry in _PROBLEMS:
        if isinstance(error, kind):
            return StoreError(problem, retry=retry)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        again = number == socket.EAI_AGAIN
        problem = "the name of its server cannot be found" if again else "the name of its server is not known"
        return StoreError(problem, retry=again, answered=not again)
    if isinstance(error, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return _no_connection(error, number, by_proxy=by_proxy)
    return StoreError("the connection was lost")


def _no_connection(error: Exception, number: int | None, *, by_proxy: bool) -> StoreError:
    if by_proxy:
        return StoreError("the proxy of this machine does not answer", answered=False)
    if number in _NO_NETWORK:
        return StoreError("its server is in no network that can be reached", answered=False)
    if isinstance(error, aiohttp.ConnectionTimeoutError) or number == errno.ETIMEDOUT:
        return _NoServerError("its server took no connection in time")
    if number == errno.ECONNREFUSED:
        return _NoServerError("its server refuses connections")
    return _NoServerError("its server cannot be reached")


_client = PerProcess(_Client)


class WebBackend(Backend):
    """The files of a web server, by their paths; see `stoker.storage.backend.Backend`.

    They can only be read, and only if the server sends parts of files; there are no folders and no listings.
    """

    has_listings = False

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:  # noqa: ARG002 - nothing is listed
        return iter(())

    def stat(self, key: str) -> Entry:
        answer = self._ask(key, Wanted(1, _FIRST_BYTE, is_stored=True))
        if answer.size_bytes is None:
            raise StoreError("its server does not say how long it is; download it, and give the copy", retry=False)
        return Entry(key, answer.size_bytes, answer.etag)

    def get(self, key: str, limit: int | None = None) -> Blob:
        if limit is not None:
            refuse_longer(self.stat(key).size_bytes, limit)
        answer = self._ask(key, Wanted(limit, is_stored=True))
        return Blob(answer.data, answer.etag)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._ask(key, Wanted(length, (start, start + length), is_stored=True)).data if length else b""

    def put(self, key: str, data: Data) -> str | None:  # noqa: ARG002 - see above
        raise StoreError("web servers are only read from; give a folder or a bucket", retry=False)

    def create(self, key: str, data: Data) -> None:
        self.put(key, data)

    def delete(self, key: str) -> None:
        self.put(key, b"")

    def _ask(self, key: str, wanted: Wanted) -> Answer:
        url = f"{self.name}/{key}"
        query = stores.query_of(url)
        try:
            return self._exchange(f"{url}?{query}" if query else url, wanted)
        except RefusedError as error:
            if stores.is_beside_signed(url) and not stores.has_expired(query):
                raise FileNotFoundError(errno.ENOENT, str(error)) from error
            raise

    def _exchange(self, url: str, wanted: Wanted) -> Answer:
        whole = checked(url.encode("utf-8", "surrogateescape"))
        return _client.get().get(whole, wanted, stop_of_this_thread() or threading.Event())
