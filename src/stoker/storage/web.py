"""Files on web servers, by ``http(s)://`` URL: many at a time, from many servers, none of which is to be trusted.

urllib3 is the HTTP client. What it leaves to do: one exchange ends when its time is over however slowly a server sends,
and at once when the caller stops; no more arrives than the caller allows; a server is not sent more requests at a time
than it bears (`stoker.storage.retrying.RateLimit`); and errors are told in a few plain words, the same each time, so
that they can be counted.
"""

from __future__ import annotations

import contextlib
import errno
import http
import os
import queue
import random
import re
import socket
import ssl
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, IncompleteRead, ProtocolError, ProxyError, ReadTimeoutError

from stoker.config import format_size, stoker_version
from stoker.errors import ClosedError, SourceError, StorageError
from stoker.forks import PerProcess
from stoker.storage.backend import Blob, Children, Entry, StoreError, refuse_longer
from stoker.storage.pools import stop_of_this_thread
from stoker.storage.retrying import RateLimit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from urllib3 import BaseHTTPResponse

    from stoker.storage.backend import Data

MAX_WEB_BYTES = 2**25
"""Largest image that is taken from a web server."""

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 10.0
"""Without a byte from a server."""
ALL_SECONDS = 60.0
"""From the first byte of a request to the last one of the answer, with all redirects."""
LONGEST_WAIT = 30.0
"""A server that asks to wait longer is not asked again."""
NETWORK_SECONDS = 30.0
"""Without an answer of any server, after which the network of this machine is what fails."""

_MAX_URL_BYTES = 2**13
_TRIES = 3
_FIRST_WAIT = 0.5
_REDIRECTS = 10
_AT_ONCE = 16  # requests to one server
_SERVERS = 4096  # whose state is kept
_DEAD_AFTER = 8  # requests in a row without an answer
_DEAD_SECONDS = 60.0
_READ_BYTES = 2**16
_KEPT_POOLS = 64
_NAME_SECONDS = 60.0
_NAME_THREADS = 128
_LOOK_SECONDS = 0.1

_PORTS = {"http": 80, "https": 443}
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_BUSY = frozenset({429, 503})
_FORBIDDING = frozenset({"noai", "noimageai", "noindex", "noimageindex"})
_MISSING = frozenset({404, 410})
_PAST_THE_END = 416
_OF_PARTS = frozenset({206, _PAST_THE_END})
_FIRST_BYTE = (0, 1)
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)", re.ASCII)
_AGENT = "stoker"
_NO_MEANS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_NO_NETWORK = frozenset({errno.ENETDOWN, errno.ENETUNREACH})


def read_url(url: bytes) -> bytes:
    """Return what a web server sends for a URL.

    It is asked up to three times while it is busy or does not answer. Whatever it does is over within some minutes, and
    at once when `stop_waiting_when` says so. No more than `MAX_WEB_BYTES` are taken.

    Args:
        url: Any bytes: those of a list.

    Raises:
        SourceError: There is nothing to be had under this URL; the message says why, without the URL.
        StorageError: No server can be reached from this machine.
        OSError: This process has run out of files or memory.
        ClosedError: The caller has stopped.
    """
    stop = stop_of_this_thread() or threading.Event()
    client, started, tries = _client.get(), time.monotonic(), 0
    while True:
        try:
            return client.get(checked(url), _Wanted(MAX_WEB_BYTES), stop).data
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
    """Return a URL as a request needs it.

    Raises:
        StoreError: It is not one of HTTP.
    """
    if len(url) > _MAX_URL_BYTES:
        raise StoreError(f"it is longer than {_MAX_URL_BYTES:,} bytes", retry=False)
    try:
        text = url.decode().strip()
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        if parts.scheme not in _PORTS:
            what = f"{parts.scheme[:20]}:// is not read" if "://" in text and parts.scheme else "it is not a URL"
            raise StoreError(f"{what}; only http:// and https:// are", retry=False)
        if not host or port == 0 or re.search(r"[\s\x00-\x1f\x7f]", text):
            raise ValueError(text)
        if not host.isascii():
            text = parts._replace(netloc=host.encode("idna").decode() + (f":{port}" if port else "")).geturl()
    except ValueError as error:
        raise StoreError("it is not a URL that can be asked for", retry=False) from error
    return text


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment (``https_proxy``, ``no_proxy``) has for a URL; None for none."""
    parts = urlsplit(url)
    port = parts.port or _PORTS.get(parts.scheme, 0)
    return None if proxy_bypass(f"{(parts.hostname or '').lower()}:{port}") else getproxies().get(parts.scheme)


def connection_pools(proxy: str | None, **settings: Any) -> urllib3.PoolManager:
    """Return urllib3's pools of connections, by way of a proxy or directly."""
    if proxy is None:
        return urllib3.PoolManager(**settings)
    user = unquote(urlsplit(proxy).netloc.rpartition("@")[0])
    headers = urllib3.make_headers(proxy_basic_auth=user) if user else None
    return urllib3.ProxyManager(proxy, proxy_headers=headers, **settings)


