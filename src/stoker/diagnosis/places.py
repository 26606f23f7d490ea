"""What a thread is doing, by its stack: the place in its own code, and the kind of work.

Python's frames end where C begins: of ``image.filter(...)`` one sees who calls it, and with which instruction. That
instruction has a position in the source, and the names there have values, which tell whose C it is.
"""

from __future__ import annotations

import ast
import builtins
import dis
import itertools
import linecache
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING

from stoker.diagnosis.works import FOR_A_DEVICE, LARGE_PRODUCTS, is_image, module_of, work_of_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import FrameType

    from stoker.diagnosis.evidence import Work

_PACKAGE = str(Path(__file__).resolve().parents[1])
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED = ("site-packages", "dist-packages")
_CODE_LENGTH = 60
_PLAIN = (GetSetDescriptorType, MemberDescriptorType)
"""Of Python's own ``__dict__``, which a class may have replaced by a property."""
_COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
_GENERIC = ("numpy", "scipy", "numba")
_IN_C = ("CALL", "BINARY", "COMPARE", "CONTAINS", "STORE_SUBSCR", "UNARY", "LOAD_ATTR", "FOR_ITER", "LIST_EXTEND")
"""Parts of the names of instructions that may take long without Python; Python 3.11 calls C from ``PRECALL``, too."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread is, and what it does there; see `stoker.diagnosis.evidence.Spot`."""

    function: str
    file: str
    line: int
    code: str
    work: Work


def is_stokers(frame: FrameType) -> bool:
    """Tell whether a frame runs code of this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def is_users(frame: FrameType) -> bool:
    """Tell whether a frame runs code that is neither installed nor part of Python."""
    name = frame.f_code.co_filename
    if name.startswith(("<frozen", _PACKAGE)) or any(part in name for part in _INSTALLED):
        return False
    return not name.startswith(_STANDARD)


def place_of(chain: Sequence[FrameType]) -> Place:
    """Return where a thread is.

    Args:
        chain: Its frames from the loop, or from its beginning, to the one that runs; at least one.
    """
    shown = next((frame for frame in reversed(chain) if is_users(frame)), chain[0])
    code, node = _expression(shown)
    work = _work(chain, shown, node)
    if work == "python":  # which of its instructions it was does not matter
        code = _short(linecache.getline(shown.f_code.co_filename, shown.f_lineno))
    name = shown.f_code.co_qualname
    for inner in _COMPREHENSIONS:
        name = name.removesuffix(f".<locals>.{inner}")
    return Place(name, shown.f_code.co_filename, shown.f_lineno, code, work)


def _work(chain: Sequence[FrameType], shown: FrameType, node: ast.AST | None) -> Work:
    modules = [str(frame.f_globals.get("__name__", "")) for frame in chain if not is_users(frame)]
    generic = {work_of_module(name) for name in modules if name.partition(".")[0] in _GENERIC}
    called = {work_of_module(name) for name in modules if name.partition(".")[0] not in _GENERIC}
    # Transforms call layers of a model, but no model calls Pillow; all of them call NumPy.
    for works, known in ((called, "transform"), (called | generic, "model"), (generic, "transform")):
        if known in works:
            return known
    if "waiting" in called and "CALL" in _instruction(chain[-1]):  # and not asking only whether there is something
        return "waiting"
    work = _work_of_c(shown, node) if shown is chain[-1] else "python"
    if work in ("python", "other") and _has_images(chain, node):
        return "transform" if work == "python" else "other"
    return work


def _work_of_c(frame: FrameType, node: ast.AST | None) -> Work:
    """Return what the instruction does that a frame is at."""
    if node is None or not any(part in _instruction(frame) for part in _IN_C):
        return "python"
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
        return "model"
    called, attribute = _called(node)
    modules = [module_of(value) for value in _values(frame, called)]
    if attribute in FOR_A_DEVICE or (attribute == "sleep" and "time" in modules):
        return "waiting"
    works = [work for work in map(work_of_module, modules) if work is not None]
    if attribute in LARGE_PRODUCTS and "transform" in works:
        return "model"
    for known in ("model", "transform", "waiting"):
        if known in works:
            return known
    known_all = all(module == "builtins" or work_of_module(module) for module in modules)
    return "python" if known_all or not isinstance(node, ast.Call) else "other"


def _instruction(frame: FrameType) -> str:
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""


def _called(node: ast.AST) -> tuple[Iterable[ast.expr], str]:
    """Return what an expression depends on: the function's own name, or the operands; and the function's last name."""
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            return [function.value, function], function.attr
        return [function], function.id if isinstance(function, ast.Name) else ""
    return [child for child in ast.walk(node) if isinstance(child, ast.Name | ast.Attribute)], ""


def _values(frame: FrameType, expressions: Iterable[ast.expr]) -> list[object]:
    found = (_value(frame, expression) for expression in expressions)
    return [value for value, known in found if known]


def _value(frame: FrameType, expression: ast.expr) -> tuple[object, bool]:
    """Return what a name, or an attribute of one, stands for, and whether that is known; runs no code of anybody."""
    if isinstance(expression, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(builtins)):
            if expression.id in names:
                return names[expression.id], True
    if isinstance(expression, ast.Attribute):
        owner, known = _value(frame, expression.value)
        held = _held(owner) if known else {}
        if expression.attr in held:
            return held[expression.attr], True
    if isinstance(expression, ast.Subscript):
        return _value(frame, expression.value)
    return None, False


def _held(owner: object) -> Mapping[str, object]:
    """Return the attributes of an object itself; nothing where somebody's code would have to run for that."""
    kinds = type(owner).__mro__
    if not isinstance(next((vars(kind)["__dict__"] for kind in kinds if "__dict__" in vars(kind)), None), _PLAIN):
        return {}
    held: Mapping[str, object] = object.__getattribute__(owner, "__dict__")
    return held


def _has_images(chain: Sequence[FrameType], node: ast.AST | None) -> bool:
    """Tell whether code works on pixels: of the loop itself, which has batches anyway, by the names it is using."""
    below = [frame for frame in chain[1:] if is_users(frame)]
    if any(is_image(value) for frame in below for value in list(frame.f_locals.values())):
        return True
    used = [child for child in ast.walk(node) if isinstance(child, ast.Name)] if node is not None else []
    return any(map(is_image, _values(chain[0], used)))


def _expression(frame: FrameType) -> tuple[str, ast.AST | None]:
    """Return the source of what a frame is at, shortened, and its tree; empty and None where there is none."""
    position = next(itertools.islice(frame.f_code.co_positions(), max(0, frame.f_lasti) // 2, None), None)
    if position is None or None in position:
        return "", None
    line, last, start, end = (int(part or 0) for part in position)
    lines = [linecache.getline(frame.f_code.co_filename, number).encode() for number in range(line, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    text = b"".join(lines).decode("utf-8", "replace")
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return _short(text), None
    node: ast.AST | None = body[0] if len(body) == 1 else None
    return _short(text), node.value if isinstance(node, ast.Expr) else node


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _CODE_LENGTH else f"{flat[: _CODE_LENGTH - 3]}..."
