"""Writing to Google Cloud Storage: one request each, since only one layer retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from servers.web import WebHandler, web_server
from stoker.storage.backend import StoreError
from stoker.storage.objects import GcsBackend

if TYPE_CHECKING:
    from collections.abc import Callable

WRITES: dict[str, Callable[[GcsBackend], object]] = {
    "put": lambda bucket: bucket.put("key", b"abc"),
    "long": lambda bucket: bucket.put("key", bytes(60 * 2**20)),
    "create": lambda bucket: bucket.create("key", b"abc"),
    "delete": lambda bucket: bucket.delete("key"),
}


@pytest.mark.slow
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    ("status", "expected", "is_busy"),
    [(503, StoreError, True), (429, StoreError, True), (500, StoreError, False), (401, PermissionError, None)],
)
def test_a_request_that_fails_is_made_once(status: int, expected: type[Exception], write: str, is_busy: object) -> None:
    asked: list[str] = []

    class Handler(WebHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.answer(status, b'{"error": {"message": "Invalid Credentials"}}')

        do_DELETE = do_GET = do_PUT = do_POST  # noqa: N815 - as the library has it

    with web_server(Handler, None) as port:
        bucket = GcsBackend("gs://photos", {"endpoint": f"http://127.0.0.1:{port}", "anonymous": True})
        with pytest.raises(expected) as failure:
            WRITES[write](bucket)
    assert getattr(failure.value, "busy", None) is is_busy
    assert len(asked) == 1