# Exchanges, which end in time.


class _Exchange:
    """One request and its answer, which another thread can end: by closing the way to the server.

    Args:
        deadline: When it ends, by a monotonic clock.
        stop: Ends it once it is set.

    Attributes:
        is_kept: Whether its connection is one that an exchange before has left.
    """

    def __init__(self, deadline: float, stop: threading.Event) -> None:
        self.deadline = deadline
        self.stop = stop
        self.is_kept = False
        self._is_late = False
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()

    def watch(self, descriptor: int) -> None:
        """Note a socket that this exchange waits for."""
        twin = socket.socket(fileno=os.dup(descriptor))  # an SSL connection takes the first one for itself
        with self._lock:
            self._sockets.append(twin)
        self.check()

    def check(self) -> None:
        """Raise what `watch` raises where the exchange is over."""
        if self.stop.is_set():
            raise ClosedError("stopped while waiting for a web server")
        if self._is_late or time.monotonic() > self.deadline:
            raise StoreError("it was not all there in time", retry=False)

    def end_if_due(self, now: float) -> None:
        """Let whatever waits for the server go on with an error, if the time is over; from any thread."""
        if now <= self.deadline and not self.stop.is_set():
            return
        self._is_late = True
        with self._lock:
            for sock in self._sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Forget the sockets."""
        with self._lock:
            for sock in self._sockets:
                sock.close()
            self._sockets.clear()


class _Watch:
    """A thread that ends exchanges."""

    def __init__(self) -> None:
        self._exchanges: set[_Exchange] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def exchange(self, deadline: float, stop: threading.Event) -> Iterator[_Exchange]:
        """Watch over an exchange of this thread while the ``with`` block runs."""
        exchange = _Exchange(deadline, stop)
        with self._changed:
            self._exchanges.add(exchange)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="stoker-web-watch", daemon=True)
                self._thread.start()
            self._changed.notify()
        _thread.exchange = exchange
        try:
            yield exchange
        finally:
            _thread.exchange = None
            with self._changed:
                self._exchanges.discard(exchange)
            exchange.close()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._exchanges:
                    self._changed.wait()
                exchanges = list(self._exchanges)
            now = time.monotonic()
            for exchange in exchanges:
                exchange.end_if_due(now)
            time.sleep(_LOOK_SECONDS)


_thread = threading.local()


def _current() -> _Exchange:
    exchange: _Exchange = _thread.exchange
    return exchange


# Connections of urllib3 that belong to an exchange.


@dataclass(slots=True)
class _LookUp:
    """The addresses of a name, once they are found."""

    since: float
    done: threading.Event = field(default_factory=threading.Event)
    addresses: list[Any] = field(default_factory=list)
    error: OSError | None = None

    @property
    def may_succeed(self) -> bool:
        """Whether it has failed for a reason that passes."""
        return self.error is not None and self.error.errno == socket.EAI_AGAIN

    def is_old(self, now: float) -> bool:
        """Return whether the name is to be looked up again."""
        return self.done.is_set() and (self.may_succeed or now - self.since > _NAME_SECONDS)


class _Names:
    """Looks up names in threads of its own, because nothing can end a look-up; each name once in a while."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], _LookUp] = OrderedDict()
        self._lock = threading.Lock()
        self._wanted: queue.SimpleQueue[tuple[tuple[str, int], _LookUp]] = queue.SimpleQueue()
        self._threads = 0

    def addresses(self, host: str, port: int, exchange: _Exchange) -> list[Any]:
        """Return what ``socket.getaddrinfo`` says."""
        key, now = (host, port), time.monotonic()
        with self._lock:
            look_up = self._known.get(key)
            if look_up is None or look_up.is_old(now):
                look_up = self._known[key] = _LookUp(now)
                self._known.move_to_end(key)
                if len(self._known) > _SERVERS:
                    self._known.popitem(last=False)
                self._wanted.put((key, look_up))
                if self._threads < _NAME_THREADS:
                    self._threads += 1
                    threading.Thread(target=self._run, name="stoker-web-names", daemon=True).start()
        while not look_up.done.wait(_LOOK_SECONDS):
            exchange.check()
        if look_up.error is not None:
            again = look_up.may_succeed
            problem = "the name of its server cannot be found" if again else "the name of its server is not known"
            raise StoreError(problem, retry=again, answered=not again)
        return look_up.addresses

    def _run(self) -> None:
        while True:
            (host, port), look_up = self._wanted.get()
            try:
                look_up.addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except OSError as error:
                look_up.error = error
            except UnicodeError:  # a name of more than 63 letters
                look_up.error = socket.gaierror(socket.EAI_NONAME, "no name of a server")
            look_up.done.set()


