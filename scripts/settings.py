"""Write the settings of public functions from where they are declared: ``python -m scripts.settings [--check]``.

A function takes the settings of a class between two comments in its signature::

    # settings: loader.settings.LoaderSettings
    # end of settings

and has them, described, under "Args:" in its docstring, or in that of the class whose ``__init__`` it is. With
``explained`` after the class the whole texts are written there, otherwise the first of each. ``name=TYPE`` gives a
setting another type. The name of a note, such as ``OfOrder``, leaves settings out that do not have it.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "stoker"
_WIDTH = 120
_MARKED = re.compile(
    r"^(?P<indent> *)# settings: (?P<words>.*)\n(?P<old>(?:.*\n)*?) *# end of settings\n", re.MULTILINE
)


_TAKEN = {"path_or_url": ("str", "LocationLike"), "names": ("tuple[str, ...]", "str | Sequence[str]")}
"""What functions take where a setting keeps something else, by the note that says so."""


@dataclass(frozen=True)
class Declared:
    """One setting, as its declaration spells it."""

    name: str
    type: str
    default: str | None
    texts: list[str]
    notes: set[str]
    by_position: bool

    def parameter(self, other_type: str | None) -> str:
        """Return it as a parameter of a function."""
        return f"{self.name}: {other_type or self.type}" + ("" if self.default is None else f" = {self.default}")


def _module(name: str) -> Path:
    path = PACKAGE / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def declared(path: str) -> list[Declared]:
    """Return the settings of a class, given as ``loader.settings.LoaderSettings``, after those of its bases."""
    module, _, name = path.rpartition(".")
    source = _module(module).read_text(encoding="utf-8")
    tree = ast.parse(source)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    modules = {
        alias.name: (node.module or "").removeprefix("stoker.")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    if name not in classes:  # a package that has it from one of its modules
        return declared(f"{modules[name]}.{name}")
    bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name) and base.id != "Settings"]
    settings = [setting for base in bases for setting in declared(f"{modules.get(base, module)}.{base}")]
    fields = [node for node in classes[name].body if isinstance(node, ast.AnnAssign)]
    by_position = any(not isinstance(field.annotation, ast.Subscript) for field in fields)
    for field in fields:
        if not isinstance(field.annotation, ast.Subscript):
            by_position = False  # KW_ONLY
            continue
        assert isinstance(field.target, ast.Name)
        assert isinstance(field.annotation.slice, ast.Tuple)
        kind, *notes = field.annotation.slice.elts
        texts = [note.value for note in notes if isinstance(note, ast.Constant) and isinstance(note.value, str)]
        called = [note.func if isinstance(note, ast.Call) else note for note in notes]
        names = {note.id for note in called if isinstance(note, ast.Name)}
        default = None if field.value is None else ast.get_source_segment(source, field.value)
        spelled = ast.get_source_segment(source, kind) or ""
        for note, (kept, taken) in _TAKEN.items():
            if note in names:
                spelled = spelled.replace(kept, taken)
        settings.append(Declared(field.target.id, spelled, default, texts, names, by_position))
    return settings


def written(source: str) -> str:
    """Return the source of a module with all settings of its functions as they are declared."""
    for match in reversed(list(_MARKED.finditer(source))):
        path, *words = match["words"].split()
        types = dict(word.split("=") for word in words if "=" in word)
        needed = {word for word in words if word[0].isupper()}
        indent, settings = match["indent"], [setting for setting in declared(path) if setting.notes >= needed]
        lines = [setting.parameter(types.get(setting.name)) + "," for setting in settings]
        if settings[0].by_position:
            lines.insert(sum(setting.by_position for setting in settings), "*,")
        new = "".join(f"{indent}{line}\n" for line in lines)
        source = source[: match.start("old")] + new + source[match.end("old") :]
        line = source.count("\n", 0, match.start()) + 1
        source = _described(source, line, settings, explained="explained" in words)
    return source


def _described(source: str, line: int, settings: list[Declared], *, explained: bool) -> str:
    """Return the source with the settings described in the docstring of the function around a line."""
    function, documented = _function_at(ast.parse(source), line)
    docstring = documented.body[0]
    lines = source.splitlines(keepends=True)
    indent = " " * (docstring.col_offset + 4)
    start = lines.index(f"{indent[4:]}Args:\n", docstring.lineno - 1) + 1
    end = next(number for number in range(start, len(lines)) if not lines[number].strip())
    parameters = [each.arg for each in [*function.args.args, *function.args.kwonlyargs, function.args.kwarg] if each]
    first = parameters.index(settings[0].name)
    own = set(parameters) - {setting.name for setting in settings}
    new = [text for setting in settings for text in _description(setting, indent, explained=explained)]
    before: list[str] = []
    after: list[str] = []
    for entry in re.findall(rf"^{indent}\S.*\n(?:{indent}    .*\n)*", "".join(lines[start:end]), re.MULTILINE):
        name = entry.split(":")[0].strip()
        if name in own:  # otherwise it is declared, or was
            (before if parameters.index(name) < first else after).append(entry)
    return "".join([*lines[:start], *before, *new, *after, *lines[end:]])


def _function_at(tree: ast.Module, line: int) -> tuple[ast.FunctionDef, ast.ClassDef | ast.FunctionDef]:
    """Return the function whose signature has a line, and where it is documented."""
    for node in _documented(tree):
        functions = [node] if isinstance(node, ast.FunctionDef) else node.body
        for function in functions:
            if isinstance(function, ast.FunctionDef) and function.lineno <= line < function.body[0].lineno:
                return function, node if function.name == "__init__" else function
    raise ValueError(f"no function has settings in line {line}")


def _documented(tree: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    yield from (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))


def _description(setting: Declared, indent: str, *, explained: bool) -> list[str]:
    text = " ".join(setting.texts if explained else setting.texts[:1])
    hanging = indent + "    "
    lines = textwrap.wrap(
        f"{setting.name}: {text}",
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line + "\n" for line in lines]


def differing() -> dict[Path, str]:
    """Return the modules that are not what the declarations say, and what they would be."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    return {path: new for path, old in sources.items() if (new := written(old)) != old}


def main() -> int:
    """Write the modules that differ; with ``--check`` only name them, and return 1 if there are some."""
    changed = differing()
    for path, new in changed.items():
        sys.stdout.write(f"{path.relative_to(PACKAGE.parents[1])}\n")
        if "--check" not in sys.argv:
            path.write_text(new, encoding="utf-8")
    return int("--check" in sys.argv and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
