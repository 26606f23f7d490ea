"""A server that speaks as much of S3 as it takes to lie about the length of the only object that it has."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "bucket"
_ABOUT = "<LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>&quot;x&quot;</ETag>"


@contextmanager
def lying_store(key: str, claims: int, data: bytes) -> Iterator[str]:
    """Serve ``data`` as if they were ``claims`` bytes, and give the URL of the server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            if "list-type" in query:
                listing = _listing(key, claims, query.get("prefix", [""])[0], flat="delimiter" not in query)
                self._answer(200, listing, len(listing))
            elif url.path != f"/{BUCKET}/{key}":
                self._answer(404, b"", 0)
            else:
                asked = re.fullmatch(r"bytes=([0-9]+)-([0-9]+)", self.headers.get("Range", ""))
                first, last = (int(asked[1]), int(asked[2])) if asked else (0, claims - 1)
                self._answer(206 if asked else 200, data[first : last + 1], last - first + 1, first)

        def do_HEAD(self) -> None:
            self.do_GET()

        def _answer(self, status: int, body: bytes, length: int, first: int = 0) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.send_header("ETag", '"x"')
            self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
            if status == 206:
                self.send_header("Content-Range", f"bytes {first}-{first + length - 1}/{claims}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def _listing(key: str, claims: int, prefix: str, *, flat: bool) -> bytes:
    entry = ""
    if key.startswith(prefix):
        folder, slash, _ = key[len(prefix) :].partition("/")
        if slash and not flat:
            entry = f"<CommonPrefixes><Prefix>{prefix}{folder}/</Prefix></CommonPrefixes>"
        else:
            entry = f"<Contents><Key>{key}</Key><Size>{claims}</Size>{_ABOUT}</Contents>"
    counted = f"<KeyCount>{int(bool(entry))}</KeyCount><IsTruncated>false</IsTruncated>"
    return f"<ListBucketResult><Name>{BUCKET}</Name>{counted}{entry}</ListBucketResult>".encode()
