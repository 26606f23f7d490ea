"""What all tests share: a small dataset, Hypothesis without a clock, and skips where a package is missing."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib.util
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING

import hypothesis
import pytest

from stoker import _native
from stoker.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

pytest_plugins = ["commands", "servers.fixtures"]

MUST_RUN_ALL = os.environ.get("STOKER_CI") == "1"

# Packages that take long to import or to install, and what comes with them. A test that uses one is `slow`.
FRAMEWORKS = {
    "accelerate",
    "albumentations",
    "braceexpand",
    "datasets",
    "huggingface_hub",
    "jax",
    "kornia",
    "lightning",
    "nbclient",
    "pyspark",
    "tensorboard",
    "tensorflow",
    "torch",
    "torchvision",
    "transformers",
    "webdataset",
}

MAY_BE_SLOW = re.compile(rf"^(pytestmark|\s*(from|import) ({'|'.join(sorted(FRAMEWORKS))})\b)".encode(), re.MULTILINE)

# Where processes share the tests, each takes the next file when it has done one. These take long for their number of
# tests, and would be waited for at the end.
BEGIN_FIRST = [
    "tests/spark/test_spark_engine.py",
    "tests/spark/test_spark_command.py",
    "tests/repository/test_examples.py",
    "tests/repository/test_kernel_files.py",
    "tests/repository/test_docs.py",
    "tests/faults/test_every_call.py",
    "tests/guarantees/test_memory.py",
    "tests/guarantees/test_changed_bytes.py",
    "tests/loader/test_forks.py",
    "tests/loader/test_torch_distributed.py",
    "tests/loader/test_pickled_loaders.py",
    "benchmarks/tests/test_rival_run.py",
    "tests/loader/test_torch_map_style.py",
    "tests/loader/test_rank_agreement.py",
    "tests/faults/test_kill_windows.py",
    "tests/sources/test_listing_memory.py",
    "tests/faults/test_out_of_memory.py",
    "tests/faults/test_limits.py",
    "tests/repository/test_notebooks.py",
    "tests/repository/test_site.py",
]
WITH_CLUSTERS = (
    "tests/spark/",
    "tests/servers_smoke/test_spark_cluster.py",
    "tests/repository/test_examples.py",
    "tests/loader/test_last_batches.py",
    "tests/loader/test_rank_agreement.py",
    "tests/loader/test_tensorflow_processes.py",
    "tests/loader/test_jax_processes.py",
)
"""Folders and files whose tests share clusters, or what preloaded.py loads: both are slow to start."""

# Times vary too much on a busy machine to be a property of an example.
BUSY = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("dev", **BUSY, max_examples=50)  # others each time, and in CI twice as many
hypothesis.settings.register_profile("ci", **BUSY, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if MUST_RUN_ALL else "dev")


# It is imported by jsonschema if it is installed, takes a second to read grammars of URIs, and no test needs it.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

MEMORY = Path("/dev/shm")
LEAST_MEMORY_BYTES = 1 << 30


def writes_in_memory() -> bool:
    """Whether files in memory have the space that tests need, and may be run as programs."""
    if not os.access(MEMORY, os.W_OK):
        return False
    system = os.statvfs(MEMORY)
    return system.f_bavail * system.f_frsize >= LEAST_MEMORY_BYTES and not system.f_flag & os.ST_NOEXEC


def pytest_configure(config: pytest.Config) -> None:
    """Let the fast tests write in memory: many disks take a hundred times as long to make a file.

    A shell lets what it starts with ``&`` ignore Ctrl-C, and so would every program that a test interrupts.
    """
    if leaves_out_slow(config) and writes_in_memory():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let processes share the tests by files, in the order below: what the tests of a file share is made once."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist, config.option.loadscopereorder = "loadfile", False


def missing_package(error: BaseException | None) -> str | None:
    """The package whose absence caused an error, if that is what did: `pip install '.[test]'` does not bring all."""
    while error is not None:
        name = (error.name or "").split(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if name and importlib.util.find_spec(name) is None:
            return name
        error = error.__cause__ or error.__context__
    return None


class TestFile(pytest.Module):
    """A file of tests, skipped as a whole if it imports a package that is missing."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except Exception as error:
            if name := missing_package(error):
                pytest.skip(f"{name} is not installed", allow_module_level=True)
            raise


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m "not slow"``, files of which all tests are slow are not even imported, which would take seconds."""
    leaves_out = leaves_out_slow(config) and collection_path.suffix == ".py"
    return True if leaves_out and is_slow(collection_path) else None


def leaves_out_slow(config: pytest.Config) -> bool:
    return bool(config.option.markexpr.startswith("not slow"))


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return TestFile.from_parent(parent, path=module_path)


def names_in(code: CodeType) -> set[str]:
    """What some code names, and the functions within it: globals, attributes, and modules by their parts."""
    inner = (names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return {part for name in code.co_names for part in name.split(".")}.union(*inner)


@functools.cache
def uses_framework(function: FunctionType) -> bool:
    """Whether a function, or one of its file that it calls, imports a framework or names what is imported from one."""
    functions = [function]
    for caller in functions:
        names = names_in(caller.__code__)
        values = [caller.__globals__.get(name) for name in names]
        homes = (v.__name__ if isinstance(v, ModuleType) else str(getattr(v, "__module__", "")) for v in values)
        if FRAMEWORKS & (names | {home.split(".")[0] for home in homes}):
            return True
        functions += (
            value
            for value in values
            if isinstance(value, FunctionType) and value.__module__ == function.__module__ and value not in functions
        )
    return False


@functools.cache
def is_slow(file: Path) -> bool:
    """Whether all tests of a file are slow: it says so for all, or to import it is to import a framework."""
    text = file.read_bytes()
    if not MAY_BE_SLOW.search(text):  # which takes a hundredth of the time
        return False
    statements = ast.parse(text).body
    for statement in statements:
        if isinstance(statement, ast.With):
            statements += statement.body
    modules = [statement.module or "" for statement in statements if isinstance(statement, ast.ImportFrom)]
    modules += [name.name for statement in statements if isinstance(statement, ast.Import) for name in statement.names]
    assigned = [statement for statement in statements if isinstance(statement, ast.Assign)]
    marks = [statement for statement in assigned if getattr(statement.targets[0], "id", "") == "pytestmark"]
    words = {str(node.value) for mark in marks for node in ast.walk(mark) if isinstance(node, ast.Constant)}
    words |= {node.attr for mark in marks for node in ast.walk(mark) if isinstance(node, ast.Attribute)}
    words |= {module.partition(".")[0] for module in modules}
    return bool({"slow", "servers", *FRAMEWORKS} & words)


def needs_framework(item: pytest.Item) -> bool:
    """Whether a test says that it needs a framework, uses one, or has a file, a fixture or a parameter that does."""
    if is_slow(item.path):
        return True
    if FRAMEWORKS & {name for mark in item.iter_markers("needs") for name in mark.args}:
        return True
    if not isinstance(item, pytest.Function):
        return False
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    functions: list[object] = [item.function, *(definitions[-1].func for definitions in fixtures)]
    functions += item.callspec.params.values() if hasattr(item, "callspec") else ()
    functions = [getattr(function, "__wrapped__", function) for function in functions if callable(function)]
    return any(uses_framework(function) for function in functions if isinstance(function, FunctionType))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Let the collector of garbage pass over frameworks, once imported: with them, it would take a second each time."""
    gc.disable()
    yield
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what ``-m "not slow"`` leaves out beside the tests that are marked for the seconds that they take."""
    if item.get_closest_marker("servers") or needs_framework(item):
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let processes that share the tests begin with the files that take longest, and go on with those of most tests."""
    if hasattr(config, "workerinput"):
        counts = Counter(item.path for item in items)
        ranks = {Path(config.rootpath, name): rank for rank, name in enumerate(BEGIN_FIRST)}
        items.sort(key=lambda item: (ranks.get(item.path, len(ranks)), -counts[item.path]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """With ``--dist loadfile``, let one process run all tests that share clusters, too."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415 - no test needs it

    class Files(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "clusters" if nodeid.startswith(WITH_CLUSTERS) else super()._split_scope(nodeid)

    return Files(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in (name for mark in item.iter_markers("needs") for name in mark.args):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    for name in (name for mark in item.iter_markers("decodes") for name in mark.args):
        if name not in _native.image_formats():
            pytest.skip(f"the core was built without lib{name}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make a test that failed for want of a package a skipped one."""
    report = yield
    if call.excinfo is not None and (name := missing_package(call.excinfo.value)):
        report.outcome = "skipped"
        report.longrepr = (str(report.location[0]), report.location[1] or 0, f"Skipped: {name} is not installed")
    return report


@pytest.fixture(scope="session", autouse=True)
def user_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of indexes for the tests, so that none writes into that of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STOKER_CACHE_DIR", str(tmp_path_factory.mktemp("user-cache")))
        yield


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder on a disk, which `tmp_path` may not be."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


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


@pytest.fixture(scope="session")
def torchvision() -> object:
    """Let torchvision be imported: its usual wheel loads its compiled operators beside PyTorch with CUDA only.

    Its transforms need none of them, so declaring them is enough. It lies apart, because Lightning imports it wherever
    it is.
    """
    import torch  # noqa: PLC0415 - an extra, and slow to import

    sys.path.append(str(Path(sys.prefix) / "torchvision"))
    operators = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):  # it is there
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return operators  # without which they are gone again
