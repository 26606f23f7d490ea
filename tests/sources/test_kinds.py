"""What every kind of source keeps to, with each layout."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from sources.layouts import LAYOUTS
from stoker.declare import declared
from stoker.errors import ConfigError
from stoker.sources import SourceOptions, list_source
from stoker.sources.kind import Look
from stoker.sources.listing import KINDS

if TYPE_CHECKING:
    from pathlib import Path

VALUES = {"separator": ","}


@pytest.mark.parametrize("name", LAYOUTS)
def test_options_that_mean_nothing_to_a_kind_are_refused(name: str, tmp_path: Path) -> None:
    source = LAYOUTS[name](tmp_path / "source")
    kind = next(kind for kind in KINDS if kind.claim(Look(str(source), None, None, None)))
    for setting in declared(SourceOptions):
        options = SourceOptions(
            **{setting.name: VALUES.get(setting.name, True if bool in setting.types else str(tmp_path))}
        )
        if setting.name not in kind.options:
            message = f"has no effect on {source}, which is read as {kind.name}; omit it"
            with pytest.raises(ConfigError, match=re.escape(message)):
                list_source(str(source), options)


@pytest.mark.parametrize("name", ["coco_boxes", "metadata", "parquet", "webdataset"])
def test_a_kind_that_says_its_classes_takes_no_labels_of_validation_images(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="validation_labels has no effect"):
        list_source(str(LAYOUTS[name](tmp_path / "source")), SourceOptions(validation_labels="labels.txt"))
