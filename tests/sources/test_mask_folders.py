"""Images beside their masks: which belong together, and that every pixel of both is that of Pillow and torchvision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from sources.layouts import cityscapes
from sources.making import check_refused, fill, listing, png, split_sizes
from stoker import fields
from stoker.errors import SourceWarning, TooManyRejectsError
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from commands import Cli


def write(root: Path, image: str, mask: str, number: int = 0, mode: str = "P") -> None:
    """An image whose first channel has the ids of its mask, of 8 x 6 to 12 x 10 pixels."""
    ids = np.random.default_rng(number).integers(0, 21, (6 + number % 5, 8 + number % 5), dtype=np.uint8)
    own = Image.fromarray(ids)
    if mode == "P":
        own = Image.fromarray(ids, "P")
        own.putpalette(np.random.default_rng(1).integers(0, 256, 768, dtype=np.uint8).tobytes())
    pixels = Image.fromarray(np.stack([ids, ids // 2, 255 - ids], axis=2))
    for path, saved in ((image, pixels), (mask, own if mode == "P" else own.convert(mode))):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        saved.save(root / path)


SHAPES = {
    "plain": ("images/{}.png", "masks/{}.png"),
    "mask suffix": ("image/{}.png", "mask/{}_mask.png"),
    "deeper": ("img/a/{}.png", "labels/a/{}.bmp"),
    "other folders": ("images/{}.png", "annotations/trimaps/{}.png"),
    "one wrapped": ("some data/imgs/{}.png", "some data/segmentation/{}_seg.gif"),
    "sequences": ("train/seq 1/{}.png", "train_masks/seq 1/{}.png"),
    "carvana": ("train/{}.png", "train_masks/{}_mask.gif"),
    "fastai's camvid": ("images/{}.png", "labels/{}_P.png"),
    "both renamed": ("images/image_{}.png", "masks/mask_{}.png"),
    "named": ("xray/{}.png", "masks/{}.png"),
    "targets": ("images/{}.png", "masks/{}_targets.png"),
    "ground truth in front": ("images/{}.png", "gt/ground_truth_{}.png"),
    "two suffixes": ("train/images/{}_rgb.png", "train/gt/{}_label.png"),
    "loveda": ("Train/Urban/images_png/{}.png", "Train/Urban/masks_png/{}.png"),
    "davis": ("JPEGImages/480p/bear/{}.png", "Annotations/480p/bear/{}.png"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_images_and_masks_are_those_that_pillow_reads(shape: str, tmp_path: Path) -> None:
    image, mask = SHAPES[shape]
    numbers = ("002", "010", "1")
    for at, number in enumerate(numbers):
        write(tmp_path, image.format(number), mask.format(number), at)
    dataset = stoker.open(tmp_path)
    assert (dataset.split, dataset.classes, dataset.fields) == ("train", (), {"mask": fields.Mask()})
    assert [sample.label for sample in dataset] == [-1] * 3
    for number, (image_pixels, ids) in zip(sorted(numbers), samples(dataset), strict=True):
        assert np.array_equal(image_pixels, opened(tmp_path / image.format(number)))
        assert np.array_equal(ids, opened(tmp_path / mask.format(number)))


def samples(dataset: stoker.Dataset) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The pixels of each image and its ids."""
    return [(sample.decode(), sample.fields["mask"]) for sample in dataset]


def opened(path: Path) -> NDArray[Any]:
    with Image.open(path) as image:
        return np.array(image)


def test_scenes_of_a_split_have_folders_of_pairs(tmp_path: Path) -> None:
    for at, scene in enumerate(("Train/Rural", "Train/Urban", "Val/Rural")):
        write(tmp_path, f"{scene}/images_png/1.png", f"{scene}/masks_png/1.png", at)
    write(tmp_path, "Test/Rural/images_png/9.png", "Test/Rural/images_png/8.png")
    with pytest.warns(SourceWarning) as caught:
        train = stoker.open(tmp_path, "train")
    assert [str(each.message) for each in caught] == [
        "2 images without a mask, not used: Test/Rural/images_png/8.png, Test/Rural/images_png/9.png",
        "folders of images and masks, not classes: Train/Rural, Train/Urban, Val/Rural",
    ]
    assert [sample.source for sample in train] == [
        "Train/Rural/images_png/1.png",
        "Train/Urban/images_png/1.png",
    ]
    assert np.array_equal(samples(train)[1][1], opened(tmp_path / "Train/Urban/masks_png/1.png"))


