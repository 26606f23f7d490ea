"""A server as a process: started, waited for until it really answers, and gone afterwards whatever happens."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# The shell becomes the server, so that its process id is the server's. What it leaves behind waits for the end of a
# pipe that only our process holds, and then kills the whole group: no server outlives a killed test run.
_GUARDED = 'exec 3<&0 </dev/null; { read -r _ <&3; kill -s KILL -- -$$; } >/dev/null 2>&1 & exec "$@" 3<&-'
_LOG_TAIL = 3000
_TRIES = 3
_POLL_SECONDS = 0.02


class ServerError(RuntimeError):
    """A server did not come up, or cannot be had here; the message says which, why, and what its log said last."""


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """So many TCP ports on which nobody listens.

    They lie below those that systems give to outgoing connections, so that a server finds its port free again after a
    restart in the midst of a client's requests.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Process:
    """One process of a server, in a process group of its own, with its output in a file.

    It may be started and killed from any thread, but by one at a time.

    Attributes:
        name: What error messages call it.
        command: Its program and arguments, for the next `start`.
        log: The file with what it wrote to standard output and error, of all its lives.
    """

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str] = {}) -> None:
        """Prepare it; ``environment`` is added to ours, ``folder`` must exist and is its working directory."""
        self.name = name
        self.log = folder / f"{name.replace(' ', '-')}.log"
        self.command = list(command)
        self._folder = folder
        self._environment = dict(environment)
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id.

        Raises:
            ServerError: It has not been started, or was killed.
        """
        if self._running is None:
            raise ServerError(f"{self.name} is not running")
        return self._running.pid

    @property
    def started(self) -> bool:
        """Whether it was started and not killed since; it may have ended by itself."""
        return self._running is not None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Start it; it is not ready yet."""
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                ["/bin/sh", "-c", _GUARDED, "sh", *self.command],
                cwd=self._folder,
                env={**os.environ, **self._environment},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until ``ready()`` is true; an OSError of it means not yet.

        Raises:
            ServerError: The process ended, or was not ready in time. The process is killed then.
        """
        deadline = time.monotonic() + seconds
        reason = ""
        while self.alive:
            try:
                if ready():
                    return
            except OSError as error:
                reason = f"; the last try said: {error}"
            if time.monotonic() > deadline:
                self.kill()
                raise ServerError(f"{self.name} was not ready within {seconds:g} s{reason}\n{self.log_tail()}")
            time.sleep(_POLL_SECONDS)
        status = self._running.returncode if self._running is not None else None
        self.kill()
        raise ServerError(f"{self.name} ended with status {status} before it was ready\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The end of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:] if self.log.exists() else ""
        return f"{self.command[0]} wrote last, in {self.log}:\n{text}"

    def kill(self) -> None:
        """Kill it and its group with SIGKILL, and wait for its end. Nothing happens if there is nothing to kill."""
        running, self._running = self._running, None
        if running is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        if running.stdin is not None:
            running.stdin.close()


class Server(Protocol):
    """What `started` starts."""

    def start(self) -> None:
        """Start it, and wait until it is ready."""

    def kill(self) -> None:
        """End it, however far it has come."""


_Server = TypeVar("_Server", bound=Server)


@contextlib.contextmanager
def started(name: str, make: Callable[[Path], _Server]) -> Iterator[_Server]:
    """A server that is ready, in a folder of its own; both are gone afterwards.

    One that does not come up is tried anew, with another folder and other ports: somebody may have taken one meanwhile.

    Args:
        name: What the folder is called.
        make: Prepares a server in a folder.

    Raises:
        ServerError: It did not come up in three tries.
    """
    for attempt in range(_TRIES):
        with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as scratch:
            server = make(Path(scratch))
            try:
                try:
                    server.start()
                except ServerError:
                    if attempt == _TRIES - 1:
                        raise
                    continue
                yield server
                return
            finally:
                server.kill()
