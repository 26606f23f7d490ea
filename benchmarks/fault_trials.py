"""A server, a place in it, and builds into that place, each a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stoker.storage import RemotePath, location
from tests.servers import gcs, hdfs, s3
from tests.servers.flipping import FlippingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BUILD = ("build", "--shards", "12", "--threads", "2")
# The command itself; only that a store which is gone is given up after ten seconds instead of two minutes.
_STOKER = """
import sys
from stoker.cli.main import main
from stoker.storage import pace
pace._SECONDS = 10
sys.exit(main())
"""


@dataclass
class Servers:
    """One kind of store.

    Attributes:
        kind: ``s3``, ``gs`` or ``hdfs``.
        server: Runs; may be killed and started.
        proxy: Before it, and what builds talk to; HDFS has none.
        folder: For scratch.
    """

    kind: str
    server: Any
    proxy: FlippingProxy | None
    folder: Path

    @classmethod
    @contextmanager
    def running(cls, kind: str, folder: Path) -> Iterator[Servers]:
        """Start one; this process can read from it, past the proxy."""
        with contextlib.ExitStack() as stack:
            if kind == "hdfs":
                server: Any = stack.enter_context(hdfs.running())
                proxy = None
            else:
                server = stack.enter_context(s3.running() if kind == "s3" else gcs.running(keeps=True))
                proxy = stack.enter_context(FlippingProxy(server.endpoint))
            os.environ.update(server.environment())
            yield cls(kind, server, proxy, folder)

    def place(self) -> RemotePath:
        """Return an empty place."""
        root = self.server.url if self.kind == "hdfs" else f"{self.kind}://{self.server.make_bucket()}"
        found = location(f"{root}/{uuid.uuid4().hex[:8]}/set")
        assert isinstance(found, RemotePath)
        return found

    def environment(self) -> dict[str, str]:
        """What builds find the store by."""
        through: dict[str, str] = (
            self.server.environment() if self.proxy is None else self.server.environment(self.proxy.url)
        )
        return through


@dataclass
class Trial:
    """One fault and the builds that meet it.

    Attributes:
        servers: The store.
        source: The images.
        whole: The dataset as it is built on a disk.
        place: Where it is built to here.
    """

    servers: Servers
    source: Path
    whole: Path
    place: RemotePath = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.servers.place()

    def start(self, more: Sequence[str] = (), environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Begin a build, or go on with it."""
        command = [sys.executable, "-c", _STOKER, *BUILD, str(self.source), str(self.place), *more]
        about = os.environ | self.servers.environment() | (environment or {})
        return subprocess.Popen(command, env=about, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def build(self, environment: dict[str, str] | None = None) -> str:
        """Build to the end, and return what became of it."""
        process = self.start(environment=environment)
        _, said = process.communicate(timeout=300)
        return outcome_of(process.returncode, said)

    def objects(self) -> dict[str, int]:
        """Return all objects of the place, by name."""
        below = len(self.place.key) + 1
        entries = list(self.place.store.entries(self.place.key.partition("/")[0]))
        return {entry.key[below:]: entry.size_bytes for entry in entries}

    def result(self) -> tuple[bool, list[str]]:
        """Run the command once more where it has not finished, and compare with the disk.

        Returns:
            Whether every file is there with the right bytes, and which others there are.
        """
        if not (self.place / "manifest.json").exists():
            self.build()
        names = [path.relative_to(self.whole).as_posix() for path in self.whole.rglob("*") if path.is_file()]
        there = self.objects()
        same = all(name in there and self._same(name) for name in names)
        return same and self._id(self.place) == self._id(self.whole), sorted(there.keys() - set(names))

    def _same(self, name: str) -> bool:
        return (self.place / name).read_bytes() == (self.whole / name).read_bytes()

    @staticmethod
    def _id(place: Path | RemotePath) -> str:
        return str(json.loads((place / "manifest.json").read_bytes())["dataset_id"])


def outcome_of(code: int, said: str) -> str:
    """Return what a build did, in a few words."""
    if code == 0:
        return "finished"
    resumable = "resumable" if "run the same command again" in said or "then run again" in said else "NOT RESUMABLE"
    problem = re.search(r"error: (.*)", said)
    what = problem[1] if problem else said[-60:]
    short = next((word for word in _KNOWN if word in what), what[:30])
    return f"exit {code}, {resumable}: {short}"


_KNOWN = ("No space left", "File too large", "does not allow", "tried", "with other settings")
