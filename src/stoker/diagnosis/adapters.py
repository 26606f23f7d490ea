"""Finding the loader in what a training loop iterates."""

from __future__ import annotations

from stoker.errors import ConfigError
from stoker.feed import Loader

_MOST_WRAPPED = 4


def loader_of(value: object) -> Loader:
    """Return a `stoker.Loader`: the value itself, or what it, or what is in it, has as its attribute ``loader``.

    Raises:
        ConfigError: There is none.
    """
    found = value
    for _ in range(_MOST_WRAPPED):
        if not isinstance(found, Loader):
            found = getattr(found, "loader", None)
    if not isinstance(found, Loader):
        message = f"{type(value).__name__} is no stoker.Loader, and has none as its attribute 'loader'"
        raise ConfigError(f"{message}; give the loader that the training loop iterates")
    return found
