"""Who may import whom: the package keeps to layers.toml, and a violation would be found."""

from __future__ import annotations

import pytest

from repository.checkout import PACKAGE
from repository.imports import LIST, Rules, Tree, problems
from small_cases import each

RULES = Rules(
    layers=[["cli"], ["loader", "builder"], ["order"], ["_native"], ["errors"]],
    only_in={"numpy": ["*"], "rich": ["cli.table"], "stoker._native": ["order"]},
)
SOUND = {
    "__init__.py": "from stoker.loader import Loader\n",
    "cli/__init__.py": "",
    "cli/main.py": "from stoker.cli.table import show\nfrom stoker.loader import Loader\n",
    "cli/table.py": "import rich\n\ndef show():\n    from stoker.order import permute\n",
    "loader/__init__.py": "from .batches import Loader\n__all__ = ['Loader']\n",
    "loader/batches.py": "import numpy as np\nfrom stoker.order import permute\nclass Loader: ...\nclass Hidden: ...\n",
    "builder.py": "from stoker.errors import BuildError\nclass Plan: ...\n",
    "order/__init__.py": "from stoker.order.permutation import permute\n",
    "order/permutation.py": "from stoker import _native\nimport math\n",
    "errors.py": "class BuildError(Exception): ...\n",
}


@pytest.mark.slow
def test_the_package_keeps_to_the_list() -> None:
    violations = problems(Tree.below(PACKAGE), Rules.read(LIST))
    assert violations == [], "\n".join([f"{LIST.name}:", *violations])


def test_a_sound_tree_has_no_problems() -> None:
    assert problems(Tree(SOUND), RULES) == []


@each(
    ("module", "line", "problem"),
    [
        ("order/permutation.py", "from stoker.loader import Loader", "loader is not below order"),
        ("builder.py", "from stoker.loader import Loader", "loader is not below builder"),
        ("builder.py", "if TYPE_CHECKING:\n    from stoker.loader import Loader", "loader is not below builder"),
        ("errors.py", "def late():\n    import stoker.order", "order is not below errors"),
        ("errors.py", "from stoker import _native", "_native is not below errors"),
        ("order/permutation.py", "from ..loader import Loader", "loader is not below order"),
        ("cli/main.py", "from stoker.loader.batches import Loader", "not among what loader exports"),
        ("cli/main.py", "from stoker.loader import batches", "not among what loader exports"),
        ("cli/main.py", "from stoker.loader import Hidden", "not among what loader exports"),
        ("cli/main.py", "import stoker.loader.batches", "not among what loader exports"),
        ("cli/main.py", "from stoker.order import repeat", "not among what order exports"),
        ("cli/main.py", "from stoker.builder import BuildError", "not among what builder exports"),
        ("cli/main.py", "from stoker.builder import _plan", "not among what builder exports"),
        ("cli/main.py", "import stoker", "the package itself re-exports upper layers"),
        ("cli/main.py", "from stoker import Loader", "the package itself re-exports upper layers"),
        ("cli/main.py", "import rich.table", "rich may be imported only in cli.table"),
        ("cli/main.py", "import torch", "torch may be imported only in no module"),
        ("cli/main.py", "from stoker import _native", "stoker._native may be imported only in order"),
        ("order/permutation.py", "from stoker.order import permute", "import each other: stoker.order, stoker.order.p"),
        ("builder.py", "class Loader: ...", "class Loader is in stoker.builder and stoker.loader.batches"),
        ("annex.py", "", "stoker.annex is in no layer"),
    ],
)
def test_a_violation_is_found(module: str, line: str, problem: str) -> None:
    violations = problems(Tree({**SOUND, module: f"{SOUND.get(module, '')}\n{line}\n"}), RULES)
    assert any(problem in line for line in violations), violations


def test_a_rule_without_use_is_found() -> None:
    rules = Rules(
        layers=[["cli"], ["loader", "builder"], ["order", "store"], ["_native"], ["errors", "order"]],
        only_in={**RULES.only_in, "torch": ["loader"]},
    )
    violations = problems(Tree(SOUND), rules)
    for problem in (
        "stoker.store is in a layer, but there is no such package",
        "stoker.order is in more than one layer",
        "loader may import torch and does not",
    ):
        assert problem in violations
