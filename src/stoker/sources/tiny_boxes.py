"""The boxes of Tiny ImageNet: ``<wnid>_boxes.txt`` in each class folder, and ``val_annotations.txt``.

A line is ``NAME.JPEG<TAB>x0<TAB>y0<TAB>x1<TAB>y1``; in ``val_annotations.txt`` the class follows the name. The numbers
are pixels of the 64 x 64 image, from 0 to 63, the last one included (a whole image is ``0 0 63 63``), whatever the
columns are called elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.sources.box_table import BoxTableBuilder
from stoker.sources.boxes import NamedBox, image_stem, place_box
from stoker.sources.in_order import AT_ONCE, in_order
from stoker.sources.lines import list_lines
from stoker.sources.validation_labels import TINY_LIST
from stoker.storage import RemotePath

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stoker.storage import Location

_SIDE = 64


def read_tiny_boxes(base: Location, class_names: Iterable[bytes], warnings: list[str]) -> BoxTableBuilder | None:
    """Return the boxes of all images; None if there is no file of them.

    Args:
        base: Folder of the splits.
        class_names: Classes in whose folder there may be such a file.
        warnings: Gets what a person should know.

    Raises:
        SourceError: A file is too large.
        OSError: A file cannot be read.
    """
    names = [name.decode("utf-8", "surrogateescape") for name in sorted(class_names)]
    lists = [base / "train" / name / f"{name}_boxes.txt" for name in names]
    builder = BoxTableBuilder(str(base), replacing=False)
    bad = found = 0
    for lines in in_order(
        _lines_of, (*lists, base / "val" / TINY_LIST), AT_ONCE if isinstance(base, RemotePath) else 1
    ):
        found += lines is not None
        bad += _add_list(lines or [], builder)
    if bad:
        warnings.append(f"{bad} lines of the lists of boxes in {base} hold no box and are not used")
    return builder if found else None


def _lines_of(path: Location) -> list[bytes] | None:
    return [line for _, line in list_lines(path)] if path.is_file() else None


def _add_list(lines: Iterable[bytes], builder: BoxTableBuilder) -> int:
    """Add the boxes of one file; return how many lines have none."""
    seen: set[bytes] = set()
    bad = 0
    for line in lines:
        if line in seen:  # a line that comes twice is one box
            continue
        seen.add(line)
        columns = line.split(b"\t")
        try:
            x0, y0, x1, y1 = (int(column) for column in columns[-4:])
            box = place_box(_edges(x0, x1), _edges(y0, y1), _SIDE, _SIDE)
        except (ValueError, OverflowError):
            bad += 1
            continue
        if box is not None:
            builder.add(b"", image_stem(columns[0].strip()), [NamedBox(b"", box)])
    return bad


def _edges(first: int, last: int) -> tuple[int, int]:
    """Return the edges around the pixels from ``first`` to ``last``, whichever of them is smaller."""
    return min(first, last), max(first, last) + 1
