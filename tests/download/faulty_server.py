"""A real HTTP server on this machine that does wrong, on request, whatever servers do wrong."""

from __future__ import annotations

import hashlib
import re
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from servers.web import WebHandler, web_server
from stoker.download import DownloadError, RemoteDataset, download
from stoker.download.catalogue import RemoteFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stoker.download import Account, DownloadReport, Stage

TRIES = 6
CONNECTING_TRIES = 3
TIMEOUT = 0.6
LONGEST_RETRY_AFTER = 1.5
"""What `stoker.download` has in these tests, so that they are quick."""


@dataclass(frozen=True)
class Seen:
    """One request, as it came."""

    path: str
    headers: dict[str, str]


class Handler(WebHandler):
    state: FaultyServer

    def do_GET(self) -> None:
        faulty = self.state
        faulty.seen.append(Seen(self.path, dict(self.headers.items())))
        self.close_connection = True
        behaviour = faulty.script.popleft() if faulty.script else faulty.always
        try:
            behaviour(self)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has gone, as it should
        except BaseException as error:  # noqa: BLE001 - root of a thread; the test is to fail
            faulty.failures.append(error)

    @property
    def body(self) -> bytes:
        return self.state.files[urlsplit(self.path).path.rpartition("/")[2]]

    def start(self, status: int, **headers: str | int) -> None:
        """Send the head; underscores of names are dashes, and an empty value leaves a header out."""
        self.send_response(status)
        for name, value in headers.items():
            if value != "":
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def send(self, data: bytes) -> None:
        for at in range(0, len(data), 1 << 16):
            piece = data[at : at + (1 << 16)]
            # Counted first: the client may have it, and the test go on, before this thread runs again.
            self.state.sent += len(piece)
            self.wfile.write(piece)
            time.sleep(self.state.pause)

    def wanted_start(self) -> int:
        """Where the client wants to resume."""
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        return 0 if match is None else int(match[1])

    def head(self, start: int) -> None:
        total = len(self.body)
        if start:
            content_range = f"bytes {start}-{total - 1}/{total}"
            self.start(206, Content_Length=total - start, Content_Range=content_range)
        else:
            self.start(200, Content_Length=total)


@dataclass
class FaultyServer:
    """What it serves and what it has seen.

    Attributes:
        files: By name; the last part of a path counts.
        script: What it does with the next requests, one each; after that it does what ``always`` says.
        sent: Bytes of bodies.
        pause: Seconds between two pieces of 64 KiB.
    """

    files: dict[str, bytes]
    script: deque[Callable[[Handler], None]] = field(default_factory=deque)
    always: Callable[[Handler], None] = field(default_factory=lambda: serve)
    pause: float = 0.0
    sent: int = 0
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def ranges(self) -> list[str | None]:
        return [seen.headers.get("Range") for seen in self.seen]


@contextmanager
def running(files: dict[str, bytes], host: str = "127.0.0.1") -> Iterator[FaultyServer]:
    faulty = FaultyServer(files)
    with web_server(Handler, faulty) as port:
        faulty.url = f"http://{host}:{port}/"
        yield faulty
    assert faulty.failures == []


def serve(to: Handler) -> None:
    """As a good server does."""
    start = to.wanted_start()
    if start >= len(to.body):
        to.start(416, Content_Length=0, Content_Range=f"bytes */{len(to.body)}")
        return
    to.head(start)
    to.send(to.body[start:])


def drop_after(count: int) -> Callable[[Handler], None]:
    """Announce everything, send so many bytes, and hang up."""

    def behave(to: Handler) -> None:
        start = to.wanted_start()
        to.head(start)
        to.send(to.body[start : start + count])

    return behave


def fall_silent_after(count: int) -> Callable[[Handler], None]:
    def behave(to: Handler) -> None:
        drop_after(count)(to)
        time.sleep(2 * TIMEOUT)

    return behave


def ignore_ranges(to: Handler) -> None:
    to.start(200, Content_Length=len(to.body))
    to.send(to.body)


def ignore_ranges_and_drop_after(count: int) -> Callable[[Handler], None]:
    def behave(to: Handler) -> None:
        to.start(200, Content_Length=len(to.body))
        to.send(to.body[:count])

    return behave


def wrong_bytes(to: Handler) -> None:
    start = to.wanted_start()
    to.head(start)
    to.send(bytes(byte ^ 0x20 for byte in to.body[start:]))


def answer(status: int, **headers: str | int) -> Callable[[Handler], None]:
    def behave(to: Handler) -> None:
        to.start(status, **{"Content_Length": 0, **headers})

    return behave


def chunked(to: Handler) -> None:
    """Without a Content-Length, and then more than the file has."""
    to.start(200, Transfer_Encoding="chunked")
    for data in (to.body[:1000], to.body[1000:] + b"more than there is", b"and yet more"):
        to.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
    to.wfile.write(b"0\r\n\r\n")


def piece(content_range: str, data: bytes) -> Callable[[Handler], None]:
    """Answer 206 with whatever range."""

    def behave(to: Handler) -> None:
        to.start(206, Content_Length=len(data), Content_Range=content_range)
        to.send(data)

    return behave


def announce(length: int) -> Callable[[Handler], None]:
    """Send all of the file under a wrong Content-Length."""

    def behave(to: Handler) -> None:
        to.start(200, Content_Length=length)
        to.send(to.body)

    return behave


class Recorder:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: list[tuple[str, Stage, int, int | None]] = []

    def advanced(self, *, name: str, stage: Stage, done: int, total: int | None) -> None:
        self.steps.append((name, stage, done, total))

    def note(self, text: str) -> None:
        self.notes.append(text)


def remote(name: str, data: bytes, *, with_size: bool = True, saved_as: str = "") -> RemoteFile:
    checksum = "md5:" + hashlib.md5(data).hexdigest()
    return RemoteFile(name, saved_as or name, checksum, len(data) if with_size else None)


def get(
    watcher: Recorder,
    directory: Path,
    base_urls: str | tuple[str, ...],
    *files: RemoteFile,
    account: Account | None = None,
    ask: Callable[[], Account] | None = None,
) -> DownloadReport:
    """Download files of one dataset."""
    base_urls = (base_urls,) if isinstance(base_urls, str) else base_urls
    return download(RemoteDataset("some", base_urls, files), directory, watcher, account=account, ask=ask)


@dataclass
class Transfer:
    """Downloads of a.tar from a server to a folder."""

    folder: Path
    server: FaultyServer
    watcher: Recorder
    body: bytes

    def fetch(self, *base_urls: str, with_size: bool = True, **how: Any) -> DownloadReport:
        """Download it, and check that it is all there."""
        wanted = remote("a.tar", self.body, with_size=with_size)
        report = get(self.watcher, self.folder, base_urls or self.server.url, wanted, **how)
        assert (self.folder / "a.tar").read_bytes() == self.body
        return report

    def fail(self, message: str | None = None, *base_urls: str, **how: Any) -> DownloadError:
        with pytest.raises(DownloadError, match=message) as caught:
            self.fetch(*base_urls, **how)
        return caught.value