class _Watched:
    """What makes the sockets of a connection known to the exchange that uses it."""

    def _new_conn(self) -> socket.socket:
        connection: Any = self
        exchange = _current()
        exchange.is_kept = False
        problem = StoreError("its server has no address", retry=False)
        for family, kind, protocol, _, address in _client.get().names.addresses(
            connection._dns_host, connection.port, exchange
        ):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.settimeout(CONNECT_SECONDS)
                exchange.watch(sock.fileno())
                sock.connect(address)
            except OSError as error:
                sock.close()
                exchange.check()
                if error.errno in _NO_MEANS:
                    raise
                problem = _no_connection(error, by_proxy=bool(connection.proxy))
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise problem

    def request(self, *args: Any, **kwargs: Any) -> None:
        connection: Any = self
        if connection.sock is not None:
            _current().is_kept = True
            _current().watch(connection.sock.fileno())
        super().request(*args, **kwargs)  # type: ignore[misc]


class _Connection(_Watched, HTTPConnection):
    pass


class _SecureConnection(_Watched, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def _no_connection(error: OSError, *, by_proxy: bool) -> StoreError:
    if by_proxy:
        return StoreError("the proxy of this machine does not answer", answered=False)
    if error.errno in _NO_NETWORK:
        return StoreError("its server is in no network that can be reached", answered=False)
    if isinstance(error, TimeoutError):
        return _NoServerError("its server took no connection in time")
    if error.errno == errno.ECONNREFUSED:
        return _NoServerError("its server refuses connections")
    return _NoServerError("its server cannot be reached")


class _NoServerError(StoreError):
    """There is no server at an address."""


# The client.


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a request is for.

    Attributes:
        limit: The most bytes that are taken; None for any number.
        span: The first byte and the one after the last, of a part of a file; None of all of it.
        is_stored: Whether it is asked of a server as of a store: one that is to be trusted and waited for.
    """

    limit: int | None
    span: tuple[int, int] | None = None
    is_stored: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came: the body of an answer, and what its head says.

    Attributes:
        data: The bytes.
        size_bytes: Of the whole file; None where the server does not say.
        etag: What it says the content is known by.
    """

    data: bytes
    size_bytes: int | None
    etag: str | None


@dataclass(slots=True)
class _Server:
    """What is known of a server.

    Attributes:
        rate: How many requests it is sent at a time.
        failures: Requests in a row to which nobody answered.
        dead_until: It is not asked before.
        problem: What the last of these said.
    """

    rate: RateLimit = field(default_factory=lambda: RateLimit(_AT_ONCE))
    failures: int = 0
    dead_until: float = 0.0
    problem: str = ""


class _Client:
    """What a process has with web servers. Safe in any thread.

    Attributes:
        names: Looks up names.
    """

    def __init__(self) -> None:
        self.names = _Names()
        self._watch = _Watch()
        self._pools: dict[str | None, urllib3.PoolManager] = {}
        self._servers: OrderedDict[str, _Server] = OrderedDict()
        self._lock = threading.Lock()
        self._answered = time.monotonic() - NETWORK_SECONDS

    def is_lost(self, now: float) -> bool:
        """Return whether no server at all has answered for some time."""
        return now - self._answered > NETWORK_SECONDS

    def get(self, url: str, wanted: _Wanted, stop: threading.Event) -> _Answer:
        """Return the answer to one request, wherever that was moved to."""
        left = ALL_SECONDS
        for _ in range(_REDIRECTS + 1):
            server = self._server(url, is_stored=wanted.is_stored)
            with server.rate.turn(stop):
                began = time.monotonic()
                try:
                    with self._watch.exchange(began + left, stop) as exchange:
                        answer = self._exchange(url, wanted, exchange)
                except StoreError as error:
                    self._note(server, error)
                    raise
                self._note(server, None)
                left -= time.monotonic() - began
            if isinstance(answer, _Answer):
                return answer
            url = answer
        raise StoreError(f"it leads on and on: more than {_REDIRECTS} redirects", retry=False)

    def _server(self, url: str, *, is_stored: bool) -> _Server:
        """Return what is known of the server of a URL."""
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

    def _exchange(self, url: str, wanted: _Wanted, exchange: _Exchange) -> _Answer | str:
        """Make one request; return the answer, or the URL that it leads to."""
        try:
            response = self._send_anew(url, wanted, exchange)
            try:
                moved = response.get_redirect_location()
                if moved is not False:
                    return _moved(url, moved or "")
                return _answer(response, wanted, exchange)
            finally:
                response.close()
        except FileNotFoundError:
            raise
        except (HTTPError, OSError) as error:
            exchange.check()
            raise _translated(error) from error

    def _send_anew(self, url: str, wanted: _Wanted, exchange: _Exchange) -> BaseHTTPResponse:
        """Send a request, again where the server has closed a connection in the moment in which it was used again."""
        for _ in range(_AT_ONCE):
            try:
                return self._send(url, wanted)
            except ProtocolError:
                exchange.check()
                if not exchange.is_kept:
                    raise
        return self._send(url, wanted)

    def _send(self, url: str, wanted: _Wanted) -> BaseHTTPResponse:
        headers = {
            "User-Agent": f"Mozilla/5.0 (compatible; {_AGENT}/{stoker_version()})",
            "Accept": "image/*,*/*;q=0.8",
        }
        headers["Accept-Encoding"] = "identity"
        if wanted.span is not None:
            headers["Range"] = f"bytes={wanted.span[0]}-{wanted.span[1] - 1}"
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=SILENT_SECONDS)
        return self._pools_for(url).request(
            "GET", url, headers=headers, preload_content=False, redirect=False, retries=False, timeout=timeout
        )

    def _pools_for(self, url: str) -> urllib3.PoolManager:
        proxy = proxy_of(url)
        with self._lock:
            if proxy not in self._pools:
                pools = connection_pools(proxy, num_pools=_KEPT_POOLS, maxsize=_AT_ONCE)
                pools.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
                self._pools[proxy] = pools
            return self._pools[proxy]


