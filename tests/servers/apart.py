"""A `servers.faults.FaultProxy` that is only slow, in a process of its own: for measurements.

As a program it is given the server's URL, the latency and the bandwidth, prints its own URL, and runs until killed.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .faults import FaultProxy
from .processes import Process

if TYPE_CHECKING:
    from collections.abc import Iterator

_READY_SECONDS = 30


@contextmanager
def slow(upstream: str, latency: float = 0, bandwidth: float = 0) -> Iterator[str]:
    """Start one before the server at ``upstream``, and give its URL.

    Args:
        upstream: The server's URL.
        latency: Seconds added to each request.
        bandwidth: Bytes of bodies per second, of all connections together, each way; 0 is no limit.

    Raises:
        ServerError: It did not come up.
    """
    with tempfile.TemporaryDirectory(prefix="proxy-") as folder:
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "servers.apart", upstream, str(latency), str(bandwidth)]
        process = Process("slow proxy", command, Path(folder), {"PYTHONPATH": path})
        process.start()
        try:
            process.wait_until(lambda: bool(_url(process.log)), _READY_SECONDS)
            yield _url(process.log)
        finally:
            process.kill()


def _url(log: Path) -> str:
    match = re.search(r"^(http://\S+)\n", log.read_text(), re.MULTILINE)
    return match[1] if match else ""


if __name__ == "__main__":
    with FaultProxy(sys.argv[1], latency=float(sys.argv[2]), bandwidth=float(sys.argv[3])) as proxy:
        sys.stdout.write(f"{proxy.url}\n")
        sys.stdout.flush()
        threading.Event().wait()
