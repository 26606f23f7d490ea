"""Where a command writes what it was asked for: checked before the work begins."""

from __future__ import annotations

from stoker.cli.parser import UsageError
from stoker.storage import location


def check_place(option: str, path: str) -> None:
    """Refuse a file that cannot be written because its folder is missing, or because it is a folder itself.

    Raises:
        UsageError: It cannot; the message names the option.
    """
    place = location(path)
    if place.is_local and not place.parent.is_dir():
        raise UsageError(f"{option} is {path!r}, and there is no folder {str(place.parent)!r}; make it first")
    if place.is_local and place.is_dir():
        raise UsageError(f"{option} is {path!r}, which is a folder; name a file")
