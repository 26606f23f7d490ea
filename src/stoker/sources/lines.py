"""Text files that have one thing a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.storage import Location


_MAX_LINE_BYTES = 2**16
_MAX_LIST_BYTES = 2**28
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def numbered_lines(path: Location) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the text of each line, without its end (LF or CR LF), blank ones too.

    Raises:
        SourceError: A line is too long to be one.
        OSError: The file cannot be read.
    """
    number = 0
    with path.reader() as file:
        while line := file.readline(_MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > _MAX_LINE_BYTES:
                message = f"{path}: line {number} is longer than {_MAX_LINE_BYTES} bytes; is it a text file?"
                raise SourceError(message, path=str(path))
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def list_lines(path: Location) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each line that is not blank, of a list that is small enough to be held.

    Raises:
        SourceError: The file is too large for a list, or a line is too long.
        OSError: The file cannot be read.
    """
    if path.size() > _MAX_LIST_BYTES:
        raise SourceError(f"{path} is larger than {_MAX_LIST_BYTES} bytes, too large for a list", path=str(path))
    for number, line in numbered_lines(path):
        if line.strip():
            yield number, line
