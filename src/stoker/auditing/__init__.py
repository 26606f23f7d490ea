"""What images are like before anything is trained on them: measured once each, compared by what was measured.

- ``measures``: what is measured of one image
- ``measuring``: that of all images, in a table, and in a file to resume from
- ``duplicates``: which of them are the same image, exactly or nearly
"""

from __future__ import annotations

from stoker.auditing.duplicates import (
    FLAT,
    MAX_DISTANCE,
    Duplicates,
    deviations,
    distances,
    exact_duplicates,
    means,
    near_duplicates,
)
from stoker.auditing.measures import FORMAT_NAMES, MEASURES, MODE_NAMES, measure
from stoker.auditing.measuring import Measurements, measure_all

__all__ = [
    "FLAT",
    "FORMAT_NAMES",
    "MAX_DISTANCE",
    "MEASURES",
    "MODE_NAMES",
    "Duplicates",
    "Measurements",
    "deviations",
    "distances",
    "exact_duplicates",
    "means",
    "measure",
    "measure_all",
    "near_duplicates",
]
