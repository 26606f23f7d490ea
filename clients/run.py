"""`make test-clients`: programs of other projects, in environments of their own, use what Stoker writes.

`python clients/run.py DIRECTORY`, in Stoker's environment; the datasets and the environments come to lie in DIRECTORY.
An environment is used again while its requirements are the same. A client that cannot be installed is a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLIENTS = {
    "tf.data": ("tensorflow", "read_tfdata.py"),
    "TFDS": ("tensorflow", "read_tfds.py"),
    "DALI": ("dali", "read_dali.py"),
    "tfrecord": ("tfrecord", "read_tfrecord.py"),
    "HF Trainer": ("transformers", "train_transformers.py"),
}
"""Name of each client, its environment (of NAME.txt) and its program."""
OVER_OWN = {"tensorflow", "transformers"}
"""Environments over Stoker's own, which has TensorFlow, PyTorch and Accelerate."""

INSTALL_SECONDS, READ_SECONDS = 1200, 300
ROW = "{:<10} {:<9} {:>8} {:>10} {:>7}  {}"


@dataclass
class Outcome:
    """What came of one client."""

    version: str = "-"
    records: int = 0
    install_seconds: float = 0
    read_seconds: float = 0
    passed: bool = False


class StepError(Exception):
    """A program that ended badly; the message is what it printed."""


def main() -> int:
    """Run everything; return the exit code."""
    folder = Path(sys.argv[1]).resolve()
    print("Making photographs and datasets", flush=True)
    try:
        seconds = run([sys.executable, HERE / "datasets.py", folder / "data"], INSTALL_SECONDS)[1]
    except StepError as error:
        print(error)
        return 1
    outcomes = {name: try_client(folder, name) for name in CLIENTS}
    print("\n" + ROW.format("client", "version", "records", "install s", "read s", ""))
    for name, outcome in outcomes.items():
        times = f"{outcome.install_seconds:.1f}", f"{outcome.read_seconds:.1f}"
        result = "ok" if outcome.passed else "FAILED"
        print(ROW.format(name, outcome.version, outcome.records, *times, result))
    print(f"datasets made in {seconds:.1f} s")
    return 0 if all(outcome.passed for outcome in outcomes.values()) else 1


def try_client(folder: Path, name: str) -> Outcome:
    """Install a client if need be, and have it read the datasets."""
    environment, program = CLIENTS[name]
    outcome = Outcome()
    try:
        print(f"{name}: environment {environment}", flush=True)
        began = time.monotonic()
        python = install(folder / environment, HERE / f"{environment}.txt", over_own=environment in OVER_OWN)
        outcome.install_seconds = time.monotonic() - began
        print(f"{name}: {program}", flush=True)
        output, outcome.read_seconds = run([python, HERE / program, folder / "data"], READ_SECONDS)
        report = json.loads(output.splitlines()[-1])
    except StepError as error:
        print(f"{name} FAILED\n{error}", flush=True)
        return outcome
    outcome.version, outcome.records = report["version"], report["records"]
    outcome.passed = outcome.records > 0
    return outcome


def install(environment: Path, requirements: Path, *, over_own: bool) -> Path:
    """Return the interpreter of an environment with exactly these requirements, made anew unless it is there.

    Args:
        environment: Where it is.
        requirements: The file that lists them.
        over_own: Whether it has what is installed in Stoker's environment, too.
    """
    python = environment / "bin" / "python"
    stamp = environment / "installed.txt"
    wanted = f"{sys.version}\n{requirements.read_text()}"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(environment, ignore_errors=True)
    run([sys.executable, "-m", "venv", environment], INSTALL_SECONDS)
    if over_own:
        modules = next(environment.glob("lib/python*/site-packages"))
        (modules / "stoker.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run([*pip, "install", "--no-compile", "--requirement", requirements], INSTALL_SECONDS)
    run([*pip, "check"], INSTALL_SECONDS)
    stamp.write_text(wanted)
    return python


def run(command: list[str | Path], seconds: float) -> tuple[str, float]:
    """Run a program; return what it printed and how long it took.

    Raises:
        StepError: It failed, or took longer than ``seconds``.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    began = time.monotonic()
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise StepError(f"{command[1]} did not end within {seconds:.0f} s") from None
    if done.returncode != 0:
        shown = " ".join(str(part) for part in command)
        raise StepError(f"{shown} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout, time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
