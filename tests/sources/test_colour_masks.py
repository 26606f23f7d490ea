"""Masks in colours, as CVAT and CamVid have them, become the ids that the list beside them tells."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import stoker
from reference.coloured_masks import ids_of_colours
from sources.making import check_refused, fill, write
from stoker import fields
from stoker.errors import SourceError, TooManyRejectsError
from stoker.sources import SourceOptions, list_source
from stoker.sources.drawn_masks import ColouredMask, Colours
from stoker.sources.reader import Cells
from storage.store_folders import copy, store_folder

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Colour = tuple[int, int, int]

SIDES = (40, 30)
CLASSES = {"car": (250, 50, 83), "person": (51, 221, 255), "road sign": (36, 179, 83)}
BLACK = (0, 0, 0)
MASKS = SourceOptions(masks=True)


def paint(path: Path, colours: list[Colour], seed: int = 0, **saved: Any) -> None:
    """A mask of blotches in each of some colours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = np.random.default_rng(seed).integers(0, len(colours), (SIDES[1] // 5, SIDES[0] // 5))
    numbers.flat[: len(colours)] = range(len(colours))
    pixels = np.array(colours, np.uint8)[numbers.repeat(5, 0).repeat(5, 1)]
    Image.fromarray(pixels).save(path, **saved)


def photographs(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        Image.new("RGB", SIDES, (number, 90, 200)).save(folder / name)


def cvat(root: Path, labelmap: str | None, colours: list[Colour]) -> Path:
    """CVAT's export as Pascal VOC or as segmentation masks: two images."""
    photographs(root / "JPEGImages", "1.jpg", "2.jpg")
    for name in ("1", "2"):
        paint(root / f"SegmentationClass/{name}.png", colours, int(name))
    write(root, {"ImageSets/Segmentation/default.txt": "1\n2\n"})
    if labelmap is not None:
        (root / "labelmap.txt").write_text(labelmap)
    return root


def labelmap(*names: str) -> str:
    named = {"background": BLACK, **CLASSES}
    lines = [f"{name}:{','.join(map(str, named[name]))}::\n" for name in names]
    return "# label:color_rgb:parts:actions\n" + "".join(lines)


def masks_of(source: Path, split: str = "train", **given: Any) -> dict[str, NDArray[Any]]:
    samples = stoker.open(source, split, **given)
    return {sample.source.rpartition("/")[2]: np.asarray(sample.fields["mask"]) for sample in samples}


@pytest.mark.parametrize(
    "names",
    [
        ("background", "car", "person", "road sign"),
        ("car", "background", "person", "road sign"),
        ("car", "person", "road sign"),
    ],
)
def test_masks_of_cvat_are_the_lines_of_its_label_map(names: tuple[str, ...], tmp_path: Path) -> None:
    """The background is 0 wherever it is, and what is drawn nowhere is black."""
    root = cvat(tmp_path / "cvat", labelmap(*names), [BLACK, *CLASSES.values()])
    numbers = {BLACK: 0, **{colour: number for number, colour in enumerate(CLASSES.values(), 1)}}
    wanted = {f"{name}.jpg": ids_of_colours(root / f"SegmentationClass/{name}.png", numbers) for name in ("1", "2")}
    assert {*np.unique(wanted["1.jpg"])} == {0, 1, 2, 3}
    report = stoker.build(root, tmp_path / "out", masks=True, progress=False)
    assert (report.rejects, report.manifest.schema.fields) == ((), {"mask": fields.Mask()})
    for masks in (masks_of(root, masks=True), masks_of(tmp_path / "out")):
        assert masks.keys() == wanted.keys()
        for name, mask in wanted.items():
            assert np.array_equal(masks[name], mask), name


@pytest.mark.parametrize("depth", [1, 2])
def test_masks_of_cvat_may_lie_in_folders(depth: int, tmp_path: Path) -> None:
    folder = "sub/" * depth
    root = cvat(tmp_path, labelmap("background", "car", "person", "road sign"), [BLACK, *CLASSES.values()])
    flat = masks_of(root, masks=True)
    for top in ("JPEGImages", "SegmentationClass"):
        inner = root / top / folder
        inner.mkdir(parents=True)
        for path in [each for each in (root / top).iterdir() if each.is_file()]:
            path.rename(inner / path.name)
    (root / "ImageSets/Segmentation/default.txt").write_text(f"{folder}1\n{folder}2\n")
    masks = masks_of(root, masks=True)
    assert masks.keys() == flat.keys() == {"1.jpg", "2.jpg"}
    assert all(np.array_equal(masks[name], flat[name]) for name in flat)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("class_dict.csv", 'name,r,g,b\r\nsky,128,128,128\nroad, 128, 64, 128\n"tree",128,128,0\n'),
        ("class_dict.csv", "sky,128,128,128\nroad,128,64,128\ntree,128,128,0\n"),
        ("label_colors.txt", "128 128 128\tsky\n128 64 128\t\troad\n128 128 0\ttree\n"),
    ],
)
def test_folders_of_coloured_masks_have_the_lines_of_their_list(file: str, text: str, tmp_path: Path) -> None:
    colours = [(128, 128, 128), (128, 64, 128), (128, 128, 0)]
    for split in ("train", "val"):
        photographs(tmp_path / split, "a.png", "b.png")
        for seed, name in enumerate(("a_L.png", "b_L.png")):
            paint(tmp_path / f"{split}_labels/{name}", colours, seed)
    (tmp_path / file).write_text(text)
    numbers = {colour: number for number, colour in enumerate(colours)}
    for split, folder in (("train", "train"), ("validation", "val")):
        for name, mask in masks_of(tmp_path, split).items():
            path = tmp_path / f"{folder}_labels/{name[0]}_L.png"
            assert np.array_equal(mask, ids_of_colours(path, numbers))


def test_without_a_list_colours_are_those_of_voc(tmp_path: Path) -> None:
    """The colour map of VOC's development kit, with its void; no other colour is guessed at."""
    colours = [(0, 0, 0), (128, 0, 0), (64, 128, 0), (192, 128, 128), (0, 64, 128), (224, 224, 192)]
    root = cvat(tmp_path / "voc", None, colours)
    numbers = dict(zip(colours, (0, 1, 10, 13 + 1, 20, 255), strict=True))
    numbers[192, 128, 128] = 15
    assert np.array_equal(masks_of(root)["1.jpg"], ids_of_colours(root / "SegmentationClass/1.png", numbers))
    paint(root / "SegmentationClass/1.png", [BLACK, (250, 50, 83)])
    problem = r"SegmentationClass/1\.png has the colour 250,50,83 at x=5, y=0, which is none of Pascal VOC's own, and"
    with pytest.raises(TooManyRejectsError, match=rf"1\.jpg: field 'mask': .*{problem} there is no labelmap\.txt"):
        stoker.build(root, tmp_path / "out", progress=False)


def test_a_first_mask_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    root = cvat(tmp_path, labelmap("car"), [BLACK, CLASSES["car"]])
    (root / "SegmentationClass/0.png").symlink_to(root / "gone.png")
    (root / "SegmentationClass/00.png").write_bytes(b"")
    assert {*np.unique(masks_of(root, masks=True)["1.jpg"])} == {0, 1}


@pytest.mark.servers
def test_masks_of_a_store(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    root = cvat(tmp_path / "here", labelmap("car"), [BLACK, CLASSES["car"]])
    here = stoker.build(root, tmp_path / "out", masks=True, progress=False)
    remote = copy(root, store_folder("s3", request, monkeypatch))
    assert stoker.build(remote, remote / "out", masks=True, progress=False).manifest == here.manifest


def test_a_mask_that_does_not_fit_is_a_reject_that_says_why(tmp_path: Path) -> None:
    root = cvat(tmp_path / "cvat", labelmap("car"), [BLACK, CLASSES["car"]])
    masks = root / "SegmentationClass"
    photographs(root / "JPEGImages", *(f"{number}.jpg" for number in range(1, 8)))
    (root / "ImageSets/Segmentation/default.txt").write_text("".join(f"{number}\n" for number in range(1, 8)))
    paint(masks / "2.png", [BLACK, (1, 2, 3)])
    Image.new("RGB", (9, 9)).save(masks / "3.png")
    Image.new("RGB", (30, 40)).save(masks / "4.png")
    (masks / "5.png").write_bytes((masks / "1.png").read_bytes()[:-30])
    shutil.copy(root / "JPEGImages/6.jpg", masks / "6.png")
    report = stoker.build(root, tmp_path / "out", masks=True, max_rejects=7, progress=False)
    reasons = {reject.key[-5]: reject.reason for reject in report.rejects}
    assert reasons.keys() == {*"234567"}
    assert all(reason.startswith("field 'mask': ") for reason in reasons.values())
    for name, problem in {
        "2": f"{masks}/2.png has the colour 1,2,3 at x=5, y=0, which is none of {root}/labelmap.txt",
        "3": f"{masks}/3.png has 9x9 pixels, but its image 40x30; they must be equally large",
        "4": f"{masks}/4.png has 30x40 pixels, but its image 40x30",
        "6": "a mask of kind jpeg, which does not keep the numbers of its pixels, is not read; give one of png",
        "7": f"{masks}/7.png: No such file or directory",
    }.items():
        assert problem in reasons[name]


def test_grey_and_palette_among_coloured_masks_count_by_their_colours(tmp_path: Path) -> None:
    root = cvat(tmp_path, labelmap("car", "person"), [BLACK, CLASSES["car"], CLASSES["person"]])
    wanted = masks_of(root, masks=True)["2.jpg"]
    assert {*np.unique(wanted)} == {0, 1, 2}
    with Image.open(root / "SegmentationClass/2.png") as mask:
        indexed = mask.quantize(3)
    indexed.save(root / "SegmentationClass/2.png")
    assert not np.array_equal(np.asarray(indexed), wanted)
    assert np.array_equal(masks_of(root, masks=True)["2.jpg"], wanted)
    Image.new("L", SIDES, 1).save(root / "SegmentationClass/2.png")
    with pytest.raises(stoker.errors.StokerError, match="has the colour 1,1,1 at x=0, y=0"):
        masks_of(root, masks=True)


def test_masks_of_ids_are_read_as_before_though_a_list_lies_beside_them(tmp_path: Path) -> None:
    root = cvat(tmp_path, "cat:too few", [BLACK])
    ids = np.arange(SIDES[0] * SIDES[1], dtype=np.uint8).reshape(SIDES[::-1])
    for name in ("1", "2"):
        mask = Image.fromarray(ids, "P")
        mask.putpalette(bytes(range(256)) * 3)
        mask.save(root / f"SegmentationClass/{name}.png")
    assert np.array_equal(masks_of(root, masks=True)["1.jpg"], ids)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("car:250,50,83::\nbus:250,50,83::\n", "line 2: 'bus:250,50,83::' has the colour of 'car'"),
        ("car:250,50,256::\n", "line 1: 'car:250,50,256::' has no colour; write lines such as 'cat:250,50,83::'"),
        ("background:::\ncar:::\n", "line 1: 'background:::' has no colour"),
        ("car:1,2\n", "line 1: 'car:1,2' has no colour"),
        ("car:" + "9" * 9999 + ",2,3\n", "line 1: 'car:9999"),
        ("# nothing\n", "names 0 classes, not 1 to 65,536; write lines such as"),
        (
            "".join(f"c{n}:{n >> 16},{n >> 8 & 255},{n & 255}::\n" for n in range(2**16 + 1)),
            "names 65,537 classes, not 1",
        ),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    root = cvat(tmp_path, text, [BLACK, CLASSES["car"]])
    with pytest.raises(SourceError, match=re.escape(problem)):
        list_source(str(root), MASKS)


def test_folders_of_coloured_masks_without_a_list_are_told_what_to_write(tmp_path: Path) -> None:
    fill(tmp_path, "images/1.jpg", "masks/1.png")
    problem = rf"list these in {tmp_path}/class_dict\.csv, in lines such as 'cat,250,50,83', or write a PNG of the ids"
    check_refused(tmp_path, match=problem)


def test_more_than_256_colours_take_16_bits(tmp_path: Path) -> None:
    photographs(tmp_path / "images", "1.png")
    colours = [(number // 256, number % 256, 7) for number in range(300)]
    paint(tmp_path / "masks/1.png", colours[-4:])
    (tmp_path / "class_dict.csv").write_text("".join(f"c{at},{r},{g},{b}\n" for at, (r, g, b) in enumerate(colours)))
    (mask,) = masks_of(tmp_path).values()
    assert (mask.dtype, {*np.unique(mask)}) == (np.uint16, {296, 297, 298, 299})


def test_colours_and_their_numbers_belong_to_the_fingerprint_and_the_path_does_not(tmp_path: Path) -> None:
    drawn = [BLACK, CLASSES["car"], CLASSES["person"]]
    first = list_source(str(cvat(tmp_path / "a", labelmap("car", "person"), drawn)), MASKS)
    assert list_source(str(shutil.copytree(tmp_path / "a", tmp_path / "b")), MASKS).fingerprint() == first.fingerprint()
    (tmp_path / "b/labelmap.txt").write_text(labelmap("person", "car"))
    assert list_source(str(tmp_path / "b"), MASKS).fingerprint() != first.fingerprint()
    cells = first.reader.cells
    assert isinstance(cells, Cells)
    saved = Cells.from_json(json.loads(json.dumps(cells.to_json())))
    assert saved.digest(first.table) == cells.digest(first.table)
    value = json.dumps(["SegmentationClass/1.png"]).encode()
    assert saved.values(value, first.reader.base)["mask"].draw(SIDES).any()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_colours_are_those_of_the_slow_twin(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    byte = st.integers(0, 255)
    colours = data.draw(st.lists(st.tuples(byte, byte, byte), min_size=1, max_size=9, unique=True))
    numbers = data.draw(st.permutations(range(len(colours))))
    file = tmp_path_factory.getbasetemp() / f"any.{data.draw(st.sampled_from(['png', 'bmp', 'tiff']))}"
    paint(file, colours)
    rows = [(*colour, number) for colour, number in zip(colours, numbers, strict=True)]
    mask = ColouredMask(str(file).encode(), Colours("here", rows))
    wanted = ids_of_colours(file, dict(zip(colours, numbers, strict=True)))
    assert np.array_equal(mask.draw(SIDES), wanted)
