"""Images with an EXIF orientation: counted by every command that looks at images, and named once by a loader."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

from PIL import Image

import stoker
from reference import pictures
from small_cases import each
from stoker.errors import SourceWarning
from stoker.recipe import is_turned
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

TRANSFORM = stoker.CenterCrop(16, 16)


def write_photos(root: Path, turned: int, images: int = 12) -> Path:
    """Photographs, the last of which are turned."""
    options: list[dict[str, Any]] = [{}] * (images - turned) + [{"exif": pictures.exif(6)}] * turned
    return write_files(root, {f"cat/{at:02d}.jpg": pictures.jpeg(64, 48, at, **how) for at, how in enumerate(options)})


@each("kind", ["JPEG", "PNG", "WEBP", "TIFF", "GIF"])
@each("orientation", [1, 2, 6, 9])
def test_an_orientation_counts_where_decoding_does_not_apply_it(kind: str, orientation: int) -> None:
    image = Image.fromarray(pictures.pixels(31, 18))
    data = pictures.encode(image, format=kind, **({} if kind == "GIF" else {"exif": pictures.exif(orientation)}))
    expected = orientation in (2, 6) and kind in ("JPEG", "PNG", "WEBP")  # Pillow turns TIFF itself
    assert is_turned(data) == expected
    for length in (0, 10, 40, len(data) // 2):
        is_turned(data[:length])  # damage is not its business


def test_damaged_tags_of_a_png_are_none() -> None:
    out = pictures.encode(Image.new("RGB", (4, 4)), format="PNG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert not is_turned(out)


def test_plan_info_and_doctor_count_them(tmp_path: Path, cli: Cli) -> None:
    photos, dataset = write_photos(tmp_path / "photos", 3), tmp_path / "dataset"

    def counted(*words: object) -> dict[str, int]:
        cli(*words, "--json")
        counts: dict[str, int] = cli.json["exif_orientation"]
        return counts

    expected = {"images": 3, "looked_at": 12}
    assert counted("plan", photos) == counted("info", photos) == expected
    cli("build", photos, dataset)
    assert counted("info", dataset) == expected
    (dataset / "manifest.json").unlink()
    assert counted("info", dataset) == expected  # of TFRecords of other origin
    for words in (["plan", str(photos)], ["info", str(photos)], ["doctor", str(photos), "--seconds", "0.1"]):
        assert "EXIF orientation" in cli(*words)
    assert "EXIF orientation: 3 images; applied, encoded anew with loss\n" in cli("plan", photos, "--exif", "apply")
    assert ": 3 turned jpeg, encoded anew with loss\n" in cli("build", photos, tmp_path / "turned", "--exif", "apply")
    assert "EXIF orientation: 3 images; applied\n" in cli("plan", photos, "--exif", "apply", "--resize", "short:8")


def test_a_loader_warns_once_and_its_advice_works(tmp_path: Path) -> None:
    photos = write_photos(tmp_path / "my photos", 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            with stoker.Loader(stoker.open(photos), 5, transform=TRANSFORM) as loader:
                assert sum(len(batch) for _ in range(2) for batch in loader) == 24
    [warning] = caught
    assert (warning.category, warning.filename) == (SourceWarning, __file__)
    message, advice = str(warning.message).split("; ")
    assert message.startswith(f"2 of 12 images looked at in {photos} have an EXIF orientation, ")
    assert re.findall(r"exif='(\w+)'", advice) == ["apply", "keep"]


def test_photographs_without_one_are_not_spoken_of(tmp_path: Path, cli: Cli) -> None:
    photos = write_photos(tmp_path / "photos", 0)
    with warnings.catch_warnings(), stoker.Loader(stoker.open(photos), 5, transform=TRANSFORM) as loader:
        warnings.simplefilter("error")
        next(iter(loader))
    assert "EXIF" not in cli("plan", photos) + cli("info", photos)
