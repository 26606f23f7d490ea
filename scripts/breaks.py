"""Breaks the code on purpose, one guarantee after another, and sees that the tests named with each break fail.

    python scripts/breaks.py BUILD_DIRECTORY [--only WORDS]

The breaks are those of tests/guarantees/breaks.toml. They are made in a copy of the checkout, in the build directory;
the copy runs with the interpreter that runs this, and its own build of the core. Ends with 1 if a test stays green.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = Path("tests/guarantees/breaks.toml")
NATIVE_TEST = re.compile(r"(src/native/tests/[\w/]+\.cpp): (.+)")
SECONDS = 120  # a test that hangs when its guarantee is broken fails, too
NOT_RUN = {2, 3, 4, 5}  # pytest's exit codes for a run that did not get to the test


@dataclass(frozen=True, slots=True)
class Break:
    """A change that breaks a guarantee.

    Attributes:
        guarantee: Its number.
        what: What is broken.
        file: Which file is changed.
        old: What is replaced; there once.
        new: By what.
        tests: Those that must fail.
    """

    guarantee: int
    what: str
    file: str
    old: str
    new: str
    tests: list[str]

    def apply(self, text: str) -> str:
        """Return the file as it is when it is broken."""
        if text.count(self.old) != 1:
            sys.exit(f"breaks: '{self.what}' is not one place of {self.file} any more; mend {LIST}")
        return text.replace(self.old, self.new)


def read_breaks(root: Path) -> list[Break]:
    """Return the breaks of a checkout."""
    return [Break(**entry) for entry in tomllib.loads((root / LIST).read_text(encoding="utf-8"))["break"]]


class Copy:
    """A copy of the checkout, with the core built in it."""

    def __init__(self, directory: Path) -> None:
        self.tree = directory / "tree"
        self._built = directory / "native"
        self._fill()
        options = ["-DSTOKER_TESTS=ON", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release"]
        self._command(["cmake", "-S", str(self.tree), "-B", str(self._built), "-G", "Ninja", *options])
        self.build_core()

    def _fill(self) -> None:
        """Bring it up to date; what has not changed keeps its time, so that it need not be compiled again."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
        names = {os.fsdecode(name) for name in listed.split(b"\0") if name and (ROOT / os.fsdecode(name)).is_file()}
        for name in names:
            mine = self.tree / name
            if not mine.is_file() or mine.read_bytes() != (ROOT / name).read_bytes():
                mine.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, mine)
        for path in [path for path in self.tree.rglob("*") if path.is_file()]:
            if path.relative_to(self.tree).as_posix() not in names:
                path.unlink()

    def build_core(self) -> None:
        """Compile what has changed."""
        self._command(["cmake", "--build", str(self._built), "--target", "_native", "stoker_core_tests"])
        for library in self._built.glob("_native*.so"):
            shutil.copy(library, self.tree / "src" / "stoker")

    def run(self, test: str) -> int:
        """Run one test and return the exit code."""
        native = NATIVE_TEST.fullmatch(test)
        if native:
            case = native[2].replace("\\", "\\\\").replace(",", "\\,")
            command = [str(self._built / "src/native/tests/stoker_core_tests"), f"--test-case={case}"]
        else:
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-o", f"timeout={SECONDS}"]
            command.append(test)
        environment = os.environ | {"PYTHONPATH": str(self.tree / "src")}
        done = subprocess.run(command, cwd=self.tree, env=environment, capture_output=True, check=False)
        return done.returncode

    def _command(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"breaks: {' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def try_break(copy: Copy, broken: Break) -> bool:
    """Break, see every test fail, mend; return whether all did."""
    path = copy.tree / broken.file
    whole = path.read_text(encoding="utf-8")
    native = broken.file.startswith("src/native/")
    path.write_text(broken.apply(whole), encoding="utf-8")
    try:
        if native:
            copy.build_core()
        outcomes = [_see(copy, broken, test) for test in broken.tests]
    finally:
        path.write_text(whole, encoding="utf-8")
    if native:
        copy.build_core()
    return all(outcomes)


def _see(copy: Copy, broken: Break, test: str) -> bool:
    started = time.monotonic()
    code = copy.run(test)
    red = code != 0 and code not in NOT_RUN
    verdict = "red  " if red else "GREEN" if code == 0 else f"code {code}"
    seconds = time.monotonic() - started
    sys.stdout.write(f"{verdict} {seconds:5.1f} s  {broken.guarantee:2}  {broken.what}\n{'':15}{test}\n")
    sys.stdout.flush()
    return red


def main() -> None:
    """Try all breaks, or those asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path, help="where the copy is made; kept, so that the next run is quicker")
    parser.add_argument("--only", default="", help="breaks whose description holds these words")
    arguments = parser.parse_args()
    breaks = [broken for broken in read_breaks(ROOT) if arguments.only in broken.what]
    copy = Copy(arguments.directory.resolve())
    tests = sorted({test for broken in breaks for test in broken.tests})
    failing = [test for test in tests if copy.run(test) != 0]
    if failing:
        sys.exit("breaks: these fail although nothing is broken:\n" + "\n".join(failing))
    sys.stdout.write(f"{len(tests)} tests pass with nothing broken\n")
    missed = [broken for broken in breaks if not try_break(copy, broken)]
    sys.stdout.write(f"{len(breaks) - len(missed)} of {len(breaks)} breaks were found\n")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
