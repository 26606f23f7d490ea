"""Odd image files, and the verdicts on them: of builds, verify, the loader and Pillow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """The verdict on a file.

    Attributes:
        make: The file.
        header: Whether ``--check header`` stores it.
        whole: Whether everything else takes it that looks at all of its data.
        pillow: Whether Pillow makes pixels of it.
        why: A part of the reason for which it is refused.
        crop: Whether a crop of its upper rows is shown although it is refused: damage below does not show.
    """

    make: object
    header: bool
    whole: bool
    pillow: bool
    why: str = ""
    crop: bool = False


def good(make: object) -> Row:
    return Row(make, header=True, whole=True, pillow=True)


def unseen(make: object, why: str, *, pillow: bool = True, crop: bool = False) -> Row:
    """What the markers or chunks alone do not show."""
    return Row(make, header=True, whole=False, pillow=pillow, why=why, crop=crop)


def bad(make: object, why: str, *, pillow: bool = False, crop: bool = False) -> Row:
    return Row(make, header=False, whole=False, pillow=pillow, why=why, crop=crop)
