"""Where things are in the checkout."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "stoker"
NATIVE = ROOT / "src" / "native"


def tracked_files() -> list[Path]:
    """Files that are, or are about to be, under version control; all that came with it in an unpacked sdist."""
    if not (ROOT / ".git").exists():
        return sorted(path for path in ROOT.rglob("*") if path.is_file() and not _is_made(path.relative_to(ROOT)))
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return sorted(path for path in (ROOT / name for name in names if name) if path.is_file())


def _is_made(path: Path) -> bool:
    return path.parts[0] in ("build", "dist") or any(
        part.startswith(".") or part == "__pycache__" for part in path.parts
    )


def modules() -> list[Path]:
    """Every Python file of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def pages() -> list[Path]:
    """The pages of the documentation."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
