"""Run by a test: kills a build or cuts its power at every step, and checks what a build on what is left comes to.

What a disk holds after a power cut is worked out from the calls of a real build: of a file, what it held when it was
last brought to the disk (``fsync``); of a directory, the names that it had when that was. What was not brought to the
disk may be there or not. After a kill, all is there. So each moment is tried four ways:

killed
    All names and bytes are there.
behind
    All names and bytes that were not brought to the disk are lost.
ahead
    All names are there, and files that were not brought to the disk are empty.
torn
    All names are there, and half of the bytes that were written since.

Prints how many different disks were tried. Looks at the calls through an audit hook, so it is a process of its own.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from trees import build, settings_for

from stoker.format.shard_names import ShardNaming

Disk = dict[str, bytes | None]
"""Content of each file by its path below the root; None for a directory."""

STEPS = frozenset({"open", "os.rename", "os.remove", "os.truncate", "os.mkdir"})
MODES = ("killed", "behind", "ahead", "torn")


@dataclass(frozen=True)
class Entry:
    """A file or a directory under whatever names it has; held open so that its number is not given to another."""

    descriptor: int
    is_directory: bool

    def content(self) -> bytes:
        return b"" if self.is_directory else Path(f"/proc/self/fd/{self.descriptor}").read_bytes()


class Recorder:
    """Follows what a process does below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.disks: dict[str, Disk] = {}
        self._entries: dict[int, Entry] = {}
        self._bytes: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._looking = threading.local()
        self._lock = threading.Lock()
        self._fsync = os.fsync
        self._names[root.stat().st_ino] = {}

    def start(self) -> None:
        os.fsync = self._synchronise
        sys.addaudithook(self._before)

    def stop(self) -> Disk:
        """Return what is safe on the disk now."""
        os.fsync = self._fsync
        disk: Disk = {}
        self._collect(self.root, self.root.stat().st_ino, "", "behind", disk)
        self.root = Path("/nowhere")
        return disk

    def _before(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in STEPS and not getattr(self._looking, "now", False) and str(self.root) in str(arguments[0]):
            self._cut(event)

    def _synchronise(self, file: int) -> None:
        """Do what `os.fsync` does, and note that it was done."""
        self._cut("fsync")
        self._fsync(file)
        with self._lock:
            self._looking.now = True
            number, path = os.fstat(file).st_ino, Path(f"/proc/self/fd/{file}").readlink()
            if path.is_dir():
                self._names[number] = self._listing(path)
            else:
                self._bytes[number] = Path(f"/proc/self/fd/{file}").read_bytes()
            self._looking.now = False
        self._cut("synchronised")

    def _cut(self, why: str) -> None:
        """Note what the disk may hold if it ends now."""
        with self._lock:
            self._looking.now = True
            for mode in MODES:
                disk: Disk = {}
                self._collect(self.root, self.root.stat().st_ino, "", mode, disk)
                if disk not in self.disks.values():
                    self.disks[f"{len(self.disks)} {mode} {why}"] = disk
            self._looking.now = False

    def _listing(self, directory: Path) -> dict[str, int]:
        numbers = {}
        for path in directory.iterdir():
            try:
                descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError:  # another thread has just renamed it
                continue
            entry = Entry(descriptor, path.is_dir())
            number = os.fstat(descriptor).st_ino
            if number in self._entries:
                os.close(descriptor)
            numbers[path.name] = number
            self._entries.setdefault(number, entry)
        return numbers

    def _collect(self, path: Path, number: int, prefix: str, mode: str, disk: Disk) -> None:
        names = self._names.get(number, {}) if mode == "behind" else self._listing(path)
        for name, child in names.items():
            entry = self._entries[child]
            if entry.is_directory:
                disk[prefix + name] = None
                self._collect(path / name, child, f"{prefix}{name}/", mode, disk)
            else:
                disk[prefix + name] = self._left(child, entry, mode)

    def _left(self, number: int, entry: Entry, mode: str) -> bytes:
        safe, now = self._bytes.get(number, b""), entry.content()
        if mode == "killed":
            return now
        if mode == "behind" or now == safe:
            return safe
        return now[: (len(safe) + len(now) + 1) // 2] if mode == "torn" else now[: len(safe)]


def write_disk(root: Path, disk: Disk) -> None:
    root.mkdir()
    for name, content in disk.items():
        if content is None:
            (root / name).mkdir(exist_ok=True)
        else:
            (root / name).write_bytes(content)


def files(root: Path) -> Disk:
    return {path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes() for path in root.rglob("*")}


def main() -> None:
    source, work, naming = Path(sys.argv[1]), Path(sys.argv[2]), ShardNaming(sys.argv[3])
    settings = settings_for(source, naming=naming, shard_size=5_000, threads=2, max_rejects=1)
    recorded = work / "recorded"
    recorded.mkdir()
    recorder = Recorder(recorded)
    recorder.start()
    build(settings, recorded / "new" / "dataset")
    safe, whole = recorder.stop(), files(recorded)
    assert safe == whole, f"the build has ended, and a power cut would still take {whole.keys() - safe.keys()}"
    for number, (moment, disk) in enumerate(recorder.disks.items()):
        root = work / str(number)
        write_disk(root, disk)
        assert "new/dataset/manifest.json" not in disk or whole.items() <= disk.items(), moment
        final = {name: content for name, content in disk.items() if not name.endswith("build.journal")}
        assert {name: content for name, content in final.items() if ".tmp-" not in name}.items() <= whole.items(), (
            moment
        )
        build(settings, root / "new" / "dataset")
        assert files(root) == whole, moment
        shutil.rmtree(root)
    sys.stdout.write(f"{len(recorder.disks)}\n")


main()
