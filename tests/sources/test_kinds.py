"""What every kind of source keeps to, with each layout."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from reference import pictures
from sources.layouts import BOXES, LAYOUTS, Drawn
from sources.making import listing
from stoker.declare import declared
from stoker.errors import ConfigError, StokerError
from stoker.sources import SourceOptions, list_source
from stoker.sources.kinds import KINDS
from stoker.sources.look import Look

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.sources.source import Kind

VALUES = {"separator": ","}


def kind_of(source: Path) -> Kind:
    return next(kind for kind in KINDS if kind.claim(Look(str(source), None, None, None)))


@pytest.mark.parametrize("name", LAYOUTS)
def test_options_that_mean_nothing_to_a_kind_are_refused(name: str, tmp_path: Path) -> None:
    source = LAYOUTS[name](tmp_path / "source")
    kind = kind_of(source)
    for setting in declared(SourceOptions):
        options = SourceOptions(
            **{setting.name: VALUES.get(setting.name, True if bool in setting.types else str(tmp_path))}
        )
        if setting.name not in kind.options:
            message = f"has no effect on {source}, which is read as {kind.name}; omit it"
            with pytest.raises(ConfigError, match=re.escape(message)):
                list_source(str(source), options)


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_dataset_that_is_built_in_the_source_is_no_part_of_it(name: str, tmp_path: Path) -> None:
    source = LAYOUTS[name](tmp_path / "source")
    before = listing(source).fingerprint()
    stoker.build(source, tmp_path / "source" / "dataset", max_rejects=100, progress=False)
    assert listing(source).fingerprint() == before


def contents(dataset: stoker.Dataset) -> Counter[str]:
    """The samples that can be read, with boxes as records have them."""
    counted: Counter[str] = Counter()
    for number in range(len(dataset)):
        try:
            sample = dataset[number]
            sample.decode()
            values = sample.fields.items()
        except (OSError, StokerError):
            continue
        boxes = [replace(box, label=sample.label if box.label is None else box.label) for box in sample.boxes]
        sides = [(*np.float32((box.xmin, box.ymin, box.xmax, box.ymax)).tolist(), box.label) for box in boxes]
        fields = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values}
        counted[str((sample.source.rpartition("/")[2], sample.label, sample.encoded, sides, fields))] += 1
    return counted


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("name", LAYOUTS)
def test_without_a_build_samples_are_those_of_the_dataset(name: str, tmp_path: Path) -> None:
    source = LAYOUTS[name](tmp_path / "source")
    report = stoker.build(source, tmp_path / "built", progress=False, max_rejects=20)
    without_boxes = 0
    for split in report.manifest.splits:
        opened, built = stoker.open(source, split), stoker.open(tmp_path / "built", split)
        assert [known.name for known in opened.classes] == [known.name for known in built.classes]
        here, there = contents(opened), contents(built)
        assert here <= there
        without_boxes += (there - here).total()
    assert without_boxes == len(report.annotation_errors)


def test_every_kind_whose_boxes_have_classes_is_written_with_boxes(tmp_path: Path) -> None:
    """So that tests of boxes have it, too."""
    written = set()
    for name, boxes in BOXES.items():
        boxes.write(tmp_path / name, {"train": {"1": Drawn(pictures.jpeg(8, 8), (8, 8), (1, 2, 5, 6))}})
        written.add(kind_of(tmp_path / name))
    for name, make in LAYOUTS.items():
        source = make(tmp_path / f"layout {name}")
        if any(boxes.has_labels for boxes in listing(source).boxes.values()):
            assert kind_of(source) in written, f"{name}: mark what writes it as `boxes` in tests/sources/layouts.py"
