"""A build from a tree to a dataset: what is in it, and that threads change nothing."""

from __future__ import annotations

import json
import os
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from builder.trees import build, contents, picture, settings_for, write_tree
from sources.making import xml
from stoker import _native
from stoker.errors import DestinationError
from stoker.format import ImagenetSchema
from stoker.format.directory import read_labels
from stoker.format.index import read_index
from stoker.format.manifest import read_manifest
from stoker.loader import open_dataset
from stoker.recipe import Recipe, parse_resize
from stoker.sources import list_source
from stoker.types import Reject
from written_files import write_files

if TYPE_CHECKING:
    from stoker.builder import BuildReport
    from stoker.format.manifest import Manifest

NOBODY = 65534

XML = """<annotation><size><width>80</width><height>60</height></size><object><name>dog</name><bndbox>
<xmin>8</xmin><ymin>6</ymin><xmax>40</xmax><ymax>30</ymax></bndbox></object></annotation>"""


def run(source: Path, destination: Path, **settings: Any) -> BuildReport:
    return build(settings_for(source, **settings), destination)


def examples(directory: Path, manifest: Manifest, split: str = "train") -> list[dict[str, Any]]:
    records = []
    for shard in manifest.splits[split].shards:
        path = directory / shard.name
        assert path.stat().st_size == shard.size_bytes
        assert _native.crc32c(path.read_bytes()) == shard.crc32c
        rows = read_index(path, shard.size_bytes)
        assert rows.tolist() == _native.scan_shard(str(path)).tolist()
        assert len(rows) == shard.records
        records += [_native.parse_example(_native.read_record(str(path), *row)) for row in rows.tolist()]
    return records


def test_a_dataset_holds_every_image_once_with_all_its_features(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"train/cat": 5, "train/dog": 4, "validation/dog": 3})
    write_files(source, {"bounding_boxes/dog/dog_1.xml": XML, "words.txt": "dog\tDog, hound\n"})
    report = run(source, tmp_path / "out", shards=3, seed=5)
    manifest = read_manifest(tmp_path / "out")
    assert (report.outcome, report.manifest, report.items, report.rejects) == ("built", manifest, 12, ())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "labels.txt", "manifest.json", "rejects.jsonl",
        *(f"train-0000{i}-of-00003.tfrecord{suffix}" for i in range(3) for suffix in ("", ".idx")),
        "validation-00000-of-00001.tfrecord", "validation-00000-of-00001.tfrecord.idx",
    ]  # fmt: skip
    assert manifest.splits["train"].class_counts == (5, 4)
    assert manifest.splits["validation"].class_counts == (0, 3)
    assert [label.name for label in read_labels(tmp_path / "out")] == ["cat", "dog"]
    records = examples(tmp_path / "out", manifest)
    assert {record["image/filename"][1][0] for record in records} == {
        *(b"cat_%d.JPEG" % i for i in range(5)), *(b"dog_%d.JPEG" % i for i in range(4)),
    }  # fmt: skip
    for record in records:
        name = record["image/filename"][1][0].decode()
        folder = name.split("_")[0]
        boxes = [[pytest.approx(v)] for v in (0.1, 0.5, 0.1, 0.5)] if name == "dog_1.JPEG" else [[], [], [], []]
        label = {"cat": 0, "dog": 1}[folder]
        assert record == {
            "image/channels": ("int64", [3]),
            "image/class/label": ("int64", [label]),
            "image/class/synset": ("bytes", [folder.encode()]),
            "image/class/text": ("bytes", [b"Dog, hound" if folder == "dog" else b""]),
            "image/colorspace": ("bytes", [b"RGB"]),
            "image/encoded": ("bytes", [(source / "train" / folder / name).read_bytes()]),
            "image/filename": ("bytes", [name.encode()]),
            "image/format": ("bytes", [b"JPEG"]),
            "image/height": ("int64", [30]),
            "image/object/bbox/label": ("int64", [label] * len(boxes[0])),
            "image/object/bbox/xmin": ("float", boxes[0]),
            "image/object/bbox/xmax": ("float", boxes[1]),
            "image/object/bbox/ymin": ("float", boxes[2]),
            "image/object/bbox/ymax": ("float", boxes[3]),
            "image/width": ("int64", [40]),
        }
    assert manifest.schema.features.keys() == records[0].keys()
    schema = json.loads((files("stoker.format") / "manifest.schema.json").read_text())
    jsonschema.validate(json.loads((tmp_path / "out/manifest.json").read_text()), schema)


