"""The page of the command line, made from the parsers themselves."""

from __future__ import annotations

import argparse
from functools import partial

import stoker.cli.main
from stoker.cli.output import EXIT_CODES

_WIDTH = 96  # of usage lines; the default would be that of the terminal


def page() -> str:
    """Return the Markdown of all commands."""
    parts = ["# Command line", _INTRODUCTION, *_exit_codes()]
    for name, parser in sorted(parsers().items()):
        parts += [f"## stoker {name}", _sentence(parser.description), *_usage(parser), *_arguments(parser)]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """Every command ends with one of the codes below, reports what is wrong on standard error, and prints
one JSON document with `--json`. `stoker COMMAND --help` says the same as this page, which is made from it."""


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command."""
    whole = stoker.cli.main._parser([])
    (commands,) = [action for action in whole._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(commands.choices)


def _exit_codes() -> list[str]:
    rows = [f"| {code} | {_cell(meaning)} |" for code, meaning in EXIT_CODES.items()]
    return ["\n".join(["| code | meaning |", "|---:|---|", *rows])]


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    parser.formatter_class = partial(argparse.HelpFormatter, width=_WIDTH)
    return [f"```text\n{parser.format_usage().removeprefix('usage: ').rstrip()}\n```"]


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    formatter = argparse.HelpFormatter(parser.prog)
    rows = []
    for action in parser._actions:
        if action.help is not argparse.SUPPRESS and "--help" not in action.option_strings:
            invocation = formatter._format_action_invocation(action)
            rows.append(f"| {_code(invocation)} | {_cell(formatter._expand_help(action) if action.help else '')} |")
    return ["\n".join(["| argument | what it says |", "|---|---|", *rows])] if rows else []


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _cell(text: str) -> str:
    """Text that means itself in a table; words with markup in them become code."""
    plain = text.replace("``", "`").replace("|", "\\|").replace("<", "&lt;")
    return plain.replace("*", "\\*").replace("_", "\\_") if "`" not in plain else plain


def _sentence(text: str | None) -> str:
    text = _cell(text or "")
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
