"""Run the tests against an installed Stoker, away from the checkout.

    python scripts/wheel_tests.py PYTHON [OPTIONS OF pytest]

PYTHON is the interpreter of the environment that holds the wheel, with pytest, pytest-timeout and hypothesis. The tests
are copied without ``src/``, so that nothing but the wheel can be imported. Left out, and said so, are tests that need
servers, those of the checkout itself, and files that import what is not installed there (PyTorch, say).
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("benchmarks", "docs", "examples", "pyproject.toml", "scripts", "tests")
# Of the checkout, whatever is installed: its texts, sources and environments. The others of these folders are run.
OF_THE_CHECKOUT = {
    "tests/guarantees": {"test_memory.py"},
    "tests/house": {"test_public_api.py", "test_wheel_contents.py"},
    "tests/rivals": set(),
}
_FIND = """
import importlib.util, json, sys
print(json.dumps([name for name in json.loads(sys.argv[1]) if importlib.util.find_spec(name) is None]))
"""
# Parts of the package that import something optional as soon as they are imported.
_STANDS_ON = {
    r"stoker\.jax\b": "jax",
    r"stoker\.report\b": "matplotlib",
    r"stoker\.spark\b": "pyspark",
    r"stoker\.tensorflow\b": "tensorflow",
    r"stoker\.torch\b|\btorch_workers\b": "torch",
}


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the top-level packages that a test file imports, directly or by way of what lies beside it."""
    text = path.read_text(encoding="utf-8")
    found = {framework for pattern, framework in _STANDS_ON.items() if re.search(pattern, text)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            beside = next((p for root in (ROOT, ROOT / "tests") if (p := _module(root, name)) is not None), None)
            found |= imports(beside) if beside is not None and beside != path else {name.split(".")[0]}
    return frozenset(found)


def _module(root: Path, name: str) -> Path | None:
    path = root.joinpath(*name.split(".")).with_suffix(".py")
    return path if path.is_file() else None


def missing(python: str, names: set[str]) -> set[str]:
    """Return which of these packages an interpreter does not have."""
    command = [python, "-I", "-c", _FIND, json.dumps(sorted(names))]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def left_out(python: str) -> dict[str, str]:
    """Return the test files that cannot run there, and why."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    own = {path.stem for path in (ROOT / "tests").rglob("*.py")} | {path.name for path in (ROOT / "tests").iterdir()}
    needed = {path: imports(path) - own - {"benchmarks", "examples", "scripts", "tests"} for path in files}
    absent = missing(python, set().union(*needed.values()))
    reasons = {}
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        kept = next((names for folder, names in OF_THE_CHECKOUT.items() if name.startswith(f"{folder}/")), None)
        if kept is not None and path.name not in kept:
            reasons[name] = "of the checkout"
        elif needed[path] & absent:
            reasons[name] = f"without {', '.join(sorted(needed[path] & absent))}"
    return reasons


def main(python: str, *options: str) -> int:
    """Run them and return pytest's exit code."""
    reasons = left_out(python)
    for reason, count in sorted(Counter(reasons.values()).items()):
        sys.stdout.write(f"{count} files left out: {reason}\n")
    with tempfile.TemporaryDirectory() as scratch:
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
            copy(ROOT / name, Path(scratch) / name)
        ignored = [f"--ignore={name}" for name in reasons]
        command = [python, "-m", "pytest", "-p", "no:cacheprovider", "-m", "not servers", *ignored, *options]
        sys.stdout.flush()
        return subprocess.run(command, cwd=scratch, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
