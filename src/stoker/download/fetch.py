"""Fetches one file over HTTP: resumes where it stopped, tries one server after another, and verifies the checksum.

Bytes that have arrived are kept, and only the rest is requested. Only the published checksum is trusted: a file whose
parts do not belong together fails it, and is fetched again from the start.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import hashlib
import io
import os
import random
import shutil
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Literal, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

import aiohttp

from stoker import http_client
from stoker.config import format_seconds, format_size
from stoker.errors import ConfigError, DestinationError, StokerError
from stoker.storage import lock_alone, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from aiohttp import ClientResponse

    from stoker.download.catalogue import RemoteFile

Stage = Literal["checking", "downloading", "unpacking"]

TRIES = 10
"""Number of tries in a row without a new byte, after which a server is given up."""
CONNECTING_TRIES = 4
"""The same while the server cannot be reached."""
TIMEOUT = 60.0
"""Seconds without a byte after which a connection is given up."""
LONGEST_RETRY_AFTER = 600.0
"""The most seconds to wait at the request of a server (``Retry-After``)."""
_READ_BYTES = 2**20
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
_MAX_REDIRECTS = 5
_REMEDIES = {
    401: "the server requires an account: give the right user name and access key, and agree to its terms of use",
    403: "the server refuses it: see on its page whether your account may download it, or give a mirror with --url",
    404: "it is not there: give another URL with --url",
    410: "it is not there any more: give another URL with --url",
}


class DownloadError(StokerError):
    """A file cannot be fetched, or the server sent something else."""


class Watcher(Protocol):
    """Receives the progress of a download. Called from one thread."""

    def advanced(self, *, name: str, stage: Stage, done: int, total: int | None) -> None:
        """Report the bytes done of a file, as often as every few milliseconds; ``total`` is None while it is unknown.

        The first call for a file and a stage counts what an earlier run left.
        """

    def note(self, text: str) -> None:
        """Report an event in one sentence, such as a retry or a damaged file."""


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


def parse_base(text: str) -> tuple[str, Account | None]:
    """Parse the base URL of the files as a user gives it: ``https://[USER:KEY@]HOST[:PORT]/PATH``.

    Returns:
        The base URL, with a slash at its end and without the account; and the account, if there is one in it.

    Raises:
        ConfigError: It is not such a URL. The message does not repeat it, since it may hold a key.
    """
    try:
        parts = urlsplit(text)
        usable = parts.scheme in http_client.PORTS and bool(parts.hostname) and parts.port != 0 and text.isascii()
    except ValueError:  # a port that is not a number, half of an IPv6 address
        usable = False
    if not usable or not text.isprintable() or " " in text or parts.query or parts.fragment:
        raise ConfigError("--url is not a base URL; write for example https://mirror.example/imagenet/")
    account = None
    if parts.username is not None:
        account = Account(unquote(parts.username), unquote(parts.password or ""))
    return shown(text).rstrip("/") + "/", account


def shown(url: str) -> str:
    """Return a URL for display: without user name, password, query and fragment, all of which may hold secrets."""
    parts = urlsplit(url)
    return SplitResult(parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "").geturl()


def origin_of(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or http_client.PORTS.get(parts.scheme, 0)


def check_space(directory: Path, needed: int) -> None:
    """Raise `OSError` with ``ENOSPC`` if the disk has fewer free bytes than ``needed``."""
    free = shutil.disk_usage(directory).free
    if needed > free:
        what = f"{os.strerror(errno.ENOSPC)}: {format_size(needed)} are needed, {format_size(free)} are free"
        raise OSError(errno.ENOSPC, what, str(directory))


class _UnavailableError(Exception):
    """The file is not below this base URL, or the server refuses it: the next URL is tried."""


class _Interruption(Exception):  # noqa: N818 - nothing is wrong yet: the transfer is resumed
    """A transfer was cut short; holds whether a server was reached, and the least seconds to wait."""

    def __init__(self, message: str, *, connected: bool = True, wait: float = 0.0) -> None:
        super().__init__(message)
        self.connected = connected
        self.wait = wait


class _AccountRequired(Exception):  # noqa: N818 - nothing is wrong: the user is asked
    """A server requires an account that is not known yet."""


class Client:
    """Sends requests, follows redirects, and gives the account to the servers that may have it and ask for it.

    The account is in no message, no ``repr``, no URL and no file. It is sent as HTTP Basic authorization, only to an
    origin (scheme, host and port) of ``base_urls``. Without an account, ``ask`` asks the user for it. Proxies are those
    of the environment (``https_proxy``, ``no_proxy``); certificates are checked against those of the system.
    """

    def __init__(self, base_urls: Iterable[str], account: Account | None, ask: Callable[[], Account] | None) -> None:
        self._trusted = {origin_of(base_url) for base_url in base_urls}
        self._unlocked: set[tuple[str, str, int]] = set()
        self._account = account
        self._ask = ask

    def ask(self) -> None:
        """Ask the user for the account."""
        assert self._ask is not None
        self._account = self._ask()

    async def get(self, session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> ClientResponse:
        """Return the response for a URL after all redirects; its body is not read.

        Raises:
            _UnavailableError: The URL will never give it: the certificate is not trusted, or redirects lead nowhere.
            _Interruption: There was no answer this time.
            _AccountRequired: The user has to be asked for the account.
        """
        for _ in range(_MAX_REDIRECTS + 1):
            response = await self._send(session, url, headers)
            if response.status in (401, 403) and self._unlock(url, response):
                response.close()
                response = await self._send(session, url, headers)
            if response.status in (401, 403) and origin_of(url) not in self._trusted:
                response.close()
                host = origin_of(url)[1]
                raise _UnavailableError(
                    f"it leads to {host}, which requires an account; that is not sent to another host"
                )
            try:
                location = http_client.redirect_of(response, url)
                scheme, host, _ = origin_of(location or url)
            except ValueError:
                location, scheme, host = "", "", ""
            if location is None:
                return response
            response.close()
            if scheme not in http_client.PORTS or not host:
                raise _UnavailableError("a redirect leads to something that is not HTTP")
            url = location
        raise _UnavailableError(f"more than {_MAX_REDIRECTS} redirects")

    def _unlock(self, url: str, response: ClientResponse) -> bool:
        """Allow a server that asks for the account to get it; return whether to repeat the request."""
        origin = origin_of(url)
        asks = "basic" in ", ".join(response.headers.getall("WWW-Authenticate", [])).lower()
        if origin not in self._trusted or origin in self._unlocked or (response.status == 401 and not asks):
            return False
        # A refusal that does not ask for an account is no reason to ask the user for one.
        if self._account is None and (response.status == 403 or self._ask is None):
            return False
        self._unlocked.add(origin)
        if self._account is None:
            response.close()
            raise _AccountRequired
        return True

    async def _send(self, session: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> ClientResponse:
        sent = {"User-Agent": "stoker", **headers}
        if self._account is not None and origin_of(url) in self._unlocked:
            account = f"{self._account.username}:{self._account.key}".encode()
            sent["Authorization"] = "Basic " + base64.b64encode(account).decode("ascii")
        try:
            silence = aiohttp.ClientTimeout(sock_connect=TIMEOUT, sock_read=TIMEOUT)
            return await http_client.get(session, url, sent, silence)
        except aiohttp.ClientConnectorCertificateError:
            message = "the certificate of the server is not trusted; install the certificates of the system"
            raise _UnavailableError(message) from None
        except ValueError:  # aiohttp's InvalidURL among them
            raise _UnavailableError("a redirect leads to something that is not a URL") from None
        except aiohttp.ClientError as error:
            connected = not isinstance(error, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError)
            raise _Interruption(_reason(error), connected=connected) from None


def _reason(error: aiohttp.ClientError) -> str:
    """Return why a connection failed, without the text of foreign exceptions, which may hold a URL or a header."""
    if isinstance(error, aiohttp.ServerTimeoutError):
        return f"the server was silent for {format_seconds(TIMEOUT)}"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection ended"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    if isinstance(error, aiohttp.ClientConnectorDNSError) and error.strerror:
        return error.strerror
    return "the connection was lost"


def fetch(
    file: RemoteFile, target: Path, base_urls: Sequence[str], client: Client, watcher: Watcher
) -> tuple[int, int]:
    """Fetch one file, and resume what an earlier run left of it. The directory of ``target`` must exist.

    Returns the number of bytes that came over the network, and of those that an earlier run had left.

    Raises:
        DownloadError: No base URL has it, or its bytes are wrong even after fetching it twice.
        DestinationError: Another process fetches it.
        OSError: It cannot be written; what was fetched stays.
    """
    with contextlib.closing(_Transfer(file, target, client, watcher)) as transfer:
        resumed = transfer.size
        transfer.run(base_urls)
    return transfer.fetched, resumed


class _Transfer:
    """A file that is written to ``NAME.part``, hashed on the way, and locked while a process works on it.

    It gets its final name when it is complete, verified, and on the disk; if the process ends before, the part stays to
    be resumed.
    """

    def __init__(self, file: RemoteFile, target: Path, client: Client, watcher: Watcher) -> None:
        self._remote = file
        self._target = target
        self._client = client
        self._watcher = watcher
        self._path = target.with_name(target.name + ".part")
        self.fetched = 0
        self._file = io.FileIO(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+")
        try:
            self._lock()
            self._hash, self.size = hash_of_content(file, self._file, watcher)
        except BaseException:
            self._file.close()
            raise
        self._furthest = self.size

    def close(self) -> None:
        """Close the part, which stays to be resumed; an empty part is removed."""
        if not self._file.closed and self.size == 0:
            self._path.unlink(missing_ok=True)
        self._file.close()

    def run(self, base_urls: Sequence[str]) -> None:
        """Fetch all bytes, check them, and give the file its final name; wrong bytes are fetched once more."""
        algorithm, _, digest = self._remote.checksum.partition(":")
        self._complete(base_urls)
        wrong: list[str] = []
        while self._hash.hexdigest() != digest:
            wrong.append(self._hash.hexdigest())
            self._clear()
            self._furthest = 0
            sums = f"its {algorithm.upper()} is {' and then '.join(wrong)}, and should be {digest}"
            if len(wrong) == 2:
                message = (
                    f"{self._remote.name}: {sums}, twice; tell the operator of the server, or give a mirror with --url"
                )
                raise DownloadError(message, path=str(self._target))
            self._note(f"{sums}; it is fetched again from the start")
            self._complete(base_urls)
        os.fsync(self._file.fileno())
        self._path.replace(self._target)
        self._file.close()
        sync_directory(self._target.parent)

    def _complete(self, base_urls: Sequence[str]) -> None:
        reasons: list[str] = []
        for base_url in base_urls:
            url = base_url + self._remote.name
            try:
                self._get_from(url)
            except _UnavailableError as error:
                reasons.append(f"{shown(url)}: {error}")
                if base_url != base_urls[-1]:
                    self._watcher.note(f"{reasons[-1]}; trying the next URL")
            else:
                return
        hint = f"; {format_size(self.size)} of it are kept in {self._path}" if self.size else ""
        raise DownloadError("; ".join(reasons) + hint, path=str(self._target))

    def _get_from(self, url: str) -> None:
        """Fetch all missing bytes from one URL, with as many requests as that takes."""
        tries, connected = 0, False
        while self.size != self._remote.size_bytes:
            before = self._furthest
            try:
                self._get_once(url)
            except _Interruption as stop:
                if self._furthest > before:  # bytes that were lost and came again are not progress
                    tries, connected = 0, False
                tries, connected = tries + 1, connected or stop.connected
                if tries == (TRIES if connected else CONNECTING_TRIES):
                    message = f"{stop}; given up after several tries, run the same command to resume"
                    raise _UnavailableError(message) from None
                pause = 0.0 if tries == 1 else _FIRST_WAIT * (2.0 ** (tries - 1) + random.random())  # noqa: S311
                wait = max(min(_LONGEST_WAIT, pause), stop.wait)
                self._note(f"{stop}; next try in {format_seconds(wait)}")
                time.sleep(wait)
            else:
                return

    def _get_once(self, url: str) -> None:
        """Make one request; if the server requires an account, ask the user for it and repeat the request."""
        size = self._remote.size_bytes
        if size is not None and self.size > size:
            self._clear()
        with asyncio.Runner(loop_factory=http_client.EventLoop) as runner:
            try:
                runner.run(self._request(url))
            except _AccountRequired:
                self._client.ask()  # outside of an event loop, which would hold Ctrl-C back
                runner.run(self._request(url))

    async def _request(self, url: str) -> None:
        """Make one request, and return when the file is complete as far as the server says."""
        size, headers = self._remote.size_bytes, {"Range": f"bytes={self.size}-"} if self.size else {}
        async with http_client.new_session() as session, await self._client.get(session, url, headers) as response:
            total = self._check_head(response)
            if total != self.size:
                await self._receive(response, total if size is None else size)

    def _check_head(self, response: ClientResponse) -> int | None:
        """Check that the body will continue the part; return the size of the whole file, None if it is not known."""
        status, size = response.status, self._remote.size_bytes
        if status in http_client.RETRIED:
            wait = min(http_client.retry_after(response), LONGEST_RETRY_AFTER)
            raise _Interruption(f"the server is busy (HTTP {status})", wait=wait)
        if status == 200:
            return self._check_whole(response)
        if status not in (206, 416):
            remedy = _REMEDIES.get(status, "this is not the answer to a download: give another URL with --url")
            raise _UnavailableError(f"HTTP {status}: {remedy}")
        start, total = http_client.range_of(response)
        is_next = status == 206 and self.size > 0 and start == self.size
        if not is_next or (total is not None and size not in (None, total)):
            sent = "nothing" if status == 416 else repr(response.headers.get("Content-Range", "")[:80])
            why = f"sends {sent} instead of the bytes from {self.size} on"
            self._clear()
            raise _Interruption(f"the server {why}; starting again from its beginning")
        return total

    def _check_whole(self, response: ClientResponse) -> int | None:
        total, size = http_client.length_of(response), self._remote.size_bytes
        kind = response.headers.get("Content-Type", "application/octet-stream").partition(";")[0].strip().lower()
        if kind == "text/html" or (total is not None and size not in (None, total)):
            sent = "" if total is None else f" of {total} bytes"
            wanted = "" if size is None else f" of {size} bytes"
            hint = "; perhaps a page to log in" if kind == "text/html" else ""
            raise _UnavailableError(f"the server sends {kind}{sent} instead of the file{wanted}{hint}")
        if self.size:
            self._note("the server starts from the beginning, not where the download stopped")
            self._clear()
        return total

    async def _receive(self, response: ClientResponse, limit: int | None) -> None:
        self._advanced(limit)
        try:
            async for data in response.content.iter_any():
                self._write(data if limit is None else data[: limit - self.size])  # the checksum decides on the rest
                self._advanced(limit)
                if self.size == limit:
                    return
        except aiohttp.ClientError as error:
            raise _Interruption(f"{_reason(error)} at byte {self.size} of {limit or 'the file'}") from None
        if limit is not None and self.size < limit:
            raise _Interruption(f"the connection ended at byte {self.size} of {limit}")

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                count = self._file.write(left)  # may be fewer bytes than given, when the disk is nearly full
                self._hash.update(left[:count])
                self.size += count
                left = left[count:]
        except OSError as error:
            error.filename = str(self._path)
            raise
        self.fetched += len(data)
        self._furthest = max(self._furthest, self.size)

    def _clear(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self._hash = _hash_of(self._remote)
        self.size = 0

    def _lock(self) -> None:
        try:
            is_ours = lock_alone(self._file.fileno(), self._path)  # another process may have finished, and renamed it
        except (BlockingIOError, PermissionError):
            is_ours = False
        if not is_ours:
            message = f"{self._path} is being written by another process; wait for it, or download to another directory"
            raise DestinationError(message, path=str(self._path))

    def _advanced(self, total: int | None) -> None:
        self._watcher.advanced(name=self._remote.name, stage="downloading", done=self.size, total=total)

    def _note(self, text: str) -> None:
        self._watcher.note(f"{self._remote.name}: {text}")


def hash_of_content(file: RemoteFile, opened: IO[bytes], watcher: Watcher) -> tuple[hashlib._Hash, int]:
    """Return the hash of the present content of a file, with the algorithm of the catalogue, and its length."""
    hasher, done, total = _hash_of(file), 0, os.fstat(opened.fileno()).st_size
    while data := opened.read(_READ_BYTES):
        hasher.update(data)
        done += len(data)
        watcher.advanced(name=file.name, stage="checking", done=done, total=total)
    return hasher, done


def _hash_of(file: RemoteFile) -> hashlib._Hash:
    return hashlib.new(file.checksum.partition(":")[0], usedforsecurity=False)
