"""The page about a dataset: right figures, whatever the dataset is and however it is called."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from builder.trees import write_tree
from loader.shards import write_shards, write_wrong_boxes
from page_checks import checked
from reference import pictures
from small_datasets import list_again, write_dataset
from stoker.cli.main import main
from stoker.inspect import ClassCount
from stoker.inspect.page import dataset_portrait, histogram, info_page, profile
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "$x^2$ &amp; {{ 7*7 }} 漢字",
    "a\udcffb",
]


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "birds", {"train": [6, 4], "validation": [3]})
    return tmp_path / "birds"


def test_a_portrait_counts_what_the_manifest_counts(birds: Path) -> None:
    portrait = dataset_portrait(birds)
    train = stoker.open(birds, split="train")
    assert (portrait.kind, portrait.samples, portrait.counted, portrait.unlabelled) == ("dataset", 13, 13, 0)
    assert [(name, s.samples, len(s.shard_bytes), s.rejects) for name, s in portrait.splits.items()] == [
        ("train", 10, 2, 1),
        ("validation", 3, 1, 1),
    ]
    counted = {known.label: known.counts["train"] for known in portrait.classes}
    assert counted == {label: int((train.labels == label).sum()) for label in (1, 2, 3)}
    assert portrait.measured.whole
    assert set(portrait.measured.column("width")) == {48}
    assert set(portrait.measured.column("height")) == {36}
    samples = [sample for split in ("train", "validation") for sample in stoker.open(birds, split=split)]
    sizes = sorted(len(sample.encoded) for sample in samples)
    assert sorted(portrait.measured.column("size_bytes")) == sizes
    assert sorted(portrait.measured.kinds) == [("JPEG 4:2:0", 6), ("JPEG 4:4:4", 7)]


def test_the_page_says_what_the_portrait_says(birds: Path) -> None:
    page = checked(info_page(dataset_portrait(birds)))
    shown = " ".join(page.text.split())
    for text in (
        "13 images",
        "3 classes",
        "; labels start at 1 (preset imagenet).",
        "48 \N{MULTIPLICATION SIGN} 36 median size",
        "2 rejected",
        "red kite",
        "From the headers of all 13",
    ):
        assert text in shown
    pictures_shown = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(pictures_shown) == 13
    assert len([tag for tag, _ in page.tags if tag == "figure"]) == 5  # shards, sizes


def test_charts_have_a_bar_for_each_range_and_show_both_ends() -> None:
    few = histogram(np.array([10.0] * 3 + [50.0]), "width")
    assert (len(few.heights), few.heights[0], few.ends) == (40, 100, ("10", "50"))
    assert few.heights[-1] == pytest.approx(100 / 3)
    assert (few.note, few.median) == ("median 10", 0)
    giant = histogram(np.array([*np.linspace(10, 50, 999), 9000.0]), "width")
    assert giant.ends == ("10", "50")
    assert "the last bar holds all up to 9,000" in giant.note
    assert histogram(np.array([7.0, 7.0]), "width").note == "all 7"
    assert histogram(np.array([*[7.0] * 999, 90.0]), "width").note == "median 7; the last bar holds all up to 90"
    assert profile([4, 2, 0], "train", "", "blue").heights == [100, 50, 0]
    unequal = profile([1000] * 500 + [1] * 500, "train", "", "blue")
    assert (len(unequal.heights), unequal.note) == (120, "up to 1,000, in logarithms")
    assert unequal.heights[-1] > 5


def test_a_sample_of_many_is_spread_over_the_splits(birds: Path) -> None:
    few = dataset_portrait(birds, samples=5)
    assert not few.measured.whole
    assert len({(image.split, image.index) for image in few.measured.seen}) == 5
    assert few.counted == 13
    assert few.measured.seen == dataset_portrait(birds).measured.seen[:5]
    assert "From the headers of 5 random images" in " ".join(checked(info_page(few)).text.split())


def test_records_of_other_origin(tmp_path: Path) -> None:
    write_shards(tmp_path, 12, 2, bad={3: b"no image"})
    portrait = dataset_portrait(tmp_path)
    assert (portrait.kind, portrait.samples, portrait.rejects.total) == ("records", 12, 1)
    assert (portrait.counted, {known.total for known in portrait.classes}) == (12, {1})
    page = checked(info_page(portrait))
    assert "1 of 12 images that were looked at cannot be read" in " ".join(page.text.split())


def test_image_files_and_other_files(tmp_path: Path) -> None:
    write_tree(tmp_path / "photos", {"ant": 3, "bee": 3}, "ant/notes.jpg")
    whole = pictures.jpeg(200, 150, 1)
    (tmp_path / "photos/bee/cut.jpg").write_bytes(whole[: len(whole) // 2])
    portrait = dataset_portrait(tmp_path / "photos")
    assert (portrait.kind, portrait.samples, portrait.rejects.total) == ("files", 8, 2)
    shown = {picture.title: picture for picture in portrait.rejects.gallery}
    assert shown["bee/cut.jpg"].uri.startswith("data:image/jpeg")  # what is there of it
    assert (shown["ant/notes.jpg"].uri, shown["ant/notes.jpg"].problem) == ("", "a text file")
    checked(info_page(portrait))


def test_rejects_are_shown_where_the_source_is_still_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path / "photos", {"ant": 2, "bee": 2})
    whole = pictures.jpeg(200, 150, 1)
    for name, data in {"cut": whole[:-400], "cut2": whole[:-500], "gone": whole[:-600], "empty": b""}.items():
        (tmp_path / f"photos/ant/{name}.jpg").write_bytes(data)
    build = ["build", str(tmp_path / "photos"), str(tmp_path / "built"), "--max-rejects", "9"]
    assert main(build) == 0
    (tmp_path / "photos/ant/gone.jpg").unlink()
    portrait = dataset_portrait(tmp_path / "built", source=str(tmp_path / "photos"))
    assert (portrait.rejects.total, portrait.rejects.of) == (4, 8)
    (most, number), *_ = portrait.rejects.reasons
    assert (number, "N" in most, not re.search(r"\d", most)) == (3, True, True)
    shown = {picture.title: (bool(picture.uri), picture.problem) for picture in portrait.rejects.gallery}
    assert shown == {
        "ant/cut.jpg": (True, ""),
        "ant/cut2.jpg": (True, ""),
        "ant/gone.jpg": (False, "no longer there"),
        "ant/empty.jpg": (False, "an empty file"),
    }
    monkeypatch.setattr("stoker.inspect.page._GALLERY", 2)
    some = dataset_portrait(tmp_path / "built").rejects.gallery
    assert len({picture.details for picture in some}) == 2  # of different reasons
    assert not any(picture.uri for picture in some)  # the source was not given
    checked(info_page(portrait))


def test_no_picture_comes_from_outside_of_the_source(birds: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    write_files(tmp_path, dict.fromkeys(("secret.jpg", "source/within.jpg"), pictures.jpeg(30, 20, 1)))
    (source / "link.jpg").symlink_to(tmp_path / "secret.jpg")
    (source / "circle").symlink_to(source / "circle")
    keys = ["within.jpg", "../secret.jpg", str(tmp_path / "secret.jpg"), "link.jpg", "circle/a.jpg", "../source/x.jpg"]
    lines = [json.dumps({"key": key, "split": "train", "reason": "damaged"}) for key in keys]
    (birds / "rejects.jsonl").write_text("".join(f"{line}\n" for line in lines))
    list_again(birds, "rejects.jsonl")
    gallery = dataset_portrait(birds, source=str(source)).rejects.gallery
    problems = [picture.problem for picture in gallery]
    assert [bool(picture.uri) for picture in gallery] == [True, *[False] * 5]
    assert problems == ["", *["lies outside of the source"] * 3, "no longer there", "lies outside of the source"]


def test_boxes_of_the_wrong_kind_are_damage(tmp_path: Path) -> None:
    (shown,) = dataset_portrait(write_wrong_boxes(tmp_path / "shard.tfrecord")).strip
    assert (shown.uri, "'image/object/bbox/xmin' holds bytes values" in shown.problem) == ("", True)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(tmp_path: Path, name: str) -> None:
    root = tmp_path / name.replace("/", "-") / "x"
    write_tree(root, {name.replace("/", "-"): 2, "b": 2})
    page = checked(info_page(dataset_portrait(root)))
    assert page.text.count(name.replace("/", "-").replace("\udcff", "\N{REPLACEMENT CHARACTER}")) >= 3
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 4


@pytest.mark.parametrize("classes", [1, 40, 41, 1500])
def test_any_number_of_classes(tmp_path: Path, classes: int) -> None:
    write_dataset(tmp_path / "many", {"train": [3]})
    portrait = dataset_portrait(tmp_path / "many")
    counts = np.random.default_rng(1).integers(0, 900, classes)
    known = tuple(ClassCount(n, f"class-{n}", "", {"train": int(count)}) for n, count in enumerate(counts))
    text = info_page(replace(portrait, classes=known))
    named = set(re.findall(r"class-\d+", checked(text).text))
    assert len(named) == (classes if classes <= 40 else 20)
    assert ("from the most frequent to the rarest" in text) == (classes > 40)
    assert len(text) < 400_000


def test_the_command_writes_the_page_whole_or_not_at_all(birds: Path, tmp_path: Path, cli: Cli) -> None:
    report = json.loads(cli("info", birds, "--html", tmp_path / "a.html", "--records", "4", "--json"))
    assert report == {"page": str(tmp_path / "a.html"), "images": 13, "looked_at": 4, "rejects": 2}
    checked((tmp_path / "a.html").read_text(encoding="utf-8"))
    cli("info", tmp_path / "nothing", "--html", tmp_path / "b.html", code=2)
    assert not (tmp_path / "b.html").exists()


def test_a_package_that_is_missing_is_named_before_an_image_is_looked_at(
    birds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.delitem(sys.modules, "stoker.inspect.page", raising=False)
    monkeypatch.delattr("stoker.inspect.page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    cli("info", birds, "--html", tmp_path / "a.html", code=2)
    assert "stoker[report]" in cli.err
    assert "looking" not in cli.err
    assert not (tmp_path / "a.html").exists()
