"""A proxy that changes a bit of uploads on their way to the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .faults import FaultProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import web

    from .rules import Fault


class FlippingProxy(FaultProxy):
    """Changes one bit of each long upload, as often as it is told to.

    Attributes:
        flips: Uploads that are still to be changed.
        at_least: Only bodies of so many bytes.
        at: Which byte; behind the names in the body of a multipart upload.
    """

    flips = 0
    at_least = 2000
    at = 1500

    async def _upload(self, request: web.BaseRequest, fault: Fault | None = None) -> AsyncIterator[bytes]:
        wrong = (request.content_length or 0) >= self.at_least and self.flips > 0
        self.flips -= wrong
        start = 0
        async for piece in super()._upload(request, fault):
            at = self.at - start
            start += len(piece)
            yield piece[:at] + bytes([piece[at] ^ 1]) + piece[at + 1 :] if wrong and 0 <= at < len(piece) else piece