def _moved(url: str, location: str) -> str:
    """Return where a redirect leads."""
    try:
        return checked(urljoin(url, location).encode())
    except (StoreError, ValueError) as error:
        raise StoreError("it leads to something that is not http:// or https://", retry=False) from error


def _answer(response: BaseHTTPResponse, wanted: _Wanted, exchange: _Exchange) -> _Answer:
    """Return what a response brings."""
    status, length = response.status, response.headers.get("Content-Length", "")
    size = int(length) if re.fullmatch(r"[0-9]{1,18}", length, re.ASCII) else None
    etag = response.headers.get("ETag")
    if wanted.is_stored and status in _MISSING:
        raise FileNotFoundError(errno.ENOENT, f"HTTP {status}")
    if wanted.span is not None and status in _OF_PARTS:
        return _part(response, wanted.span, exchange)
    if status != 200:
        name = http.HTTPStatus(status).phrase if status in http.HTTPStatus._value2member_map_ else ""
        wait = _retry_after(response)
        retry = status in _RETRIED and wait <= LONGEST_WAIT
        raise StoreError(f"HTTP {status} {name}".rstrip(), retry=retry, busy=status in _BUSY, wait_seconds=wait)
    forbidden = None if wanted.is_stored else _forbidden_use(response.headers.getlist("X-Robots-Tag"))
    if forbidden is not None:
        raise StoreError(f"its server forbids this use (X-Robots-Tag: {forbidden})", retry=False)
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise StoreError("it comes compressed, which was not asked for", retry=False)
    if wanted.span is not None and wanted.span != _FIRST_BYTE:
        raise StoreError("its server does not send parts of files; download it, and give the copy", retry=False)
    data = b"" if wanted.span is not None else _body(response, size, wanted.limit, exchange)
    return _Answer(data, len(data) if wanted.span is None else size, etag)


def _part(response: BaseHTTPResponse, span: tuple[int, int], exchange: _Exchange) -> _Answer:
    """Return the part of a file that a response brings, or nothing where the file ends before."""
    content_range = response.headers.get("Content-Range", "").strip()
    match = _CONTENT_RANGE.fullmatch(content_range)
    total = None if match is None or match[2] == "*" else int(match[2])
    etag = response.headers.get("ETag")
    if response.status == _PAST_THE_END:
        return _Answer(b"", total, etag)
    if match is None or match[1] != str(span[0]) or response.headers.get("Content-Encoding", "identity") != "identity":
        raise StoreError(
            f"the server sends {content_range[:80]!r} where bytes {span[0]} to {span[1] - 1} were asked for"
        )
    return _Answer(_body(response, None, span[1] - span[0], exchange), total, etag)


