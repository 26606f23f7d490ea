"""Runs one target under atheris: python scripts/fuzz_python/run.py TARGET CORPUS [options of libFuzzer].

A target is a module beside this one with ``one_input(data)`` and ``seeds()``, which are written to CORPUS first. Its
property: `one_input` returns, or raises a `stoker.StokerError`. Any other exception ends the run, and libFuzzer keeps
the input in build/fuzz, unless -artifact_prefix says where.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import shlex
import sys
import warnings
from pathlib import Path

import atheris

_FOLLOWED = [
    "scripts.fuzz_python",
    "stoker.builder",
    "stoker.download",
    "stoker.loader.caches",
    "stoker.loader.feed",
    "stoker.format",
    "stoker.sources",
    "stoker.spark",
    "tarfile",
    "zipfile",
]
"""Modules and packages whose branches the fuzzer sees. To follow all of Stoker would take ten seconds each time."""


def write_seeds(corpus: Path, seeds: list[bytes]) -> None:
    """Write seeds under names that tell their bytes."""
    corpus.mkdir(parents=True, exist_ok=True)
    for data in seeds:
        (corpus / f"seed-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)


def main() -> None:
    """Import the target with its branches followed, and fuzz it."""
    name, corpus = sys.argv[1:3]
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=_FOLLOWED):
        target = importlib.import_module(f"scripts.fuzz_python.{name}")
        errors = importlib.import_module("stoker.errors")
        write_seeds(Path(corpus), target.seeds())
    warnings.simplefilter("ignore")

    def one_input(data: bytes) -> None:
        with contextlib.suppress(errors.StokerError):
            target.one_input(data)

    options = sys.argv[3:]
    if not any(option.startswith("-artifact_prefix=") for option in options):
        artifacts = Path(__file__).resolve().parents[2] / "build" / "fuzz"
        artifacts.mkdir(parents=True, exist_ok=True)
        options.append(f"-artifact_prefix={artifacts}/py_{name}-")
    again = shlex.join([sys.executable, sys.argv[0], name])  # what libFuzzer runs for each attempt of -merge=1
    atheris.Setup([again, corpus, *options], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