@pytest.mark.parametrize(
    ("images", "masks", "split"),
    [
        ("images/training", "annotations/training", "train"),
        ("valid/img", "valid/label", "validation"),
        ("test", "testannot", "test"),
        ("val_images", "val_masks", "validation"),
        ("images/test", "masks", "test"),
    ],
)
def test_splits_are_told_by_names_of_folders(images: str, masks: str, split: str, tmp_path: Path) -> None:
    write(tmp_path, f"{images}/1.png", f"{masks}/1.png")
    tree = listing(tmp_path)
    assert (split_sizes(tree), tree.warnings) == ({split: 1}, ())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torchvision leaves files open
@pytest.mark.usefixtures("torchvision")
def test_cityscapes_is_what_torchvision_reads(tmp_path: Path) -> None:
    from torchvision.datasets import Cityscapes  # noqa: PLC0415 - beside PyTorch, once the fixture lets it

    cityscapes(tmp_path)
    for split, name, count in (("train", "train", 2), ("val", "validation", 1)):
        theirs = Cityscapes(str(tmp_path), split, target_type="semantic")
        wanted = sorted(zip(theirs.images, theirs.targets, range(len(theirs)), strict=True))
        dataset = stoker.open(tmp_path, split)
        assert (dataset.split, len(dataset)) == (name, count)
        for (image, ids), (_, _, at) in zip(samples(dataset), wanted, strict=True):
            assert np.array_equal(image, np.asarray(theirs[at][0]))
            assert np.array_equal(ids, np.asarray(theirs[at][1]))
    assert listing(tmp_path).ignored == {".json": 3, "beside the masks": 6}


def test_crops_keep_images_and_masks_together(tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path / "src", f"images/{number}.png", f"masks/{number}.png", number)
    stoker.build(tmp_path / "src", tmp_path / "out", progress=False)
    built, files = stoker.open(tmp_path / "out"), stoker.open(tmp_path / "src")
    settings: dict[str, Any] = {"shuffle": True, "seed": 3, "fields": ["mask"]}
    for dataset in (built, files):
        with stoker.Loader(dataset, 4, transform=stoker.TopLeft(5, hflip=0.5), **settings) as loader:
            assert sum(int(np.array_equal(batch.images[..., 0], batch.fields["mask"])) for batch in loader) == 3
    for path in tmp_path.glob("src/*/*.png"):  # each half of one value: resampling changes what is where they meet
        halves = np.repeat(np.array([[0, 200]], np.uint8), 40, axis=1).repeat(60, axis=0)
        Image.fromarray(halves).convert("RGB" if path.parent.name == "images" else "L").save(path)
    crop = stoker.RandomResizedCrop(20, hflip=0.5)
    with stoker.Loader(stoker.open(tmp_path / "src"), 12, transform=crop, **settings) as loader:
        batch = next(iter(loader))
    left = batch.fields["mask"][:, :, 0].mean(axis=1)
    assert 0 < np.count_nonzero(left) < 12
    assert np.count_nonzero((batch.images[..., 0] > 100) != (batch.fields["mask"] > 100)) < 12 * 20 * 2


def test_masks_of_16_bits(tmp_path: Path) -> None:
    fill(tmp_path, "images/1.png")
    (tmp_path / "masks").mkdir()
    ids = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1000
    Image.fromarray(ids).save(tmp_path / "masks/1.png")
    dataset = stoker.open(tmp_path)
    assert dataset.fields == {"mask": fields.Mask(16)}
    assert np.array_equal(dataset[0].fields["mask"], ids)


def test_what_has_no_partner_is_told(tmp_path: Path, cli: Cli) -> None:
    write(tmp_path, "images/1.png", "masks/1.png")
    fill(tmp_path, "images/2.png", "test/images/3.png", "images/notes.txt")
    write(tmp_path, "test/images/4.png", "masks/5.png")
    printed = cli("plan", tmp_path)
    assert f"{tmp_path}: no classes, 1 item, " in printed
    assert "ignored: 1 .txt, 3 image without a mask, 1 mask without an image" in printed
    assert "fields: mask (mask of 8 bits)" in printed
    assert "warning: 1 image without a mask, not used: images/2.png" in printed
    assert "warning: 2 images without a mask, not used: test/images/3.png, test/images/4.png" in printed
    assert "warning: 1 mask without an image, not used: masks/5.png" in printed


def test_folders_beside_them_are_told(tmp_path: Path) -> None:
    write(tmp_path, "images/train/1.png", "masks/train/1.png")
    fill(tmp_path, "images/train_extra/2.png", "masks/train_extra/2.png", "depth/1.png")
    warning = "beside images and masks, not used: images/train_extra/, masks/train_extra/, depth/"
    assert listing(tmp_path).warnings == (warning,)


