"""Write the public interface into ``tests/repository/public_api.txt``: ``python -m scripts.public_api``.

Names, signatures, fields and errors of the Python API; commands, options and defaults of the command line; exit codes.
The adapters of frameworks are read, not imported, so that no framework need be installed. Defaults that depend on the
machine are written as such.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import stoker
from stoker import errors
from stoker.cli import output as exit_codes
from stoker.cli.main import make_parser
from stoker.declare import Settings
from stoker.transforms import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

FROZEN = Path(__file__).parents[1] / "tests/repository/public_api.txt"
ADAPTERS = ("jax", "spark", "tensorflow", "torch")
IN_PACKAGES = {
    "stoker.fields": (
        *("Array", "Boxes", "Bytes", "Float", "Image", "Int", "Json", "Label", "Labels", "Mask", "Text"),
        *("Padded", "Ragged", "infer"),
    ),
    "stoker.image": ("ImageInfo", "decode", "encode", "info"),
    "stoker.order": ("EpochOrder", "ShuffleQuality", "shuffle_quality"),
}
_INTERNAL = {*vars(Settings), *vars(Operation)}  # what classes of settings have in common
_OF_THE_MACHINE = {"threads"}
_PROTOCOL = {"__call__", "__contains__", "__enter__", "__exit__", "__getitem__", "__iter__", "__len__", "__next__"}


def api() -> str:
    """Return the whole interface as text, one line for each thing that may not change unseen."""
    return "\n".join([*_python(), *_adapters(), *_errors(), *_commands(), *_exit_codes(), ""])


def _python() -> Iterator[str]:
    for package, names in {"stoker": tuple(stoker.__all__), **IN_PACKAGES}.items():
        for name in names:
            thing = getattr(importlib.import_module(package), name)
            if inspect.isclass(thing):
                yield from _class(f"{package}.{name}", thing)
            elif callable(thing):
                yield f"function {package}.{name}{inspect.signature(thing)}"
            else:
                yield f"module {package}.{name}"


def _class(name: str, cls: type) -> Iterator[str]:
    kind = "frozen dataclass" if _is_frozen(cls) else "dataclass" if dataclasses.is_dataclass(cls) else "class"
    yield f"{kind} {name}{inspect.signature(cls)}"
    fields = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
    for attribute in sorted({*fields, *_documented(cls)}):
        yield f"  attribute {attribute}"
    for member in sorted(dir(cls)):
        if (not member.startswith("_") or member in _PROTOCOL) and member not in [*fields, *_INTERNAL]:
            yield from _member(member, inspect.getattr_static(cls, member))


def _is_frozen(cls: type) -> bool:
    return dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen  # type: ignore[attr-defined]


def _documented(cls: type) -> list[str]:
    """Names in the section "Attributes" of the docstring."""
    section = re.search(r"\nAttributes:\n((?:    .*\n|\n)*)", (inspect.getdoc(cls) or "") + "\n")
    lines = re.findall(r"^    (\w+(?:, \w+)*):", section[1], re.MULTILINE) if section else []
    return [name for line in lines for name in line.split(", ")]


def _member(name: str, member: object) -> Iterator[str]:
    if isinstance(member, (classmethod, staticmethod)):
        yield f"  {type(member).__name__} {name}{inspect.signature(member.__func__)}"
    elif isinstance(member, (property, functools.cached_property)):
        getter = member.fget if isinstance(member, property) else member.func
        yield f"  property {name} -> {inspect.signature(getter).return_annotation}" if getter else f"  property {name}"
    elif inspect.isfunction(member):
        yield f"  method {name}{inspect.signature(member)}"


def _adapters() -> Iterator[str]:
    package = Path(stoker.__file__).parent
    for adapter in ADAPTERS:
        folder = package / adapter
        files = sorted(folder.glob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
        trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
        public = _listed(trees)
        for node in sorted(_definitions(trees), key=lambda node: node.name):
            if node.name in public if public else not node.name.startswith("_"):
                yield from _read(f"stoker.{adapter}.{node.name}", node)


def _listed(trees: list[ast.Module]) -> set[str]:
    """Names in ``__all__``, of the file that has one."""
    for node in (node for tree in trees for node in tree.body if isinstance(node, ast.Assign)):
        if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def _definitions(trees: list[ast.Module]) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    yield from (node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))


def _read(name: str, node: ast.ClassDef | ast.FunctionDef) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef):
        yield f"function {name}{_signature(node)}"
        return
    yield f"class {name}({', '.join(ast.unparse(base) for base in node.bases)})"
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and not part.target.id.startswith("_"):
            yield f"  attribute {ast.unparse(part)}"
        elif isinstance(part, ast.FunctionDef) and _is_public(part.name):
            kinds = [ast.unparse(decorator) for decorator in part.decorator_list]
            yield f"  {' '.join([*kinds, 'method'])} {part.name}{_signature(part)}"


def _is_public(name: str) -> bool:
    return not name.startswith("_") or name == "__init__" or name in _PROTOCOL


def _signature(node: ast.FunctionDef) -> str:
    return f"({ast.unparse(node.args)})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def _errors() -> Iterator[str]:
    for name, cls in vars(errors).items():
        if inspect.isclass(cls) and cls.__module__ == errors.__name__:
            yield f"exception stoker.errors.{name}({', '.join(base.__name__ for base in cls.__bases__)})"
            yield from (f"  attribute {attribute}" for attribute in _documented(cls))


def _commands() -> Iterator[str]:
    commands = next(action for action in make_parser([])._actions if isinstance(action, argparse._SubParsersAction))
    for _, parser in sorted(commands.choices.items()):
        yield f"command {parser.prog}"
        yield from textwrap.indent("\n".join(map(_option, parser._actions[1:])), "  ").splitlines()


def _option(action: argparse.Action) -> str:
    words = [", ".join(action.option_strings) or f"argument {action.dest}"]
    if not action.option_strings and not action.required:
        words.append("may be left out")
    if action.nargs is not None:
        words.append(f"nargs={action.nargs}")
    if action.choices is not None:
        words.append(f"one of {', '.join(map(str, action.choices))}")
    if action.required and action.option_strings:
        words.append("required")
    if action.default is not argparse.SUPPRESS and action.default is not None:
        words.append("default of the machine" if action.dest in _OF_THE_MACHINE else f"default {action.default!r}")
    return "; ".join(words)


def _exit_codes() -> Iterator[str]:
    yield "exit code 0 EXIT_DONE"
    for name, code in vars(exit_codes).items():
        if name.startswith("EXIT_"):
            yield f"exit code {code} {name}"


if __name__ == "__main__":
    FROZEN.write_text(api(), encoding="utf-8")
