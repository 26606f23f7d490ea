"""``stoker completion``: the script that makes a shell complete commands, options and values."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import shtab

from stoker.cli.main import make_parser
from stoker.cli.parser import add_output_options, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")
_FILES = {"FILE", "FILE.png", "PATH", "PLACE"}
"""How the help shows the values that are paths."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command."""
    text = "Print the script that makes a shell complete the commands, options and values of stoker."
    shown = examples(
        "stoker completion bash > ~/.local/share/bash-completion/completions/stoker",
        "stoker completion zsh > ~/.zfunc/_stoker    # a folder of $fpath",
        "stoker completion fish > ~/.config/fish/completions/stoker.fish",
    )
    parser = subparsers.add_parser("completion", help=text, description=text, epilog=shown)
    parser.add_argument("shell", choices=SHELLS, help="one of %(choices)s")
    add_output_options(parser, json=False)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the script and return 0."""
    parser = make_parser([])
    for commands in (action for action in parser._actions if isinstance(action, argparse._SubParsersAction)):
        commands.help = None  # our help lists the commands elsewhere
        for command in commands.choices.values():
            for action in _taking_paths(command):
                action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
    sys.stdout.write(shtab.complete(parser, args.shell))
    return 0


def _taking_paths(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if action.choices is None and (not action.option_strings or action.metavar in {"DIR", *_FILES}):
            yield action
