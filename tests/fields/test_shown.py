"""``stoker show`` of datasets with fields: masks in colours, extra images, captions, and damage."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from fields.record_source import build_records, with_second_record
from page_checks import checked
from reference import pictures
from stoker import fields
from stoker.errors import ConfigError
from stoker.inspect import show
from stoker.inspect.page import dataset_portrait
from stoker.loader import draw_mask

if TYPE_CHECKING:
    from pathlib import Path

SIDE = 40
GREY = pictures.png(Image.new("RGB", (SIDE, SIDE), (100, 100, 100)))
GREEN = pictures.png(Image.new("RGB", (SIDE, SIDE), (0, 255, 0)))
FIELDS = {"caption": fields.Text(), "mask": fields.Mask(), "green": fields.Image()}


def tiles(folder: Path, out: Path, caption: str) -> list[np.ndarray[Any, Any]]:
    """The three tiles of a dataset of one record: half of its mask is 1, the other 0."""
    mask = np.zeros((SIDE, SIDE), np.uint8)
    mask[:, SIDE // 2 :] = 1
    build_records(folder, [{"image": GREY, "caption": caption, "mask": mask, "green": GREEN}], FIELDS)
    assert show.write_sheet(folder, out, show.SheetSpec()).damaged == {}
    with Image.open(out) as image:
        sheet = np.asarray(image)
    assert sheet.shape[1] == 20 + 3 * (show.TILE_WIDTH + 20)
    step, bottom = show.TILE_WIDTH + 20, 92 + show.TILE_HEIGHT
    return [sheet[92:bottom, 20 + number * step : 20 + number * step + show.TILE_WIDTH] for number in range(3)]


def test_masks_and_further_images_have_tiles_and_captions_a_line(tmp_path: Path) -> None:
    stored, mask, green = tiles(tmp_path / "a", tmp_path / "a.png", "a cat")
    middle = show.TILE_WIDTH // 2
    assert stored[middle, middle - 40].tolist() == stored[middle, middle + 40].tolist() == [100, 100, 100]
    assert mask[middle, middle - 40].tolist() == [100, 100, 100]
    assert abs(mask[middle, middle + 40].astype(int) - 100).max() > 20
    assert green[middle, middle].tolist() == [0, 255, 0]
    other, _, _ = tiles(tmp_path / "b", tmp_path / "b.png", "two dogs")
    assert np.array_equal(other[: show.PICTURE], stored[: show.PICTURE])
    assert not np.array_equal(other, stored)


def test_ids_that_follow_each_other_have_other_colours() -> None:
    picture = Image.new("RGB", (256, 1))
    draw_mask(picture, np.arange(256, dtype=np.uint8)[None])
    colored = np.asarray(picture)[0].astype(int)
    assert colored[0].tolist() == [0, 0, 0]
    assert abs(np.diff(colored[1:], axis=0)).max(axis=1).min() > 60


@pytest.mark.parametrize("bits", [8, 16])
def test_a_mask_is_drawn_on_a_picture_of_another_size(bits: int) -> None:
    ids = np.zeros((6, 9), np.uint8 if bits == 8 else np.uint16)
    ids[:, 6:] = 2**bits - 1
    for size in ((9, 6), (90, 60), (3, 2), (1, 1)):
        picture = Image.new("RGB", size, (100, 100, 100))
        draw_mask(picture, ids)
        changed = (np.asarray(picture) != 100).any(-1)
        assert changed.tolist() == [[3 * x >= 2 * size[0] for x in range(size[0])]] * size[1]


def half_masked(folder: Path, caption: str = "two halves") -> stoker.Dataset:
    """A dataset of a grey image whose right half has the class 1 in both of its masks."""
    mask = np.zeros((SIDE, SIDE), np.uint8)
    mask[:, SIDE // 2 :] = 1
    kinds = {"caption": fields.Text(), "mask": fields.Mask(), "other": fields.Mask(), "note": fields.Json()}
    record = {"image": GREY, "caption": caption, "mask": mask, "other": mask[::-1], "note": "no text"}
    build_records(folder, [record], kinds)
    return stoker.open(folder)


def is_half_colored(picture: np.ndarray[Any, Any]) -> bool:
    """Whether the left half of a picture is grey, and the right one is not; but for JPEG's losses."""
    middle = picture.shape[1] // 2
    off = abs(picture.astype(int) - 100).max(-1)
    return bool((off[:, : middle - 9] < 12).all() and (off[:, middle + 9 :] > 20).all())