def test_a_mask_of_another_size_is_rejected_by_name(tmp_path: Path) -> None:
    for number in range(6):
        write(tmp_path / "src", f"images/{number}.png", f"masks/{number}.png")
    Image.new("L", (9, 6)).save(tmp_path / "src/masks/3.png")
    with pytest.raises(TooManyRejectsError, match=r"images/3.png: field 'mask': .*9.*6"):
        stoker.build(tmp_path / "src", tmp_path / "out", progress=False)
    with pytest.raises(stoker.errors.StokerError, match=r"3.png.*field 'mask'"):
        stoker.open(tmp_path / "src")[3].fields["mask"]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (("images/1.jpg", "images/1.png", "masks/1.png"), "has both images/1.jpg and images/1.png"),
        (("images/1.jpg", "masks/1.png", "masks/1.bmp"), "has both masks/1.bmp and masks/1.png"),
        (("images/1.jpg", "masks/1_mask.png", "masks/1_seg.png"), "has both masks/1_mask.png and masks/1_seg.png"),
        (("images/1.jpg", "rgb/1.jpg", "masks/1.png"), "has both images/1.jpg and rgb/1.jpg"),
        (("images/1.jpg", "masks/1.png", "labels/1.png"), "masks of the same images in labels/ and masks/; keep one"),
    ],
)
def test_a_doubt_is_refused(files: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    fill(tmp_path, *files)
    check_refused(tmp_path, match=problem)


def test_further_masks_of_an_image_are_told(tmp_path: Path) -> None:
    names = ("images/a (1).png", "images/a (2).png", "masks/a (1)_mask.png", "masks/a (2)_mask.png")
    write_files(tmp_path, dict.fromkeys((*names, "masks/a (2)_mask_1.png"), png("1", channels=1)))
    assert listing(tmp_path).warnings == ("1 mask besides that of the image, not used: masks/a (2)_mask_1.png",)


def test_colours_are_no_ids(tmp_path: Path) -> None:
    fill(tmp_path, "images/1.jpg", "masks/1.png")
    check_refused(tmp_path, match=r"masks/1.png is none: its pixels are RGB, .* give the class ids, not colours")
    (tmp_path / "masks/1.png").unlink()
    for mode, name in (("F", "1.tif"), ("LA", "1.png")):
        Image.new(mode, (8, 8)).save(tmp_path / "masks" / name)
        assert "class_dict" not in check_refused(tmp_path, match=f"its pixels are {mode}")
        (tmp_path / "masks" / name).unlink()
    (tmp_path / "masks/1.png").write_bytes(png("1", channels=1))
    assert len(stoker.open(tmp_path)) == 1


@pytest.mark.parametrize(
    ("files", "split", "unused"),
    [
        (("images/train2017/{}.jpg", "annotations/train2017/{}.png"), "train", ()),
        (("images/val2017/{}.jpg", "annotations/val2017/{}.png"), "validation", ()),
        (("default/{}.jpg", "defaultannot/{}.png"), "train", ()),
        (("JPEGImages/{}.jpg", "SegmentationClassPNG/{}.png", "other/{}.jpg"), "train", ("other/",)),
        (("img/{}.jpg", "ann/{}.png"), "train", ()),
    ],
)
def test_folders_are_called_as_programs_and_data_sets_call_them(
    files: tuple[str, ...], split: str, unused: tuple[str, ...], tmp_path: Path
) -> None:
    """COCO-Stuff, CamVid of CVAT, LabelMe and Supervisely."""
    fill(tmp_path, *(files[0].format(number) for number in range(4)), *(file.format(1) for file in files[2:]))
    write_files(tmp_path, {files[1].format(number): png(str(number), channels=1) for number in range(4)})
    tree = listing(tmp_path)
    assert split_sizes(tree) == {split: 4}
    assert list(tree.fields) == ["mask"]
    assert [warning for warning in tree.warnings if any(name not in warning for name in unused)] == []


def test_years_behind_splits_are_cut_where_that_mixes_none(tmp_path: Path) -> None:
    for folder in ("train1", "train2"):
        fill(tmp_path, f"images/{folder}/0.jpg", f"images/{folder}/1.jpg")
        write_files(tmp_path, {f"masks/{folder}/{number}.png": png(str(number), channels=1) for number in range(2)})
    assert split_sizes(listing(tmp_path)) == {"train": 4}
