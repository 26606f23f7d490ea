"""Every notebook runs, as it stands, and is kept without what it printed."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from repository.checkout import ROOT

if TYPE_CHECKING:
    from pathlib import Path

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
PICTURES = {"inspect_dataset": 3, "ladder": 1}


@pytest.fixture(scope="module")
def folder(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebooks run, with the photographs that they would make first."""
    root = tmp_path_factory.mktemp("notebooks")
    shutil.copytree(photos, root / "sample" / "photos")
    return root


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    environment = {**os.environ, "STOKER_CACHE_DIR": str(folder / "cache"), "IPYTHONDIR": str(folder / "ipython")}
    client = NotebookClient(notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)


def pictures(notebook: nbformat.NotebookNode) -> int:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(PICTURES)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_its_output(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert notebook.cells[0].source.startswith("# ")  # the site shows its first line in the list of examples


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, folder: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, folder)
    assert pictures(notebook) == PICTURES[path.stem]


def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2")])
    with pytest.raises(CellExecutionError, match="AssertionError"):
        execute(notebook, tmp_path)
