"""Who may import whom: the contracts of pyproject.toml hold, and would fail if they did not."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from repository.checkout import PACKAGE, ROOT, modules, parse

if TYPE_CHECKING:
    from pathlib import Path

BELOW_THE_EXTENSION = {"config.py", "types.py", "errors.py"}


# An editable install puts a finder of its own first, which would find the checkout instead of `source`.
PROGRAM = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.path.insert(0, sys.argv[1])
from importlinter.cli import lint_imports
sys.exit(lint_imports(config_filename=sys.argv[2], no_cache=True))
"""


def lint_imports(source: Path, config: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(source), str(config)]
    return subprocess.run(command, check=False, cwd=source, capture_output=True, text=True, timeout=120)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package that a test may spoil."""
    ignore = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(PACKAGE, tmp_path / "stoker", ignore=ignore)
    return tmp_path


def test_the_package_keeps_its_contracts() -> None:
    result = lint_imports(ROOT / "src", ROOT / "pyproject.toml")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("views/view.py", "import stoker.order.sequence"),
        ("records/writer.py", "from stoker.sources import list_folder"),
        ("feed/loader.py", "from stoker.build.plan import Plan"),
        ("build/plan.py", "from stoker.feed import Loader"),
        ("order/sequence.py", "from stoker.feed import Loader"),
        ("errors.py", "import stoker.types"),
        ("types.py", "import stoker.config"),
        ("feed/loader.py", "import stoker.torch"),
        ("torch/loader.py", "import stoker.tensorflow"),
        ("views/view.py", "import torch"),
        ("cli/main.py", "import torch"),
        ("cli/main.py", "from tensorflow import keras"),
        ("torch/loader.py", "import tensorflow"),
        ("tensorflow/batches.py", "import torch"),
        ("tensorflow/graph.py", "import jax"),
        ("jax.py", "import tensorflow"),
        ("jax.py", "import stoker.torch"),
        ("measure/bench.py", "import jax"),
        ("diagnosis/session.py", "import torch"),
        ("diagnosis/session.py", "import stoker.measure"),
        ("feed/loader.py", "import stoker.diagnosis"),
        ("build/run.py", "import pyspark"),
        ("inspect/info.py", "import matplotlib"),
        ("measure/bench.py", "import stoker.report"),
        ("spark/engine.py", "import stoker.repack"),
    ],
)
def test_a_violation_is_found(copied: Path, module: str, line: str) -> None:
    path = copied / "stoker" / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    result = lint_imports(copied, ROOT / "pyproject.toml")
    assert result.returncode != 0
    assert "BROKEN" in result.stdout


def test_a_new_room_must_be_given_its_place(copied: Path) -> None:
    (copied / "stoker" / "annex.py").write_text('"""Nobody knows where this belongs."""\n')
    assert lint_imports(copied, ROOT / "pyproject.toml").returncode != 0


def test_the_floor_does_not_import_the_extension() -> None:
    # import-linter reads Python sources only and does not see a compiled module.
    for path in modules():
        imported = {
            name
            for node in ast.walk(parse(path))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [f"{node.module}.{alias.name}" for alias in node.names]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        native = any(name.startswith("stoker._native") for name in imported)
        assert not (native and path.name in BELOW_THE_EXTENSION and path.parent == PACKAGE), path


def test_the_package_root_is_imported_for_the_extension_only() -> None:
    # The contracts overlook imports of `stoker` itself, which re-exports upper rooms.
    for path in set(modules()) - {PACKAGE / "__init__.py"}:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ImportFrom) and node.module == "stoker":
                assert [alias.name for alias in node.names] == ["_native"], f"{path}:{node.lineno}"
            if isinstance(node, ast.Import):
                assert "stoker" not in [alias.name for alias in node.names], f"{path}:{node.lineno}"
