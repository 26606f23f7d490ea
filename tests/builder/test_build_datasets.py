"""``stoker.build`` of what ``stoker.open`` returned: the records of a build from the path, of any part of it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import stoker
from builder.trees import write_tree
from sources.layouts import LAYOUTS
from stoker.cli.main import main
from stoker.errors import ConfigError, DestinationError, StokerError, StorageError, TooManyRejectsError
from stoker.sources import list_source
from stoker.types import Box
from written_files import flip_bit, write_files

if TYPE_CHECKING:
    from pathlib import Path

PRESETS: list[dict[str, Any]] = [
    {}, {"preset": "imagenet"}, {"preset": "dlbs"}, {"preset": "dogs-onehot"}, {"preset": "imagenet-nvidia"},
    {"label_base": 1},
]  # fmt: skip


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


def shards(folder: Path) -> dict[str, bytes]:
    return {shard.name: shard.read_bytes() for shard in folder.glob("*.tfrecord")}


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_opened_is_built_as_its_path(layout: str, tmp_path: Path) -> None:
    folder = LAYOUTS[layout](tmp_path / "source")
    report = stoker.build(folder, tmp_path / "built", progress=False, max_rejects=100)
    opened = {split: stoker.open(folder, split) for split in report.manifest.splits}
    build(opened, tmp_path / "again")
    assert shards(tmp_path / "again") == shards(tmp_path / "built")
    assert (tmp_path / "again/labels.txt").read_bytes() == (tmp_path / "built/labels.txt").read_bytes()


@pytest.mark.parametrize("settings", PRESETS, ids=repr)
def test_a_dataset_of_any_layout_is_built_again(settings: dict[str, Any], tmp_path: Path) -> None:
    built = build(write_tree(tmp_path / "photos", {"cat": 3, "dog": 2}), tmp_path / "built", **settings)
    again = build(stoker.open(built), tmp_path / "again")
    first, second = (sorted(each[1:] for each in contents(stoker.open(folder))) for folder in (built, again))
    assert first == second  # some layouts have no names


def test_parts_are_built_as_the_split_that_they_are_of(tmp_path: Path) -> None:
    photos = write_tree(tmp_path / "photos/validation", {"cat": 3, "dog": 2}).parent
    write_tree(photos / "train", {"cat": 1, "dog": 1}, seed=9)
    part = stoker.open(photos, "validation")[[3, 1]]
    assert contents(stoker.open(build(part, tmp_path / "built"), "validation")) == contents(part)
    both = build({"train": part, "test": part[:1]}, tmp_path / "both")
    assert contents(stoker.open(both, "test")) == contents(part[:1])


def test_a_build_of_a_part_is_resumed_and_not_mixed_with_another(tmp_path: Path) -> None:
    photos = stoker.open(write_tree(tmp_path / "photos", {"cat": 3, "dog": 2}))
    built = build(photos[:3], tmp_path / "built")
    assert stoker.build(photos[:3], built, progress=False).outcome == "complete"
    with pytest.raises(DestinationError):
        build(photos[1:4], built)


def test_records_of_a_program_that_were_changed_are_not_mixed_with_others(tmp_path: Path) -> None:
    paths = sorted(write_tree(tmp_path / "photos", {"cat": 40}).rglob("*.*"))
    assert len(paths) == 40
    own = [{"image": np.full((4, 4, 3), number, np.uint8), "caption": f"{number}"} for number in range(40)]
    files = [{"image": str(path), "caption": path.name} for path in paths]
    for at, (records, name, value) in enumerate(
        [(own, "caption", "x"), (own, "image", np.full((4, 4, 3), 99, np.uint8)), (files, "caption", "x")]
    ):
        built = build(stoker.open(records), tmp_path / f"built {at}")
        assert stoker.build(stoker.open(records), built, progress=False).outcome == "complete"
        changed = [*records[:21], records[21] | {name: value}, *records[22:]]
        with pytest.raises(DestinationError):
            build(stoker.open(changed), built)


@pytest.mark.parametrize("settings", [{"exif": "apply"}, {"mode": "L"}], ids=repr)
def test_samples_that_are_shown_otherwise_than_stored_are_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    photos = stoker.open(write_tree(tmp_path / "photos", {"cat": 1}), **settings)
    with pytest.raises(ConfigError, match=r"was opened with .*, and a build stores images as they are; open it"):
        build(photos, tmp_path / "built")


def test_a_damaged_record_is_a_reject(tmp_path: Path) -> None:
    built = build(write_tree(tmp_path / "photos", {"cat": 3}), tmp_path / "built")
    flip_bit(next(built.glob("*.tfrecord")), 40)
    report = stoker.build(stoker.open(built), tmp_path / "again", progress=False, max_rejects=1)
    assert [reject.reason.partition(" of /")[0] for reject in report.rejects] == ["record 0 at byte 0"]


def test_an_image_whose_annotation_is_damaged_is_kept_as_in_a_build_from_the_path(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source/images", {"": 3}).parent
    first, *others = (f"labels/{image.stem}.txt" for image in sorted((source / "images").iterdir()))
    boxes = {first: "0 .5 zero .2 .2", **dict.fromkeys(others, "0 .5 .5 .2 .2")}
    write_files(source, {"data.yaml": "train: images\nnames: [cat]\n", **boxes})
    for name, given in {"path": source, "opened": stoker.open(source), "part": stoker.open(source)[[2, 0, 1]]}.items():
        report = stoker.build(given, tmp_path / name, progress=False)
        assert (report.rejects, report.manifest.splits["train"].records) == ((), 3)
        assert sorted(len(sample.boxes) for sample in stoker.open(tmp_path / name)) == [0, 1, 1]


def test_fields_are_built_whatever_they_are_called(tmp_path: Path) -> None:
    fields = {"image": stoker.fields.Image(), "kind": stoker.fields.Label(["cat"]), "label": stoker.fields.Text()}
    record = {"image": np.zeros((4, 4, 3), np.uint8), "kind": "cat", "label": "a cat"}
    stoker.build([record], tmp_path / "built", fields=fields, progress=False)
    built = build(stoker.open(tmp_path / "built"), tmp_path / "again")
    assert shards(built) == shards(tmp_path / "built")


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("preset", ["imagenet", "imagenet-nvidia", "dlbs"])
def test_records_are_built_as_repack_builds_them(preset: str, tmp_path: Path) -> None:
    photos = write_tree(tmp_path / "photos/train", {"n01440764": 3, "n01443537": 2}).parent
    write_tree(photos / "validation", {"n01440764": 1, "n01443537": 2}, seed=9)
    old = build(photos, tmp_path / "old", preset=preset)
    build({split: stoker.open(old, split) for split in ("train", "validation")}, tmp_path / "built", preset=preset)
    assert main(["repack", str(old), str(tmp_path / "repacked"), "--preset", preset]) == 0
    for name in ("manifest.json", *shards(tmp_path / "built")):
        assert (tmp_path / "built" / name).read_bytes() == (tmp_path / "repacked" / name).read_bytes()


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize(
    ("layout", "settings"),
    [
        ("labelimg_yolo", {}),
        ("labelimg_yolo", {"split_fraction": "test=0.5"}),
        ("labelimg_yolo", {"shard_names": "per-class"}),
        ("labelimg_voc", {"split_fraction": "val=0.5"}),
        ("coco_boxes", {}),
    ],
)
def test_objects_of_a_dataset_are_cut_out(layout: str, settings: dict[str, Any], tmp_path: Path) -> None:
    folder = LAYOUTS[layout](tmp_path / "source")
    splits = list_source(str(folder)).splits
    build(folder, tmp_path / "built", crop_objects=True, **settings)
    build({split: stoker.open(folder, split) for split in splits}, tmp_path / "again", crop_objects=True, **settings)
    assert shards(tmp_path / "again") == shards(tmp_path / "built")


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("layout", ["labelimg_yolo", "labelimg_voc", "box_list", "roboflow_coco", "roboflow"])
def test_objects_have_the_classes_that_a_build_gives_them(layout: str, tmp_path: Path) -> None:
    folder = LAYOUTS[layout](tmp_path / "source")
    cut = build(folder, tmp_path / "cut", crop_objects=True)
    whole = build(folder, tmp_path / "whole", preset="imagenet")
    for split in list_source(str(folder)).splits:
        records = stoker.open(cut, split)
        expected = sorted((record.source, records.classes[record.label].name) for record in records)
        for dataset in (stoker.open(folder, split), stoker.open(whole, split)):
            assert objects_of(dataset) == expected


def objects_of(dataset: stoker.Dataset) -> list[tuple[str, str]]:
    """The name of its image and its class, of each sample of a loader of objects."""
    owners = np.repeat(np.arange(len(dataset)), np.maximum(dataset.object_counts, 1))
    names = stoker.torch.MapDataset(dataset, stoker.ObjectCrops(4)).classes
    with stoker.Loader(dataset, 4, transform=stoker.ObjectCrops(4)) as loader:
        each = [(index, label) for batch in loader for index, label in zip(batch.indices, batch.labels, strict=True)]
    return sorted((dataset[owners[index]].source.rpartition("/")[2], names[label]) for index, label in each)


def test_splits_may_come_from_several_folders_with_the_same_classes(tmp_path: Path) -> None:
    cats = stoker.open(write_tree(tmp_path / "cats", {"cat": 2, "dog": 1}))
    more = stoker.open(write_tree(tmp_path / "more", {"cat": 2, "dog": 1, "emu": 1}, seed=7))
    built = build({"train": cats, "test": more}, tmp_path / "built")
    assert contents(stoker.open(built, "test")) == contents(more)
    with pytest.raises(ConfigError, match=r"fields has no effect where the source is a stoker\.Dataset; omit it$"):
        stoker.build(cats, tmp_path / "other", fields={"image": stoker.fields.Image()})


def test_datasets_of_other_classes_are_refused(tmp_path: Path) -> None:
    cats = stoker.open(write_tree(tmp_path / "cats", {"cat": 1, "dog": 1}))
    apes = stoker.open(write_tree(tmp_path / "apes", {"ape": 1, "cat": 1, "dog": 1}))
    with pytest.raises(ConfigError, match="class 0 is 'cat' in train and 'ape' in validation; give datasets"):
        build({"train": cats, "val": apes}, tmp_path / "built")
    captioned = stoker.open([{"image": b"", "label": "cat", "caption": "a cat"}])
    with pytest.raises(ConfigError, match="the fields are none in train and caption in validation; give datasets with"):
        build({"train": cats, "val": captioned}, tmp_path / "built")
    with pytest.raises(ConfigError, match=r"train is a stoker.Dataset, and test is not; open what it is of, too"):
        build({"train": cats, "test": [{"image": b"", "label": 0}]}, tmp_path / "built")
    with pytest.raises(StokerError, match=r"of record 0, it is a sample of a stoker.Dataset; give a part of that"):
        build([cats[0]], tmp_path / "built")


def test_splits_whose_classes_count_from_different_numbers_keep_their_names(tmp_path: Path) -> None:
    photos = write_tree(tmp_path / "photos", {"cat": 2, "dog": 1})
    from_1 = stoker.open(build(photos, tmp_path / "from 1", label_base=1))
    more = stoker.open(write_tree(tmp_path / "more", {"cat": 1, "dog": 1, "emu": 1}, seed=7))
    for splits in ({"train": from_1, "val": more}, {"train": more, "val": from_1}):
        built = build(splits, tmp_path / next(iter(splits)) / splits["train"].path[-4:])
        for split, dataset in splits.items():
            names = [name for _, _, name, *_ in contents(stoker.open(built, split))]
            assert names == [name for _, _, name, *_ in contents(dataset)]
            assert [each.name for each in stoker.open(built, split).classes] == ["cat", "dog", "emu"]


def test_numbers_of_classes_are_those_of_the_records(tmp_path: Path) -> None:
    records = [{"image": np.full((4, 4, 3), number, np.uint8), "label": number % 3} for number in range(6)]
    built = build(stoker.open(records), tmp_path / "built")
    build(records, tmp_path / "of records")
    assert contents(stoker.open(built)) == contents(stoker.open(tmp_path / "of records"))


def boxes(names: list[str] | None, label: int) -> stoker.Dataset:
    record = {"image": np.zeros((4, 4, 3), np.uint8), "label": "a", "boxes": [Box(0.1, 0.2, 0.5, 0.6, label)]}
    fields = {"image": stoker.fields.Image(), "label": stoker.fields.Label(["a", "b"])}
    return stoker.open([record], fields=fields | {"boxes": stoker.fields.Boxes(names)})


def test_boxes_have_the_names_of_the_longest_list(tmp_path: Path) -> None:
    first, second = boxes(["x", "y"], 1), boxes(["x", "y", "z"], 2)
    built = build({"train": first, "val": second}, tmp_path / "built")
    assert contents(stoker.open(built, "val"))[0][3][0][1] == "z"
    with pytest.raises(TooManyRejectsError, match="its boxes have the classes of images, and those of another split"):
        stoker.build({"train": boxes(None, 1), "val": second}, tmp_path / "other", progress=False)


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning", "ignore::stoker.errors.LabelWarning")
def test_a_part_of_imagenet_is_refused_where_the_preset_numbers_it_in_full(tmp_path: Path) -> None:
    photos = write_tree(tmp_path / "photos", {"n01440764": 1, "n02085620": 1})
    with pytest.raises(ConfigError, match="among ImageNet's 1,000, but it was opened with others; open it"):
        build(stoker.open(photos), tmp_path / "built", preset="imagenet")
    built = build(stoker.open(photos, imagenet_labels=True), tmp_path / "built", preset="imagenet")
    assert shards(built) == shards(build(photos, tmp_path / "of path", preset="imagenet"))


def test_a_source_that_has_gone_is_no_reject(tmp_path: Path) -> None:
    cats = stoker.open(write_tree(tmp_path / "cats", {"cat": 2}))
    more = stoker.open(write_tree(tmp_path / "more", {"cat": 2}, seed=7))
    shutil.rmtree(tmp_path / "more")
    with pytest.raises(StorageError, match=r"more is not there any more: .*; call again to resume"):
        build({"train": cats, "val": more}, tmp_path / "built")


def test_a_dataset_is_not_built_over_what_it_is_read_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = build(write_tree(tmp_path / "photos", {"cat": 2, "dog": 1}), tmp_path / "built")
    for opened in (built, tmp_path / "built/*.tfrecord"):
        with pytest.raises(DestinationError, match="is the source itself"):
            build(stoker.open(opened), built, overwrite=True, seed=7)
    assert len(stoker.open(built)) == 3
    monkeypatch.chdir(tmp_path)
    opened = stoker.open("built")
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(DestinationError, match="is the source itself"):
        build(opened, built, overwrite=True, seed=7)
