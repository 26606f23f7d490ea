"""A stand-in for the Hugging Face Hub, written from its documented API, and for the server that it leads to."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote, urlsplit

from servers.web import WebHandler, web_server

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


class Handler(WebHandler):
    state: Hub

    def do_GET(self) -> None:
        self.state.requests.append(self.path)
        parts = urlsplit(self.path)
        match = re.fullmatch(rf"(?:/api)?/datasets/{REPOSITORY}(?:/(revision|tree|resolve)/([^/]+))?(/.*)?", parts.path)
        token = self.headers.get("Authorization")
        if match is None or (self.state.is_private and token != f"Bearer {TOKEN}"):
            self.answer(401, b"{}", X_Error_Code="RepoNotFound", X_Error_Message="Repository not found")
            return
        kind, revision, path = match.groups()
        sha = self.state.branches.get(unquote(revision or "main"), revision)
        if sha not in self.state.commits:
            self.answer(404, b"{}", X_Error_Code="RevisionNotFound")
        elif kind == "tree":
            self.send_tree(sha, parse_qs(parts.query))
        elif kind == "resolve":
            self.send_file(sha, unquote(path[1:]))
        else:
            self.answer(200, json.dumps({"id": REPOSITORY, "sha": sha, "siblings": []}).encode())

    do_HEAD = do_GET  # noqa: N815 - as the library has it

    def send_tree(self, sha: str, query: dict[str, list[str]]) -> None:
        files = self.state.commits[sha]
        folders = {path[: at.start()] for path in files for at in re.finditer("/", path)}
        rows = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in sorted(folders)]
        for path, data in sorted(files.items()):
            row = {"type": "file", "oid": hashlib.sha1(data).hexdigest(), "size": len(data), "path": path}
            large = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            rows.append(row | ({"lfs": large} if len(data) >= LARGE else {}))
        start = int(query.get("cursor", ["0"])[0])
        following = start if self.state.endless and start else start + PAGE
        more = {}
        if following < len(rows):
            url = (
                f"{self.state.url}/api/datasets/{REPOSITORY}/tree/{sha}?recursive=true&expand=false&cursor={following}"
            )
            more["Link"] = f'<{url}>; rel="next"'
        self.answer(200, json.dumps(rows[start : start + PAGE]).encode(), **more)

    def send_file(self, sha: str, path: str) -> None:
        data = self.state.commits[sha].get(path)
        if data is None:
            self.answer(404, b"", X_Error_Code="EntryNotFound")
            return
        etag = f'"{hashlib.sha1(data).hexdigest()}"'
        about = {"X_Repo_Commit": sha, "X_Linked_Size": str(len(data)), "X_Linked_Etag": etag, "ETag": etag}
        if len(data) >= LARGE:
            where = f"{self.state.files_url}/{sha}/{quote(path)}?Expires=4102444800&{self.state.signatures[-1]}"
            self.answer(302, b"", Location=where, **about)
        else:
            self.answer_span(data, **about)


class FilesHandler(Handler):
    """The other server: it takes what the Hub has signed, and no token."""

    def do_GET(self) -> None:
        self.state.requests.append(f"files {self.path}")
        parts = urlsplit(self.path)
        _, sha, path = unquote(parts.path).split("/", 2)
        if "Authorization" in self.headers:
            self.answer(400, b"")
        elif not any(parts.query.endswith(signature) for signature in self.state.signatures):
            self.answer(403, b"")
        else:
            self.answer_span(self.state.commits[sha][path])

    do_HEAD = do_GET  # noqa: N815 - as the library has it


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()
    with web_server(Handler, hub) as port, web_server(FilesHandler, hub) as port_of_files:
        hub.url, hub.files_url = (f"http://127.0.0.1:{number}" for number in (port, port_of_files))
        yield hub
