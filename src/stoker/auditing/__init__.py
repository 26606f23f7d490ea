"""What images are like before anything is trained on them: measured once each, compared by what was measured.

- ``measures``: what is measured of one image
- ``measuring``: that of all images, in a table, and in a file to resume from
- ``statistics``: what these say of each image, and of all
- ``duplicates``: which of them are the same image, exactly or nearly
"""

from __future__ import annotations

from stoker.auditing.duplicates import (
    FLAT,
    MAX_DISTANCE,
    Duplicates,
    distances,
    exact_duplicates,
    near_duplicates,
)
from stoker.auditing.measures import FORMAT_NAMES, MEASURES, MODE_NAMES, measure
from stoker.auditing.measuring import Load, Measurements, measure_all
from stoker.auditing.statistics import brightness, counts_of_column, deviations, of_channels

__all__ = [
    "FLAT",
    "FORMAT_NAMES",
    "MAX_DISTANCE",
    "MEASURES",
    "MODE_NAMES",
    "Duplicates",
    "Load",
    "Measurements",
    "brightness",
    "counts_of_column",
    "deviations",
    "distances",
    "exact_duplicates",
    "measure",
    "measure_all",
    "near_duplicates",
    "of_channels",
]
