"""What people type first, from the habits of other libraries, and what to write here: the answers of ``habits.tsv``.

An argument, an attribute or a name that Stoker lacks is looked up here, and otherwise among what there is.
"""

from __future__ import annotations

import difflib
import functools
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Never, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Answers = Mapping[str, str]

_T = TypeVar("_T")
_Function = TypeVar("_Function", bound="Callable[..., Any]")


def _tables() -> dict[str, Answers]:
    """Return the tables of ``habits.tsv`` by name; several words that have the same answer stand together there."""
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    for line in Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines():
        words, tab, answer = line.partition("\t")
        if tab:
            table |= dict.fromkeys(words.split(), answer)
        elif line and not line.startswith("#"):
            table = tables[line] = {}
    return {name: MappingProxyType(table) for name, table in tables.items()}


_TABLES = _tables()

LOADERS = _TABLES["LOADERS"]
OPENING = _TABLES["OPENING"]
BUILDING = _TABLES["BUILDING"]
AUDITING = _TABLES["AUDITING"]
TRANSFORMS = _TABLES["TRANSFORMS"]
DATASETS = _TABLES["DATASETS"]
BATCHES = _TABLES["BATCHES"]
ITERATING = _TABLES["ITERATING"]
OPTIONS = _TABLES["OPTIONS"]
NAMES = _TABLES["NAMES"]
PIXELS = _TABLES["PIXELS"]


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return ``; did you mean train?`` for a word that is nearly one of those known; otherwise nothing."""
    by_lower = {each.lower(): each for each in known}
    similar = difflib.get_close_matches(word.lower(), by_lower, n=1) if isinstance(word, str) else []
    return f"; did you mean {by_lower[similar[0]]}?" if similar else ""


def answer_to(word: str, known: Iterable[str], answers: Answers, of_all: str = "") -> str:
    """Return what to write instead of a word, after a colon; ``of_all`` where nothing is like it."""
    similar = difflib.get_close_matches(word, answers, n=1)
    likely = answers[similar[0]] if similar else of_all
    answer = answers.get(word) or did_you_mean(word, known)[2:] or likely
    return f": {answer}" if answer else ""


def refuse_unknown(function: str, unknown: Iterable[str], known: Iterable[str], answers: Answers) -> None:
    """Refuse keywords that a function does not have."""
    known = [name for name in known if name not in ("self", "unknown")]
    for keyword in unknown:
        hint = answer_to(keyword, [f"{name}=" for name in known], answers, f"its settings are {', '.join(known)}")
        raise TypeError(f"{function} has no setting {keyword!r}{hint}")


def no_attribute(title: str, answers: Answers) -> Callable[[Any, str], Never]:
    """Return the ``__getattr__`` of a class, which answers attributes that it lacks."""

    def getattr_(self: Any, name: str) -> Never:
        if name not in answers and hasattr(type(self), name):
            object.__getattribute__(self, name)  # a property that raised raises again, with its own message
        known = () if name.startswith("_") else dir(type(self))
        raise AttributeError(f"{title} has no attribute {name!r}{answer_to(name, known, answers)}")

    return getattr_


def answer_as_transform(cls: type[_T]) -> None:
    """Let a class of settings answer keywords that it does not have, with those of other libraries' transforms."""
    original: Any = cls.__init__
    code = original.__code__
    known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(original)
    def init(self: _T, *args: Any, **settings: Any) -> None:
        if not settings.keys() <= set(known):
            unknown = [name for name in settings if name not in known]
            refuse_unknown(f"stoker.{cls.__name__}", unknown, known, TRANSFORMS)
        original(self, *args, **settings)

    setattr(cls, "__init__", init)  # noqa: B010 - what mypy lets nobody assign


def needs_transform(function: _Function) -> _Function:
    """Let a function run without the ``transform`` that it needs, as ``...``, so that it can say what to give.

    The transform is a keyword, or the last argument that goes by position.
    """
    if "transform" in function.__code__.co_varnames[: function.__code__.co_argcount]:
        function.__defaults__ = (...,)
    else:
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "transform": ...}
    return function


def refuse_no_transform(function: str, transform: object) -> None:
    """Refuse a transform that is not given."""
    if transform is ...:
        message = f"{function} needs transform=, so that all images of a batch have one size"
        raise TypeError(f"{message}, such as transform=stoker.CenterCrop(224) or stoker.RandomResizedCrop(224)")
