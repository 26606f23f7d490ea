"""Change the code so that guarantees are broken, one at a time, and check that the tests named with each change fail.

    python scripts/mutations.py BUILD_DIRECTORY [--only WORDS]

The mutations are those of tests/guarantees/mutations.toml. They are made in a copy of the checkout, in the build
directory; the copy runs with the interpreter that runs this, and its own build of the core. Ends with 1 if a test stays
green.
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
LIST = Path("tests/guarantees/mutations.toml")
NATIVE_TEST = re.compile(r"(src/native/tests/[\w/]+\.cpp): (.+)")
SECONDS = 120  # a test that hangs when its guarantee is broken fails, too
NOT_RUN = {2, 3, 4, 5}  # pytest's exit codes for a run that did not get to the test


@dataclass(frozen=True, slots=True)
class Mutation:
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
        """Return the changed file."""
        if text.count(self.old) != 1:
            sys.exit(f"mutations: the code that '{self.what}' replaces must occur once in {self.file}; correct {LIST}")
        return text.replace(self.old, self.new)


def read_mutations(root: Path) -> list[Mutation]:
    """Return the mutations of a checkout."""
    return [Mutation(**entry) for entry in tomllib.loads((root / LIST).read_text(encoding="utf-8"))["mutation"]]


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
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--timeout", str(SECONDS)]
            command.append(test)
        environment = os.environ | {"PYTHONPATH": str(self.tree / "src")}
        done = subprocess.run(command, cwd=self.tree, env=environment, capture_output=True, check=False)
        return done.returncode

    def _command(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"mutations: {' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def try_mutation(copy: Copy, mutation: Mutation) -> bool:
    """Change the code, run the tests, restore the code; return whether every test failed."""
    path = copy.tree / mutation.file
    whole = path.read_text(encoding="utf-8")
    native = mutation.file.startswith("src/native/")
    path.write_text(mutation.apply(whole), encoding="utf-8")
    try:
        if native:
            copy.build_core()
        outcomes = [_fails(copy, mutation, test) for test in mutation.tests]
    finally:
        path.write_text(whole, encoding="utf-8")
    if native:
        copy.build_core()
    return all(outcomes)


def _fails(copy: Copy, mutation: Mutation, test: str) -> bool:
    started = time.monotonic()
    code = copy.run(test)
    red = code != 0 and code not in NOT_RUN
    verdict = "red  " if red else "GREEN" if code == 0 else f"code {code}"
    seconds = time.monotonic() - started
    sys.stdout.write(f"{verdict} {seconds:5.1f} s  {mutation.guarantee:2}  {mutation.what}\n{'':15}{test}\n")
    sys.stdout.flush()
    return red


def main() -> None:
    """Try all mutations, or those asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path, help="where the copy is made; kept, so that the next run is quicker")
    parser.add_argument("--only", default="", help="only mutations whose description holds these words")
    arguments = parser.parse_args()
    mutations = [mutation for mutation in read_mutations(ROOT) if arguments.only in mutation.what]
    copy = Copy(arguments.directory.resolve())
    tests = sorted({test for mutation in mutations for test in mutation.tests})
    failing = [test for test in tests if copy.run(test) != 0]
    if failing:
        sys.exit("mutations: these fail although nothing was changed:\n" + "\n".join(failing))
    sys.stdout.write(f"{len(tests)} tests pass before any change\n")
    missed = [mutation for mutation in mutations if not try_mutation(copy, mutation)]
    sys.stdout.write(f"{len(mutations) - len(missed)} of {len(mutations)} mutations were found\n")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
