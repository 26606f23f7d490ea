"""Views and epochs as people type them."""

from __future__ import annotations

import ast
import re
from typing import Any

from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.views import CenterCrop, ColorJitter, ImageView, ObjectCrops, RandomResizedCrop, RawTensor, Resize, TopLeft

SheetView = ImageView | ObjectCrops
"""A view that a sheet can show."""

NAMED: dict[str, SheetView] = {
    "train": RandomResizedCrop(224, hflip=0.5),
    "eval": CenterCrop(224, resize=256),
    "jitter": RandomResizedCrop(224, hflip=0.5, color_jitter=ColorJitter(0.4, 0.4, 0.4, 0.1)),
    "objects": ObjectCrops(224),
}
"""Views that have a name."""

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (CenterCrop, ColorJitter, ObjectCrops, RandomResizedCrop, RawTensor, Resize, TopLeft)
}
_EPOCHS = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_MOST_TEXT = 2000
_MOST_EPOCHS = 30


def parse_views(text: str) -> tuple[SheetView, ...]:
    """Return the views that a text names, such as ``train,eval`` or ``RandomResizedCrop(96, scale=(0.2, 1)),eval``.

    The text is read, never run: names of `NAMED`, and the classes of `stoker.views` with numbers and texts.

    Raises:
        ConfigError: It is something else, or a setting is out of range.
    """
    try:
        if len(text) > _MOST_TEXT:
            raise ValueError(f"longer than {_MOST_TEXT} characters")
        tree = ast.parse(f"({text},)", mode="eval").body
        assert isinstance(tree, ast.Tuple)
        return tuple(_view(node) for node in tree.elts)
    except ConfigError:
        raise
    except (SyntaxError, ValueError, TypeError, AssertionError, RecursionError, MemoryError) as error:
        detail = error.msg if isinstance(error, SyntaxError) else str(error)
        known = f"{', '.join(NAMED)}, or for example 'RandomResizedCrop(224, scale=(0.2, 1)),eval'"
        raise ConfigError(f"--views {text[:200]!r} cannot be read ({detail}); give {known}") from error


def _view(node: ast.expr) -> SheetView:
    if isinstance(node, ast.Name) and node.id in NAMED:
        return NAMED[node.id]
    made = _value(node)
    if not isinstance(made, SheetView):
        raise ValueError(f"{ast.unparse(node)[:60]} is no view")
    return made


def _value(node: ast.expr) -> Any:
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    if not isinstance(node.func, ast.Name) or node.func.id not in _KINDS:
        raise ValueError(f"no view is called {ast.unparse(node.func)[:60]}")
    if any(word.arg is None for word in node.keywords):
        raise ValueError("settings are given by name")
    words = {str(word.arg): _value(word.value) for word in node.keywords}
    return _KINDS[node.func.id](*map(_value, node.args), **words)


def parse_epochs(text: str) -> tuple[int, ...]:
    """Return the epochs of a text such as ``0-3`` or ``0,5,89``.

    Raises:
        ConfigError: It is something else, or names too many.
    """
    epochs: list[int] = []
    for part in text.split(","):
        found = _EPOCHS.fullmatch(part.strip())
        if found is None:
            raise ConfigError(f"--epochs is {text[:200]!r}; give for example 0-3, or 0,5,89")
        first, last = int(found[1]), int(found[2] or found[1])
        check_range("--epochs (how many)", len(epochs) + last - first + 1, len(epochs) + 1, _MOST_EPOCHS)
        epochs += range(first, last + 1)
    return tuple(epochs)
