"""Parsing the command line: argparse, with errors of one line that suggest what was probably meant."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from stoker.config import alternatives
from stoker.errors import ConfigError
from stoker.habits import OPTIONS, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

_Action = TypeVar("_Action", bound=argparse.Action)

_MAX_WIDTH = 100
_HELP_COLUMN = 27
_NO_VALUE = re.compile(r"argument (?P<name>[^/:]+).*: ignored explicit argument (?P<value>'.*')", re.DOTALL)
"""The error of argparse for ``--json=3``."""


class UsageError(ConfigError):
    """The arguments of a command are wrong or contradict each other; `stoker.cli.main` adds where its help is."""


class CommandParser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` whose errors are `UsageError`: what is wrong, and what was probably meant.

    Options may be abbreviated if that is unambiguous, and written with underscores.
    """

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", _HelpFormatter)
        super().__init__(**settings)
        self._positionals.title = "arguments"
        self._optionals.title = "help"

    def _add_action(self, action: _Action) -> _Action:
        """Add an argument; a positional argument has the same name in usage, help and errors."""
        if not action.option_strings and action.metavar is None:
            action.metavar = action.dest.upper()
        return super()._add_action(action)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the words; an option or a word that the command does not take is an error."""
        assert args is not None, "main() passes the words"
        parsed, extras = super().parse_known_args(self._with_full_names(args), namespace)
        if extras and extras[0].startswith("-"):
            self.error(f"no option {extras[0]}")
        if extras:
            is_expanded = sum(map(os.path.isfile, args)) > 1
            advice = "; put a pattern into quotes, as in 'photos/*.jpg', or the shell gives each file as a word"
            self.error(f"one word too many: {extras[0]!r}{advice if is_expanded else ''}")
        return parsed, extras

    def _with_full_names(self, words: Sequence[str]) -> list[str]:
        """Return the words with the full names of the options that this parser reads."""
        expanded: list[str] = []
        for number, word in enumerate(words):
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return [*expanded, *words[number:]]
            expanded.append(self._option(word) if word.startswith("--") else self._short_option(word))
        return expanded

    def _short_option(self, word: str) -> str:
        """Return a word with one dash or none; refuse unknown options before argparse reports missing arguments."""
        is_value = len(word) < 2 or word[0] != "-" or " " in word or self._negative_number_matcher.match(word)
        if not is_value and word[:2] not in self._option_string_actions:
            self.error(f"no option {word}")
        return word

    def _option(self, word: str) -> str:
        typed, equals, value = word.partition("=")
        name = typed.replace("_", "-")
        known = [option for option in self._option_string_actions if option.startswith("--")]
        matching = [name] if name in known else [option for option in known if option.startswith(name)]
        if " " in typed:  # argparse takes it for a value
            return word
        if not matching:
            answer = OPTIONS.get(name, "")
            hint = f"; use {answer}" if answer.split(" ")[0] in known else did_you_mean(name, known)
            self.error(f"no option {typed}{hint}")
        if len({id(self._option_string_actions[option]) for option in matching}) > 1:
            self.error(f"{typed} is ambiguous: it could be {alternatives(matching)}")
        return f"{matching[0]}{equals}{value}"

    # Errors about one argument. The messages of argparse show values in another form than ours, and suggest
    # nothing before Python 3.14.

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            self.error(f"{_name(action)} is {value!r}; it must be {alternatives(known)}{did_you_mean(value, known)}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        if not arg_string and action.nargs != argparse.PARSER:  # as a path it would mean the current directory
            self.error(f"{_name(action)} is empty; is a variable of the shell not set?")
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            kind = "a whole number" if action.type is int else "a number"
            self.error(f"{_name(action)} is {arg_string!r}; it must be {kind}")

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            self.error(f"{_name(action)} needs a value: {_name(action)} {action.metavar}")

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` with what argparse would print after its usage."""
        if no_value := _NO_VALUE.fullmatch(message):
            message = f"{no_value['name']} takes no value, but {no_value['value']} is given"
        raise UsageError(message.replace("the following arguments are required:", f"{self.prog} needs"))

    def format_help(self) -> str:
        """Return the help, whose first line does not repeat every option."""
        if self.usage is None:
            needed = [action for action in self._get_optional_actions() if action.required]
            shown = map(_placeholder, [*needed, *self._get_positional_actions()])
            self.usage = " ".join([self.prog, "[OPTIONS]", *shown])
        return super().format_help()


class _HelpFormatter(argparse.HelpFormatter):
    """Keeps the lines of a text that has several, such as examples, and wraps the others."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns, _MAX_WIDTH) - 2
        super().__init__(prog, max_help_position=_HELP_COLUMN, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


def _name(action: argparse.Action) -> str:
    return action.option_strings[0] if action.option_strings else str(action.metavar)


def _placeholder(action: argparse.Action) -> str:
    shown = " ".join([*action.option_strings[:1], str(action.metavar), *["..."] * (action.nargs == "+")])
    return shown if action.required else f"[{shown}]"
