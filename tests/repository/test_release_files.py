"""What a release and the packages that others make of it say agrees with pyproject.toml and with the files."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import yaml

from repository.checkout import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def spaced(requirements: list[str]) -> set[str]:
    """Requirements of pip as conda writes them."""
    return {requirement.replace(">=", " >=").replace("~=", " ~=") for requirement in requirements}


def test_the_conda_recipe_asks_for_what_pyproject_asks_for() -> None:
    recipe: dict[str, Any] = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    project, required = PYPROJECT["project"], recipe["requirements"]
    assert recipe["context"]["version"] == project["version"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    assert set(required["run"]) == {f"python {project['requires-python']}", *spaced(project["dependencies"])}
    assert set(required["host"]) == {
        "python",
        "pip",
        "libjpeg-turbo",
        "libpng",
        "libwebp-base",
        "zlib",
        *spaced(PYPROJECT["build-system"]["requires"]),
    }
    cmake = re.match(
        r"cmake_minimum_required\(VERSION ([\d.]+)\)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    )
    assert cmake is not None
    assert f"cmake >={cmake[1]}" in required["build"]


def test_the_statement_names_files_commit_and_libraries(tmp_path: Path) -> None:
    files = [tmp_path / "stoker-1.2.3.tar.gz", tmp_path / "stoker-1.2.3-cp312-abi3-any.whl"]
    for file in files:
        file.write_bytes(file.name.encode())
    command = [sys.executable, str(ROOT / "scripts" / "statement.py"), "1.2.3", COMMIT, *map(str, files)]
    statement = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]} == {
        file.name: hashlib.sha256(file.name.encode()).hexdigest() for file in files
    }
    commit, *libraries = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert commit["digest"] == {"gitCommit": COMMIT}
    script = (ROOT / "scripts" / "image_libraries.sh").read_text(encoding="utf-8")
    assert len(libraries) == script.count("\nbuild ") == 4
    assert all(library["digest"]["sha256"] in script for library in libraries)
    (zlib,) = (library["uri"] for library in libraries if "zlib-ng" in library["uri"])
    assert f"pip:{zlib.removeprefix('pkg:pypi/').replace('@', '==')}}}" in script  # the sum is that of this file
