"""``stoker.build`` of what ``stoker.open`` returned: the records of a build from the path, of any part of it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from trees import write_tree

import stoker
from sources.layouts import LAYOUTS
from stoker.errors import ConfigError, DestinationError, StokerError

if TYPE_CHECKING:
    from pathlib import Path

PRESETS: list[dict[str, Any]] = [
    {},
    {"preset": "imagenet"},
    {"preset": "dlbs"},
    {"preset": "dogs-onehot"},
    {"preset": "imagenet-nvidia"},
    {"label_base": 1},
]


def build(source: Any, destination: Path, **settings: Any) -> Path:
    stoker.build(source, destination, progress=False, max_rejects=100, **settings)
    return destination


def contents(dataset: stoker.Dataset) -> list[Any]:
    """What each sample of a dataset is, by the names of classes where it has some."""
    names = dataset.schema.box_names or [each.name for each in dataset.classes]

    def of(sample: stoker.Sample) -> Any:
        boxes = [
            (np.float32([box.xmin, box.ymin, box.xmax, box.ymax]).tolist(), names[box.label] if names else box.label)
            for box in sample.boxes
        ]
        values = {name: np.asarray(value).tolist() for name, value in sample.fields.items()}
        label = sample.label if sample.label < 0 or not dataset.classes else dataset.classes[sample.label].name
        return sample.source.rpartition("/")[2], sample.decode().tobytes(), label, boxes, sorted(values.items())

    return sorted(map(of, dataset), key=repr)


def readable(dataset: stoker.Dataset) -> set[str]:
    """The names of the samples whose files are there and whose annotations are sound."""
    names = set()
    for index in range(len(dataset)):
        with suppress(StokerError, OSError):
            names.add(dataset[index].source.rpartition("/")[2])
    return names


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_opened_is_built_as_its_path(layout: str, tmp_path: Path) -> None:
    place = LAYOUTS[layout](tmp_path / "source")
    report = stoker.build(place, tmp_path / "built", progress=False, max_rejects=100)
    opened = {split: stoker.open(place, split) for split in report.manifest.splits}
    build(opened, tmp_path / "again")
    for split, dataset in opened.items():
        names = readable(dataset)
        known = [each for each in contents(stoker.open(tmp_path / "built", split)) if each[0] in names]
        assert contents(stoker.open(tmp_path / "again", split)) == known


@pytest.mark.parametrize("settings", PRESETS, ids=repr)
def test_a_dataset_of_any_layout_is_built_again(settings: dict[str, Any], tmp_path: Path) -> None:
    built = build(write_tree(tmp_path / "photos", {"cat": 3, "dog": 2}), tmp_path / "built", **settings)
    again = build(stoker.open(built), tmp_path / "again")
    first, second = (sorted(each[1:] for each in contents(stoker.open(place))) for place in (built, again))
    assert first == second  # some layouts have no names


def test_parts_are_built_as_the_split_that_they_are_of(tmp_path: Path) -> None:
    photos = write_tree(tmp_path / "photos/validation", {"cat": 3, "dog": 2}).parent
    write_tree(photos / "train", {"cat": 1, "dog": 1}, 9)
    part = stoker.open(photos, "validation")[[3, 1]]
    built = build(part, tmp_path / "built")
    assert contents(stoker.open(built, "validation")) == contents(part)
    both = build({"train": part, "test": part[:1]}, tmp_path / "both")
    assert contents(stoker.open(both, "test")) == contents(part[:1])


def test_a_build_of_a_part_is_resumed_and_not_mixed_with_another(tmp_path: Path) -> None:
    photos = stoker.open(write_tree(tmp_path / "photos", {"cat": 3, "dog": 2}))
    built = build(photos[:3], tmp_path / "built")
    assert stoker.build(photos[:3], built, progress=False).outcome == "complete"
    with pytest.raises(DestinationError):
        build(photos[1:4], built)


@pytest.mark.parametrize("settings", [{"exif": "apply"}, {"mode": "L"}], ids=repr)
def test_samples_that_are_shown_otherwise_than_stored_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    photos = stoker.open(write_tree(tmp_path / "photos", {"cat": 1}), **settings)
    with pytest.raises(ConfigError, match=r"was opened with .*, and a build stores images as they are; open it"):
        build(photos, tmp_path / "built")


def test_a_damaged_record_is_a_reject(tmp_path: Path) -> None:
    built = build(write_tree(tmp_path / "photos", {"cat": 3}), tmp_path / "built")
    shard = next(built.glob("*.tfrecord"))
    data = bytearray(shard.read_bytes())
    data[40] ^= 1
    shard.write_bytes(data)
    report = stoker.build(stoker.open(built), tmp_path / "again", progress=False, max_rejects=1)
    assert [reject.reason.partition(":")[0] for reject in report.rejects] == ["reading it raised CorruptRecordError"]


def test_a_field_called_as_the_class_is_refused(tmp_path: Path) -> None:
    fields = {"image": stoker.fields.Image(), "kind": stoker.fields.Label(["cat"]), "label": stoker.fields.Text()}
    record = {"image": np.zeros((4, 4, 3), np.uint8), "kind": "cat", "label": "a cat"}
    stoker.build([record], tmp_path / "built", fields=fields, progress=False)
    with pytest.raises(ConfigError, match="has a field 'label', and 'label' of a record is what every sample has"):
        build(stoker.open(tmp_path / "built"), tmp_path / "again")
