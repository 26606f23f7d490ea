"""Run the tests against an installed Stoker, away from the checkout.

    python scripts/wheel_tests.py PYTHON [OPTIONS OF pytest]

PYTHON is the interpreter of the environment that holds the wheel and its extra `test`. The tests are copied without
``src/``, so that nothing but the wheel can be imported. Tests that need servers and those of the checkout itself are
omitted; tests that need a package which is not installed there (PyTorch, say) are skipped, and listed at the end.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("benchmarks", "conftest.py", "docs", "examples", "pyproject.toml", "scripts", "tests")
# Tests of the checkout, whatever is installed: its texts, sources and environments; but for the files named here.
OF_THE_CHECKOUT = {
    "benchmarks/tests": set(),
    "tests/guarantees": {"test_memory.py"},
    "tests/repository": {"test_public_api.py", "test_wheel_contents.py"},
}


def omitted() -> list[str]:
    """Return the test files that do not concern a wheel."""
    return [
        path.relative_to(ROOT).as_posix()
        for folder, kept in OF_THE_CHECKOUT.items()
        for path in sorted((ROOT / folder).rglob("test_*.py"))
        if path.name not in kept
    ]


def main(python: str, *options: str) -> int:
    """Run them and return pytest's exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
            copy(ROOT / name, Path(scratch) / name)
        ignored = [f"--ignore={name}" for name in omitted()]
        command = [python, "-m", "pytest", "-p", "no:cacheprovider", "--timeout", "300", "-m", "not servers"]
        return subprocess.run([*command, *ignored, *options], cwd=scratch, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
