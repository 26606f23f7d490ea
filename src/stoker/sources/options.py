"""Options of a source, declared once for arguments of `stoker.open` and `stoker.build` and for commands."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Annotated, Any, Self

from stoker.config import check_choice, option
from stoker.declare import Command, Instance, Settings, declared, names, path_or_url
from stoker.sources.labels import BUNDLED_LIST
from stoker.storage import is_web, location

SEPARATORS = (",", ";", "\t", "|")
"""Separators of the columns of a table."""
_Text = Instance("a text")


def _separator(shown: str, given: str) -> str:
    check_choice(shown, given, (*SEPARATORS, "tab"))
    return "\t" if given == "tab" else given


@dataclass(frozen=True, kw_only=True)
class SourceOptions(Settings):
    """Options of sources that are files; None lets Stoker find the value. Records of a program need none of them."""

    labels: Annotated[
        str | None,
        path_or_url,
        Command("source", "FILE"),
        'List of the classes in the order of their labels, or ``"imagenet"``: its 1,000. Default: folders, sorted.',
    ] = None
    validation_labels: Annotated[
        str | None,
        path_or_url,
        Command("source", "FILE"),
        "Classes of flat validation images: a list, or ImageNet's devkit. Default: searched for.",
    ] = None
    imagenet_labels: Annotated[
        bool | None,
        Command("source"),
        "Whether classes that are all among ImageNet's 1,000 have its labels, also where some are missing. Default: as "
        "the preset has it, otherwise not, with a warning.",
    ] = None
    class_names: Annotated[
        str | None,
        path_or_url,
        Command("source", "FILE"),
        "List with a text for each class: class, tab and text on each line. Default: imagenet_metadata.txt.",
    ] = None
    boxes: Annotated[
        str | None,
        path_or_url,
        Command("source", "PATH"),
        "Annotations: folder or tar of XML files, or CSV. Default: searched for.",
    ] = None
    masks: Annotated[
        bool,
        Command("source"),
        "Whether records have the field ``mask``: objects of a COCO file or YOLO's polygons, drawn with "
        "``stoker[coco]``, or VOC's masks.",
    ] = False

    image_column: Annotated[
        str | None,
        _Text,
        Command("source", "NAME"),
        "Column of a table that names the images, or has them. Default: found.",
    ] = None
    label_column: Annotated[
        tuple[str, ...] | None,
        names,
        Command("source", "NAMES"),
        'Column of the classes or of numbers to predict; several, with commas, of 0 and 1; ``"none"``. Default: found.',
    ] = None
    label_separator: Annotated[
        str | None,
        _Text,
        Command("source", "TEXT"),
        'What stands between several classes in a cell of ``label_column``; ``"none"``: each is one. Default: found.',
    ] = None
    split_column: Annotated[
        str | None,
        _Text,
        Command("source", "NAME"),
        "Column that says which rows are train, validation and test. Default: found.",
    ] = None
    columns: Annotated[
        tuple[str, ...] | None,
        names,
        Command("source", "NAMES"),
        'Which other columns of a table become fields, with commas between them; ``"none"``. Default: all.',
    ] = None
    separator: Annotated[
        str | None,
        _separator,
        Command("source", "TEXT"),
        "What stands between the columns of a table: comma, semicolon, tab or bar. Default: found.",
    ] = None
    image_root: Annotated[
        str | None,
        path_or_url,
        Command("source", "FOLDER"),
        "Folder that the names of images in a table, a list or a COCO file are relative to. Default: found.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, path in self._paths().items():
            if is_web(os.fsencode(path)):  # its query may be a secret, and is stored elsewhere
                object.__setattr__(self, name, str(location(path)))

    @staticmethod
    def shown(name: str) -> str:
        """Return how messages name a setting."""
        return option(name)

    def refer_to(self, path: str | None) -> bool:
        """Return whether an option is this path."""
        return path in self._paths().values()

    def absolute(self) -> Self:
        """Return the same options with absolute paths, for a process with another working directory."""
        changed: dict[str, Any] = {name: location(path).absolute() for name, path in self._paths().items()}
        return dataclasses.replace(self, **changed)

    def _paths(self) -> dict[str, str]:
        paths = {each.name: getattr(self, each.name) for each in declared(SourceOptions) if path_or_url in each.notes}
        return {name: path for name, path in paths.items() if path not in (None, BUNDLED_LIST)}
