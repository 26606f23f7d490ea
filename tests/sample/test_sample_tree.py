"""The sample tree: whole, the same every time, and as odd as it says."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from builder.trees import contents
from stoker import _native, sample
from stoker.errors import ConfigError, DestinationError, ImageError
from stoker.sample import SampleSpec, make_sample

SPEC = SampleSpec(classes=12, images_per_class=3, validation_per_class=1, damaged=True)
SMALL = SampleSpec(classes=3, images_per_class=2, validation_per_class=1)
CORNERS = ("xmin", "ymin", "xmax", "ymax")
NOISE = "an annotation with swapped corners, out-of-range coordinates and no file name"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sample") / "photos"
    make_sample(root, SPEC)
    return root


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("small") / "photos"
    make_sample(root, SMALL)
    return root


@pytest.mark.slow
def test_the_tree_has_the_shape_of_imagenet(tree: Path) -> None:
    wnids = (tree / "synsets.txt").read_text().split()
    assert len(wnids) == 12
    assert wnids == sorted(wnids)
    words = dict(line.split("\t") for line in (tree / "imagenet_metadata.txt").read_text().splitlines())
    assert words["n01440764"] == "tench, Tinca tinca"
    assert list(words) == wnids
    for wnid in wnids:
        assert len(list((tree / "train" / wnid).iterdir())) == 3
        assert len(list((tree / "validation" / wnid).iterdir())) == 1
    assert (tree / "validation" / wnids[0] / "ILSVRC2012_val_00000001.JPEG").exists()


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.slow
def test_the_same_spec_gives_the_same_bytes_for_any_threads(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(sample, "available_cpus", lambda: threads)
    make_sample(tmp_path / "again", SMALL)
    assert contents(tmp_path / "again") == contents(small)


def test_another_seed_gives_other_images(small: Path, tmp_path: Path) -> None:
    make_sample(tmp_path / "other", replace(SMALL, seed=18))
    images, others = (
        {name: data for name, data in contents(root).items() if name.startswith("train/")}
        for root in (small, tmp_path / "other")
    )
    assert images.keys() == others.keys()
    assert not set(images.values()) & set(others.values())


def test_odd_files_are_what_they_are_said_to_be(tree: Path) -> None:
    report = make_sample(tree, SPEC)
    assert not report.is_new
    by_kind = {what: tree / path for path, what in report.oddities.items()}
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


def test_damaged_files_cannot_be_decoded_and_all_others_can(tree: Path) -> None:
    damaged = make_sample(tree, SPEC).damaged
    images = {path for path, what in damaged.items() if what != NOISE}
    assert len(images) == len({damaged[path] for path in images}) == 5
    for path in tree.rglob("*.J*"):
        if path.relative_to(tree).as_posix() not in images:
            Image.open(path).load()
    for path in images:
        with pytest.raises(ImageError):
            _native.decode_image((tree / path).read_bytes())


def test_damaged_files_are_what_they_are_said_to_be(tree: Path) -> None:
    by_kind = {what: tree / path for path, what in make_sample(tree, SPEC).damaged.items()}
    data = {what: path.read_bytes() for what, path in by_kind.items()}
    assert data["a file of zero bytes"] == b""
    assert by_kind["text named .jpg"].suffix == ".jpg"
    assert data["text named .jpg"].isascii()
    assert b"\xff\xd9" not in data["a JPEG cut off after 60 % of its bytes"][-2:]
    for what in (
        "a JPEG with a run of changed bytes in the middle",
        "a JPEG whose header claims 60,000 x 60,000 pixels",
    ):
        assert data[what].endswith(b"\xff\xd9")
    header = _native.probe_jpeg(data["a JPEG whose header claims 60,000 x 60,000 pixels"])
    assert (header.width, header.height) == (60_000, 60_000)


def test_the_noisy_annotation_belongs_to_a_good_image(tree: Path) -> None:
    (path,) = (tree / path for path, what in make_sample(tree, SPEC).damaged.items() if what == NOISE)
    annotation = ET.parse(path).getroot()
    assert annotation.findtext("filename") == "%s"
    xmin, ymin, xmax, ymax = (int(annotation.findtext(f"object/bndbox/{c}", "")) for c in CORNERS)
    assert xmin > int(annotation.findtext("size/width", "")) > xmax
    assert ymin > 0 > ymax
    Image.open(tree / "train" / path.parent.name / f"{path.stem}.JPEG").load()
    assert [p for p in (tree / "bounding_boxes").rglob("*.xml") if "%s" in p.read_text()] == [path]


def test_boxes_lie_inside_their_image(tree: Path) -> None:
    report = make_sample(tree, SPEC)
    unusable = {Path(path).stem for path in report.damaged}
    annotations = [p for p in (tree / "bounding_boxes").rglob("*.xml") if p.stem not in unusable]
    assert len(annotations) > 0.7 * report.images
    for annotation in annotations:
        root = ET.parse(annotation).getroot()
        assert root.findtext("folder") == annotation.parent.name
        assert root.findtext("filename") == annotation.stem
        (image_path,) = tree.rglob(f"{annotation.stem}.JPEG")
        assert image_path.parent.name == annotation.parent.name
        with Image.open(image_path) as image:
            width, height = image.size
        assert (width, height) == tuple(int(root.findtext(f"size/{side}", "")) for side in ("width", "height"))
        boxes = list(root.iter("bndbox"))
        assert 1 <= len(boxes) <= 3
        for box in boxes:
            xmin, ymin, xmax, ymax = (int(box.findtext(c, "")) for c in CORNERS)
            assert 0 <= xmin < xmax <= width
            assert 0 <= ymin < ymax <= height


@pytest.mark.slow
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


def test_a_directory_that_holds_something_else_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DestinationError, match="something else"):
        make_sample(tmp_path, SPEC)
    with pytest.raises(DestinationError, match="is a file"):
        make_sample(tmp_path / "mine.txt", SPEC)
    with pytest.raises(DestinationError, match=r"mine\.txt is not a directory"):
        make_sample(tmp_path / "mine.txt/sub", SPEC)
    with pytest.raises(DestinationError, match="other settings"):
        make_sample(tree, SampleSpec(classes=2))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.txt"]


def test_a_sample_that_was_changed_is_refused_and_left_alone(tmp_path: Path) -> None:
    spec = SampleSpec(classes=1, images_per_class=2, validation_per_class=1)
    root = tmp_path / "photos"
    make_sample(root, spec)
    (image, *_) = (root / "train" / "n01440764").iterdir()
    whole = image.read_bytes()
    for change in (image.unlink, lambda: image.write_bytes(whole[:-1]), lambda: (root / "new.JPEG").write_bytes(whole)):
        image.write_bytes(whole)
        assert not make_sample(root, spec).is_new
        change()
        before = contents(root)
        with pytest.raises(DestinationError, match="changed"):
            make_sample(root, spec)
        assert contents(root) == before


def test_progress_counts_every_image(tmp_path: Path) -> None:
    seen: list[tuple[int, int, int]] = []

    def progress(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
        assert rejects == 0
        seen.append((done, total, size_bytes))

    spec = SampleSpec(classes=2, images_per_class=1, validation_per_class=1)
    report = make_sample(tmp_path / "photos", spec, progress)
    assert [done for done, _, _ in seen] == [1, 2, 3, 4]
    assert seen[-1] == (4, 4, report.size_bytes)


def test_numbers_out_of_range_are_refused() -> None:
    for bad in ({"classes": 0}, {"images_per_class": 0}, {"validation_per_class": -1}, {"seed": -1}):
        with pytest.raises(ConfigError):
            SampleSpec(**bad)


@pytest.mark.slow
def test_every_kind_of_damage_fits_or_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="12 training images are too few"):
        SampleSpec(classes=12, images_per_class=1, damaged=True)
    report = make_sample(tmp_path / "photos", SampleSpec(1, 13, 0, damaged=True))
    assert (len(report.oddities), len(report.damaged)) == (7, 6)


@pytest.mark.slow
def test_an_interrupted_sample_leaves_nothing_and_is_made_again(small: Path, tmp_path: Path) -> None:
    begun = 0

    def interrupted(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
        nonlocal begun
        begun = done
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_sample(tmp_path / "photos", SMALL, interrupted)
    assert begun == 1
    assert list(tmp_path.rglob("*")) == [tmp_path / "photos"]
    assert make_sample(tmp_path / "photos", SMALL).is_new
    assert contents(tmp_path / "photos") == contents(small)
