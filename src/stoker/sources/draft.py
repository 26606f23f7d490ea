"""What the layouts fill in, and how it becomes a source."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError
from stoker.sources.gather import Gathering
from stoker.sources.imagenet.labels import LabelMap, class_texts, has_control_character, read_label_map
from stoker.sources.tree import SourceTree
from stoker.sources.walking import Skipped, shown_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stoker.sources.items import ItemTable
    from stoker.sources.tree import BoxSource, SourceOptions
    from stoker.storage import Location
    from stoker.types import Progress

    BoxFinder = Callable[[frozenset[bytes], list[str]], dict[str, BoxSource]]
    """From the label set to the annotations of each split; what a person should know goes into the list."""


@dataclass(slots=True)
class Draft:
    """A source while it is listed.

    Attributes:
        root: What the user named.
        base: Folder that the paths of files are relative to: an absolute path or a URL.
        options: What the user says about it.
        lists: Folders in which lists of texts are looked for.
        labels: The label map that the user gives.
        progress: Told about every few images.
        gathering: The images.
        skipped: What is no image, and what a person should know.
        archives: The tars they lie in.
        classes: Classes besides those of the images.
    """

    root: str
    base: bytes
    options: SourceOptions
    lists: tuple[Location, ...]
    labels: LabelMap | None = None
    progress: Progress | None = None
    gathering: Gathering = field(default_factory=Gathering)
    skipped: Skipped = field(default_factory=Skipped)
    archives: list[bytes] = field(default_factory=list)
    classes: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.options.labels is not None:
            self.labels = read_label_map(self.options.labels)

    def finish(self, find_boxes: BoxFinder) -> SourceTree:
        """Return the source.

        Raises:
            SourceError: The label map lacks a class, or a class cannot be written into ``labels.txt``.
        """
        names = self._class_names()
        table, splits = self.gathering.finish({name: label for label, name in enumerate(names)})
        if self.gathering.repeated:
            message = f"{self.gathering.repeated} members of tars come again under the same name: the last one counts"
            self.skipped.warnings.append(message)
        self._warn_about_classes(names, table)
        known = zip(self.labels.names, self.labels.texts, strict=True) if self.labels else ()
        boxes = find_boxes(frozenset(names), self.skipped.warnings)
        return SourceTree(
            root=self.root,
            base=self.base,
            classes=tuple(names),
            texts=class_texts(
                self.lists, names, self.options.class_names, {name: text for name, text in known if text}
            ),
            table=table,
            splits=splits,
            ignored=dict(sorted(self.skipped.ignored.items())),
            warnings=tuple(self.skipped.warnings),
            boxes=boxes,
            archives=tuple(self.archives),
        )

    def _class_names(self) -> list[bytes]:
        """Return all classes in the order of their labels."""
        found = self.gathering.class_names() | self.classes
        for name in found:
            if has_control_character(name):
                message = f"the class folder {os.fsdecode(name)!r} has a control character in its name; rename it"
                raise SourceError(message, path=self.root)
        if self.labels is None:
            return sorted(found)
        unknown = sorted(found.difference(self.labels.names))
        if unknown:
            where = self.labels.where
            message = f"the label map {where} does not name {len(unknown)} of the classes: {shown_names(unknown)}"
            raise SourceError(f"{message}; add them, or give the label map of this data set", path=where)
        return list(self.labels.names)

    def _warn_about_classes(self, names: Sequence[bytes], table: ItemTable) -> None:
        counts = np.bincount(table.labels[table.labels >= 0], minlength=len(names)).tolist()
        found = self.gathering.class_names()
        empty = [name for name, count in zip(names, counts, strict=True) if not count]
        listed = [name for name in empty if name not in found]
        if listed:
            self.skipped.warnings.append(f"{len(listed)} classes of the list of labels have no images")
        self.skipped.warn([name for name in empty if name in found], "no images in class {names}; it keeps its label")
        train = {group.class_name for group in self.gathering.groups if group.split == "train"}
        if train:
            extra = sorted(found.difference(name for name in train if name is not None))
            self.skipped.warn(extra, "class {names} is not in train; it gets a label all the same")
