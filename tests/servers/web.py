"""What the web servers have in common that tests write: answers, ranges, and a thread that ends."""

from __future__ import annotations

import functools
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class WebHandler(BaseHTTPRequestHandler):
    """Answers one request after another of a connection; ``state`` is what the connections share."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, state: Any, *args: Any) -> None:
        self.state = state
        super().__init__(*args)

    @property
    def span(self) -> tuple[int, int] | None:
        """Begin and end of the bytes that are asked for; None: all."""
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        return None if match is None else (int(match[1]), int(match[2]) + 1)

    def answer(self, status: int, body: bytes = b"", **headers: str | int) -> None:
        """Answer with headers whose names have underscores for dashes."""
        self.send_response(status)
        for name, value in {"Content_Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def answer_span(self, data: bytes, **headers: str | int) -> None:
        """Answer with what is asked for of a file, as a good server does."""
        span, total = self.span, len(data)
        if span is None:
            self.answer(200, data, **headers)
        elif span[0] >= total:
            self.answer(416, Content_Range=f"bytes */{total}")
        else:
            part = data[slice(*span)]
            shown = f"bytes {span[0]}-{span[0] + len(part) - 1}/{total}"
            self.answer(206, part, **{"Content_Range": shown, **headers})

    def log_message(self, *args: object) -> None:
        """A test prints nothing."""


@contextmanager
def web_server(handler: type[WebHandler], state: object, address: str = "127.0.0.1") -> Iterator[int]:
    """Serve with threads; yield the port."""
    with ThreadingHTTPServer((address, 0), functools.partial(handler, state)) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
