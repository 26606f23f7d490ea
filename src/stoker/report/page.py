"""Pages: templates that escape what they are given, whatever it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from stoker.config import format_seconds, format_size


def render(template: str, **values: Any) -> str:
    """Return a page.

    Args:
        template: Name of a file in ``pages``.
        values: What it shows; text is escaped, except where it is ``Markup``.
    """
    return _ENVIRONMENT.get_template(template).render(**values)


def _shown(value: Any) -> Any:
    """Return text that any page can hold: the stray bytes of a name are replaced."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in value)
    return value


def count(value: float) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,.0f}"


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters |= {"count": count, "size": format_size, "seconds": format_seconds}
    return made


_ENVIRONMENT = _environment()