def _forbidden_use(values: list[str]) -> str | None:
    """Return what headers ``X-Robots-Tag`` forbid, if they do, as img2dataset understands them."""
    for value in values:
        agent, colon, rest = value.partition(":")
        if colon and agent.strip().lower() != _AGENT:
            continue
        for directive in (rest if colon else agent).split(","):
            if directive.strip().lower() in _FORBIDDING:
                return directive.strip().lower()
    return None


def _body(response: BaseHTTPResponse, size: int | None, limit: int | None, exchange: _Exchange) -> bytes:
    """Return the body of a response that says to have ``size`` bytes."""
    if limit is not None and size is not None and size > limit:
        raise _too_long(limit)
    parts, arrived = [], 0
    while data := response.read1(_READ_BYTES, decode_content=False):
        arrived += len(data)
        if limit is not None and arrived > limit:
            raise _too_long(limit)
        exchange.check()
        parts.append(data)
    exchange.check()  # one that was ended looks like one that has ended
    response.release_conn()
    return b"".join(parts)


def _too_long(limit: int) -> StoreError:
    return StoreError(f"it has more than {format_size(limit)}", retry=False)


def _retry_after(response: BaseHTTPResponse) -> float:
    try:
        return min(urllib3.Retry().get_retry_after(response) or 0.0, 1e6)
    except (HTTPError, ValueError, OverflowError):  # neither seconds nor a date
        return 0.0


def _translated(error: Exception) -> StoreError | OSError:
    """Return what went wrong in plain words; never the text of another library, which may hold anything."""
    causes = [error, error.__cause__, *error.args]
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno in _NO_MEANS:
            return cause
    if isinstance(error, ProxyError):
        return StoreError("the proxy of this machine does not answer", answered=False)
    for kind, problem, retry in _PROBLEMS:
        if any(isinstance(cause, kind) for cause in causes):
            return StoreError(problem, retry=retry)
    return StoreError("the connection was lost")


_PROBLEMS: tuple[tuple[type[Exception], str, bool], ...] = (
    (ssl.SSLCertVerificationError, "the certificate of its server is not trusted", False),
    (ReadTimeoutError, "its server fell silent", True),
    (TimeoutError, "its server fell silent", True),
    (ssl.SSLError, "its server and this machine do not agree about TLS", False),
    (IncompleteRead, "the connection ended before all of it was there", True),
)
"""Kinds of errors, most special first, what they mean, and whether another try may help."""


_client = PerProcess(_Client)


class WebBackend:
    """The files of a web server, by their paths; see `stoker.storage.backend.Backend`.

    They can be read, where the server sends parts of them, and nothing else: there are no folders and no listings.

    Args:
        name: Scheme and host, such as ``https://photos.example``.
    """

    has_listings = False

    def __init__(self, name: str) -> None:
        self.name = name

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:  # noqa: ARG002 - nothing is listed
        return iter(())

    def children(self, prefix: str) -> Children:  # noqa: ARG002 - nothing is listed
        return Children((), ())

    def has_below(self, prefix: str) -> bool:  # noqa: ARG002 - nothing is listed
        return False

    def stat(self, key: str) -> Entry:
        answer = self._ask(key, _Wanted(1, _FIRST_BYTE, is_stored=True))
        if answer.size_bytes is None:
            raise StoreError("its server does not say how long it is; download it, and give the copy", retry=False)
        return Entry(key, answer.size_bytes, answer.etag)

    def get(self, key: str, limit: int | None = None) -> Blob:
        if limit is not None:
            refuse_longer(self.stat(key).size_bytes, limit)
        answer = self._ask(key, _Wanted(limit, is_stored=True))
        return Blob(answer.data, answer.etag)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self._ask(key, _Wanted(length, (start, start + length), is_stored=True)).data if length else b""

    def put(self, key: str, data: Data) -> str | None:  # noqa: ARG002 - see above
        raise StoreError("web servers are only read from; give a folder or a bucket", retry=False)

    def create(self, key: str, data: Data) -> None:
        self.put(key, data)

    def delete(self, key: str) -> None:
        self.put(key, b"")

    def delete_folder(self, prefix: str) -> bool:  # noqa: ARG002 - see above
        return False

    def _ask(self, key: str, wanted: _Wanted) -> _Answer:
        url = f"{self.name}/{key}".encode("utf-8", "surrogateescape")
        return _client.get().get(checked(url), wanted, stop_of_this_thread() or threading.Event())
