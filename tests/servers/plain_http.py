"""Requests to a server on this machine without any proxy of the environment, without retries, without opinions."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Reply:
    """What came back; names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(method: str, url: str, body: bytes = b"", headers: Mapping[str, str] = {}, seconds: float = 10) -> Reply:
    """Make one request on a connection of its own.

    Raises:
        OSError: No connection, or it broke.
        http.client.HTTPException: The answer was cut short, or is no HTTP.
    """
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=seconds)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, target or "/", body=body or None, headers=dict(headers))
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()
