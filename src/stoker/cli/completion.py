"""``stoker completion``: print the script that makes a shell complete commands, options and values."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import shtab

from stoker.cli.main import make_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

SHELLS = ("bash", "zsh", "fish")
_FILES = {"FILE", "FILE.png", "PATH"}
"""Names that the help uses for values that are paths."""

DESCRIPTION = "Print the script that makes a shell complete the commands, options and values of stoker."
EXAMPLES = (
    "stoker completion bash > ~/.local/share/bash-completion/completions/stoker",
    "stoker completion zsh > ~/.zfunc/_stoker    # a folder of $fpath",
    "stoker completion fish > ~/.config/fish/completions/stoker.fish",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="one of %(choices)s")


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
