"""Nothing in the repository is tied to the machine it was written on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from repository import markdown
from repository.checkout import tracked_files

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = "|".join(["home", "root", "tmp", "work", "Users"])
MACHINE_PATH = re.compile(rf"(?<![\w.$~>)}}\]*-])/(?:{FOLDERS})/\w")
# Put together here, so that this file does not find itself.
PACKAGE_INDEXES = [f"{host}.org" for host in ("pypi", "pythonhosted", "deb.debian", "download.pytorch", "anaconda")]


@pytest.mark.parametrize("path", tracked_files(), ids=markdown.name)
def test_no_path_of_a_machine_and_no_package_index(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    assert MACHINE_PATH.search(text) is None
    assert [host for host in PACKAGE_INDEXES if host in text] == []


@pytest.mark.parametrize("folder", FOLDERS.split("|"))
def test_a_path_of_a_machine_would_be_found(folder: str) -> None:
    assert MACHINE_PATH.search(f'open("/{folder}/ada/x")')
    assert MACHINE_PATH.search(f"cd /{folder}/stoker")
    assert MACHINE_PATH.search(f"tests/{folder}/x") is None
