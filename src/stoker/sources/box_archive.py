"""Boxes from one file: a tar of XML annotations, or the CSV that the ImageNet build scripts make of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.errors import SourceError
from stoker.sources.box_table import BoxTableBuilder
from stoker.sources.boxes import MAX_XML_BYTES, NamedBox, image_stem, parse_annotation, place_box
from stoker.sources.lines import numbered_lines
from stoker.sources.tar_bytes import ForwardBytes, open_stream
from stoker.sources.tar_walk import read_member, walk

if TYPE_CHECKING:
    import tarfile

    from stoker.storage import Location
    from stoker.types import Progress

_PROGRESS_MEMBERS = 1024
_SHOWN_LINES = 5


def read_box_tar(path: Location, progress: Progress | None) -> BoxTableBuilder:
    """Read every annotation of a tar, which may be compressed with gzip.

    A damaged annotation is an error of its image, not of the tar. Members that end neither in ``.xml`` nor in nothing
    (Stanford Dogs) are passed over.

    Args:
        path: The tar.
        progress: Told about every few members.

    Raises:
        SourceError: The tar is damaged.
        OSError: It cannot be read.
    """
    builder = BoxTableBuilder(str(path), replacing=True)
    total = path.stat().st_size
    with open_stream(path) as stream:
        source = ForwardBytes(stream, str(path))
        for done, member in enumerate(walk(source)):
            if member.isreg() and not member.issparse():
                _add_member(builder, source, member)
            if progress is not None and done % _PROGRESS_MEMBERS == 0:
                progress(done=done, total=max(done, total // 512), size_bytes=source.tell(), rejects=0)
        source.finish()
    return builder


def _add_member(builder: BoxTableBuilder, source: ForwardBytes, member: tarfile.TarInfo) -> None:
    folder, _, name = member.name.encode("utf-8", "surrogateescape").rpartition(b"/")
    stem, dot, ending = name.rpartition(b".")
    if not dot:
        stem = name
    elif ending.lower() != b"xml":
        return
    if not stem or name.startswith(b"."):
        return
    folder = folder[folder.rfind(b"/") + 1 :]
    try:
        builder.add(folder, stem, parse_annotation(read_member(source, member, MAX_XML_BYTES)))
    except ValueError as error:
        builder.add_damaged(folder, stem, str(error))


def read_box_csv(path: Location) -> tuple[BoxTableBuilder, list[str]]:
    """Read lines of ``NAME.JPEG,xmin,ymin,xmax,ymax``, in fractions of the image's sides.

    Boxes are put in order, clamped and dropped when empty, as those of XML files are.

    Returns:
        The boxes, and what a person should know about lines that are something else.

    Raises:
        SourceError: Not one line is such a line.
        OSError: It cannot be read.
    """
    builder = BoxTableBuilder(str(path), replacing=False)
    bad: list[int] = []
    good = False
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        parts = line.strip().split(b",")
        try:
            x0, y0, x1, y1 = (_fraction(part) for part in parts[1:])
        except ValueError:
            bad.append(number)
            continue
        good = True
        box = place_box((x0, x1), (y0, y1), 1.0, 1.0)
        if box is not None:
            builder.add(b"", image_stem(parts[0]), [NamedBox(b"", box)])
    if bad and not good:
        message = f"{path} has no line of the form NAME.JPEG,xmin,ymin,xmax,ymax"
        raise SourceError(message, path=str(path))
    return builder, [_bad_lines(path, bad)] if bad else []


def _fraction(text: bytes) -> float:
    value = float(text)
    if not -1e6 < value < 1e6:  # also false for what is no number
        raise ValueError
    return value


def _bad_lines(path: Location, bad: list[int]) -> str:
    shown = ", ".join(map(str, bad[:_SHOWN_LINES])) + (", ..." if len(bad) > _SHOWN_LINES else "")
    return f"{path}: {len(bad)} lines are not NAME.JPEG,xmin,ymin,xmax,ymax and are not used: line {shown}"
