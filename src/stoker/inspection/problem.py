"""One piece of damage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.errors import StokerError
    from stoker.storage import Location


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a dataset that is not as it should be.

    Attributes:
        path: The file.
        record: Zero-based number of the record in it; None when the problem is not one record's.
        offset: Byte where the record or the damage starts; None when there is no such place.
        source: Name of the source image; None when unknown.
        what: What is wrong, with the values.
    """

    path: str
    record: int | None
    offset: int | None
    source: str | None
    what: str

    def __str__(self) -> str:
        if self.path in self.what:  # an error of reading, which names the file and the byte itself
            named = self.record is None or f"record {self.record} " in self.what
            return self.what if named else f"record {self.record}: {self.what}"
        place = self.path
        if self.record is not None:
            place += f", record {self.record}"
        if self.offset is not None:
            place += f" at byte {self.offset}"
        if self.source:
            place += f" ({self.source})"
        return f"{place}: {self.what}"


def problem_of(error: StokerError, path: Location, read_from: Path | None = None) -> Problem:
    """Return an error of reading as a problem of ``path``.

    Args:
        error: What happened.
        path: The file.
        read_from: The file of this machine that holds its bytes, where that is another; never named.
    """
    what = str(error) if read_from is None else str(error).replace(str(read_from), str(path))
    return Problem(str(path), error.record, error.offset, error.source, what)


def renamed(error: StokerError, read_from: Path, path: Location) -> StokerError:
    """Return an error about ``path`` instead of the file of this machine that holds its bytes."""
    what = problem_of(error, path, read_from).what
    return type(error)(what, path=str(path), record=error.record, offset=error.offset, source=error.source)
