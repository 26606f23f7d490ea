"""What ``import stoker`` and the help of the command line load: nothing that takes long."""

from __future__ import annotations

import pytest

import stoker
from programs import output_of

PROGRAM = "import sys; before = set(sys.modules)\n{}\nprint(*sorted(set(sys.modules) - before))"


def loaded(statement: str) -> set[str]:
    """The modules that a statement imports in a new process."""
    return set(output_of(PROGRAM.format(statement)).splitlines()[-1].split())


def test_the_package_loads_its_errors_alone() -> None:
    modules = loaded("import stoker")
    assert {name for name in modules if name.startswith("stoker")} == {"stoker", "stoker.errors"}
    assert modules & {"torch", "tensorflow", "jax"} == set()


@pytest.mark.parametrize("word", ["--help", "--version"])
def test_the_help_loads_no_command(word: str) -> None:
    main = f"import contextlib, stoker.cli.main\nwith contextlib.suppress(SystemExit): stoker.cli.main.main([{word!r}])"
    modules = loaded(main)
    assert {name for name in modules if name.startswith("stoker.cli.")} == {
        "stoker.cli.main",
        "stoker.cli.output",
        "stoker.cli.parser",
    }
    assert modules & {"numpy", "PIL", "aiohttp", "stoker.loader", "stoker.builder"} == set()


def test_every_public_name_is_found_and_listed() -> None:
    modules = {"fields", "image", "inspect", "jax", "order", "spark", "tensorflow", "torch", "transforms"}
    assert {*stoker.__all__, *modules, "__version__"} == set(dir(stoker))
    program = "import stoker; stoker.order.shuffle_quality; stoker.inspect.examine; stoker.transforms.Transform"
    assert "stoker.inspect.diagnosis" in loaded(program)
    for name in stoker.__all__:
        assert getattr(stoker, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Lodaer'"):
        _ = stoker.Lodaer
