"""Where each rival's environment and data lie, and how its programs are started."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OURS = "stoker"
BEFORE = "before"
"""Another version of Stoker, by the programs of this one."""


@dataclass(frozen=True, slots=True)
class Environments:
    """Everything below one directory; Stoker itself runs in the environment of the runner.

    Attributes:
        directory: Where they lie.
        before: The ``src`` of another version of Stoker, its core compiled; None without one.
    """

    directory: Path
    before: Path | None = None

    def python(self, rival: str) -> Path:
        """The interpreter of a rival."""
        return Path(sys.executable) if rival in (OURS, BEFORE) else self.directory / rival / "venv" / "bin" / "python"

    def stamp(self, rival: str) -> Path:
        """A copy of the requirements, written when they are installed."""
        return self.directory / rival / "installed.txt"

    def data(self, rival: str) -> Path:
        """Directory of what a rival reads."""
        return self.directory / rival / "data"

    @property
    def sources(self) -> Path:
        """Directory of what all make their data of."""
        return self.directory / "sources"

    def is_installed(self, rival: str) -> bool:
        """Whether the environment is the one that the requirements ask for."""
        if rival in (OURS, BEFORE):
            return True
        stamp = self.stamp(rival)
        return stamp.exists() and stamp.read_text() == requirements(rival)

    def command(self, rival: str, program: str, work: str) -> list[str]:
        """Words that start a program of a rival."""
        return [str(self.python(rival)), "-m", f"benchmarks.rivals.{programs(rival)}.{program}", work]

    def variables(self, rival: str) -> dict[str, str]:
        """Environment variables of a rival's programs."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        paths = [str(self.before), str(ROOT)] if rival == BEFORE else [str(ROOT)]
        return kept | {
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
        }


def programs(rival: str) -> str:
    """Folder of a rival's programs."""
    return OURS if rival == BEFORE else rival


def requirements(rival: str) -> str:
    """Text of a rival's requirements."""
    return (HERE / rival / "requirements.txt").read_text(encoding="utf-8")


def rivals() -> list[str]:
    """Folders that have requirements."""
    return sorted(path.parent.name for path in HERE.glob("*/requirements.txt"))
