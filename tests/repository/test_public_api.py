"""The public interface is what `public_api.txt` says, down to the defaults: no change of it goes unseen."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import stoker
from repository.checkout import PACKAGE, ROOT, modules
from scripts import public_api
from small_cases import each
from stoker import errors

HOW = """The public interface has changed:

{difference}

If that is wanted: a line that goes or changes breaks somebody's program, so it needs a new major version (before 1.0 a
new minor one) and a line in CHANGELOG.md under "Changed" or "Removed"; a line that comes needs a minor version. Then

    make api
"""


def test_the_public_interface_is_the_frozen_one() -> None:
    frozen, current = public_api.FROZEN.read_text(encoding="utf-8"), public_api.api()
    difference = difflib.unified_diff(frozen.splitlines(), current.splitlines(), "frozen", "now", n=0, lineterm="")
    assert current == frozen, HOW.format(difference="\n".join(difference))


def test_nothing_depends_on_the_machine() -> None:
    text = public_api.FROZEN.read_text(encoding="utf-8")
    assert " at 0x" not in text
    assert str(Path.home()) not in text


@each("name", stoker.__all__)
def test_everything_public_is_there_and_documented(name: str) -> None:
    assert inspect.getdoc(getattr(stoker, name))


def test_every_module_is_installed() -> None:
    # Patterns of the build backend could leave one out, and no import of the checkout would show it.
    for path in modules():
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        assert importlib.util.find_spec(name.removesuffix(".__init__")), name


def test_the_drawn_tree_of_errors_is_the_tree() -> None:
    drawn = errors.__doc__ or ""
    depth = {}
    for line in drawn.splitlines():
        name = line.lstrip(" │├└─").split(" ")[0]
        if name.endswith(("Error", "Warning")):
            depth[name] = line.index(name) // 4
    defined = {name: cls for name, cls in vars(errors).items() if inspect.isclass(cls)}
    assert set(depth) == {*defined, "UserWarning"}
    for name, cls in defined.items():
        root = UserWarning if issubclass(cls, UserWarning) else errors.StokerError
        ancestors = [ancestor for ancestor in cls.__mro__ if issubclass(ancestor, root)]
        assert len(ancestors) - 1 == depth[name] - depth[root.__name__], name


@pytest.mark.needs("nanobind")
def test_the_stub_is_current() -> None:
    program = [sys.executable, str(ROOT / "scripts" / "stub.py")]
    generated = subprocess.run(program, check=True, capture_output=True, text=True, timeout=60).stdout
    checked_in = (PACKAGE / "_native.pyi").read_text(encoding="utf-8")
    assert generated == checked_in, (
        "the extension's signatures have changed: run `make stub` and look at the difference"
    )
