"""``stoker audit`` on a folder in which everything is wrong that it looks for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from page_checks import checked
from reference import pictures
from small_datasets import write_dataset
from sources.layouts import BOXES, Drawn
from stoker.cli.main import main
from stoker.format import ClassLabel
from stoker.loader import draw_boxes, usable_boxes
from stoker.types import Box
from written_files import write_files

if TYPE_CHECKING:
    from commands import Cli


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Images of two classes in two splits, with copies, and some that are odd."""
    root = tmp_path / "photos"
    folders = ["val/dog", "val/cat", "val/dog", "train/cat", "train/dog", "train/cat", "train/dog", "train/cat"]
    write_files(root, {f"{folder}/{at}.jpg": pictures.jpeg(96, 64, at) for at, folder in enumerate(folders)})
    shutil.copy(root / "train/cat/3.jpg", root / "val/cat/leak.jpg")
    shutil.copy(root / "train/cat/5.jpg", root / "train/dog/mislabelled.jpg")
    image = Image.open(root / "train/dog/4.jpg")
    image.resize((48, 32)).save(root / "train/dog/small.webp")
    image.save(
        root / "train/dog/turned.jpg", exif=b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"
    )
    Image.new("RGBA", (20, 10), (4, 4, 4, 9)).save(root / "train/cat/black.png")
    (root / "train/cat/bad.jpg").write_bytes(pictures.jpeg(96, 64, 1)[:200])
    return root


def test_everything_planted_is_reported(photos: Path) -> None:
    report = stoker.audit(photos, threads=2)
    below = lambda images: [str(Path(image.path).relative_to(photos)) for image in images]  # noqa: E731
    groups = {group.how: [] for group in report.duplicates}
    for group in report.duplicates:
        groups[group.how].append((below(group.images), group.splits, group.labels))
    assert groups["bytes"] == [
        (["train/cat/3.jpg", "val/cat/leak.jpg"], ("train", "validation"), (0,)),
        (["train/cat/5.jpg", "train/dog/mislabelled.jpg"], ("train",), (0, 1)),
    ]
    near = ["train/dog/4.jpg", "train/dog/small.webp", "train/dog/turned.jpg"]
    assert [members for members, _, _ in groups["near"]] == [near]
    assert {name: below(images) for name, images in report.findings.items()} == {
        "unreadable": ["train/cat/bad.jpg"],
        "dark": ["train/cat/black.png"],
        "flat": ["train/cat/black.png"],
        "turned": ["train/dog/turned.jpg"],
        "alpha": ["train/cat/black.png"],
    }
    assert below(report.extremes["darkest"])[0] == below(report.extremes["widest"])[0] == "train/cat/black.png"
    assert [(known.name, known.total) for known in report.classes] == [("cat", 7), ("dog", 7)]
    assert report.formats["orientation"] == {"1": 12, "6": 1}
    assert [len(report.leaks), report.images, report.splits["train"].unreadable] == [1, 14, 1]


def test_mean_and_deviation_are_those_of_numpy(photos: Path) -> None:
    (photos / "train/cat/bad.jpg").unlink()
    split = stoker.audit(photos).splits["train"]
    images = [np.asarray(Image.open(file).convert("RGB")) / 255 for file in (photos / "train").rglob("*.*")]
    mean = np.mean([image.mean((0, 1)) for image in images], 0)
    std = np.sqrt(np.mean([(image**2).mean((0, 1)) for image in images], 0) - mean**2)
    np.testing.assert_allclose(split.mean, mean, atol=1e-5)
    np.testing.assert_allclose(split.std, std, atol=1e-5)
    stoker.Output("float32", mean=split.mean, std=split.std)


def test_the_command_prints_what_the_function_returns(photos: Path, tmp_path: Path, cli: Cli) -> None:
    measures = tmp_path / "measures"
    cli("audit", photos, "--json", "--resume", measures, code=4)
    document = cli.json
    assert document["findings"]["unreadable"][0]["path"] == str(photos / "train/cat/bad.jpg")
    assert [len(document["duplicates"]), document["images"]] == [3, 14]
    cli("audit", photos, "--resume", measures, code=4)
    text = cli.out
    assert "equal files: 2 images to spare in 2 groups, 1 of these across splits, 1 with several classes" in text
    assert "14 images, 13 of them before" in text


