"""The sample tree: whole, the same every time, and as odd as it says."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from stoker import _native
from stoker.errors import ConfigError, DestinationError, ImageError
from stoker.sample import SampleSpec, make_sample, tree

SPEC = SampleSpec(classes=12, images_per_class=3, validation_per_class=1, damaged=True)


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sample") / "photos"
    make_sample(root, SPEC)
    return root


def test_the_tree_has_the_shape_of_imagenet(made: Path) -> None:
    wnids = (made / "synsets.txt").read_text().split()
    assert len(wnids) == 12
    assert wnids == sorted(wnids)
    words = dict(line.split("\t") for line in (made / "imagenet_metadata.txt").read_text().splitlines())
    assert words["n01440764"] == "tench, Tinca tinca"
    assert list(words) == wnids
    for wnid in wnids:
        assert len(list((made / "train" / wnid).iterdir())) == 3
        assert len(list((made / "validation" / wnid).iterdir())) == 1
    assert (made / "validation" / wnids[0] / "ILSVRC2012_val_00000001.JPEG").exists()


def test_the_same_spec_gives_the_same_bytes_for_any_threads(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "available_cpus", lambda: 1)
    make_sample(tmp_path / "one", SPEC)
    assert contents(tmp_path / "one") == contents(made)
    make_sample(tmp_path / "other", SampleSpec(classes=12, images_per_class=3, validation_per_class=1, seed=18))
    assert contents(tmp_path / "other") != contents(made)


def test_odd_files_are_what_they_are_said_to_be(made: Path) -> None:
    report = make_sample(made, SPEC)
    assert not report.made
    by_kind = {what: made / path for path, what in report.oddities.items()}
    assert len(by_kind) == 7

    def opened(what: str) -> Image.Image:
        return Image.open(io.BytesIO(by_kind[what].read_bytes()))

    assert opened("a greyscale JPEG").mode == "L"
    assert opened("a CMYK JPEG").mode == "CMYK"
    assert opened("a PNG named .JPEG").format == "PNG"
    assert by_kind["a PNG named .JPEG"].suffix == ".JPEG"
    assert opened("a JPEG with EXIF orientation 6").getexif()[274] == 6

    def header(what: str) -> _native.JpegInfo:
        return _native.check_jpeg(by_kind[what].read_bytes())

    assert header("a progressive JPEG").progressive
    assert header("a JPEG with restart markers").restart_interval > 0
    assert header("a JPEG stored as RGB, without YCbCr").color == "rgb"


def test_damaged_files_cannot_be_decoded_and_all_others_can(made: Path) -> None:
    damaged = make_sample(made, SPEC).damaged
    assert sorted(Counter(damaged.values()).values()) == [1] * 5
    for path in made.rglob("*.J*"):
        if path.relative_to(made).as_posix() not in damaged:
            Image.open(path).load()
    for path in damaged:
        with pytest.raises(ImageError):
            _native.decode_jpeg((made / path).read_bytes())


def test_boxes_lie_inside_their_image_and_on_something(made: Path) -> None:
    damaged = {Path(path).stem for path in make_sample(made, SPEC).damaged}
    annotations = [p for p in (made / "bounding_boxes").rglob("*.xml") if p.stem not in damaged]
    assert len(annotations) > 20
    for annotation in annotations:
        root = ET.parse(annotation).getroot()
        found = next(p for p in made.rglob(f"{annotation.stem}.*") if p.suffix != ".xml")
        image = Image.open(found).convert("RGB")
        assert image.size == tuple(int(root.findtext(f"size/{side}", "")) for side in ("width", "height"))
        for box in root.iter("bndbox"):
            xmin, ymin, xmax, ymax = (int(box.findtext(c, "")) for c in ("xmin", "ymin", "xmax", "ymax"))
            assert 0 <= xmin < xmax <= image.width
            assert 0 <= ymin < ymax <= image.height
            inside = np.asarray(image.crop((xmin, ymin, xmax, ymax)), float).mean((0, 1))
            assert np.abs(inside - np.asarray(image, float).mean((0, 1))).max() > 2


def test_files_weigh_what_photographs_weigh(tmp_path: Path) -> None:
    spec = SampleSpec(classes=4, images_per_class=12, validation_per_class=0)
    report = make_sample(tmp_path / "photos", spec)
    assert report.images == 48
    assert 80_000 < report.size_bytes / report.images < 140_000
    samplings = Counter(
        _native.probe_jpeg(p.read_bytes()).subsampling
        for p in tmp_path.rglob("*.JPEG")
        if p.relative_to(tmp_path / "photos").as_posix() not in report.oddities
    )
    assert samplings["4:4:4"] > samplings["4:2:0"] > 0


def test_a_directory_that_holds_something_else_is_refused(made: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DestinationError, match="something else"):
        make_sample(tmp_path, SPEC)
    with pytest.raises(DestinationError, match="other settings"):
        make_sample(made, SampleSpec(classes=2))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt"]


def test_numbers_out_of_range_are_refused() -> None:
    for bad in ({"classes": 0}, {"images_per_class": 0}, {"validation_per_class": -1}, {"seed": -1}):
        with pytest.raises(ConfigError):
            SampleSpec(**bad)
