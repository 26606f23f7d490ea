"""The page of the command line, made from the parsers themselves."""

from __future__ import annotations

import argparse
import re
import textwrap

import stoker.cli.main
from stoker.cli.main import COMMAND_GROUPS
from stoker.cli.output import EXIT_CODES

PAGE = "docs/reference/cli.md"
_WIDTH = 1000
_OF_THE_MACHINE = {"threads": "N"}
"""Defaults that depend on the machine, and how the page says them."""

_INTRODUCTION = """Made from the parsers by `make reference`; `stoker COMMAND --help` says the same. Every command
reports what is wrong on standard error."""


_EVERYWHERE = """`-h` or `--help`, `-q` or `--quiet` (print warnings, errors and the result alone), `-v` or `--verbose`
(print more: whole lists, retries of stores), before or after the command; and `stoker --version`."""


def page() -> str:
    """Return the Markdown of all commands."""
    parts = ["# Command line", _INTRODUCTION]
    for title, group in COMMAND_GROUPS.items():
        rows = [f"| [`{name}`](#stoker-{name}) | {_cell(text)} |" for name, text in group.items()]
        parts.append("\n".join([f"| {title} | |", "|---|---|", *rows]))
    parts += ["## Options of all commands", _EVERYWHERE, "## Exit codes", *_exit_codes()]
    for name, parser in sorted(parsers().items()):
        parts += [f"## `stoker {name}`", *_command(parser)]
    return "\n\n".join(parts) + "\n"


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command."""
    return _subparsers(_whole())


def _whole() -> argparse.ArgumentParser:
    return stoker.cli.main.make_parser([])


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: parser for action in actions for name, parser in action.choices.items()}


def _exit_codes() -> list[str]:
    rows = [f"| {code} | {_cell(meaning)} |" for code, meaning in EXIT_CODES.items()]
    return ["\n".join(["| code | meaning |", "|---:|---|", *rows])]


def _command(parser: argparse.ArgumentParser) -> list[str]:
    parts = [_sentence(parser.description), _usage(parser), *_options(parser)]
    if parser.epilog:
        parts.append(_epilog(parser.epilog))
    for name, nested in _subparsers(parser).items():
        parts += [f"### `{parser.prog} {name}`", *_command(nested)]
    return parts


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """Return a table of each group of options."""
    tables = []
    for group in parser._action_groups:
        rows = [_action(parser, action) for action in group._group_actions if _is_shown(action)]
        if rows:
            title = "arguments" if group.title == "positional arguments" else group.title or "options"
            tables.append("\n".join([f"| {_cell(title)} | |", "|---|---|", *rows]))
    return tables


def _usage(parser: argparse.ArgumentParser) -> str:
    """Return the line of a command, its options apart: they are in the tables below."""
    arguments = [action for action in parser._actions if not action.option_strings and _is_shown(action)]
    usage = argparse.HelpFormatter(parser.prog, width=_WIDTH)
    usage.add_usage(None, arguments, [], prefix="")
    return f"```text\n{' '.join(usage.format_help().split()).replace(parser.prog, f'{parser.prog} [options]', 1)}\n```"


def _is_shown(action: argparse.Action) -> bool:
    if {"--help", "--quiet", "--verbose"} & set(action.option_strings):
        return False
    return action.help is not argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction)


def _action(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = argparse.HelpFormatter(parser.prog)
    invocation = formatter._format_action_invocation(action)
    return f"| {_code(invocation)} | {_cell(_help(formatter, action))} |"


def _help(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    if not action.help:
        return ""
    default = action.default
    action.default = _OF_THE_MACHINE.get(action.dest, default)
    try:
        return formatter._expand_help(action)
    finally:
        action.default = default


def _epilog(text: str) -> str:
    """Return what stands below the options; lines that are set in are commands."""
    parts = re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n"))
    return "\n\n".join(_block(part) for part in parts)


def _block(text: str) -> str:
    head, _, rest = text.partition("\n")
    if head.startswith(" "):
        return f"```sh\n{textwrap.dedent(text)}\n```"
    if rest.startswith(" "):
        return f"{_cell(head)}\n\n```sh\n{textwrap.dedent(rest)}\n```"
    return _cell(text)


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _cell(text: str) -> str:
    """Text that means itself in a table; words with markup in them become code."""
    plain = text.replace("``", "`").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
    return plain.replace("*", "\\*").replace("_", "\\_") if "`" not in plain else plain


def _sentence(text: str | None) -> str:
    text = _cell(text or "")
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
