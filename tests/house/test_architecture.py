"""The drawings of docs/architecture.md are those of the code, and the page stays one page."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase

from house.repository import NATIVE, PACKAGE, ROOT

PAGE = ROOT / "docs" / "architecture.md"
PAGE_LINES = 135
CORE = NATIVE / "core"


@dataclass
class Group:
    """A name of a drawing: what is in it, and what its arrow leads to."""

    layer: int
    members: list[str]
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
    found: dict[str, Group] = {}
    for number, layer in enumerate(re.split(r"^─+$", text, flags=re.M)):
        for line in re.sub(r"\n +", " ", layer).splitlines():
            if not line:
                continue
            inside, _, uses = line.partition("─►")
            name, *members = inside.split()
            assert name not in found
            found[name] = Group(number, members, set(uses.split()))
    return found


def units() -> set[str]:
    """The files of the core without what they end in."""
    return {path.relative_to(CORE).with_suffix("").as_posix() for path in CORE.rglob("*") if path.is_file()}


def home_of(drawn: dict[str, Group], unit: str) -> str:
    """The one group that a unit is in; a name alone comes before one with a star."""
    exact = [name for name, group in drawn.items() if unit in group.members]
    starred = [name for name, group in drawn.items() if any(fnmatchcase(unit, member) for member in group.members)]
    homes = exact or starred
    assert len(homes) == 1, f"{unit} is in {homes or 'no group'} of the drawing in docs/architecture.md"
    return homes[0]


def included(unit: str) -> set[str]:
    """The units of the core that a unit's files include."""
    paths = [CORE / f"{unit}{suffix}" for suffix in (".h", ".cpp")]
    text = "".join(path.read_text(encoding="utf-8") for path in paths if path.exists())
    return set(re.findall(r'^#include "core/(.+)\.h"$', text, flags=re.M)) - {unit}


def test_the_page_is_one_page() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= PAGE_LINES


def test_the_drawn_layers_are_those_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    lines = next(contract["layers"] for contract in contracts["contracts"] if contract["type"] == "layers")
    contracted = [{room.strip(" ()") for room in line.split("|")} for line in lines]
    assert [set(layer) for layer in layers(drawing("Rooms"))] == contracted


def test_every_room_is_drawn() -> None:
    rooms = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    drawn = [room for layer in layers(drawing("Rooms")) for room in layer]
    assert sorted(drawn) == sorted(rooms - {"__init__"} | {"_native"})


def test_the_paths_lead_through_rooms() -> None:
    paths = PAGE.read_text(encoding="utf-8").split("```text\n")[1].splitlines()[2]
    rooms = {room for layer in layers(drawing("Rooms")) for room in layer}
    assert set(re.findall(r"\w+", paths)) <= rooms


def test_every_file_of_the_core_is_drawn_and_nothing_else() -> None:
    drawn = groups(drawing("The native core"))
    there = units()
    for unit in there:
        home_of(drawn, unit)
    for group in drawn.values():
        for member in group.members:
            assert any(fnmatchcase(unit, member) for unit in there), f"no file of the core is {member}"


def test_the_arrows_are_the_includes() -> None:
    drawn = groups(drawing("The native core"))
    real: dict[str, set[str]] = {name: set() for name in drawn}
    for unit in units():
        home = home_of(drawn, unit)
        real[home] |= {home_of(drawn, other) for other in included(unit)} - {home}
    assert {name: group.uses for name, group in drawn.items()} == real


def test_arrows_lead_down() -> None:
    drawn = groups(drawing("The native core"))
    for name, group in drawn.items():
        assert all(drawn[other].layer > group.layer for other in group.uses), name


def test_the_core_includes_nothing_but_itself() -> None:
    for path in [*CORE.rglob("*.h"), *CORE.rglob("*.cpp")]:
        assert not re.findall(r'^#include "(?!core/).*', path.read_text(encoding="utf-8"), flags=re.M), path
