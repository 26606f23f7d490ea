"""Names of any origin, made fit to be shown: no text of a file may command the terminal that it comes to."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return text that any terminal can show: what is not printable, such as a stray byte of a name, is escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
