"""A proxy that knows nothing but TCP: it adds latency, and breaks connections on demand."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING

from .loops import LoopThread

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_PIECE = 1 << 16
_PIECES_UNDER_WAY = 512  # of one connection and direction


class TcpProxy:
    """A proxy that runs from the start of its ``with`` block to its end.

    Attributes:
        host: Its address.
        port: Its port.
        latency: Seconds added to each round trip, and once to each new connection.
        refusing: Whether new connections are reset as soon as they are there.
        connections: How many it has taken.
        received: Bytes that clients were sent.
        sent: Bytes that clients sent.
    """

    def __init__(self, port: int, *, latency: float = 0, at: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        """Prepare one before a server at 127.0.0.1:``port``, to listen ``at`` an address and port; 0 is any."""
        self.host, self.port = at
        self.latency = latency
        self.refusing = False
        self.connections = self.received = self.sent = 0
        self._upstream = port
        self._open: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        """Start it."""
        self._thread = LoopThread("TCP proxy")
        self._thread.run(self._listen())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it, and break its connections."""
        self._thread.run(self._shut())
        self._thread.close()

    def reset(self) -> None:
        """Break all connections that are open now, each with a TCP reset on both sides."""
        self._thread.run(self._reset())

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, backlog=256)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _shut(self) -> None:
        self._server.close()
        await self._reset()

    async def _reset(self) -> None:
        for writer in list(self._open):
            _break(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refusing:
            _break(writer)
            return
        both = {writer}
        self._open |= both
        with contextlib.suppress(asyncio.CancelledError):  # the end of the proxy; asyncio would log it
            await self._connect(reader, writer, both)
        for stream in both:
            stream.close()
        self._open -= both

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, both: set[asyncio.StreamWriter]
    ) -> None:
        try:
            await asyncio.sleep(self.latency)
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
            both.add(upstream_writer)
            self._open |= both
            there = self._carry(reader, upstream_writer, to_client=False)
            back = self._carry(upstream_reader, writer, to_client=True)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(there)
                tasks.create_task(back)
        except* OSError:  # either side is gone: the other one must learn it
            for stream in both:
                _break(stream)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_client: bool) -> None:
        # What waits for its time must not keep what comes behind it from being read: a delay, not a bandwidth.
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_PIECES_UNDER_WAY)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._read(reader, waiting, to_client=to_client))
            tasks.create_task(_write(waiting, writer))

    async def _read(
        self, reader: asyncio.StreamReader, waiting: asyncio.Queue[tuple[float, bytes]], *, to_client: bool
    ) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            piece = await reader.read(_PIECE)
            if to_client:
                self.received += len(piece)
            else:
                self.sent += len(piece)
            await waiting.put((clock() if to_client else clock() + self.latency, piece))
            if not piece:
                return


async def _write(waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
    clock = asyncio.get_running_loop().time
    while True:
        due, piece = await waiting.get()
        if due > clock():
            await asyncio.sleep(due - clock())
        if not piece:
            writer.write_eof()
            return
        writer.write(piece)
        await writer.drain()


def _break(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None and not writer.is_closing():
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