def test_resized_records_state_the_stored_size_and_label_base_counts(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"a": 2, "b": 1})
    (source / "b/grey.png").write_bytes(picture(9, "PNG", "L"))
    recipe = Recipe(resize=parse_resize("short:15"), formats=frozenset({"jpeg"}))
    report = run(source, tmp_path / "out", recipe=recipe, schema=ImagenetSchema(1))
    records = examples(tmp_path / "out", report.manifest)
    assert sorted(record["image/class/label"][1][0] for record in records) == [1, 1, 2, 2]
    for record in records:
        info = _native.probe_jpeg(record["image/encoded"][1][0])
        assert (info.width, info.height, info.components) == (20, 15, 3)
        assert (record["image/width"][1], record["image/height"][1]) == ([20], [15])
    assert report.manifest.converted == {"png": 1}
    assert report.manifest.splits["train"].class_counts == (0, 2, 2)
    assert [label.name for label in read_labels(tmp_path / "out")] == ["background", "a", "b"]
    assert report.manifest.recipe == recipe.resolved()


def test_boxes_move_with_the_pixels(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"dog": 1})
    write_files(source, {"Annotations/dog_0.xml": XML})
    report = run(source, tmp_path / "out", recipe=Recipe(resize=parse_resize("square:20")))
    (record,) = examples(tmp_path / "out", report.manifest)
    # 40x30 pixels lose 5 columns on each side: 0.1 of the width is outside, and 0.5 is the middle of the square too.
    edges = [record[f"image/object/bbox/{side}"][1] for side in ("xmin", "xmax", "ymin", "ymax")]
    assert edges == [[0.0], [pytest.approx(0.5)], [pytest.approx(0.1)], [pytest.approx(0.5)]]


def odd_tree(root: Path) -> Path:
    """Good, odd and bad files in one tree."""
    source = write_tree(root, {"a": 30, "b": 25})
    (source / "a/0_png.JPEG").write_bytes(picture(100, "PNG"))
    (source / "a/1_cmyk.JPEG").write_bytes(picture(101, "JPEG", "CMYK"))
    (source / "b/empty.JPEG").write_bytes(b"")
    (source / "b/text.jpg").write_bytes(b"<html>404</html>")
    (source / "b/cut.JPEG").write_bytes(picture(102)[:-100])
    (source / "b/gone.JPEG").symlink_to("nowhere.JPEG")
    return source


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(resize=parse_resize("max:20"))], ids=str)
def test_the_same_bytes_for_any_number_of_threads(tmp_path: Path, recipe: Recipe) -> None:
    source = odd_tree(tmp_path / "src")
    reports = [
        run(source, tmp_path / f"out{threads}", recipe=recipe, shards=3, threads=threads, max_rejects=9)
        for threads in (1, 2, 5)
    ]
    first = contents(tmp_path / "out1")
    assert contents(tmp_path / "out2") == first
    assert contents(tmp_path / "out5") == first
    assert len({report.manifest.dataset_id for report in reports}) == 1


def test_every_item_is_a_record_or_a_reject_and_the_manifest_waits(tmp_path: Path) -> None:
    source, out = odd_tree(tmp_path / "src"), tmp_path / "out"
    report = run(source, out, shards=2)
    assert report.outcome == "withheld"
    assert not (out / "manifest.json").exists()
    reasons = {reject.key: reject.reason for reject in report.rejects}
    assert {key: reason.split(":")[0] for key, reason in reasons.items()} == {
        "b/cut.JPEG": "The file is cut short",
        "b/empty.JPEG": "the file is empty",
        "b/text.jpg": "not an image but text",
        "b/gone.JPEG": "the file is not there",
    }
    assert len((out / "rejects.jsonl").read_text().splitlines()) == 4
    before = {path.name: path.stat().st_mtime_ns for path in out.iterdir() if "tfrecord" in path.name}
    assert run(source, out, shards=2, max_rejects=3).outcome == "withheld"
    accepted = run(source, out, shards=2, max_rejects=4)
    assert (accepted.outcome, accepted.items, accepted.resumed_shards) == ("built", 0, 2)
    assert {path.name: path.stat().st_mtime_ns for path in out.iterdir() if "tfrecord" in path.name} == before
    split = read_manifest(out).splits["train"]
    assert (split.records, split.rejects, split.class_counts) == (57, 4, (32, 25))
    assert read_manifest(out).converted == {"cmyk jpeg": 1}
    assert read_manifest(out).formats == {"jpeg": {"kept": 55}, "png": {"encoded": 1, "kept": 1}}
    assert accepted.rejects == report.rejects


