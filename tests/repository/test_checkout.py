"""Nothing in the checkout is tied to the machine it was written on, and tests with real servers say so."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from repository.checkout import ROOT, tracked_files
from small_cases import each

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = "|".join(["home", "root", "tmp", "work", "Users"])
MACHINE_PATH = re.compile(rf"(?<![\w.$~>)}}\]*-])/(?:{FOLDERS})/\w")
# Put together here, so that this file does not find itself.
PACKAGE_INDEXES = [f"{host}.org" for host in ("pypi", "pythonhosted", "deb.debian", "download.pytorch", "anaconda")]


@each("path", tracked_files())
def test_no_path_of_a_machine_and_no_package_index(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    assert MACHINE_PATH.search(text) is None
    assert [host for host in PACKAGE_INDEXES if host in text] == []


@pytest.mark.parametrize("folder", FOLDERS.split("|"))
def test_a_path_of_a_machine_would_be_found(folder: str) -> None:
    assert MACHINE_PATH.search(f'open("/{folder}/ada/x")')
    assert MACHINE_PATH.search(f"cd /{folder}/stoker")
    assert MACHINE_PATH.search(f"tests/{folder}/x") is None


def files_of_tests() -> list[Path]:
    return [path for folder in ("tests", "benchmarks/tests") for path in (ROOT / folder).rglob("test_*.py")]


def test_files_of_tests_have_names_of_their_own() -> None:
    names = Counter(path.name for path in files_of_tests())
    assert [name for name, count in names.items() if count > 1] == []  # pytest imports them as modules of one name


SERVERS = re.compile(
    r"\b(s3_server|gcs_server|hdfs_server|spark_cluster|faulty_s3|faulty_gcs|store_folder|remote_datasets)\b"
)


def test_tests_with_servers_are_marked() -> None:
    modules = {path: path.read_text() for path in files_of_tests() if path.name != "test_checkout.py"}
    using = {path for path, text in modules.items() if SERVERS.search(text)}
    marked = {path for path, text in modules.items() if "pytest.mark.servers" in text}
    assert len(using) > 10
    assert using <= marked


def is_binary(path: Path) -> bool:
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


CORPUS = ROOT / "scripts" / "fuzz_corpus"
"""What fuzzing has reached, which only weeks of it would find again; nobody can write it as code."""


def test_no_binary_is_checked_in_but_pictures_datasets_and_what_fuzzing_has_reached() -> None:
    homes = (ROOT / "docs" / "pictures", ROOT / "tests" / "compat" / "datasets", CORPUS)
    binaries = [path for path in tracked_files() if not any(map(path.is_relative_to, homes)) and is_binary(path)]
    assert binaries == []
    assert is_binary(homes[0] / "sheet.jpg")


def test_what_fuzzing_has_reached_stays_small() -> None:
    """Two megabytes of the checkout, none of the source package."""
    archives = [path for path in tracked_files() if path.is_relative_to(CORPUS)]
    sources = (ROOT / "src" / "native" / "fuzz").glob("*/*.cpp")
    targets = {path.stem for path in sources} | {
        f"py_{path.stem}" for path in (ROOT / "scripts/fuzz_python").glob("*.py")
    }
    assert {path.name.removesuffix(".tar.xz") for path in archives} <= targets
    assert sum(path.stat().st_size for path in archives) < 2 << 20
