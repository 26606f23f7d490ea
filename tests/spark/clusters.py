"""Trees that are worth a cluster, and ways to hurt it while it works."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from builder.trees import contents
from stoker.builder import BuildOptions, BuildSettings
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stoker.builder import BuildReport

SHARDS = 6
REJECTS = 1
COMMAND = [sys.executable, "-m", "stoker.cli.main", "build"]
OPTIONS = ["--shards", str(SHARDS), "--resize", "short:64", "--max-rejects", str(REJECTS)]
"""The settings of `settings_of`, as a person types them."""

_TEMPORARY = re.compile(r".*\.tmp-(?P<pid>\d+)-[0-9a-f]+")
_SECONDS = 60


def write_source(root: Path, images: int = 180) -> Path:
    """Images that take some milliseconds each, and a file that is none."""
    photographs = [_photograph(seed) for seed in range(8)]
    files = {f"class{number % 3}/{number:04}.JPEG": photographs[number % 8] for number in range(images)}
    return write_files(root, files | {"class1/letter.JPEG": b"no image"})


def settings_of(source: Path | str, shards: int = SHARDS) -> BuildSettings:
    """The settings of `OPTIONS`."""
    return BuildOptions(resize="short:64", shards=shards, max_rejects=REJECTS).settings(str(source))


def same(report: BuildReport, destination: Path, local: tuple[BuildReport, Path]) -> None:
    """See that a build has become what the engine for one machine makes, and that nothing else is left."""
    assert (report.outcome, report.manifest, report.rejects) == ("built", local[0].manifest, local[0].rejects)
    assert contents(destination) == contents(local[1])


def _photograph(seed: int) -> bytes:
    coarse = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(coarse).resize((640, 480), Image.Resampling.BICUBIC).save(file, "JPEG")
    return file.getvalue()


class Trouble:
    """Waits for an attempt at a shard, stops its process in the midst of it, and then does something to it.

    Args:
        destination: Where the attempt writes.
        then: Called with the id of the stopped process.
    """

    def __init__(self, destination: Path, then: Callable[[int], None]) -> None:
        self._destination = destination
        self._then = then
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._wait)
        self.pid = 0
        """The process that was stopped."""

    def __enter__(self) -> Trouble:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self.pid, "no attempt was seen"

    def _wait(self) -> None:
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and not self._ended.is_set():
            for path in self._destination.glob("train-*.tmp-*"):
                match = _TEMPORARY.fullmatch(path.name)
                if match is not None:
                    os.kill(int(match["pid"]), signal.SIGSTOP)
                    self.pid = int(match["pid"])
                    self._then(self.pid)
                    return
            time.sleep(0.002)
