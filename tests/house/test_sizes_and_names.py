"""Modules and functions stay small enough to be read at one sitting, and are named after what they hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from house.repository import NATIVE, PACKAGE, ROOT, modules, parse

if TYPE_CHECKING:
    from pathlib import Path

MODULE_LINES, MODULE_LINES_AT_MOST = 250, 400
FUNCTION_LINES, FUNCTION_LINES_AT_MOST = 30, 60
HEADER_LINES, SOURCE_LINES, BINDING_LINES = 150, 350, 200
TEST_LINES = 400

# Longer than the limit, and why. Each must still be true: an exception that is no longer needed fails too.
LONG_MODULES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {
    "feed/loader.py:__init__": "a dozen settings by name, each on its line, checked and handed to the engine",
}

VAGUE = {"util", "utils", "helper", "helpers", "common", "base", "misc", "tools", "lib"}


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(path: Path) -> dict[str, int]:
    """Lines of each function without its docstring, by ``module.py:name``."""
    found = {}
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines -= (first.end_lineno or 0) - first.lineno + 1
            found[f"{path.relative_to(PACKAGE).as_posix()}:{node.name}"] = lines
    return found


def test_modules_are_short() -> None:
    sizes = {path.relative_to(PACKAGE).as_posix(): lines_of(path) for path in modules()}
    assert {name for name, lines in sizes.items() if lines > MODULE_LINES} == set(LONG_MODULES)
    assert max(sizes.values()) <= MODULE_LINES_AT_MOST


def test_functions_are_short() -> None:
    sizes = {name: lines for path in modules() for name, lines in functions(path).items()}
    assert {name for name, lines in sizes.items() if lines > FUNCTION_LINES} == set(LONG_FUNCTIONS)
    assert max(sizes.values()) <= FUNCTION_LINES_AT_MOST


@pytest.mark.parametrize(
    ("pattern", "limit"),
    [("core/**/*.h", HEADER_LINES), ("core/**/*.cpp", SOURCE_LINES), ("bind/*.cpp", BINDING_LINES)],
)
def test_native_files_are_short(pattern: str, limit: int) -> None:
    assert {path.name: lines_of(path) for path in NATIVE.glob(pattern) if lines_of(path) > limit} == {}


def test_test_files_are_short() -> None:
    paths = [*(ROOT / "tests").rglob("*.py"), *(NATIVE / "tests").glob("*.cpp")]
    assert {path.name: lines_of(path) for path in paths if lines_of(path) > TEST_LINES} == {}


def test_no_file_has_a_name_that_says_nothing() -> None:
    paths = [p for top in ("src", "tests", "benchmarks", "examples", "scripts") for p in (ROOT / top).rglob("*")]
    assert {path for path in paths if path.stem.strip("_").lower() in VAGUE} == set()


def test_the_core_knows_no_python() -> None:
    for path in [*NATIVE.glob("core/**/*.*"), *NATIVE.glob("tests/*"), *NATIVE.glob("fuzz/*")]:
        text = path.read_text(encoding="utf-8")
        assert "Python.h" not in text, path
        assert "nanobind" not in text, path
