"""How much CPU time the control groups of this process allow it: what ``docker run --cpus`` and Kubernetes limits set.

A process whose group may use two CPUs' time still sees all CPUs of the machine in its affinity mask; with a thread for
each of them it would be stopped for most of every period. See the kernel's ``cgroup-v2.rst`` (``cpu.max``) and
``sched-bwc.rst`` (``cpu.cfs_quota_us``).
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")


def cpu_limit(root: Path = _ROOT, own: Path = _OWN) -> float | None:
    """Return how many CPUs' time this process may use; None if nothing limits it.

    The least of what its groups and those around them allow, of version 2 and 1 alike. What cannot be read, or says
    nothing sensible, limits nothing.

    Args:
        root: Where the control groups are mounted.
        own: The file that names the groups of this process.
    """
    try:
        lines = own.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    limits = [limit for line in lines for folder in _folders(line, root) if (limit := _limit(folder)) is not None]
    return min(limits, default=None)


def _folders(line: str, root: Path) -> Iterator[Path]:
    """Yield the folders of the groups that a line ``ID:CONTROLLERS:PATH`` is about, the innermost first."""
    _, _, rest = line.partition(":")
    controllers, _, path = rest.partition(":")
    if controllers == "":
        mounts = (root, root / "unified")
    elif "cpu" in controllers.split(","):
        mounts = (root / controllers, root / "cpu")
    else:
        return
    inner = PurePosixPath(path.lstrip("/"))
    # In a container the path is often that of the host, where only the root of the mount is the group's folder.
    for mount in mounts:
        for group in (inner, *inner.parents):
            if ".." not in group.parts:
                yield mount / group


def _limit(folder: Path) -> float | None:
    if (text := _read(folder / "cpu.max")) is not None:
        quota, _, period = text.partition(" ")
    else:
        quota, period = _read(folder / "cpu.cfs_quota_us") or "", _read(folder / "cpu.cfs_period_us") or ""
    if not (quota.isascii() and quota.isdigit() and period.isascii() and period.isdigit()):  # "max", "-1", or nothing
        return None
    return int(quota) / int(period) if int(quota) > 0 and int(period) > 0 else None


def _read(path: Path) -> str | None:
    try:
        with path.open() as file:
            return file.read(100).strip()
    except (OSError, UnicodeDecodeError):
        return None
