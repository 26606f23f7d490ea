"""A stand-in for Azure Blob Storage, written from the REST API as Microsoft documents it; objects lie in memory.

Of a container: Put Blob, Get Blob with ranges, Get Blob Properties, List Blobs and Blob Batch of deletes, each with the
signature of the account's key (Shared Key) or a shared access signature that is checked for its presence alone.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from servers.web import WebHandler, web_server

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCOUNT = "standin"
KEY = base64.b64encode(b"a key of thirty-two bytes, or so").decode()
SAS = "sv=2023-11-03&sr=c&sp=rl&se=2099-01-01T00%3A00%3A00Z&sig=c2lnbmF0dXJl"
PAGE = 1000
_SIGNED_HEADERS = (
    *("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date"),
    *("If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"),
)


@dataclass
class AzureServer:
    """What it holds.

    Attributes:
        endpoint: Its URL, without the account.
        blobs: Of each container, by name: content and etag.
        faults: What it does with the next requests for parts, one each.
    """

    endpoint: str = ""
    blobs: dict[str, dict[str, tuple[bytes, str]]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def make_bucket(self) -> str:
        name = f"c{uuid.uuid4().hex}"
        self.blobs[name] = {}
        return name

    def environment(self, proxy: str = "") -> dict[str, str]:
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"{proxy or self.endpoint}/{ACCOUNT}",
        }


class Handler(WebHandler):
    state: AzureServer

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        _, account, container, *rest = unquote(parts.path).split("/", 3)
        blobs = self.state.blobs.get(container)
        if account != ACCOUNT or not (query.get("sig") or self.is_signed(parts.path, query)):
            self.fail(403, "AuthenticationFailed")
        elif blobs is None:
            self.fail(404, "ContainerNotFound")
        elif query.get("comp") == "list":
            self.list(blobs, query)
        elif query.get("comp") == "batch":
            self.batch(blobs, container, body)
        elif self.command == "PUT":
            self.put(blobs, rest[0], body)
        elif rest[0] not in blobs:
            self.fail(404, "BlobNotFound")
        else:
            self.send_blob(*blobs[rest[0]])

    do_HEAD = do_PUT = do_POST = do_GET  # noqa: N815 - as the library has it

    def is_signed(self, path: str, query: dict[str, str]) -> bool:
        """Whether the account's key has signed a request."""
        values = [self.headers.get(name, "") for name in _SIGNED_HEADERS]
        values[2] = "" if values[2] == "0" else values[2]
        own = sorted((name.lower(), value) for name, value in self.headers.items() if name.lower().startswith("x-ms-"))
        lines = [self.command, *values, *(f"{name}:{value}" for name, value in own)]
        lines += [f"/{ACCOUNT}{path}", *(f"{name}:{value}" for name, value in sorted(query.items()))]
        digest = hmac.digest(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256)
        return self.headers.get("Authorization") == f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"

    def list(self, blobs: dict[str, tuple[bytes, str]], query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        rows: dict[str, str] = {}
        for name, (data, etag) in sorted(blobs.items()):
            folder = delimiter and name.startswith(prefix) and name.find(delimiter, len(prefix)) + 1
            if folder:
                rows[name[:folder]] = f"<BlobPrefix><Name>{escape(name[:folder])}</Name></BlobPrefix>"
            elif name.startswith(prefix) and name >= query.get("startFrom", ""):
                rows[name] = (
                    f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{formatdate(usegmt=True)}"
                    f"</Last-Modified><Etag>{etag}</Etag><Content-Length>{len(data)}</Content-Length>"
                    "<Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType></Properties>"
                    "</Blob>"
                )
        left = [name for name in rows if name >= query.get("marker", "")]
        page, following = left[:PAGE], "".join(left[PAGE : PAGE + 1])
        body = f"<Blobs>{''.join(rows[name] for name in page)}</Blobs><NextMarker>{escape(following)}</NextMarker>"
        text = f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults>{body}</EnumerationResults>'
        self.answer(200, text.encode(), Content_Type="application/xml")

    def put(self, blobs: dict[str, tuple[bytes, str]], name: str, body: bytes) -> None:
        with self.state.lock:
            exists = self.headers.get("If-None-Match") == "*" and name in blobs
            if not exists:
                blobs[name] = body, f'"0x{uuid.uuid4().hex[:15].upper()}"'
        if exists:
            self.fail(409, "BlobAlreadyExists")
        else:
            self.answer(201, b"", ETag=blobs[name][1], Last_Modified=formatdate(usegmt=True))

    def send_blob(self, data: bytes, etag: str) -> None:
        about = {"ETag": etag, "Last_Modified": formatdate(usegmt=True), "Accept_Ranges": "bytes"}
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("x-ms-range") or self.headers.get("Range", ""))
        fault = self.state.faults.pop(0) if span and self.state.faults else ""
        if fault == "busy":
            self.fail(503, "ServerBusy")
        elif span is None or fault == "whole":
            self.answer(200, data, **about)
        elif int(span[1]) >= len(data):
            self.fail(416, "InvalidRange")
        else:
            start = int(span[1]) + 5 * (fault == "other part")
            part = data[start : int(span[2]) + 1 + 5 * (fault == "other part") - (fault == "shorter part")]
            shown = f"bytes {start}-{start + len(part) - 1}/{len(data)}"
            self.answer(206, part, Content_Range=shown, **about)

    def batch(self, blobs: dict[str, tuple[bytes, str]], container: str, body: bytes) -> None:
        results = []
        for number, path in enumerate(re.findall(rb"^DELETE (\S+) HTTP", body, flags=re.M)):
            name = unquote(urlsplit(path.decode()).path).partition(f"/{container}/")[2]
            there = blobs.pop(name, None) is not None
            status = (
                "202 Accepted" if there else "404 The specified blob does not exist.\r\nx-ms-error-code: BlobNotFound"
            )
            head = f"--batchresponse\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            results.append(f"{head}HTTP/1.1 {status}\r\nx-ms-version: 2023-11-03\r\nContent-Length: 0\r\n\r\n")
        text = "".join(results) + "--batchresponse--\r\n"
        self.answer(202, text.encode(), Content_Type="multipart/mixed; boundary=batchresponse")

    def fail(self, status: int, code: str) -> None:
        body = b"" if self.command == "HEAD" else f"<Error><Code>{code}</Code></Error>".encode()
        self.answer(status, body, x_ms_error_code=code)


@contextmanager
def running() -> Iterator[AzureServer]:
    azure = AzureServer()
    with web_server(Handler, azure) as port:
        azure.endpoint = f"http://127.0.0.1:{port}"
        yield azure
