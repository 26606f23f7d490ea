"""The drawings of docs/explanation/architecture.md are those of the code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import stoker.loader
from repository.checkout import NATIVE, ROOT
from repository.imports import LIST, Rules

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
CORE = NATIVE / "core"


@dataclass
class Group:
    """A folder of the core in the drawing: its layer, and what its arrow leads to."""

    layer: int
    uses: set[str]


def drawing(heading: str) -> str:
    """The first drawing under a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return section.split("```text\n")[1].split("```")[0]


def layers(text: str) -> list[list[str]]:
    """The first words of each layer's lines; lines are layers' borders."""
    return [[line.split()[0] for line in layer.splitlines() if line] for layer in re.split(r"^─+$", text, flags=re.M)]


def groups(text: str) -> dict[str, Group]:
    """The groups of the core by name."""
    by_name: dict[str, Group] = {}
    for number, layer in enumerate(re.split(r"^─+$", text, flags=re.M)):
        for line in filter(None, layer.splitlines()):
            description, _, uses = line.partition("─►")
            name = description.split()[0]
            assert name not in by_name
            by_name[name] = Group(number, set(uses.split()))
    return by_name


def included(folder: str) -> set[str]:
    """The other folders of the core that the files of one include."""
    paths = [path for path in (CORE / folder).rglob("*") if path.is_file()]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    return set(re.findall(r'^#include "core/(\w+)/.+\.h"$', text, flags=re.M)) - {folder}


def test_the_drawn_layers_are_those_of_the_list() -> None:
    assert layers(drawing("Packages")) == Rules.read(LIST).layers


def test_the_paths_lead_through_packages() -> None:
    paths = PAGE.read_text(encoding="utf-8").split("```text\n")[1].splitlines()[2]
    assert set(re.findall(r"\w+", paths)) <= {name for layer in layers(drawing("Packages")) for name in layer}


def test_the_drawing_of_the_loader_has_all_of_its_modules() -> None:
    modules = {path.stem for path in Path(stoker.loader.__file__).parent.glob("*.py")} - {"__init__"}
    assert modules <= set(re.findall(r"\w+", str(stoker.loader.__doc__)))


def test_every_folder_of_the_core_is_drawn_and_nothing_else() -> None:
    assert set(groups(drawing("The native core"))) == {path.name for path in CORE.iterdir()}


def test_the_arrows_are_the_includes() -> None:
    for name, group in groups(drawing("The native core")).items():
        assert group.uses == included(name), name


def test_arrows_lead_down() -> None:
    drawn = groups(drawing("The native core"))
    for name, group in drawn.items():
        assert all(drawn[other].layer > group.layer for other in group.uses), name


def test_the_core_includes_nothing_but_itself() -> None:
    for path in [*CORE.rglob("*.h"), *CORE.rglob("*.cpp")]:
        assert not re.findall(r'^#include "(?!core/).*', path.read_text(encoding="utf-8"), flags=re.M), path


def test_the_core_knows_no_python() -> None:
    for path in [path for folder in ("core", "tests", "fuzz") for path in (NATIVE / folder).rglob("*.*")]:
        text = path.read_text(encoding="utf-8")
        assert "Python.h" not in text, path
        assert "nanobind" not in text, path
