"""Read who imports whom, also under ``TYPE_CHECKING`` and inside functions, and compare it with a list of rules."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = "stoker"
_ENTRIES = {ROOT, f"{ROOT}.__main__"}  # what is imported or run, above every layer
LIST = Path(__file__).with_name("layers.toml")
_QUALIFIED = "fields"  # the package whose classes are written with its name: `fields.Text`, `fields.Boxes`
_STANDARD = sys.stdlib_module_names | {"_typeshed"}


@dataclass(frozen=True)
class Import:
    """One imported name.

    Attributes:
        importer: The module that imports, `stoker.cli.main`.
        line: Where.
        target: The module that is imported, or from which a name is imported.
        name: The name that is imported from it; empty if it is the module itself.
    """

    importer: str
    line: int
    target: str
    name: str = ""

    def __str__(self) -> str:
        """What a reader looks for."""
        return f"{self.importer}:{self.line} imports {self.target}{'.' if self.name else ''}{self.name}"


@dataclass(frozen=True)
class Rules:
    """What tests/repository/layers.toml says.

    Attributes:
        layers: The packages of the tree from top to bottom; those of one layer do not import each other.
        only_in: The packages or modules that may import a third-party package, or the extension, by its name.
    """

    layers: list[list[str]]
    only_in: dict[str, list[str]]

    @classmethod
    def read(cls, path: Path) -> Rules:
        """Read the list."""
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return cls(content["layers"], content["only_in"])


class Tree:
    """The modules of a package and what they import."""

    def __init__(self, sources: dict[str, str]) -> None:
        """Read them.

        Args:
            sources: The text of each module by its path below the package, `cli/main.py`.
        """
        self._packages = {_dotted(path) for path in sources if path.endswith("__init__.py")}
        self.modules = {_dotted(path): ast.parse(text, path) for path, text in sources.items()}
        self.imports = [statement for module, tree in self.modules.items() for statement in self._imports(module, tree)]

    @classmethod
    def below(cls, folder: Path) -> Tree:
        """Read all modules of a folder."""
        paths = sorted(folder.rglob("*.py"))
        return cls({path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths})

    def _imports(self, module: str, tree: ast.Module) -> Iterator[Import]:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (Import(module, node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                source = self._absolute(module, node)
                for alias in node.names:
                    whole = f"{source}.{alias.name}"
                    is_module = whole in self.modules or whole == f"{ROOT}._native"
                    yield Import(module, node.lineno, *((whole, "") if is_module else (source, alias.name)))

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        up = node.level - (module in self._packages)
        return ".".join([*parts[: len(parts) - up], *([node.module] if node.module else [])])

    def exports(self, package: str) -> set[str]:
        """Return the names that a package, or a module beside packages, offers to others.

        Without an ``__all__``, those are what a module defines, and in a package also what it imports.
        """
        names = {statement.name or statement.target.rpartition(".")[2] for statement in self._reexported(package)}
        for node in self.modules[package].body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return set(ast.literal_eval(node.value))
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names |= {child.id for target in targets for child in ast.walk(target) if isinstance(child, ast.Name)}
        return {name for name in names if not name.startswith("_")}

    def _reexported(self, package: str) -> list[Import]:
        if package not in self._packages:
            return []
        return [
            statement
            for statement in self.imports
            if statement.importer == package and statement.target.startswith(f"{ROOT}.")
        ]


def problems(tree: Tree, rules: Rules) -> list[str]:
    """Return everything in a tree that the rules forbid, and every rule that the tree has no use for."""
    by_rule = [problem for check in (_in_no_layer, _upward, _third_party) for problem in check(tree, rules)]
    return [*by_rule, *(problem for check in (_past_exports, _cycles, _repeated_classes) for problem in check(tree))]


def _in_no_layer(tree: Tree, rules: Rules) -> Iterator[str]:
    packages = {_package(module) for module in tree.modules if module not in _ENTRIES} | {"_native"}
    listed = Counter(name for layer in rules.layers for name in layer)
    yield from (f"{ROOT}.{name} is in no layer: add it to the list" for name in sorted(packages - set(listed)))
    yield from (f"{ROOT}.{name} is in a layer, but there is no such package" for name in sorted(set(listed) - packages))
    yield from (f"{ROOT}.{name} is in more than one layer" for name, count in listed.items() if count > 1)


def _upward(tree: Tree, rules: Rules) -> Iterator[str]:
    level = {name: number for number, layer in enumerate(rules.layers) for name in layer}
    for statement in tree.imports:
        if statement.importer == ROOT:
            continue
        if statement.target == ROOT:
            yield f"{statement}: the package itself re-exports upper layers; import from where the name is defined"
        elif statement.target.startswith(f"{ROOT}."):
            mine, other = _package(statement.importer), _package(statement.target)
            if (
                mine != other
                and statement.importer not in _ENTRIES
                and level.get(mine, -1) >= level.get(other, len(level))
            ):
                yield f"{statement}: {other} is not below {mine}"


def _past_exports(tree: Tree) -> Iterator[str]:
    for statement in tree.imports:
        mine, other = _package(statement.importer), _package(statement.target)
        if statement.target.startswith(f"{ROOT}.") and other not in (mine, "_native"):
            name = statement.name or statement.target.removeprefix(f"{ROOT}.{other}").removeprefix(".")
            is_direct = statement.target.count(".") == 1 or (not statement.name and statement.target.count(".") == 2)
            if not is_direct or (name and name not in tree.exports(f"{ROOT}.{other}")):
                yield f"{statement}: not among what {other} exports"


def _third_party(tree: Tree, rules: Rules) -> Iterator[str]:
    used = set()
    for statement in tree.imports:
        top = statement.target.split(".")[0]
        name = f"{ROOT}._native" if statement.target == f"{ROOT}._native" else top
        if top in _STANDARD or (top == ROOT and name == ROOT) or statement.importer == ROOT:
            continue
        inside = [
            prefix for prefix in rules.only_in.get(name, []) if prefix == "*" or _is_in(statement.importer, prefix)
        ]
        used |= {(name, prefix) for prefix in inside}
        if not inside:
            yield f"{statement}: {name} may be imported only in {', '.join(rules.only_in.get(name, [])) or 'no module'}"
    for name, prefixes in rules.only_in.items():
        yield from (f"{prefix} may import {name} and does not" for prefix in prefixes if (name, prefix) not in used)


def _cycles(tree: Tree) -> Iterator[str]:
    uses: dict[str, set[str]] = {module: set() for module in tree.modules}
    for statement in tree.imports:
        if statement.target in tree.modules and statement.importer != statement.target:
            uses[statement.importer].add(statement.target)
    reached = {module: _reachable(uses, module) for module in uses}
    cycles = {tuple(sorted(o for o in reached[module] if module in reached[o])) for module in uses} - {()}
    yield from (f"these modules import each other: {', '.join(cycle)}" for cycle in sorted(cycles))


def _reachable(uses: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = uses[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh
    return reached


def _repeated_classes(tree: Tree) -> Iterator[str]:
    homes = defaultdict(list)
    for module, parsed in tree.modules.items():
        for node in parsed.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and _package(module) != _QUALIFIED:
                homes[node.name].append(module)
    repeated = {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}
    yield from (f"class {name} is in {' and '.join(modules)}" for name, modules in repeated.items())


def _dotted(path: str) -> str:
    return ".".join([ROOT, *path.removesuffix(".py").split("/")]).removesuffix(".__init__")


def _package(module: str) -> str:
    """The part of the tree that a module is in: the first name below the root."""
    return module.split(".")[1] if "." in module else module


def _is_in(module: str, prefix: str) -> bool:
    return module == f"{ROOT}.{prefix}" or module.startswith(f"{ROOT}.{prefix}.")