def embedded(page: str) -> list[np.ndarray[Any, Any]]:
    """The pictures that a page holds."""
    encoded = re.findall(r"data:image/jpeg;base64,([A-Za-z0-9+/=]+)", page)
    return [np.asarray(pictures.opened(base64.b64decode(data))) for data in encoded]


def test_masks_are_drawn_over_what_transforms_make(tmp_path: Path) -> None:
    half_masked(tmp_path / "set")
    flipped = stoker.CenterCrop(SIDE, SIDE), stoker.Resize(20, hflip=1.0)
    report = show.write_sheet(tmp_path / "set", tmp_path / "out.png", show.SheetSpec(transforms=flipped))
    assert report.damaged == {}
    with Image.open(tmp_path / "out.png") as image:
        sheet = np.asarray(image)
    step, top = show.TILE_WIDTH + 20, 156 + 10 + 60  # the middle 120 pixels of each picture
    assert sheet.shape[1] == 20 + 3 * step
    starts = (90, 90 + step, 90 + 2 * step)
    stored, cropped, mirrored = (sheet[top : top + 120, start : start + 120] for start in starts)
    assert is_half_colored(stored)
    assert is_half_colored(cropped)
    assert is_half_colored(mirrored[:, ::-1])


def test_pages_and_notebooks_show_masks_and_captions(tmp_path: Path) -> None:
    dataset = half_masked(tmp_path / "set", "<b>two</b> halves " + "of a long caption " * 20)
    (thumbnail,) = dataset_portrait(tmp_path / "set").strip
    assert is_half_colored(embedded(thumbnail.uri)[0])
    assert thumbnail.details[-1].startswith("<b>two</b> halves of a long")
    assert len(thumbnail.details[-1]) == 120
    settings: Any = {"transform": stoker.MultiCrop(stoker.CenterCrop(SIDE, SIDE), stoker.Resize(16))}
    chosen = ["mask", "caption", "note"]
    pages = [dataset._repr_html_(), dataset[0]._repr_html_()]
    for kind in (stoker.Loader, stoker.torch.DataLoader):
        with kind(dataset, 1, fields=chosen, **settings) as loader:
            (batch,) = loader
        pages.append(batch._repr_html_())
    for page, count in zip(pages, (1, 1, 2, 2), strict=True):
        assert [is_half_colored(image) for image in embedded(page)] == [True] * count
        text = checked(page).text
        assert "<b>two</b> halves of a long" in text
        assert len(text) < 1000
    with stoker.Loader(dataset, 1, transform=stoker.CenterCrop(SIDE, SIDE)) as loader:
        (plain,) = loader
    assert [is_half_colored(image) for image in embedded(plain._repr_html_())] == [False]


def test_a_sample_with_a_damaged_field_has_a_tile_that_says_so(tmp_path: Path) -> None:
    record = {"image": GREY, "caption": "a", "mask": np.zeros((SIDE, SIDE), np.uint8), "green": GREEN}
    build_records(tmp_path / "set", [record] * 2, FIELDS)
    smaller = pictures.png(Image.new("L", (3, 4)))
    for number, (key, value, message) in enumerate(
        [
            ("caption", b"\xff", "feature caption: 'utf-8' codec"),
            ("mask/encoded", GREEN, "field 'mask': it is not a grey PNG of 8 bits"),
            ("mask/encoded", smaller, "field 'mask': the mask has 3 x 4 pixels, unlike the image"),
        ]
    ):
        folder, _ = with_second_record(tmp_path / "set", tmp_path / str(number), {key: ("bytes", [value])})
        report = show.write_sheet(folder, tmp_path / "sheet.png", show.SheetSpec())
        assert list(report.damaged) == [1]
        assert message in report.damaged[1]


def test_too_many_pictures_are_refused(tmp_path: Path) -> None:
    build_records(tmp_path / "set", [{"image": GREY, "green": GREEN}] * 301, {"green": fields.Image()})
    with pytest.raises(ConfigError, match="301 samples, each with 1 more of masks and images, are 602 pictures"):
        show.write_sheet(tmp_path / "set", tmp_path / "sheet.png", show.SheetSpec(count=600))
