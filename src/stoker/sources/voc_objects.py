"""The objects of annotations in Pascal VOC's XML, on their way into a table: boxes, names, and what else it says."""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError
from stoker.fields import Array
from stoker.sources.cells import json_bytes
from stoker.sources.colour_masks import BACKGROUND, LABEL_MAP
from stoker.sources.columns import Blobs, GrowingBlobs
from stoker.sources.imagenet.labels import has_control_character
from stoker.sources.reading import nonblank_lines
from stoker.sources.table_boxes import BOX
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stoker.sources.columns import Column
    from stoker.sources.imagenet.boxes import NamedBox
    from stoker.storage import Location
    from stoker.types import Field

VOC_CLASSES = tuple(
    b"aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep"
    b" sofa train tvmonitor".split()
)
"""The classes of Pascal VOC, in the order of their labels."""


def read_label_map(folders: Iterable[Location]) -> list[bytes] | None:
    """Return the classes that CVAT's ``labelmap.txt`` names, without the background; None where no folder has one.

    Raises:
        SourceError: It names a class twice.
        OSError: It cannot be read.
    """
    places = (folder / LABEL_MAP for folder in folders)
    place = next((place for place in places if place.is_file()), None)
    if place is None:
        return None
    names = [line.split(b":")[0].strip() for _, line in nonblank_lines(place) if not line.startswith(b"#")]
    names = [name for name in names if name != BACKGROUND]
    if len({*names}) < len(names):
        raise SourceError(f"{place} names a class twice; mend it", path=str(place))
    return names


class VocObjects:
    """The annotated objects of all images, image by image.

    Attributes:
        missing: How many images have no annotation.

    Args:
        names: All classes there are; None: those of the objects.
    """

    def __init__(self, names: Sequence[bytes] | None) -> None:
        self.missing = 0
        self._known = names
        self._names: dict[bytes, int] = {name: number for number, name in enumerate(names or ())}
        self._sizes = array("d")
        self._columns = {"boxes": GrowingBlobs(), "damaged": GrowingBlobs(), "cells": GrowingBlobs()}
        self._flagged = dict.fromkeys(("difficult", "truncated"), False)

    def add(self, path: bytes, mask: bytes, annotation: list[NamedBox] | str | None) -> None:
        """Append what there is of an image.

        Args:
            path: Its annotation.
            mask: Its mask, used only where `Cells` say so.
            annotation: Its objects, or what is wrong with the annotation, or None without one.
        """
        self.missing += annotation is None
        objects, problem = ([], annotation) if isinstance(annotation, str) else (annotation or [], "")
        unknown = next(
            (each.name for each in objects if self._known is not None and each.name not in self._names), None
        )
        if unknown is not None:
            objects, problem = [], f"{LABEL_MAP} has no class {os.fsdecode(unknown)!r}"
        boxes, flags = np.empty(len(objects), BOX), []
        for box, each in zip(boxes, objects, strict=True):
            box["corners"] = each.box.xmin, each.box.ymin, each.box.xmax, each.box.ymax
            box["label"] = self._names.setdefault(each.name, len(self._names))
        for name in self._flagged:
            flags.append([int(getattr(each, name)) for each in objects])
            self._flagged[name] |= any(flags[-1])
        self._sizes.extend(objects[0].size if objects else (0, 0))
        self._columns["boxes"].append(boxes.tobytes())
        problem = problem and f"{os.fsdecode(path)}: {problem}"
        self._columns["damaged"].append(problem.encode("utf-8", "backslashreplace"))
        self._columns["cells"].append(json_bytes([os.fsdecode(mask), *flags]))

    def classes(self, root: str, *, of_voc: bool) -> tuple[bytes, ...]:
        """Return all classes in the order of their labels: those known, VOC's own in its folders, or all names sorted.

        Args:
            root: What the user named.
            of_voc: Whether the folders are called as VOC's.

        Raises:
            SourceError: A name cannot be that of a class, or there are too many.
        """
        is_part = of_voc and self._names.keys() <= {*VOC_CLASSES}
        names = self._known or (VOC_CLASSES if is_part else sorted(self._names))
        wrong = [name for name in names if not name or has_control_character(name)]
        if wrong or len(names) > MAX_CLASSES:
            what = f"an object called {os.fsdecode(wrong[0])!r}" if wrong else f"{len(names)} classes"
            message = f"{root} has annotations with {what}; give every object the name of one of up to {MAX_CLASSES}"
            raise SourceError(message, path=root)
        return tuple(names)

    def flags(self) -> list[tuple[str, Field] | None]:
        """Return the fields that say of each object whether it is difficult or truncated; None where none is."""
        return [(name, Array("int64", (None,))) if any_is else None for name, any_is in self._flagged.items()]

    def columns(self, classes: Sequence[bytes]) -> dict[str, Column]:
        """Return the columns of `TableBoxes` and of `Cells`; no images can be added afterwards."""
        columns = {name: column.finish() for name, column in self._columns.items()}
        label_of = np.array([classes.index(name) for name in self._names] or [0], np.int32)
        boxes = np.frombuffer(columns["boxes"].data, BOX).copy()
        boxes["label"] = label_of[boxes["label"]]
        sizes = np.clip(np.array(self._sizes), 0, 2**31 - 1).astype(np.int32).reshape(-1, 2)
        return {**columns, "boxes": Blobs(boxes.tobytes(), columns["boxes"].starts), "annotated": sizes}
