"""A reverse proxy before an S3 or GCS server that is slow, or does wrong, on request.

It changes nothing else: ranges, conditions and bodies pass as they are, and bodies are streamed. So does the Host
header, which S3 signs, and from which the GCS server makes the address where a resumable upload goes on.

It runs in a thread of this process and carries a thousand small requests a second or more.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter, deque
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from multidict import CIMultiDict
from yarl import URL

from .rules import Answer, CutUpload, Fault, Flip, FlipUpload, InAnswer, InUpload, Request, Reset, Stall, Truncate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from types import TracebackType
    from typing import Self

    from aiohttp import ClientResponse
    from multidict import CIMultiDictProxy

__all__ = [
    "Answer",
    "CutUpload",
    "Fault",
    "FaultProxy",
    "Flip",
    "FlipUpload",
    "Request",
    "Reset",
    "Stall",
    "Traffic",
    "Truncate",
]

T = TypeVar("T")

_PIECE = 1 << 18
_REMEMBERED = 100_000
# Of one connection, not of the message (RFC 9110, 7.6.1); aiohttp frames bodies itself.
_HOP_BY_HOP = {
    "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect",
}  # fmt: skip
_OWN_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


@dataclass
class Traffic:
    """What passed since the start or `FaultProxy.forget`.

    Attributes:
        requests: How many, by method.
        faults: Faults served, by the name of their action.
        most_at_once: The highest number of requests in flight.
        seen: The last 100,000 requests, oldest first.
    """

    requests: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    seen: deque[Request] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


class FaultProxy:
    """A proxy that runs from the start of its ``with`` block to its end.

    Attributes:
        url: Its own URL, in the place of the server's.
        latency: Seconds added to each request before the server sees it.
        faults: What goes wrong; at each request the first that strikes. Set the whole list, from any thread.
        traffic: What passed; it is for reading, and complete for a request once its client has the answer.
    """

    def __init__(self, upstream: str) -> None:
        """Prepare one before the server at the URL ``upstream``."""
        self.url = ""
        self.latency = 0.0
        self.faults: list[Fault] = []
        self.traffic = Traffic()
        self._upstream = upstream.rstrip("/")
        self._in_flight = 0

    def __enter__(self) -> Self:
        """Start it, on a port that is free."""
        self._thread = _LoopThread("fault proxy")
        self._thread.run(self._open())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it, with all of its connections."""
        self._thread.run(self._shut())
        self._thread.close()

    def forget(self) -> None:
        """Begin to count anew."""
        self.traffic = Traffic(most_at_once=self._in_flight)

    async def _open(self) -> None:
        self._session = ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=10),
            auto_decompress=False,
            skip_auto_headers=_OWN_HEADERS,
            timeout=ClientTimeout(total=None),
            read_bufsize=_PIECE,
        )
        self._runner = web.ServerRunner(
            web.Server(self._serve, access_log=None, auto_decompress=False), shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _shut(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.traffic.requests[request.method] += 1
        self._in_flight += 1
        self.traffic.most_at_once = max(self.traffic.most_at_once, self._in_flight)
        try:
            return await self._handle(request)
        finally:
            self._in_flight -= 1

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        head = request.headers
        wanted = Request.of(request.method, request.raw_path, head.get("Range", ""), head.get("Content-Length", ""))
        self.traffic.seen.append(wanted)
        fault = next((fault for fault in self.faults if fault.strikes(wanted)), None)
        if self.latency:
            await asyncio.sleep(self.latency)
        if head.get("Expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if fault is not None and isinstance(fault.action, Answer):
            self._count(fault)
            return await self._answer(request, fault.action)
        if fault is not None and isinstance(fault.action, Reset) and not fault.action.served:
            self._count(fault)
            return _hang_up(request)
        return await self._forward(request, fault)

    async def _answer(self, request: web.BaseRequest, action: Answer) -> web.Response:
        async for _ in self._upload(request):  # a client that is still sending would not read the answer
            pass
        code = "SlowDown" if action.status in (429, 503) else "InternalError"
        return web.Response(
            status=action.status,
            text=f"<Error><Code>{code}</Code><Message>Asked for by a test</Message></Error>",
            content_type="application/xml",
        )

    async def _forward(self, request: web.BaseRequest, fault: Fault | None) -> web.StreamResponse:
        url = URL(self._upstream + request.raw_path, encoded=True)
        body = self._upload(request, fault) if request.can_read_body else None
        head = _passed(request.headers)
        try:
            async with self._session.request(
                request.method, url, headers=head, data=body, allow_redirects=False
            ) as answer:
                if fault is not None and isinstance(fault.action, Reset):
                    self._count(fault)
                    return _hang_up(request)
                return await self._relay(request, answer, fault)
        except (_ClientGoneError, ClientError, OSError):
            return _hang_up(request)

    async def _relay(self, request: web.BaseRequest, answer: ClientResponse, fault: Fault | None) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=_passed(answer.headers))
        action = self._takes_effect(fault, request.method, answer)
        if isinstance(action, Truncate) and action.honest:
            response.headers["Content-Length"] = str(action.at)
        try:
            await response.prepare(request)
        except ConnectionError as error:
            raise _ClientGoneError from error
        async for piece in _wrong(answer.content.iter_any(), action, answer.content_length or 0):
            try:
                await response.write(piece)
            except ConnectionError as error:
                raise _ClientGoneError from error
        if isinstance(action, Truncate) and not action.honest and request.transport is not None:
            request.transport.close()  # after what was written
        return response

    def _takes_effect(self, fault: Fault | None, method: str, answer: ClientResponse) -> InAnswer | None:
        if fault is None or not isinstance(fault.action, InAnswer):
            return None
        length = 0 if method == "HEAD" else answer.content_length
        if length is not None and length <= (getattr(fault.action, "at", 0) or 0):
            fault.served -= 1
            return None
        self._count(fault)
        return fault.action

    def _count(self, fault: Fault) -> None:
        self.traffic.faults[type(fault.action).__name__] += 1

    async def _upload(self, request: web.BaseRequest, fault: Fault | None = None) -> AsyncIterator[bytes]:
        start = 0
        async for piece in request.content.iter_any():
            within = fault.action.at - start if fault is not None and isinstance(fault.action, InUpload) else -1
            start += len(piece)
            if fault is None or not 0 <= within < len(piece):
                yield piece
                continue
            self._count(fault)
            yield piece[:within]
            if isinstance(fault.action, CutUpload):
                raise ConnectionAbortedError
            yield bytes([piece[within] ^ 1]) + piece[within + 1 :]


class _ClientGoneError(Exception):
    """The client has closed its connection, as it may."""


async def _wrong(pieces: AsyncIterator[bytes], action: InAnswer | None, length: int) -> AsyncIterator[bytes]:
    """The pieces of a body of ``length`` bytes as ``action`` has them."""
    start = 0
    async for piece in pieces:
        at = getattr(action, "at", 0)
        at = length // 2 if at is None else at
        within = at - start  # where in this piece it happens
        start += len(piece)
        if action is None or not 0 <= within < len(piece):
            yield piece
        elif isinstance(action, Truncate):
            yield piece[:within]
            return
        elif isinstance(action, Flip):
            yield piece[:within] + bytes([piece[within] ^ 1]) + piece[within + 1 :]
        else:
            yield piece[:within]
            await asyncio.sleep(action.seconds)
            yield piece[within:]


def _passed(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    passed = CIMultiDict(headers)
    dropped = _HOP_BY_HOP | {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    for name in {name.lower() for name in passed} & dropped:
        passed.popall(name)
    return passed


def _hang_up(request: web.BaseRequest) -> web.Response:
    """Break the client's connection with a TCP reset; what is returned reaches nobody."""
    transport = request.transport
    if transport is not None:
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


class _LoopThread:
    """An event loop in a thread of its own, beside a program that blocks; it runs until it is closed."""

    def __init__(self, name: str) -> None:
        """Start it."""
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[object, object, T], seconds: float = 10) -> T:
        """Run ``work`` in the loop and return what it gives; may be called from any thread but the loop's."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def close(self) -> None:
        """Cancel what runs in the loop, and end the thread."""
        self.run(_cancel_the_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_the_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
