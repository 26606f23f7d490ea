"""Merged datasets: the same bytes, classes by name, resumed after any kill, refused where they cannot be one."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from builder.trees import write_tree
from loader.remote_datasets import copy, folder_in
from reference import pictures
from small_datasets import change_manifest, write_dataset
from stoker import _native, fields
from stoker.cli.main import main
from stoker.errors import ConfigError, DatasetNotFoundError, DestinationError, ManifestError, ShardError
from stoker.format import index_path, read_manifest, read_rejects
from stoker.inspect import verify_dataset
from stoker.merging import _Changes, merge, renumbered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commands import Cli

SOURCE = Path(stoker.__file__).parents[1]


def build(root: Path, classes: Mapping[str, int], *options: str, bad: bool = False) -> Path:
    """Build a dataset of pictures in class folders, with a split for validation and boxes of their own labels."""
    images = root.with_name(f"{root.name}-images")
    tree = {f"train/{name}": count for name, count in classes.items()} | {f"val/{name}": 2 for name in classes}
    rejects = [f"train/{next(iter(classes))}/bad.jpg"] if bad else []
    write_tree(images, tree, *rejects, seed=sum(root.name.encode()))
    words = ["build", str(images), str(root), "--shards", "2", "--max-rejects", "1", "--quiet", *options]
    assert main(words) == 0
    shutil.rmtree(images)
    return root


def content(dataset: stoker.Dataset) -> list[tuple[str, str, bytes]]:
    return [(dataset.classes[sample.label].name, sample.source, sample.encoded) for sample in dataset]


def assert_sound(directory: Path) -> None:
    report = verify_dataset(directory)
    assert (report.problems, report.warnings) == ((), ())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("pair")
    return build(root / "one", {"ant": 5, "bee": 4}, bad=True), build(root / "two", {"ant": 3, "bee": 6})


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("other") / "three", {"aphid": 2, "bee": 3, "cat": 4})


@pytest.mark.parametrize("link", [False, True])
def test_shards_are_copied_byte_for_byte(pair: tuple[Path, Path], tmp_path: Path, link: bool) -> None:
    whole = tmp_path / "whole"
    report = merge(pair, whole, link=link)
    assert (report.outcome, report.copied_shards, report.rewritten_shards) == ("merged", 6, 0)
    assert_sound(whole)
    manifests = [read_manifest(folder) for folder in (*pair, whole)]
    for split in ("train", "validation"):
        read = zip(pair, manifests, strict=False)
        old = [folder / shard.name for folder, manifest in read for shard in manifest.splits[split].shards]
        new = [whole / shard.name for shard in manifests[2].splits[split].shards]
        names = [f"{split}-{number:05}-of-{len(old):05}.tfrecord" for number in range(len(old))]
        assert [path.name for path in new] == names
        assert [path.read_bytes() for path in new] == [path.read_bytes() for path in old]
        assert [a.samefile(b) for a, b in zip(old, new, strict=True)] == [link] * len(old)
        contents = content(stoker.open(whole, split))
        assert contents == [sample for folder in pair for sample in content(stoker.open(folder, split))]
    merged, firsts = manifests[2], manifests[:2]
    assert merged.records == sum(m.records for m in firsts)
    assert merged.source.items == sum(m.source.items for m in firsts)
    assert merged.source.size_bytes == sum(m.source.size_bytes for m in firsts)
    assert [r.key for r in read_rejects(whole)] == [r.key for folder in pair for r in read_rejects(folder)]
    assert merged.splits["train"].rejects == 1
    assert merge(pair, whole, link=link).outcome == "complete"
    assert main(["merge", *map(str, pair), str(whole), "--quiet"]) == 0


def test_classes_are_told_by_their_names(pair: tuple[Path, Path], other: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    report = merge([*pair, other], whole)
    assert (report.copied_shards, report.rewritten_shards) == (6, 3)
    assert_sound(whole)
    train = stoker.open(whole, "train")
    assert [known.name for known in train.classes] == ["ant", "bee", "aphid", "cat"]
    assert content(train) == [sample for folder in (*pair, other) for sample in content(stoker.open(folder, "train"))]
    assert read_manifest(whole).splits["train"].class_counts == (8, 13, 2, 4)
    old = stoker.open(other, "train")
    new_ids = [2, 1, 3]
    for number in range(len(old)):
        expected = dict(old[number].features)
        expected["image/class/label"] = ("int64", [new_ids[old[number].label]])
        position = len(train) - len(old) + number
        record = train.records.read(position)
        assert record == _native.write_example(expected)  # nothing else has changed, image bytes least of all
    again = tmp_path / "again"
    assert merge([whole, other], again).manifest.classes == 4
    assert_sound(again)


def test_labels_of_boxes_change_with_those_of_images(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_dataset(first, {"train": [3, 4]})  # classes n01 n02 n03 from 1, boxes with labels of their own
    build(second, {"n03": 2, "n00": 2}, "--label-base", "1", "--preset", "imagenet")
    change_manifest(first, recipe=dict(read_manifest(second).recipe))
    whole = tmp_path / "whole"
    merge([second, first], whole)
    assert_sound(whole)
    train = stoker.open(whole, "train")
    names = [known.name for known in train.classes]
    assert names == ["background", "n00", "n03", "n01", "n02"]
    old = stoker.open(first, "train")
    start = len(train) - len(old)
    assert any(old[number].boxes for number in range(len(old)))
    for number in range(len(old)):
        mine, theirs = train[start + number], old[number]
        assert names[mine.label] == old.classes[theirs.label].name
        wanted = [old.classes[box.label or 0].name for box in theirs.boxes]
        assert [names[box.label or 0] for box in mine.boxes] == wanted
        assert mine.encoded == theirs.encoded


@pytest.mark.parametrize("options", [["--compression", "gzip"], ["--shard-names", "tfds:birds", "--preset", "tfds"]])
def test_compressed_and_named_shards(tmp_path: Path, options: list[str]) -> None:
    parts = [build(tmp_path / "a", {"ant": 4}, *options), build(tmp_path / "b", {"bee": 3, "ant": 2}, *options)]
    whole = tmp_path / "whole"
    merge(parts, whole)
    assert_sound(whole)
    expected = [sample for folder in parts for sample in content(stoker.open(folder, "train"))]
    assert content(stoker.open(whole, "train")) == expected
    if "tfds" in options:
        assert (whole / "birds-train.tfrecord-00003-of-00004").is_file()
        info = json.loads((whole / "dataset_info.json").read_bytes())
        lengths = {split["name"]: len(split["shardLengths"]) for split in info["splits"]}
        assert lengths == {name: len(split.shards) for name, split in read_manifest(whole).splits.items()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "imagenet-nvidia"], "differ in the layout: 'imagenet' and 'imagenet-nvidia'"),
        (["--label-base", "1"], "differ in the first class: 0 and 1"),
        (["--compression", "gzip"], "differ in compression: 'none' and 'gzip'"),
        (["--resize", "short:16"], "differ in the recipe"),
    ],
)
def test_unlike_datasets_are_refused(pair: tuple[Path, Path], tmp_path: Path, options: list[str], message: str) -> None:
    unlike = build(tmp_path / "unlike", {"ant": 2}, *options)
    with pytest.raises(ConfigError, match=f"{message}.*make one like the other with 'stoker repack'"):
        merge([pair[0], unlike], tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


def test_what_a_repack_cannot_make_alike_is_not_to_be_repacked(pair: tuple[Path, Path], tmp_path: Path) -> None:
    stoker.build([{"image": pictures.jpeg(20, 24, 1), "caption": "an ant"}], tmp_path / "captioned", progress=False)
    with pytest.raises(ConfigError, match=r"differ in the fields: .*; a repack keeps them, .* stoker.mix"):
        merge([pair[0], tmp_path / "captioned"], tmp_path / "whole")


def test_layouts_of_one_hot_labels_need_the_same_classes(tmp_path: Path) -> None:
    options = ["--preset", "dogs-onehot", "--shard-names", "default"]
    first = build(tmp_path / "a", {"ant": 2, "bee": 2}, *options)
    same = build(tmp_path / "b", {"ant": 3, "bee": 2}, *options)
    more = build(tmp_path / "c", {"ant": 2, "bee": 2, "cat": 2}, *options)
    merge([first, same], tmp_path / "whole")
    assert_sound(tmp_path / "whole")
    with pytest.raises(ConfigError, match="the datasets differ in their classes"):
        merge([first, more], tmp_path / "none")


def test_what_cannot_be_merged_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00001.tfrecord").write_bytes(b"")
    for datasets, error, message in (
        ([pair[0], tmp_path], DatasetNotFoundError, "has no manifest.json, so it cannot be merged; 'stoker build' mak"),
        ([pair[0], tmp_path / "none"], DatasetNotFoundError, "none is not a dataset: there is no such directory"),
        (pair[:1], ConfigError, "1 dataset to merge; give at least two"),
        ([*pair, pair[0]], ConfigError, "are the same dataset"),
    ):
        with pytest.raises(error, match=message):
            merge(datasets, tmp_path / "whole")
    with pytest.raises(DestinationError, match="is the source itself"):
        merge(pair, pair[1])
    merge(pair, tmp_path / "whole")
    with pytest.raises(DestinationError, match="holds a finished dataset with other settings"):
        merge(pair[::-1], tmp_path / "whole")
    with pytest.raises(ConfigError, match="is in a store, which has no hard links"):
        merge(pair, "s3://bucket/whole", link=True)


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("harm", ["byte", "length", "index"])
def test_damaged_shards_are_not_merged(pair: tuple[Path, Path], tmp_path: Path, harm: str, link: bool) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(pair[1], damaged)
    shard = damaged / read_manifest(damaged).splits["train"].shards[1].name
    data = bytearray(shard.read_bytes())
    if harm == "index":
        shutil.rmtree(damaged / "index", ignore_errors=True)
        for index in damaged.rglob("*.idx"):
            index.unlink()
    else:
        data[len(data) // 2] ^= 1
        shard.write_bytes(data if harm == "byte" else data[:-1])
    with pytest.raises(ShardError, match=r"was changed or damaged after the build|has no index|does not describe"):
        merge([pair[0], damaged], tmp_path / "whole", link=link)
    assert not (tmp_path / "whole" / "manifest.json").exists()


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_whole_shard_of_other_records_is_noticed(pair: tuple[Path, Path], tmp_path: Path, rewritten: bool) -> None:
    classes = {"ant": 4, "bee": 4} if not rewritten else {"aphid": 4, "bee": 4}
    damaged = build(tmp_path / "damaged", classes)
    first, second = (damaged / shard.name for shard in read_manifest(damaged).splits["train"].shards)
    shutil.copy(first, second)
    shutil.copy(index_path(first), index_path(second))
    with pytest.raises(ShardError, match=f"{second} was changed or damaged after the build|does not describe"):
        merge([pair[0], damaged], tmp_path / "whole")


def test_a_merge_goes_on_where_it_was(pair: tuple[Path, Path], other: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(pair[1], damaged)
    shard = damaged / read_manifest(damaged).splits["train"].shards[1].name
    good = shard.read_bytes()
    shard.write_bytes(good[:-1] + b"!")
    whole = tmp_path / "whole"
    with pytest.raises(ShardError):
        merge([pair[0], damaged, other], whole)
    shard.write_bytes(good)
    with pytest.raises(DestinationError, match="holds an unfinished build with other settings"):
        merge([*pair[::-1], other], whole)
    written = (whole / "train-00000-of-00006.tfrecord").stat()
    report = merge([pair[0], damaged, other], whole)
    assert (report.resumed_shards, report.copied_shards, report.rewritten_shards) == (3, 3, 3)
    assert (whole / "train-00000-of-00006.tfrecord").stat().st_ino == written.st_ino
    assert_sound(whole)


def test_a_label_that_is_no_class_is_named(pair: tuple[Path, Path], tmp_path: Path) -> None:
    whole = tmp_path / "first"
    write_dataset(whole, {"train": [3]})
    manifest = read_manifest(whole)
    features: Any = stoker.open(whole, "train")[0].features
    with pytest.raises(stoker.errors.ExampleError, match="record 0: 'image/class/label' holds 1, which is not the id"):
        renumbered(features, manifest, _Changes({0: 0}, {}, {0: 0}), "record 0")


@pytest.mark.slow
def test_a_merge_goes_on_after_any_kill(pair: tuple[Path, Path], other: Path, tmp_path: Path) -> None:
    expected = merge([*pair, other], tmp_path / "expected").manifest
    whole = tmp_path / "whole"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    slow = (
        "import sys, time, stoker.merging as m; make = m._make\n"
        "def slowly(*given, **named):\n    time.sleep(0.05); return make(*given, **named)\n"
        "m._make = slowly; m._COPIED_AT_ONCE = 1; m.merge(sys.argv[1:-1], sys.argv[-1])\n"
    )
    choose = random.Random(5)
    kills = 0
    for _ in range(40):
        command = [sys.executable, "-c", slow, *map(str, [*pair, other, whole])]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
        begun = time.monotonic()
        while process.poll() is None and not (whole / "build.journal").exists() and time.monotonic() - begun < 60:
            time.sleep(0.01)
        time.sleep(choose.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        code = process.wait()
        process.stderr.close() if process.stderr else None
        kills += code == -signal.SIGKILL
        if code == 0:
            break
        assert code == -signal.SIGKILL
        assert not (whole / "manifest.json").exists() or (whole / "build.journal").exists()
    assert kills >= 1
    assert merge([*pair, other], whole).manifest == expected
    assert_sound(whole)
    first, second = (
        sorted(path.relative_to(root) for path in root.rglob("*")) for root in (whole, tmp_path / "expected")
    )
    assert first == second


def test_the_function_reports_and_takes_a_function_for_progress(pair: tuple[Path, Path], tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def progress(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
        seen.append((done, total))

    report = stoker.merge(pair, tmp_path / "whole", progress=progress)
    records = report.manifest.records
    assert seen[-1] == (records, records)
    assert len(seen) == 6
    start = f"<stoker.MergeReport merged: dataset {report.manifest.dataset_id}; {records} records of 2 classes; "
    assert repr(report).startswith(f"{start}shards: 6 copied, 0 with new class ids, 0 from an earlier run; ")
    with pytest.raises(ConfigError, match=r"^progress is 1; give a function or False"):
        stoker.merge(pair, tmp_path / "other", progress=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=rf"^datasets is '{pair[0]}'; give a list of at least two$"):
        stoker.merge(str(pair[0]), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_the_command(pair: tuple[Path, Path], other: Path, tmp_path: Path, cli: Cli) -> None:
    whole = tmp_path / "whole"
    printed = cli("merge", "--link", *[*pair, other], whole)
    assert "6 shards linked, 3 with new class ids; 4 classes" in printed
    answer = json.loads(cli("merge", *[*pair, other], whole, "--json"))
    assert (answer["outcome"], answer["splits"]["train"]["records"]) == ("complete", 27)
    assert "give at least two" in cli("merge", pair[0], whole, code=2)


@pytest.mark.servers
def test_datasets_in_s3(pair: tuple[Path, Path], other: Path, tmp_path: Path, request: Any, monkeypatch: Any) -> None:
    bucket = folder_in("s3", request, monkeypatch)
    sources = [copy(pair[0], bucket / "one"), str(pair[1]), copy(other, bucket / "three")]
    report = merge(sources, str(bucket / "whole"))
    local = merge([*pair, other], tmp_path / "whole")
    assert report.manifest == local.manifest
    assert merge(sources, str(bucket / "whole")).outcome == "complete"
    assert_sound(bucket / "whole")  # type: ignore[arg-type]


def with_boxes(root: Path, names: list[str] | None, labels: list[Any], classes: list[str], start: int) -> Path:
    """Build a dataset of a record for each label of a box, whose image has the first of the classes."""
    kinds = {"image": fields.Image(), "label": fields.Label(classes), "boxes": fields.Boxes(names)}
    records = [
        {
            "image": pictures.rgb(pictures.jpeg(20, 20, start + number)),
            "label": number % len(classes),
            "boxes": [{"xmin": 0.25, "ymin": 0.0, "xmax": 0.75, "ymax": 1.0, "label": label}],
        }
        for number, label in enumerate(labels)
    ]
    stoker.build(records, root, fields=kinds, progress=False)
    return root


def box_classes(directory: Path) -> list[tuple[str, list[str]]]:
    dataset = stoker.open(directory, "train")
    names = [*dataset.schema.box_names, "none"]
    return [(dataset.classes[sample.label].name, [names[box.label or 0] for box in sample.boxes]) for sample in dataset]


@pytest.mark.parametrize("classes", [["ant", "bee"], ["cat", "bee"]])
def test_classes_of_boxes_are_told_by_their_names(tmp_path: Path, cli: Cli, classes: list[str]) -> None:
    first = with_boxes(tmp_path / "a", ["leg", "wing"], ["wing", None, 0], ["ant", "bee"], 0)
    second = with_boxes(tmp_path / "b", ["wing", "eye"], ["eye", "wing", 1, None], classes, 10)
    assert sorted(box[0] for _, box in box_classes(first)) == ["leg", "none", "wing"]
    report = merge([first, second], tmp_path / "whole")
    assert (report.copied_shards, report.rewritten_shards) == (1, 1)
    assert_sound(tmp_path / "whole")
    assert read_manifest(tmp_path / "whole").schema.box_names == ("leg", "wing", "eye")
    assert box_classes(tmp_path / "whole") == box_classes(first) + box_classes(second)
    assert "classes of boxes: 3: leg, wing, eye\n" in cli("info", tmp_path / "whole")
    assert merge([first, second], tmp_path / "whole").outcome == "complete"
    without = with_boxes(tmp_path / "c", None, [0, 1], ["ant", "bee"], 20)
    with pytest.raises(ConfigError, match="differ in whether boxes have classes of their own: True and False"):
        merge([first, without], tmp_path / "none")


def test_mixes_of_boxes_need_the_same_classes_of_boxes(tmp_path: Path) -> None:
    first = with_boxes(tmp_path / "a", ["leg", "wing"], ["wing", 0], ["ant", "bee"], 0)
    second = with_boxes(tmp_path / "b", ["wing", "leg"], ["wing", 0], ["ant", "bee"], 10)
    same = with_boxes(tmp_path / "c", ["leg", "wing"], ["wing", None], ["ant", "bee"], 20)
    settings: Any = {"transform": stoker.Resize(8), "boxes": stoker.BoxOutput()}
    dataset_a, dataset_b, dataset_c = (stoker.open(folder) for folder in (first, second, same))
    with stoker.Loader(stoker.mix([dataset_a, dataset_c]), 4, **settings) as loader:
        (batch,) = loader
    by_index = dict(zip(batch.indices.tolist(), batch.boxes.labels.tolist(), strict=True))
    own = [dataset[number].boxes[0].label for dataset in (dataset_a, dataset_c) for number in range(2)]
    assert [by_index[number] for number in range(4)] == own
    differ = r"a and .*b do not have the same classes of boxes, so equal labels differ in"
    moved = r"label_offsets would move the labels of boxes, too, .*; omit label_offsets="
    for of_boxes in (settings, {"transform": stoker.ObjectCrops(8)}):
        with pytest.raises(ConfigError, match=differ):
            stoker.Loader(stoker.mix([dataset_a, dataset_b]), 4, **of_boxes)
        with pytest.raises(ConfigError, match=moved):
            stoker.Loader(stoker.mix([dataset_a, dataset_c], label_offsets=[0, 2]), 4, **of_boxes)
    with stoker.Loader(stoker.mix([dataset_a, dataset_b]), 4, transform=stoker.Resize(8)) as loader:
        assert len(list(loader)) == 1


def test_boxes_may_have_the_classes_of_their_images(tmp_path: Path) -> None:
    folder = with_boxes(tmp_path / "a", ["ant", "bee"], ["bee", None, None, 0], ["ant", "bee"], 0)
    dataset = stoker.open(folder, "train")
    assert (dataset.schema.box_names, b"box_names" in (folder / "manifest.json").read_bytes()) == ((), False)
    by_name = {sample.source: (sample.label, sample.boxes[0].label) for sample in dataset}
    assert by_name == {"0": (0, 1), "1": (1, 1), "2": (0, 0), "3": (1, 0)}


def test_classes_of_boxes_stay_in_repacked_datasets(tmp_path: Path) -> None:
    old = with_boxes(tmp_path / "old", [f"part {number}" for number in range(9)], [8, 3, None], ["ant", "bee"], 0)
    assert main(["repack", str(old), str(tmp_path / "new"), "--preset", "imagenet", "--quiet"]) == 0
    assert_sound(tmp_path / "new")
    dataset = stoker.open(tmp_path / "new", "train")
    assert dataset.schema.box_names == stoker.open(old, "train").schema.box_names
    assert [known.name for known in dataset.classes] == ["background", "ant", "bee"]
    labels = [dataset[number].boxes[0].label for number in range(3)]
    assert sorted(label or 0 for label in labels) == [-1, 4, 9]
    cropped = tmp_path / "cropped"
    assert main(["repack", str(old), str(cropped), "--crop-objects", "--quiet"]) == 0
    opened = stoker.open(cropped, "train")
    assert sorted(opened.classes[label].name if label >= 0 else "none" for label in opened.labels.tolist()) == [
        "none", "part 3", "part 8",
    ]  # fmt: skip


def test_labels_of_boxes_beyond_their_names_are_damage(tmp_path: Path) -> None:
    folder = with_boxes(tmp_path / "a", ["leg", "wing"], ["wing", None], ["ant", "bee"], 0)
    schema = json.loads((folder / "manifest.json").read_bytes())["schema"]
    change_manifest(folder, schema=schema | {"box_names": ["leg"]})
    (problem,) = verify_dataset(folder).problems
    assert problem.what == "a box has the label 1, which is not in 0..0"
    for wrong, message in (("leg", "is not of the type list"), ([], "not names of classes"), ([1], "of a class is 1")):
        change_manifest(folder, schema=schema | {"box_names": wrong})
        with pytest.raises(ManifestError, match=f"schema.box_names.*{message}"):
            read_manifest(folder)
