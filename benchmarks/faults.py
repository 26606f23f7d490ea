"""What becomes of builds into real S3, Google Cloud Storage and HDFS servers when something goes wrong.

    python -m benchmarks.faults            # everything, some minutes
    python -m benchmarks.faults s3 gs      # some stores

Each line of the table is one fault: what the command said, and what was in the store once the same command had run to
its end: whether that is byte for byte the dataset that is built on a disk, and which other objects lie there.
The servers are those of the tests (``tests/servers``); HDFS needs ``STOKER_TEST_HDFS_JARS``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker.cli.main import main as stoker
from stoker.storage import StoreLocation, location
from tests.servers import gcs, hdfs, s3
from tests.servers.faults import Answer, CutUpload, Fault, FaultProxy, FlipUpload, Reset, Stall, Truncate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.servers.rules import BeforeAnswer, InAnswer


BUILD = ("build", "--shards", "12", "--threads", "2")
# The command itself; only that a store which is gone is given up after ten seconds instead of two minutes.
_STOKER = """
import sys
from stoker.cli.main import main
from stoker.storage import retrying
retrying._SECONDS = 10
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
    proxy: FaultProxy | None
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
                proxy = stack.enter_context(FaultProxy(server.endpoint))
            os.environ.update(server.environment())
            yield cls(kind, server, proxy, folder)

    def make_folder(self) -> StoreLocation:
        """Return an empty folder."""
        root = self.server.url if self.kind == "hdfs" else f"{self.kind}://{self.server.make_bucket()}"
        folder = location(f"{root}/{uuid.uuid4().hex[:8]}/set")
        assert isinstance(folder, StoreLocation)
        return folder

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
        folder: Where it is built to here.
    """

    servers: Servers
    source: Path
    whole: Path
    folder: StoreLocation = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.servers.make_folder()

    def start(self, more: Sequence[str] = (), environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Begin a build, or go on with it."""
        command = [sys.executable, "-c", _STOKER, *BUILD, str(self.source), str(self.folder), *more]
        about = os.environ | self.servers.environment() | (environment or {})
        return subprocess.Popen(command, env=about, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def build(self, environment: dict[str, str] | None = None) -> str:
        """Build to the end, and return what became of it."""
        process = self.start(environment=environment)
        _, stderr = process.communicate(timeout=300)
        return outcome_of(process.returncode, stderr)

    def objects(self) -> dict[str, int]:
        """Return all objects of the folder, by name."""
        below = len(self.folder.key) + 1
        entries = list(self.folder.store.entries(self.folder.key.partition("/")[0]))
        return {entry.key[below:]: entry.size_bytes for entry in entries}

    def result(self) -> tuple[bool, list[str]]:
        """Run the command once more where it has not finished, and compare with the disk.

        Returns:
            Whether every file is there with the right bytes, and which others there are.
        """
        if not (self.folder / "manifest.json").exists():
            self.build()
        names = [path.relative_to(self.whole).as_posix() for path in self.whole.rglob("*") if path.is_file()]
        there = self.objects()
        same = all(name in there and self._same(name) for name in names)
        return same and self._id(self.folder) == self._id(self.whole), sorted(there.keys() - set(names))

    def _same(self, name: str) -> bool:
        return (self.folder / name).read_bytes() == (self.whole / name).read_bytes()

    @staticmethod
    def _id(folder: Path | StoreLocation) -> str:
        return str(json.loads((folder / "manifest.json").read_bytes())["dataset_id"])


def outcome_of(code: int, stderr: str) -> str:
    """Return what a build did, in a few words."""
    if code == 0:
        return "finished"
    resumable = "resumable" if "run the same command again" in stderr or "then run again" in stderr else "NOT RESUMABLE"
    problem = re.search(r"error: (.*)", stderr)
    what = problem[1] if problem else stderr[-60:]
    short = next((word for word in _KNOWN if word in what), what[:30])
    return f"exit {code}, {resumable}: {short}"


_KNOWN = ("No space left", "File too large", "does not allow", "tried", "with other settings")


_ALL = ("s3", "gs", "hdfs")
_HTTP = ("s3", "gs")
_KILLS = 12


def passing(action: BeforeAnswer | InAnswer, **conditions: Any) -> Callable[[Trial], str]:
    """Return a fault that strikes some of the requests."""

    def fault(trial: Trial) -> str:
        assert trial.servers.proxy is not None
        trial.servers.proxy.faults = [Fault(action, seed=1, **conditions)]
        outcome = trial.build()
        served = trial.servers.proxy.faults[0].served
        trial.servers.proxy.faults = []
        return f"{outcome}; {served} times"

    return fault


def refused(trial: Trial) -> str:
    """From the twelfth upload on, the store says that this is forbidden."""
    assert trial.servers.proxy is not None
    trial.servers.proxy.faults = [Fault(Answer(403), at_least=1000, nth=12)]
    outcome = trial.build()
    trial.servers.proxy.faults = []
    return outcome


def killed(trial: Trial) -> str:
    """The client is killed with SIGKILL again and again, each time after it has begun to write."""
    rng, kills = random.Random(3), 0
    while kills < _KILLS:
        before = trial.objects()
        process = trial.start()
        while process.poll() is None and trial.objects() == before:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        process.kill()
        if process.wait() == 0:
            break
        kills += 1
    return f"killed {kills} times, then {trial.build()}"


def restarted(trial: Trial) -> str:
    """The server is killed in the middle of a build, and started again."""
    process = _begun(trial)
    trial.servers.server.kill()
    time.sleep(1)
    trial.servers.server.start()
    _, stderr = process.communicate(timeout=300)
    return outcome_of(process.returncode, stderr)


def gone(trial: Trial) -> str:
    """The server is killed and comes back when the build has given up."""
    process = _begun(trial)
    trial.servers.server.kill()
    _, stderr = process.communicate(timeout=300)
    trial.servers.server.start()
    return outcome_of(process.returncode, stderr)


def scratch_full(trial: Trial) -> str:
    """The scratch disk is full: a tmpfs of 64 KiB, or a limit on the length of files where none can be mounted."""
    folder = trial.servers.folder / f"scratch-{trial.servers.kind}"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64_000, before[1]))
    try:
        return trial.build({"TMPDIR": str(folder)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def two_at_once(trial: Trial) -> str:
    """Two builds of the same, and one with another seed, at the same time."""
    same = [trial.start(), trial.start()]
    while not (trial.folder / ".stoker-build").exists() and any(process.poll() is None for process in same):
        time.sleep(0.01)
    other = trial.start(["--seed", "5"])
    outputs = [process.communicate(timeout=300)[1] for process in (*same, other)]
    first, second, third = (outcome_of(p.returncode, text) for p, text in zip((*same, other), outputs, strict=True))
    refused = "third refused" if "with other settings" in third else f"third {third}"
    return f"{first}, {second}; {refused}"


def interrupted(trial: Trial) -> str:
    """Ctrl-C, while the store does not answer."""
    assert trial.servers.proxy is not None
    process = _begun(trial)
    trial.servers.proxy.faults = [Fault(Reset())]
    time.sleep(1)
    process.send_signal(2)
    began = time.monotonic()
    _, stderr = process.communicate(timeout=300)
    trial.servers.proxy.faults = []
    return f"{outcome_of(process.returncode, stderr).partition(':')[0]}, in {time.monotonic() - began:.1f} s"


def without_data_node(trial: Trial) -> str:
    """HDFS loses its only DataNode for some seconds."""
    process = _begun(trial)
    trial.servers.server.kill_data_node()
    threading.Timer(3, trial.servers.server.start_data_node).start()
    _, stderr = process.communicate(timeout=300)
    return outcome_of(process.returncode, stderr)


def _begun(trial: Trial) -> subprocess.Popen[str]:
    """Return a build that has written something."""
    process = trial.start()
    while process.poll() is None and len(trial.objects()) < 4:
        time.sleep(0.005)
    return process


FAULTS: tuple[tuple[str, tuple[str, ...], Callable[[Trial], str]], ...] = (
    ("none", _ALL, Trial.build),
    ("503 to 30 % of requests", _HTTP, passing(Answer(503), probability=0.3)),
    ("429 to 30 % of requests", _HTTP, passing(Answer(429), probability=0.3)),
    ("500 to 30 % of requests", _HTTP, passing(Answer(500), probability=0.3)),
    ("reset of 30 % of connections", _HTTP, passing(Reset(), probability=0.3)),
    ("answer lost after it was done, 30 %", _HTTP, passing(Reset(served=True), probability=0.3)),
    ("answers cut short, 30 %", _HTTP, passing(Truncate(20), probability=0.3)),
    ("uploads broken off midway, 40 %", _HTTP, passing(CutUpload(9000), at_least=9001, probability=0.4)),
    ("a bit changed in uploads", _HTTP, passing(FlipUpload(), at_least=2000, count=6)),
    ("answers 2 s late, 5 %", _HTTP, passing(Stall(2.0), probability=0.05)),
    ("client killed, again and again", _ALL, killed),
    ("Ctrl-C while the store is gone", _HTTP, interrupted),
    ("server killed and restarted", _ALL, restarted),
    ("DataNode gone for 3 s", ("hdfs",), without_data_node),
    ("server gone for good, then back", _ALL, gone),
    ("scratch disk full", _ALL, scratch_full),
    ("upload forbidden", _HTTP, refused),
    ("two builds at once, and another", _ALL, two_at_once),
)


STORES = ("s3", "gs", "hdfs")
_ROW = "{:<36} {:<5} {:<52} {:<10} {:<6} {:>4}"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let what Stoker prints in this process go nowhere."""
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


def main() -> int:
    """Print the table; 1 if anything was lost, or left behind."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"{', '.join(STORES)} (all)")
    stores = parser.parse_args().stores or list(STORES)
    failed = False
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        source, whole = Path(folder, "photos"), Path(folder, "whole")
        with quiet():
            assert stoker(["sample", str(source), "--classes", "4", "--images", "30"]) == 0
            assert stoker([*BUILD, str(source), str(whole)]) == 0
        print(_ROW.format("fault", "store", "outcome", "same bytes", "litter", "s"))
        for store in stores:
            with Servers.running(store, Path(folder)) as servers:
                for name, kinds, fault in FAULTS:
                    if store not in kinds:
                        continue
                    trial = Trial(servers, source, whole)
                    began = time.monotonic()
                    outcome = fault(trial)
                    same, litter = trial.result()
                    failed |= not same or bool(litter)
                    row = (name, store, outcome, "yes" if same else "NO", len(litter) or "none")
                    print(_ROW.format(*row, f"{time.monotonic() - began:.0f}"), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
