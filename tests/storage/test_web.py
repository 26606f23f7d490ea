"""Files from web servers, good ones and bad ones, each of which is done with in time."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from download import faulty_server as does
from download.faulty_server import running
from programs import run_python
from small_cases import each
from sources.photo_server import serving
from stoker.errors import ClosedError, SourceError, StorageError
from stoker.forks import PerProcess
from stoker.storage import is_web, read_url, stopping_when, web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from download.faulty_server import FaultyServer, Handler

BODY = random.Random(3).randbytes(200_000)
MOST_SECONDS = 6.0
"""No URL takes longer here, with limits of a second and at most three tries; what does hangs."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(web, "MAX_WEB_BYTES", 300_000)
    monkeypatch.setattr(web, "SILENT_SECONDS", does.TIMEOUT)
    monkeypatch.setattr(web, "ALL_SECONDS", 1.2)
    monkeypatch.setattr(web, "LONGEST_WAIT", 1.5)
    monkeypatch.setattr(web, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(web, "_client", PerProcess(web._Client))


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with running({"a.jpg": BODY}) as faulty:
        yield faulty


def read(server: FaultyServer, path: str = "a.jpg") -> bytes:
    return read_url((server.url + path).encode())


def problem(url: str | bytes) -> str:
    """What is wrong with a URL, which is known in time."""
    started = time.monotonic()
    with pytest.raises(SourceError) as caught:
        read_url(url if isinstance(url, bytes) else url.encode())
    assert time.monotonic() - started < MOST_SECONDS
    return str(caught.value)


def test_what_comes_is_what_other_clients_get(server: FaultyServer) -> None:
    with urllib.request.urlopen(server.url + "a.jpg?size=large") as answer:
        assert read(server, "a.jpg?size=large") == answer.read() == BODY
    sent = server.seen[-1]
    assert sent.path == "/a.jpg?size=large"
    assert sent.headers["User-Agent"].startswith("Mozilla/5.0 (compatible; stoker/")
    assert sent.headers["Accept-Encoding"] == "identity"


def test_addresses_and_names_of_servers_are_all_asked(server: FaultyServer) -> None:
    port = server.url.rstrip("/").rpartition(":")[2]
    for host in ("127.0.0.1", "localhost"):
        assert read_url(f"HTTP://{host}:{port}/x//a.jpg".encode()) == BODY
    assert [seen.path for seen in server.seen] == ["/x//a.jpg"] * 2


@pytest.mark.parametrize(("failures", "asked"), [(2, 3), (3, 3)])
def test_a_name_is_looked_up_again_where_that_may_help(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch, failures: int, asked: int
) -> None:
    look_up, names = socket.getaddrinfo, []

    def failing(host: str, *args: object, **settings: object) -> object:
        if host == "photos.example":
            names.append(host)
            if len(names) <= failures:
                raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
            host = "127.0.0.1"
        return look_up(host, *args, **settings)  # type: ignore[arg-type]

    assert read(server) == BODY  # so the network works
    monkeypatch.setattr(socket, "getaddrinfo", failing)
    url = f"http://photos.example:{server.url.rstrip('/').rpartition(':')[2]}/a.jpg"
    if failures < asked:
        assert read_url(url.encode()) == read_url(url.encode()) == BODY
    else:
        assert problem(url) == "the name of its server cannot be found"
    assert len(names) == asked


@each(
    ("url", "what"),
    [
        ("file:///etc/passwd", "file:// is not read; only http:// and https:// are"),
        ("ftp://127.0.0.1/a.jpg", "ftp:// is not read; only http:// and https:// are"),
        ("/etc/passwd", "it is not a URL; only http:// and https:// are"),
        ("", "it is not a URL; only http:// and https:// are"),
        ("javascript:alert(1)", "it is not a URL; only http:// and https:// are"),
        ("http://", "it is not a URL that can be asked for"),
        ("http://[::1/a.jpg", "it is not a URL that can be asked for"),
        ("http://127.0.0.1:99999/a.jpg", "it is not a URL that can be asked for"),
        ("http://127.0.0.1:0/a.jpg", "it is not a URL that can be asked for"),
        ("http://127.0.0.1/a b.jpg", "it is not a URL that can be asked for"),
        ("http://127.0.0.1/\r\nHost: other", "it is not a URL that can be asked for"),
        ("http://" + "ü" * 80 + "/a.jpg", "it is not a URL that can be asked for"),
        ("http://127.0.0.1/" + "a" * 20_000, "it is longer than 8,192 bytes"),
        (b"http://127.0.0.1/\xff.jpg", "it is not a URL that can be asked for"),
        ("http://" + "a" * 80 + ".invalid/a.jpg", "the name of its server is not known"),
    ],
)
def test_what_is_no_url_of_a_web_server_is_not_asked_for(url: str | bytes, what: str) -> None:
    assert problem(url) == what


def test_what_is_a_url_of_a_web_server() -> None:
    assert all(map(is_web, (b"http://a", b"HTTPS://a")))
    assert not any(map(is_web, (b"https:/a", b"file://a", b"s3://a", b"")))


# Statuses and redirects.


@pytest.mark.parametrize(
    ("status", "what", "requests"),
    [
        (404, "HTTP 404 Not Found", 1),
        (410, "HTTP 410 Gone", 1),
        (403, "HTTP 403 Forbidden", 1),
        (204, "HTTP 204 No Content", 1),
        (206, "HTTP 206 Partial Content", 1),
        (304, "HTTP 304 Not Modified", 1),
        (299, "HTTP 299", 1),
        (500, "HTTP 500 Internal Server Error", 3),
        (503, "HTTP 503 Service Unavailable", 3),
        (429, "HTTP 429 Too Many Requests", 3),
    ],
)
def test_what_is_not_there_is_told_by_its_status(server: FaultyServer, status: int, what: str, requests: int) -> None:
    server.always = does.answer(status)
    assert problem(server.url + "a.jpg") == what
    assert len(server.seen) == requests


@pytest.mark.slow
def test_a_server_that_is_busy_or_breaks_is_asked_again(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "ALL_SECONDS", 60.0)
    server.script.extend([does.answer(503, Retry_After=1), does.drop_after(1000)])
    started = time.monotonic()
    assert read(server) == BODY
    assert time.monotonic() - started >= 1
    assert len(server.seen) == 3


def test_a_server_that_asks_for_minutes_is_not_asked_again(server: FaultyServer) -> None:
    server.always = does.answer(429, Retry_After=formatdate(time.time() + 300, usegmt=True))
    assert problem(server.url + "a.jpg") == "HTTP 429 Too Many Requests"
    assert len(server.seen) == 1


def test_redirects_are_followed(server: FaultyServer) -> None:
    with running({"b.jpg": b"elsewhere"}) as other:
        server.script.extend([does.answer(302, Location="/c.jpg"), does.answer(301, Location=other.url + "b.jpg")])
        assert read(server) == b"elsewhere"
    assert [seen.path for seen in server.seen] == ["/a.jpg", "/c.jpg"]


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/a", "data:,x", "http://[", "gopher://x"])
def test_redirects_to_anything_else_are_not_followed(server: FaultyServer, to: str) -> None:
    server.always = does.answer(302, Location=to)
    assert problem(server.url + "a.jpg") == "it leads to something that is not http:// or https://"


def test_redirects_that_never_end_are_given_up(server: FaultyServer) -> None:
    server.always = does.answer(307, Location="/a.jpg")
    assert problem(server.url + "a.jpg") == "it leads on and on: more than 10 redirects"
    assert len(server.seen) == 11


# Headers that forbid.


@pytest.mark.parametrize(
    ("value", "forbids"),
    [
        ("noai", "noai"),
        ("all, NoImageAI", "noimageai"),
        ("noindex", "noindex"),
        ("stoker: noimageindex", "noimageindex"),
        ("otherbot: noai", None),
        ("nofollow", None),
        ("", None),
    ],
)
def test_a_server_may_forbid_the_use(server: FaultyServer, value: str, forbids: str | None) -> None:
    def serve(to: Handler) -> None:
        to.start(200, Content_Length=len(to.body), X_Robots_Tag=value)
        to.send(to.body)

    server.always = serve
    if forbids is None:
        assert read(server) == BODY
    else:
        assert problem(server.url + "a.jpg") == f"its server forbids this use (X-Robots-Tag: {forbids})"


# Servers that lie, drip, or never end.


def drip_body(to: Handler) -> None:
    to.start(200, Content_Length=len(to.body))
    for byte in to.body:
        to.wfile.write(bytes([byte]))
        time.sleep(0.05)


def drip_head(to: Handler) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"X-Long: long\r\n" * 1000:
        to.wfile.write(bytes([byte]))
        time.sleep(0.05)


def never_end(to: Handler) -> None:
    to.start(200)
    while True:
        to.wfile.write(bytes(1 << 16))


def never_end_in_chunks(to: Handler) -> None:
    to.start(200, Transfer_Encoding="chunked")
    while True:
        to.wfile.write(b"10000\r\n" + bytes(1 << 16) + b"\r\n")


def say_nothing(_: Handler) -> None:
    time.sleep(2 * does.TIMEOUT)


def talk_nonsense(to: Handler) -> None:
    to.wfile.write(b"SSH-2.0-OpenSSH\r\n" * 10)


def send_endless_headers(to: Handler) -> None:
    to.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        to.wfile.write(b"X-More: more\r\n" * 100)


def send_a_long_header(to: Handler) -> None:
    to.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: " + bytes(1 << 20))


def send_compressed(to: Handler) -> None:
    to.start(200, Content_Length=len(to.body), Content_Encoding="gzip")
    to.send(to.body)


TOO_LONG = "it has more than 300.0 KB"


@pytest.mark.parametrize(
    ("behaviour", "what"),
    [
        (drip_body, "it was not all there in time"),
        (drip_head, "it was not all there in time"),
        (never_end, TOO_LONG),
        (never_end_in_chunks, TOO_LONG),
        (does.announce(10**15), TOO_LONG),
        (does.announce(250_000), "the connection ended before all of it was there"),
        (does.drop_after(1000), "the connection ended before all of it was there"),
        (say_nothing, "its server fell silent"),
        (does.fall_silent_after(1000), "its server fell silent"),
        (talk_nonsense, "the connection was lost"),
        (send_endless_headers, "the connection was lost"),
        (send_a_long_header, "the connection was lost"),
        (send_compressed, "it comes compressed, which was not asked for"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
@pytest.mark.slow
def test_bad_servers_are_left_in_time(server: FaultyServer, behaviour: Callable[[Handler], None], what: str) -> None:
    server.always = behaviour
    assert problem(server.url + "a.jpg") == what


def test_a_length_that_is_too_short_ends_the_image(server: FaultyServer) -> None:
    server.always = does.announce(10)
    with contextlib.suppress(SourceError):  # where what is too much came at once with the rest
        assert read(server) == BODY[:10]  # which is no whole image, as the build will see


def test_nothing_is_taken_for_a_server_behind_a_port_that_is_closed() -> None:
    assert problem("http://127.0.0.1:1/a.jpg") == "its server refuses connections"


def test_a_server_that_is_not_there_is_not_asked_for_ever() -> None:
    for number in range(20):
        assert problem(f"http://127.0.0.1:1/{number}.jpg") == "its server refuses connections"
    known = web._client.get()._servers["127.0.0.1:1"]
    assert known.failures == web._DEAD_AFTER


def test_a_network_that_is_gone_is_no_fault_of_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "NETWORK_SECONDS", 0.4)
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with pytest.raises(StorageError, match=r"no server can be reached from this machine: the proxy .* run again"):
        read_url(b"http://photos.example/a.jpg")


def test_a_server_lost_after_it_answered_is_a_fault(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(server) == BODY
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert problem("http://photos.example/a.jpg") == "the proxy of this machine does not answer"


@contextmanager
def secure_server(folder: Path) -> Iterator[int]:
    """A server whose certificate nobody has signed."""
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "certificate")]
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*words, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    context.wrap_socket(listening.accept()[0], server_side=True).close()
                except ssl.SSLError:
                    pass
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]


@pytest.mark.skipif(shutil.which("openssl") is None and "STOKER_CI" not in os.environ, reason="makes the certificate")
def test_a_certificate_that_nobody_signed_is_not_trusted(tmp_path: Path) -> None:
    with secure_server(tmp_path) as port:
        assert problem(f"https://localhost:{port}/a.jpg") == "the certificate of its server is not trusted"


def test_tls_to_a_server_without_it_is_told(server: FaultyServer) -> None:
    url = server.url.replace("http", "https") + "a.jpg"
    assert problem(url) == "its server and this machine do not agree about TLS"


# Many at a time, processes, and stopping.


def test_a_list_of_many_servers_leaves_no_connections(server: FaultyServer) -> None:
    """A server is asked to keep one once it is asked again."""
    for host in ("127.0.0.1", "127.0.0.1", "localhost"):
        read_url(server.url.replace("127.0.0.1", host).encode() + b"a.jpg")
    assert [seen.headers.get("Connection") for seen in server.seen] == ["close", None, "close"]


FORKING = """
import os, sys
from stoker.storage import read_url
def read(): return len(read_url(sys.argv[1].encode()))
print(read(), read(), flush=True)
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
print(read(), read(), flush=True)
"""


def test_a_forked_process_has_connections_of_its_own_and_both_exit_silently() -> None:
    with serving({"a.jpg": BODY}) as photos:  # which keeps connections
        ended = run_python("-W", "error", "-c", FORKING, photos.url("photos/a.jpg"))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == [str(len(BODY))] * 6


@pytest.mark.slow
def test_no_server_is_sent_more_requests_at_a_time_than_it_bears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "ALL_SECONDS", 60.0)
    monkeypatch.setattr(web, "SILENT_SECONDS", 60.0)
    arrived = threading.Semaphore(0)
    answering = threading.Event()

    def hold(to: Handler) -> None:
        arrived.release()
        answering.wait(60)
        does.serve(to)

    with running({"a.jpg": BODY}) as server, ThreadPoolExecutor(48) as pool:
        server.always = hold
        reads = [pool.submit(read, server) for _ in range(48)]
        try:
            assert all(arrived.acquire(timeout=30) for _ in range(web._AT_ONCE))
            assert not arrived.acquire(timeout=1)
        finally:
            answering.set()
        assert all(future.result() == BODY for future in reads)


def check_stopped(url: str) -> None:
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    started = time.monotonic()
    with stopping_when(stop), pytest.raises(ClosedError):
        read_url(url.encode())
    assert time.monotonic() - started < MOST_SECONDS


@pytest.mark.parametrize("behaviour", [say_nothing, drip_head, drip_body], ids=lambda behaviour: behaviour.__name__)
def test_stopping_ends_what_waits_for_a_server(
    server: FaultyServer, behaviour: Callable[[Handler], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "ALL_SECONDS", 60.0)
    monkeypatch.setattr(web, "SILENT_SECONDS", 60.0)
    server.always = behaviour
    check_stopped(f"{server.url}a.jpg")


def test_stopping_ends_what_waits_for_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "CONNECT_SECONDS", 60.0)
    with socket.create_server(("127.0.0.1", 0), backlog=1) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(8)]  # nobody takes them, so that the next one waits
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
        check_stopped(f"http://127.0.0.1:{port}/a.jpg")
        for client in waiting:
            client.close()
