"""Settings are declared once, as annotated fields of a dataclass; checks, signatures and help derive from that.

>>> @dataclass(frozen=True, kw_only=True)                            # doctest: +SKIP
... class LoaderSettings(Settings):
...     decode: Annotated[Literal["exact", "fast"], "How images are decoded."] = "exact"
...     max_bad: Annotated[int, Range(0, 2**62), "Number of bad samples that an epoch may replace."] = 100

The first text says what a setting is; a second text appears only where settings are explained in full. `make settings`
writes the signatures and docstrings of public functions from both. A function among the notes checks the value: it gets
the name that messages use and the value, and returns the value to store.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from stoker.config import alternatives, check_choice, check_range, without_address
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self


@dataclass(frozen=True, slots=True)
class Range:
    """The setting is a whole number from ``low`` to ``high``."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Instance:
    """The setting is an object of one of the classes in its type."""

    known: str = ""  # how messages describe these objects. Default: by the names of the classes


def path_or_url(shown: str, value: Any) -> str:
    """Return a path or a URL as text; functions take any ``LocationLike``."""
    if isinstance(value, (list, tuple, dict)):
        raise ConfigError(f"{shown} is {without_address(value)}; it must be the path or the URL of a file")
    return str(value)


def names(_shown: str, value: Any) -> tuple[str, ...]:
    """Return names as a tuple; functions take a sequence, or a text with commas between them, or ``none``."""
    if not isinstance(value, str):
        return tuple(map(str, value))
    return () if value == "none" else tuple(value.split(","))


@dataclass(frozen=True, slots=True)
class OfOrder:
    """The setting decides which samples come when, so a saved state depends on it."""


@dataclass(frozen=True, slots=True)
class Command:
    """The setting is an option of commands."""

    group: str  # its group of options in the help
    metavar: str | None = None  # what stands for its value in the help
    names: tuple[str, ...] = ()  # of the option. Default: the name of the setting, with dashes
    choices: tuple[Any, ...] = ()  # its possible values, if the type does not say them


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of one setting."""

    name: str
    types: tuple[Any, ...]  # types of its values: the members of a union, or the one type
    default: Any  # its value if it is not given
    notes: tuple[Any, ...]  # the rest of the annotation

    @property
    def words(self) -> list[Any]:
        """The values that the type lists."""
        return [word for each in self.types if get_origin(each) is Literal for word in get_args(each)]

    @property
    def help(self) -> str:
        """The first text of the setting: what it is."""
        return next(note for note in self.notes if isinstance(note, str))

    @property
    def command(self) -> Command | None:
        """Its option in commands; None without one."""
        return next((note for note in self.notes if isinstance(note, Command)), None)

    def checked(self, value: Any, shown: str) -> Any:
        """Return a value of this setting, which messages call ``shown``; whole numbers become Python's ``int``."""
        if value is None and NoneType in self.types:
            return value
        for check in filter(callable, self.notes):
            value = check(shown, value)
        if self.types == (bool,) and not isinstance(value, bool):  # commands always give a bool
            raise ConfigError(f"{self.name} is {without_address(value)}; it must be True or False")
        if self.words:
            check_choice(shown, value, self.words)
        for note in self.notes:
            if isinstance(note, Range):
                return check_range(shown, value, note.low, note.high)
            if isinstance(note, Instance) and not isinstance(value, self.types):
                known = note.known or alternatives([name for each in self.types for name in _names(each)])
                raise ConfigError(f"{shown} is {without_address(value)}; it must be {known}")
        return value


def _names(kind: type) -> tuple[str, ...]:
    if kind is bool:
        return "True", "False"
    return ("None",) if kind is NoneType else (f"a stoker.{kind.__name__}",)


@functools.cache
def declared(cls: type[Settings]) -> tuple[Setting, ...]:
    """Return the settings of a class, in order."""
    # Annotations are read when settings are first made, not with the import.
    hints = get_type_hints(cls, include_extras=True)
    own_fields = fields(cls)  # type: ignore[arg-type]  # every subclass is a dataclass
    return tuple(_setting(field.name, hints[field.name], field.default) for field in own_fields)


def _setting(name: str, hint: Any, default: Any) -> Setting:
    kind, notes = (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())
    return Setting(name, get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,), default, notes)


class Settings:
    """Base of a frozen dataclass of settings, which checks each as declared; a subclass checks combinations."""

    def __post_init__(self) -> None:
        for setting in declared(type(self)):  # type: ignore[arg-type]  # mypy takes a class for an instance
            value = setting.checked(getattr(self, setting.name), self.shown(setting.name))
            object.__setattr__(self, setting.name, value)

    def values(self) -> dict[str, Any]:
        """Return the value of each setting, by its name."""
        return {setting.name: getattr(self, setting.name) for setting in declared(type(self))}  # type: ignore[arg-type]

    def given(self) -> dict[str, Any]:
        """Return the values that are not the defaults, by name."""
        return {
            setting.name: value
            for setting in declared(type(self))  # type: ignore[arg-type]
            if (value := getattr(self, setting.name)) != setting.default
        }

    @staticmethod
    def shown(name: str) -> str:
        """Return how messages name a setting."""
        return name

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the settings among the arguments of a function, which must have all of them."""
        return cls(**{setting.name: arguments[setting.name] for setting in declared(cls)})  # type: ignore[arg-type]
