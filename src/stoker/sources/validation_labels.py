"""The classes of validation images that lie in one folder or one tar, without a folder for each class.

===================================================  ==============================================================
``imagenet_2012_validation_synset_labels.txt``,      line i is the class of ``ILSVRC2012_val_%08d`` i
``synset_labels.txt``
``LOC_val_solution.csv`` (Kaggle)                    ``NAME,WNID x1 y1 x2 y2 [WNID ...]``; the first class counts
``ILSVRC2012_validation_ground_truth.txt`` (devkit)  line i is the devkit's number of the class of image i
``val_annotations.txt`` (Tiny ImageNet)              ``NAME.JPEG<TAB>WNID<TAB>...``
===================================================  ==============================================================
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.errors import ConfigError, SourceError
from stoker.sources.boxes import image_stem
from stoker.sources.lines import list_lines
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stoker.sources.label_map import LabelMap
    from stoker.storage import Location

LABEL_LISTS = (
    "imagenet_2012_validation_synset_labels.txt",
    "synset_labels.txt",
    "LOC_val_solution.csv",
    "ILSVRC2012_validation_ground_truth.txt",
)
"""Lists that are found by their names, in the order in which they are looked for."""

TINY_LIST = "val_annotations.txt"

_NUMBER = re.compile(rb"ILSVRC[0-9]{4}_val_([0-9]{8})", re.IGNORECASE)
_TINY_COLUMNS = 2


@dataclass(slots=True)
class ValidationLabels:
    """The class of each validation image.

    Attributes:
        where: The list.
        by_number: The class of image i at index i - 1; empty if the list goes by names.
        by_name: The class by the name of the image, without its ending.
        tolerant: Whether an image that the list does not name is an item without a label instead of an error.
        bad_lines: Lines that name no image or no class.
    """

    where: str
    by_number: Sequence[bytes] = ()
    by_name: dict[bytes, bytes] = field(default_factory=dict)
    tolerant: bool = False
    bad_lines: int = 0

    def class_of(self, file_name: bytes) -> bytes | None:
        """Return the class of an image; None if it has none.

        Raises:
            SourceError: The list does not say.
        """
        stem = image_stem(file_name)
        if self.by_number:
            found = _NUMBER.fullmatch(stem)
            number = int(found[1]) if found else 0
            if 1 <= number <= len(self.by_number):
                return self.by_number[number - 1]
        elif stem in self.by_name:
            return self.by_name[stem]
        if self.tolerant:
            return None
        shown = os.fsdecode(file_name)
        message = f"{self.where} has no label for {shown}"
        if self.by_number:
            message += f": it has {len(self.by_number)} lines, for ILSVRC2012_val_00000001.JPEG and so on"
        raise SourceError(f"{message}; give the list of these images with --validation-labels", path=self.where)

    def class_names(self) -> set[bytes]:
        """Return all classes that the list names."""
        return {*self.by_number, *self.by_name.values()}


def find_validation_labels(folders: Iterable[Location], explicit: str | None) -> Location | None:
    """Return the list named by the user, or the first of `LABEL_LISTS` that lies in one of some folders.

    Raises:
        SourceError: ``explicit`` is no file.
    """
    if explicit is not None:
        path = location(explicit)
        if not path.is_file():
            raise SourceError(f"--validation-labels {explicit} is not there or is no file", path=explicit)
        return path
    places = list(folders)
    return next((place / name for name in LABEL_LISTS for place in places if (place / name).is_file()), None)


def read_validation_labels(path: Location, labels: LabelMap | None) -> ValidationLabels:
    """Read a list; its kind is told by its content.

    Args:
        path: The list.
        labels: The label map of the user; that of the devkit is needed for the devkit's numbers.

    Raises:
        ConfigError: It holds the devkit's numbers and ``labels`` is none of the devkit's maps.
        SourceError: It is empty, or too large.
        OSError: It cannot be read.
    """
    lines = list(list_lines(path))
    if not lines:
        raise SourceError(f"{path} is empty; it must say the classes of the validation images", path=str(path))
    first = lines[0][1]
    if b"," in first:
        return _from_kaggle(path, lines)
    if b"\t" in first:
        return _from_tiny(path, lines)
    if first.strip().isdigit():
        return _from_devkit(path, lines, labels)
    _refuse_blank_lines(path, lines)
    return ValidationLabels(str(path), [line.strip() for _, line in lines])


def _refuse_blank_lines(path: Location, lines: Sequence[tuple[int, bytes]]) -> None:
    for expected, (number, _) in enumerate(lines, 1):
        if number != expected:
            message = f"line {expected} of {path} is blank, so the images after it would get wrong labels"
            raise SourceError(f"{message}; give a complete list", path=str(path))


def _from_kaggle(path: Location, lines: Sequence[tuple[int, bytes]]) -> ValidationLabels:
    found = ValidationLabels(str(path))
    for _, line in lines:
        name, _, prediction = line.partition(b",")
        words = prediction.split(None, 1)
        if name.strip() == b"ImageId":
            continue
        if words and name.strip():
            found.by_name[name.strip()] = words[0]
        else:
            found.bad_lines += 1
    return found


def _from_tiny(path: Location, lines: Sequence[tuple[int, bytes]]) -> ValidationLabels:
    found = ValidationLabels(str(path), tolerant=True)
    for _, line in lines:
        columns = [column.strip() for column in line.split(b"\t")]
        if len(columns) >= _TINY_COLUMNS and columns[0] and columns[1]:
            found.by_name[image_stem(columns[0])] = columns[1]
        else:
            found.bad_lines += 1
    return found


def _from_devkit(path: Location, lines: Sequence[tuple[int, bytes]], labels: LabelMap | None) -> ValidationLabels:
    _refuse_blank_lines(path, lines)
    if labels is None or not labels.devkit:
        message = f"{path} holds the devkit's own numbers of the classes; give --labels meta.mat, map_clsloc.txt"
        raise ConfigError(f"{message} or the devkit, or --validation-labels with the synset of each image")
    names = []
    for number, line in lines:
        label = int(line) if line.strip().isdigit() and len(line) < 20 else 0
        if not 1 <= label <= len(labels.names):
            message = f"line {number} of {path} is {line[:20]!r}, not a number from 1 to {len(labels.names)}"
            raise SourceError(message, path=str(path))
        names.append(labels.names[label - 1])
    return ValidationLabels(str(path), names)
