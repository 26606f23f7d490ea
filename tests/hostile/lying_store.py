"""A server that speaks as much of S3 as it takes to lie about the length of the only object that it has."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from servers.web import WebHandler, web_server

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "bucket"
_ABOUT = "<LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>&quot;x&quot;</ETag>"


@contextmanager
def lying_store(key: str, claims: int, data: bytes) -> Iterator[str]:
    """Serve ``data`` as if they were ``claims`` bytes, and give the URL of the server."""

    class Handler(WebHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            if "list-type" in query:
                listing = _listing(key, claims, query.get("prefix", [""])[0], flat="delimiter" not in query)
                self._answer(200, listing, len(listing))
            elif url.path != f"/{BUCKET}/{key}":
                self._answer(404, b"", 0)
            else:
                first, end = self.span or (0, claims)
                self._answer(206 if self.span else 200, data[first:end], end - first, first)

        do_HEAD = do_GET  # noqa: N815 - as the library has it

        def _answer(self, status: int, body: bytes, length: int, first: int = 0) -> None:
            about: dict[str, str | int] = {"ETag": '"x"', "Last_Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
            if status == 206:
                about["Content_Range"] = f"bytes {first}-{first + length - 1}/{claims}"
            self.answer(status, body, Content_Length=length, **about)
            self.close_connection = self.command == "GET"

    with web_server(Handler, None) as port:
        yield f"http://127.0.0.1:{port}"


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
