"""Write the pages of the reference that are made from the code: ``python -m scripts.reference.pages``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.reference import api, commands, settings
from scripts.reference.docstrings import Links

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = api.ROOT


def pages() -> dict[str, str]:
    """Return the text of each page by its path in the repository."""
    reference = api.Reference()
    links = Links(reference.addresses, ROOT, settings.PAGE)
    return {**reference.pages(), commands.PAGE: commands.page(), settings.PAGE: settings.page(links)}


def stale(current: Iterable[str]) -> list[str]:
    """Return pages of the API that are there and are not among those that are made."""
    there = (path.relative_to(ROOT).as_posix() for path in (ROOT / api.FOLDER).glob("*.md"))
    return sorted(set(there) - set(current))


if __name__ == "__main__":
    current = pages()
    for name in stale(current):
        (ROOT / name).unlink()
    for name, text in current.items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text, encoding="utf-8")