def test_a_file_that_must_not_be_read_is_a_reject() -> None:
    # Not tmp_path: its parents are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        source = write_tree(Path(name, "src"), {"a": 3})
        (source / "a/a_1.JPEG").chmod(0)
        if os.geteuid() == 0:
            os.seteuid(NOBODY)
        try:
            report = run(source, Path(name, "out"))
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
        assert report.rejects == (Reject("a/a_1.JPEG", "train", "the file cannot be read: Permission denied"),)


@pytest.mark.parametrize("crop_objects", [False, True])
def test_held_out_images_keep_their_boxes(tmp_path: Path, crop_objects: bool) -> None:
    source = write_tree(tmp_path / "src", {"a": 4})
    box = xml(("a", "0", "0", "100", "50"))
    write_files(source, {f"annotations/a/a_{number}.xml": box for number in range(4)})
    settings = settings_for(source, split_fraction="validation=0.5", crop_objects=crop_objects)
    report = build(settings, tmp_path / "out")
    assert (report.outcome, report.rejects) == ("built", ())
    for split in ("train", "validation"):
        opened = open_dataset(tmp_path / "out", split)
        assert [len(opened[index].boxes) for index in range(len(opened))] == [1, 1]


def test_a_damaged_annotation_never_costs_an_image(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"a": 2, "b": 1})
    write_files(source, {"annotations/a/a_0.xml": "<annotation>"})
    report = run(source, tmp_path / "out")
    assert report.outcome == "built"
    assert (report.manifest.records, report.manifest.annotation_errors) == (3, 1)
    assert report.annotation_errors[0].startswith("a/a_0.JPEG: damaged annotation")


def test_progress_counts_up_to_the_end(tmp_path: Path) -> None:
    seen: list[dict[str, int]] = []
    source = odd_tree(tmp_path / "src")
    settings = settings_for(source, shards=2)
    build(settings, tmp_path / "out", lambda **counts: seen.append(counts))
    assert [counts["done"] for counts in seen] == sorted({counts["done"] for counts in seen})
    size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    assert seen[-1] == {"done": 61, "total": 61, "size_bytes": size, "rejects": 4}


def test_a_source_is_not_its_own_destination(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"a": 1})
    (tmp_path / "link").symlink_to(source)
    for destination in (source, tmp_path / "link"):
        with pytest.raises(DestinationError, match="is the source itself"):
            run(source, destination)
    with pytest.raises(DestinationError, match="holds something else"):
        run(source, source / "a")
    assert sorted(path.name for path in source.rglob("*")) == ["a", "a_0.JPEG"]


def test_a_source_below_its_destination_is_listed(tmp_path: Path) -> None:
    run(write_tree(tmp_path / "src", {"a": 1}), tmp_path / "out")
    below = write_tree(tmp_path / "out/more", {"a": 2})
    with pytest.raises(DestinationError, match="holds a finished dataset with other settings"):
        run(below, tmp_path / "out")


@pytest.mark.parametrize("below", ["out", "a/out", "linked/out"])
def test_a_destination_in_the_source_is_not_listed(tmp_path: Path, below: str) -> None:
    """Nor what an interrupted build has left there, nor the dataset once it is built."""
    source = write_tree(tmp_path / "src", {"a": 2, "b": 1})
    write_tree(tmp_path / "elsewhere", {"linked": 1})
    (source / "linked").symlink_to(tmp_path / "elsewhere/linked")
    expected = run(source, tmp_path / "apart")
    write_files(source / below, {"build.journal": b""})
    built = run(source, source / below)
    assert built.manifest.dataset_id == expected.manifest.dataset_id
    assert built.manifest.source == expected.manifest.source
    assert run(source, source / below).outcome == "complete"
    tree = list_source(str(source))  # without knowing of the destination
    assert tree.fingerprint() == expected.manifest.source.fingerprint
    assert (tree.ignored, tree.warnings) == ({"dataset": 1}, ())


def test_files_of_other_programs_do_not_hide_a_class(tmp_path: Path) -> None:
    """They are called like those of a dataset."""
    source = write_tree(tmp_path / "src", {"a": 2, "b": 1})
    expected = list_source(str(source))
    for folder in (source / "a", source / "b" / "below"):
        write_files(folder, {"manifest.json": '{"format": "other"}', "labels.txt": "a\n"})
    (source / "b/b_0.JPEG").rename(source / "b/below/b_0.JPEG")
    tree = list_source(str(source))
    assert (tree.classes, len(tree.table)) == (expected.classes, len(expected.table))
