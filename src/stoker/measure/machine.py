"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from stoker.config import available_cpus


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, as a benchmark must describe it.

    Attributes:
        processor: Name of the CPU.
        cpus: CPUs this process may use.
        memory_bytes: Physical memory; 0 if unknown.
        system: Operating system and its version.
        python: Version of Python.
    """

    processor: str
    cpus: int
    memory_bytes: int
    system: str
    python: str


def describe_machine() -> Machine:
    """Return what this process runs on."""
    known = "SC_PHYS_PAGES" in os.sysconf_names
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else 0
    return Machine(
        processor=_processor(),
        cpus=available_cpus(),
        memory_bytes=memory,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def tree_cpu_seconds(root: int) -> float | None:
    """Return the CPU time that a process and its living descendants have used; None where the system cannot tell."""
    if not Path("/proc/self/stat").exists():
        return None
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))  # user, system, and those of reaped children
    members = {root}
    while grown := {child for child, parent in parents.items() if parent in members} - members:
        members |= grown
    return sum(ticks.get(member, 0) for member in members) / os.sysconf("SC_CLK_TCK")
