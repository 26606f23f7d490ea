"""What all tests share: a small dataset, Hypothesis without a clock, and no skipping where everything must run."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import hypothesis
import pytest

from stoker.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["servers.fixtures"]

MUST_RUN_ALL = os.environ.get("STOKER_CI") == "1"

# Times vary too much on a busy machine to be a property of an example.
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if MUST_RUN_ALL else "dev")


def pytest_configure() -> None:
    """A shell lets what it starts with ``&`` ignore Ctrl-C, and so would every program that a test interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tree as ``stoker sample`` makes it. For reading only: copy it to change it."""
    root = tmp_path_factory.mktemp("sample") / "photos"
    assert main(["sample", str(root), "--classes", "5", "--images", "8", "--validation", "2"]) == 0
    return root


@pytest.fixture(scope="session")
def dataset(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``stoker build`` makes of `photos`, in two shards. For reading only: copy it to change it."""
    root = tmp_path_factory.mktemp("built") / "dataset"
    assert main(["build", str(photos), str(root), "--shards", "2"]) == 0
    return root


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With STOKER_CI=1, a skipped test is a failure: what must be shown there must have run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if MUST_RUN_ALL and skipped and exitstatus == pytest.ExitCode.OK:
        reporter.write_sep("!", f"STOKER_CI=1: {len(skipped)} skipped, which counts as failed", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
