"""A web server on this machine, under several names, that has images and behaves by the first part of a path."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import TYPE_CHECKING

from servers.web import WebHandler, web_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOSTS = ("127.0.0.1", "localhost", "127.0.0.2", "127.0.0.3")
REASONS = {
    "gone": "HTTP 404 Not Found",
    "page": "not an image but text: it starts with '<html></html>'",
    "forbidden": "its server forbids this use (X-Robots-Tag: noai)",
    "broken": "HTTP 500 Internal Server Error",
    "short": "the connection ended before all of it was there",
}
"""What a build says of a path that begins so."""


@dataclass
class PhotoServer:
    """What it has and what it was asked for.

    Attributes:
        images: By the last part of a path.
        port: Its port, at every address of this machine.
        seen: Requests, by path.
        pause: Seconds before each answer.
        slow: A path that is not answered until ``held`` is set.
        ends: Set when the server ends, so that no thread of it waits on.
    """

    images: Mapping[str, bytes]
    port: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    pause: float = 0.0
    slow: str = ""
    held: Event = field(default_factory=Event)
    ends: Event = field(default_factory=Event)
    lock: Lock = field(default_factory=Lock)

    def url(self, path: str, host: int = 0) -> str:
        return f"http://{HOSTS[host % len(HOSTS)]}:{self.port}/{path}"


class Handler(WebHandler):
    state: PhotoServer

    def do_GET(self) -> None:
        with self.state.lock:
            self.state.seen[self.path] += 1
        self.state.ends.wait(self.state.pause)
        if self.path == self.state.slow:
            self.state.held.wait(30)
        kind, _, name = self.path.strip("/").partition("?")[0].rpartition("/")
        image = self.state.images.get(name)
        if kind == "gone" or image is None:
            self.answer(404, b"")
        elif kind == "broken":
            self.answer(500, b"")
        elif kind == "moved":
            self.answer(302, b"", Location=f"/{name}")
        elif kind == "page":
            self.answer(200, b"<html></html>", Content_Type="text/html")
        elif kind == "forbidden":
            self.answer(200, image, X_Robots_Tag="noai")
        elif kind == "short":
            self.answer(200, image[:-9], Content_Length=str(len(image)))
            self.close_connection = True
        else:
            self.answer(200, image)


@contextmanager
def serving(images: Mapping[str, bytes]) -> Iterator[PhotoServer]:
    photos = PhotoServer(images)
    with web_server(Handler, photos, "") as photos.port:
        try:
            yield photos
        finally:
            photos.ends.set()
            photos.held.set()
