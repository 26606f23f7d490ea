"""Make the environments of the rivals: ``python -m benchmarks.rivals.install [--build DIRECTORY] [NAME...]``.

Each rival has an environment of its own with the pinned requirements of its folder. An environment is kept while its
requirements stay the same.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.rivals.environments import HERE, Environments, requirements, rivals

_FROM_SOURCE = "ffcv"
"""Built with the packages that are installed before it, and not in an isolated environment of newer ones."""


def steps(lines: list[str]) -> list[list[str]]:
    """Words for pip, one list a call: PyTorch first and alone, so that whatever asks for it finds that one."""
    wanted = [line for line in lines if line and not line.startswith("#")]
    torch = [line for line in wanted if line.startswith("torch==")]
    source = [line for line in wanted if line.startswith(f"{_FROM_SOURCE}==")]
    rest = [line for line in wanted if line not in torch + source]
    built = ["--no-build-isolation", "--no-deps", "--no-binary", _FROM_SOURCE, *source]
    return [words for words in (torch, torch + rest, built if source else []) if words]


def install(environments: Environments, rival: str) -> None:
    """Make one environment.

    Raises:
        subprocess.CalledProcessError: pip failed; what it said has been printed.
    """
    if environments.is_installed(rival):
        print(f"{rival}: is installed")
        return
    print(f"{rival}: installing", flush=True)
    fill(environments.python(rival), environments.stamp(rival), requirements(rival))


def fill(python: Path, stamp: Path, wanted: str) -> None:
    """Make the environment of an interpreter anew, with the requirements that are wanted; then stamp it with them."""
    stamp.unlink(missing_ok=True)
    shutil.rmtree(python.parents[1], ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
    for words in steps(wanted.splitlines()):
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *words]
        subprocess.run(pip, check=True)
    stamp.write_text(wanted, encoding="utf-8")


def main() -> int:
    """Install what is asked for, or everything; return 1 if something could not be installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(rivals())} (default: all)")
    parser.add_argument("--build", type=Path, default=Path("build", "rivals"), help="default build/rivals")
    args = parser.parse_args()
    if unknown := set(args.names) - set(rivals()):
        parser.error(f"there is no folder {', '.join(sorted(unknown))} in {HERE.name}")
    failed = []
    for rival in args.names or rivals():
        try:
            install(Environments(args.build.resolve()), rival)
        except subprocess.CalledProcessError as error:
            print(f"{rival}: NOT installed: {error}", flush=True)
            failed.append(rival)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
