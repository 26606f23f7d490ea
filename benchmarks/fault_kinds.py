"""The faults of `benchmarks.faults`: each is done to a build, and says what became of that."""

from __future__ import annotations

import random
import resource
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

from benchmarks.fault_trials import Trial, outcome_of
from tests.servers.faults import Answer, CutUpload, Fault, Reset, Stall, Truncate

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.rules import BeforeAnswer, InAnswer

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


def wrong_bytes(trial: Trial) -> str:
    """A bit of some uploads changes on their way."""
    assert trial.servers.proxy is not None
    trial.servers.proxy.flips = 6
    outcome = trial.build()
    return f"{outcome}; {6 - trial.servers.proxy.flips} times"


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
    _, said = process.communicate(timeout=300)
    return outcome_of(process.returncode, said)


def gone(trial: Trial) -> str:
    """The server is killed and comes back when the build has given up."""
    process = _begun(trial)
    trial.servers.server.kill()
    _, said = process.communicate(timeout=300)
    trial.servers.server.start()
    return outcome_of(process.returncode, said)


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
    while not (trial.place / ".stoker-build").exists() and any(process.poll() is None for process in same):
        time.sleep(0.01)
    other = trial.start(["--seed", "5"])
    said = [process.communicate(timeout=300)[1] for process in (*same, other)]
    first, second, third = (outcome_of(p.returncode, text) for p, text in zip((*same, other), said, strict=True))
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
    _, said = process.communicate(timeout=300)
    trial.servers.proxy.faults = []
    return f"{outcome_of(process.returncode, said).partition(':')[0]}, in {time.monotonic() - began:.1f} s"


def without_data_node(trial: Trial) -> str:
    """HDFS loses its only DataNode for some seconds."""
    process = _begun(trial)
    trial.servers.server.kill_data_node()
    threading.Timer(3, trial.servers.server.start_data_node).start()
    _, said = process.communicate(timeout=300)
    return outcome_of(process.returncode, said)


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
    ("a bit changed in uploads", _HTTP, wrong_bytes),
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