def test_no_figures_are_printed_of_images_that_cannot_be_read(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "1.jpg").write_bytes(b"\xff\xd8\xff")
    cli("audit", tmp_path, code=4)
    assert "normalise: no image could be read, so there are no figures\n" in cli.out
    (tmp_path / "2.jpg").write_bytes(pictures.jpeg(96, 64, 1))
    cli("audit", tmp_path, code=4)
    assert 'normalise: stoker.Output("float32", mean=(' in cli.out


def test_a_built_dataset_has_the_same_statistics(photos: Path, tmp_path: Path) -> None:
    (photos / "train/cat/bad.jpg").unlink()
    stoker.build(photos, tmp_path / "built", shards=2)
    of_photos, of_built = stoker.audit(photos), stoker.audit(tmp_path / "built")
    black = of_built.findings["dark"][0]
    assert black.where == f"{black.path}, record {black.record} (black.png)"
    assert of_photos.splits["validation"] == of_built.splits["validation"]
    assert sorted(group.how for group in of_built.duplicates) == sorted(group.how for group in of_photos.duplicates)


def test_a_dataset_without_findings_has_none(tmp_path: Path) -> None:
    write_dataset(tmp_path / "birds", {"train": [4, 2]})
    report = stoker.audit(tmp_path / "birds")
    assert (report.images, dict(report.findings), report.leaks) == (6, {}, ())


def test_shapes_are_told_however_extreme(tmp_path: Path, cli: Cli) -> None:
    Image.new("L", (1, 60_000)).save(tmp_path / "slit.png")
    report = stoker.audit(tmp_path)
    assert report.extremes["narrowest"][0].value == report.sizes["aspect"][0] == 1 / 60_000
    assert "narrowest: 1.667e-05, " in cli("audit", tmp_path)


def test_the_page_stands_alone_and_shows_every_finding(photos: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    assert main(["audit", str(photos), "--html", str(tmp_path / "page.html"), "-q"]) == 4
    page = checked((tmp_path / "page.html").read_text())
    for text in ("Equal files, in several splits", "Equal files, of several classes", "Near duplicates", "leak.jpg"):
        assert text in page.text
    assert "cannot be decoded" in page.text
    pictures_shown = sum(tag == "img" for tag, _ in page.tags)
    assert pictures_shown > 2 + 2 + 3 + 4  # of duplicates and findings, and those of extremes and classes


def test_names_of_classes_are_drawn_at_boxes() -> None:
    picture = Image.new("RGB", (200, 150))
    classes = (ClassLabel("cat", ""), ClassLabel("dog", ""))
    boxes = usable_boxes([Box(0.1, 0.5, 0.9, 0.9, label=1)])
    draw_boxes(picture, boxes)
    plain = np.asarray(picture).copy()
    draw_boxes(picture, boxes, classes)
    changed = np.argwhere((np.asarray(picture) != plain).any(2))
    assert len(changed) > 100
    assert changed[:, 0].max() < 80  # above the box


EDGES = {"1": (-5, -5, 15, 15), "2": (5, 5, 5, 15), "3": (80.2, 40.1, 81, 40.5), "4": (1, 1, 6, 40.001)}
"""Of a box of each image of 80 x 40: it leaves the image, has no area, lies beside it, or is sound."""


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.filterwarnings("ignore::stoker.errors.LabelWarning")
@pytest.mark.parametrize("kind", BOXES)
def test_boxes_that_are_cut_off_or_dropped_as_they_are_read_are_reported(kind: str, tmp_path: Path) -> None:
    images = {name: Drawn(pictures.jpeg(80, 40, int(name)), (80, 40), edges) for name, edges in EDGES.items()}
    BOXES[kind].write(tmp_path, {"train": images})
    report = stoker.audit(tmp_path, threads=2)
    named = {name: [Path(image.path).stem for image in images] for name, images in report.findings.items()}
    assert named == {"box outside": ["1", "3"], "box empty": ["2"]}
