"""Run by a test: kills a build at its 1st, 2nd, 3rd, ... file operation, and checks what each kill leaves behind.

Prints the number of steps. Forks, so it must be a process of its own, without threads.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from trees import build, contents, settings_for

from stoker import _native
from stoker.format.index import read_index

STEPS = frozenset({"open", "os.rename", "os.remove", "os.truncate", "os.mkdir", "fcntl.flock"})


def build_in_child(source: Path, destination: Path, die_at: int) -> bool:
    """Build in a forked process that kills itself at a file operation in the destination; return whether it ended."""
    child = os.fork()
    if child == 0:
        steps = 0

        def count(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal steps
            if event in STEPS and (event == "fcntl.flock" or str(destination) in os.fsdecode(str(arguments[0]))):
                steps += 1
                if steps == die_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        build(settings_for(source, shards=3, threads=2, max_rejects=1), destination)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == 0


def check_what_is_left(destination: Path, finished: dict[str, bytes]) -> None:
    """No file has a final name before it is complete; a manifest is there only with everything else."""
    left = contents(destination) if destination.exists() else {}
    for name, content in left.items():
        if name != "build.journal" and ".tmp-" not in name:
            assert content == finished[name], name
        if name.endswith(".tfrecord"):
            rows = read_index(destination / name, len(content))
            assert rows.tolist() == _native.scan_shard(str(destination / name)).tolist()
    if "manifest.json" in left:
        assert finished.keys() <= left.keys()


def main() -> None:
    source, work = Path(sys.argv[1]), Path(sys.argv[2])
    assert build_in_child(source, work / "whole", 0)
    finished = contents(work / "whole")
    step = 1
    while True:
        destination = work / f"killed{step}"
        ended = build_in_child(source, destination, step)
        check_what_is_left(destination, finished)
        assert build_in_child(source, destination, 0)
        assert contents(destination) == finished, step
        if ended:
            break
        step += 1
    sys.stdout.write(f"{step - 1}\n")


main()
