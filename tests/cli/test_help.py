"""The help of every command: it fits a terminal, its options are in groups, and its examples can be typed."""

from __future__ import annotations

import shlex

import pytest

from stoker.cli.main import COMMANDS, main, make_parser

WIDTH = 80


def help_of(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines that a terminal of 80 columns shows."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    return capsys.readouterr().out.splitlines()


def section(lines: list[str], title: str) -> list[str]:
    start = lines.index(title) + 1
    end = next((number for number in range(start, len(lines)) if not lines[number].startswith(" ")), len(lines))
    return lines[start:end]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_terminals(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = help_of(command, monkeypatch, capsys)
    assert [line for line in lines if len(line) > WIDTH or line.rstrip() != line] == []
    assert lines[0].startswith(f"usage: stoker {command or 'COMMAND'} [OPTIONS]")
    assert len(lines[0]) <= WIDTH


@pytest.mark.parametrize("command", COMMANDS)
def test_options_have_groups(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = help_of(command, monkeypatch, capsys)
    titles = {line for line in lines if line.endswith(":") and not line.startswith(" ")}
    assert "output:" in titles
    assert titles & {"options:", "optional arguments:", "positional arguments:"} == set()
    assert [line.split()[0] for line in section(lines, "help:")] == ["-h,"]  # an option that is in no group lands here


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_examples_are_parsed(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    examples = section(help_of(command, monkeypatch, capsys), "examples:")
    assert examples
    for line in examples:
        program, *words = shlex.split(line.partition(" > ")[0], comments=True)
        assert program == "stoker"
        if words[0] != "help":
            assert make_parser(words).parse_args(words).command == (command or words[0])
