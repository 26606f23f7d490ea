"""The pages of the reference that are made from the code say what the code says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import stoker
from repository.checkout import PACKAGE, ROOT

if importlib.util.find_spec("griffe") is None:
    pytest.skip("griffe is not installed", allow_module_level=True)

from scripts.reference import api, commands, docstrings, pages, settings

EVERYWHERE = {"-h", "--help", "-q", "--quiet", "-v", "--verbose"}  # described once for all commands
LINKS = docstrings.Links({"stoker.open": "docs/reference/api/opening.md#stokeropen"}, ROOT, settings.PAGE)


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    """The pages by their names, which take seconds to make."""
    return pages.pages()


def test_every_page_is_what_the_code_gives(generated: dict[str, str]) -> None:
    assert len(generated) > 10
    for name, text in generated.items():
        path = ROOT / name
        assert path.exists(), f"{name} is missing: run `make reference`"
        assert path.read_text(encoding="utf-8") == text, f"{name} is not what the code says: run `make reference`"


def test_no_page_is_left_of_what_was(generated: dict[str, str]) -> None:
    assert pages.stale(generated) == []


def test_every_public_name_has_a_heading(generated: dict[str, str]) -> None:
    text = "\n".join(generated.values())
    modules = {name: f"stoker.{name}" for name in ("errors", "jax", "spark", "tensorflow", "torch")}
    shown = {name: len(re.findall(rf"^## `{path}\.\w+`$", text, re.MULTILINE)) for name, path in modules.items()}
    assert all(shown.values()), shown
    names = set(stoker.__all__) - modules.keys()
    assert len(names) > 30
    assert {name for name in names if f"## `stoker.{name}`\n" not in text} == set()


def test_a_page_lists_every_argument(generated: dict[str, str]) -> None:
    section = generated[f"{api.FOLDER}/loader.md"].split("## `stoker.Loader`\n")[1].split("\n### ")[0]
    for name in stoker.Loader.__init__.__annotations__:
        assert name in ("return", "unknown") or f"\n- `{name}`: " in section, name


def test_every_command_and_option_is_described(generated: dict[str, str]) -> None:
    names = [path.stem for path in (PACKAGE / "cli").glob("*.py") if "def add_arguments(" in path.read_text("utf-8")]
    assert set(commands.parsers()) == set(names)
    for name, parser in commands.parsers().items():
        section = generated[commands.PAGE].split(f"\n## `stoker {name}`\n")[1].split("\n## ")[0]
        options = {option for action in parser._actions for option in action.option_strings} - EVERYWHERE
        assert {option for option in options if option not in section} == set(), name


def test_nothing_depends_on_the_machine(generated: dict[str, str]) -> None:
    text = "\n".join(generated.values())
    assert str(Path.home()) not in text
    assert " at 0x" not in text
    threads = [line for line in generated[commands.PAGE].splitlines() if line.startswith("| `--threads")]
    assert not any(character.isdigit() for line in threads for character in line), threads


def test_a_docstring_becomes_markdown() -> None:
    text = "Say ``a*b`` and `stoker.open` of 2**64, <b>; docs/reference/format.md:\n- c\n\n::\n\n    1 ├─ 2\n\nEnd.\n"
    assert docstrings.markdown(text, LINKS) == (
        "Say `a*b` and [`stoker.open`](api/opening.md#stokeropen) of 2\\*\\*64, &lt;b>; [format](format.md):\n\n- c\n\n"
        "```text\n1 ├─ 2\n```\n\nEnd."
    )


def test_a_table_of_a_docstring_becomes_one_of_markdown() -> None:
    text = "====  =======\nname  meaning\n====  =======\na     one\n      more\nb     x | y\n====  =======\n"
    assert docstrings.markdown(text, LINKS) == "| name | meaning |\n| --- | --- |\n| a | one more |\n| b | x \\| y |"


def test_a_docstring_that_names_a_page_that_is_gone_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/nowhere\.md"):
        docstrings.markdown("See docs/nowhere.md.", LINKS)


def test_a_public_name_on_no_page_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(api.PAGES, "opening", ("Opening data", ["open"]))
    with pytest.raises(ValueError, match="no page of the reference has RecordKeys"):
        api.Reference()


def test_a_variable_that_is_not_described_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(settings._VARIABLES, "STOKER_CACHE_DIR")
    with pytest.raises(ValueError, match="STOKER_CACHE_DIR"):
        settings.page(LINKS)
