"""A stand-in for the Hugging Face Hub, written from its documented API, and for the server that it leads to."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = "owner/pets"
TOKEN = "hf_of_the_owner"
PAGE = 5
LARGE = 1300
"""Files from so many bytes on are on the other server."""


@dataclass
class Hub:
    """What it holds.

    Attributes:
        branches: Commit of each revision.
        commits: Files of each commit.
        is_private: Whether it asks for the token.
        endless: Whether its last page leads to itself.
        signatures: Those that the other server takes; the Hub hands out the last one.
        requests: Paths that were asked for.
    """

    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    is_private: bool = False
    endless: bool = False
    signatures: list[str] = field(default_factory=lambda: ["Signature=s1"])
    requests: list[str] = field(default_factory=list)
    url: str = ""
    files_url: str = ""

    def commit(self, files: dict[str, bytes], revision: str = "main") -> str:
        sha = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.commits[sha], self.branches[revision] = files, sha
        return sha


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, hub: Hub, *args: object) -> None:
        self.hub = hub
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.hub.requests.append(self.path)
        parts = urlsplit(self.path)
        match = re.fullmatch(rf"(?:/api)?/datasets/{REPOSITORY}(?:/(revision|tree|resolve)/([^/]+))?(/.*)?", parts.path)
        token = self.headers.get("Authorization")
        if match is None or (self.hub.is_private and token != f"Bearer {TOKEN}"):
            self.answer(401, b"{}", X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
            return
        kind, revision, path = match.groups()
        sha = self.hub.branches.get(unquote(revision or "main"), revision)
        if sha not in self.hub.commits:
            self.answer(404, b"{}", X_Error_Code="RevisionNotFound")
        elif kind == "tree":
            self.send_tree(sha, parse_qs(parts.query))
        elif kind == "resolve":
            self.send_file(sha, unquote(path[1:]))
        else:
            self.answer(200, json.dumps({"id": REPOSITORY, "sha": sha, "siblings": []}).encode())

    do_HEAD = do_GET  # noqa: N815 - as the library has it

    def send_tree(self, sha: str, query: dict[str, list[str]]) -> None:
        files = self.hub.commits[sha]
        folders = {path[: at.start()] for path in files for at in re.finditer("/", path)}
        rows = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in sorted(folders)]
        for path, data in sorted(files.items()):
            row = {"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": path}
            large = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            rows.append(row | ({"lfs": large} if len(data) >= LARGE else {}))
        start = int(query.get("cursor", ["0"])[0])
        following = start if self.hub.endless and start else start + PAGE
        more = {}
        if following < len(rows):
            url = f"{self.hub.url}/api/datasets/{REPOSITORY}/tree/{sha}?recursive=true&expand=false&cursor={following}"
            more["Link"] = f'<{url}>; rel="next"'
        self.answer(200, json.dumps(rows[start : start + PAGE]).encode(), **more)

    def send_file(self, sha: str, path: str) -> None:
        data = self.hub.commits[sha].get(path)
        if data is None:
            self.answer(404, b"", X_Error_Code="EntryNotFound")
            return
        etag = f'"{hashlib.sha1(data).hexdigest()}"'
        about = {"X_Repo_Commit": sha, "X_Linked_Size": str(len(data)), "X_Linked_Etag": etag, "ETag": etag}
        if len(data) >= LARGE:
            where = f"{self.hub.files_url}/{sha}/{quote(path)}?Expires=4102444800&{self.hub.signatures[-1]}"
            self.answer(302, b"", Location=where, **about)
        else:
            self.serve(data, **about)

    def serve(self, data: bytes, **about: str) -> None:
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if span is None:
            self.answer(200, data, **about)
        elif int(span[1]) >= len(data):
            self.answer(416, b"", Content_Range=f"bytes */{len(data)}")
        else:
            part = data[int(span[1]) : int(span[2]) + 1]
            shown = f"bytes {span[1]}-{int(span[1]) + len(part) - 1}/{len(data)}"
            self.answer(206, part, Content_Range=shown, **about)

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """A test prints nothing."""


class FilesHandler(Handler):
    """The other server: it takes what the Hub has signed, and no token."""

    def do_GET(self) -> None:
        self.hub.requests.append(f"files {self.path}")
        parts = urlsplit(self.path)
        _, sha, path = unquote(parts.path).split("/", 2)
        if "Authorization" in self.headers:
            self.answer(400, b"")
        elif not any(parts.query.endswith(signature) for signature in self.hub.signatures):
            self.answer(403, b"")
        else:
            self.serve(self.hub.commits[sha][path])

    do_HEAD = do_GET  # noqa: N815 - as the library has it


@contextmanager
def serving() -> Iterator[Hub]:
    hub, urls = Hub(), []
    with ExitStack() as stack:
        for kind in (Handler, FilesHandler):
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(kind, hub)))
            server.daemon_threads = True
            urls.append(f"http://127.0.0.1:{server.server_port}")
            thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
        hub.url, hub.files_url = urls
        yield hub
