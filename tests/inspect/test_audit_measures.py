"""What is measured of an image: by Pillow, NumPy and hashlib, for every format and size; and what is kept of a run."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from reference import measures as reference
from reference import pictures
from stoker import _native
from stoker.errors import ConfigError, ImageError
from stoker.inspect.auditing import FORMAT_NAMES, MEASURES, MODE_NAMES, measure, measure_all
from stoker.types import Box

if TYPE_CHECKING:
    from pathlib import Path

SIZES = [(1, 1), (1, 40), (40, 1), (5, 7), (31, 33), (32, 32), (64, 96), (257, 130)]


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    return pictures.encode(image, format=kind, **options)


@pytest.mark.parametrize("size", SIZES)
def test_pixels_are_measured_as_by_definition(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(size[0]).integers(0, 256, (*size, 3), dtype=np.uint8)
    assert _native.measure_pixels(pixels) == reference.measure(pixels)
    assert _native.measure_image(encoded(Image.fromarray(pixels), "PNG")) == reference.measure(pixels)


@pytest.mark.parametrize("value", [0, 1, 255])
def test_a_flat_image_has_no_bits(value: int) -> None:
    width, height, sums, squares, *bits = _native.measure_pixels(np.full((70, 1100, 3), value, np.uint8))
    assert (sums[0], squares[0], bits) == (value * width * height, value**2 * width * height, [0, 0])


def test_the_hash_of_a_mirrored_image_has_every_second_bit_the_other_way_round() -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (80, 64, 3), dtype=np.uint8)
    images = [np.ascontiguousarray(image) for image in (pixels, pixels[:, ::-1])]
    (signs, strong), (mirrored_signs, mirrored_strong) = [_native.measure_pixels(image)[4:] for image in images]
    assert (signs ^ mirrored_signs, strong) == (_native.MIRRORED_BITS, mirrored_strong)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM"])
def test_files_of_every_format_are_measured(kind: str) -> None:
    data = encoded(Image.open(io.BytesIO(pictures.jpeg(90, 70, 3))), kind)
    row = np.array([measure(data)], MEASURES)[0]
    width, height, sums, squares, *bits = reference.measure(np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
    assert (row["width"], row["height"], row["size"]) == (width, height, len(data))
    assert [row["hash"], row["strong"]] == bits
    assert (tuple(row["sums"].tolist()), tuple(row["squares"].tolist())) == (sums, squares)
    assert row["digest"].tobytes() == hashlib.sha256(data).digest()[:16]
    assert (FORMAT_NAMES[row["format"]], MODE_NAMES[row["mode"]], row["bits"]) == (kind.lower(), "RGB", 8)


def test_modes_depths_frames_and_orientations_are_told() -> None:
    grey, rgba = Image.new("L", (8, 6), 9), Image.new("RGBA", (8, 6), (1, 2, 3, 4))
    noise = [Image.fromarray(np.full((6, 8, 3), value, np.uint8)) for value in (1, 200)]
    exif = Image.Exif()
    exif[274] = 6
    cases = [
        (encoded(grey, "PNG"), ("L", 8, 1, False)),
        (encoded(grey, "JPEG", exif=exif), ("L", 8, 6, False)),
        (encoded(rgba, "PNG"), ("RGBA", 8, 1, False)),
        (encoded(rgba.convert("LA"), "PNG"), ("LA", 8, 1, False)),
        (encoded(Image.fromarray(np.full((6, 8), 999, np.uint16)), "PNG"), ("I;16", 16, 1, False)),
        (encoded(noise[0], "GIF", save_all=True, append_images=noise[1:]), ("RGB", 8, 1, True)),
        (encoded(noise[0], "PNG", save_all=True, append_images=noise[1:]), ("RGB", 8, 1, True)),
        (encoded(noise[0], "WEBP", save_all=True, append_images=noise[1:], lossless=True), ("RGB", 8, 1, True)),
    ]
    for data, wanted in cases:
        row = np.array([measure(data)], MEASURES)[0]
        assert (MODE_NAMES[row["mode"]], row["bits"], row["orientation"], row["animated"]) == wanted


@pytest.mark.parametrize(
    ("box", "flaws"),
    [
        (Box(0.0, 0.0, 1.0, 1.00001), (False, False)),
        (Box(0.5, 0.2, 1.2, 0.4), (True, False)),
        (Box(0.5, 0.2, 0.5, 0.4), (False, True)),
        (Box(0.5, float("nan"), 0.7, 0.4), (True, True)),
    ],
)
def test_flaws_of_boxes_are_told(box: Box, flaws: tuple[bool, bool]) -> None:
    row = np.array([measure(pictures.jpeg(8, 8, 0), [box])], MEASURES)[0]
    assert (row["outside"], row["empty"]) == flaws


class Files:
    """Images of which one is damaged; counts what is read."""

    def __init__(self, count: int) -> None:
        self.data = [pictures.jpeg(8, 8, number) for number in range(count)]
        self.data[3] = b"no image"
        self.read: list[int] = []

    def load(self, row: int) -> tuple[bytes, tuple[()], int]:
        self.read.append(row)
        return self.data[row], (), 0


@pytest.mark.parametrize("threads", [1, 3])
def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr("stoker.inspect.auditing._BLOCK_ROWS", 5)
    file, files = tmp_path / "measures", Files(23)
    whole = measure_all(23, files.load, threads)
    assert whole.problems == {3: "not an image but text: it starts with 'no image'"}

    def stop(*, done: int, **_: object) -> None:
        if done >= 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_all(23, files.load, threads, stop, file, "some")
    with file.open("ab") as damaged:
        damaged.write(b"\xff\xff\xff\xff a block that was cut short")
    files.read.clear()
    resumed = measure_all(23, files.load, threads, None, file, "some")
    assert (resumed.resumed, sorted(files.read)) == (9, [3, *range(10, 23)])
    again = measure_all(23, files.load, threads, None, file, "some")
    for measured in (resumed, again):
        assert measured.rows.tobytes() == whole.rows.tobytes()
        assert measured.problems == whole.problems
    assert again.resumed == 22


def test_a_file_of_other_images_is_refused(tmp_path: Path) -> None:
    file, files = tmp_path / "measures", Files(4)
    measure_all(4, files.load, 1, None, file, "some")
    with pytest.raises(ConfigError, match="holds measures of other images"):
        measure_all(4, files.load, 1, None, file, "others")
    file.write_bytes(file.read_bytes().replace(b"stoker measures 3", b"stoker measures 1"))
    with pytest.raises(ConfigError, match="of another version of Stoker"):
        measure_all(4, files.load, 1, None, file, "some")
    file.write_bytes(b"text")
    with pytest.raises(ConfigError, match="holds something else than measures"):
        measure_all(4, files.load, 1, None, file, "others")


def test_a_second_run_with_the_file_of_a_first_is_refused(tmp_path: Path) -> None:
    file, files = tmp_path / "measures", Files(4)

    def load(row: int) -> tuple[bytes, tuple[()]]:
        if row == 0:
            with pytest.raises(ConfigError, match=r"another audit writes to .*measures; .* name another file with"):
                measure_all(4, files.load, 1, None, file, "some")
        return files.load(row)

    assert measure_all(4, load, 1, None, file, "some").problems.keys() == {3}
    assert measure_all(4, files.load, 1, None, file, "some").resumed == 3


def test_every_damaged_byte_of_a_file_is_measured_again(tmp_path: Path) -> None:
    file, files = tmp_path / "measures", Files(4)
    whole = measure_all(4, files.load, 1, None, file, "some")
    data = file.read_bytes()
    for at in range(data.index(b"\n") + 1, len(data), 7):
        file.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        measured = measure_all(4, files.load, 1, None, file, "some")
        assert (measured.resumed, measured.rows.tobytes()) == (0, whole.rows.tobytes())


def test_what_is_no_image_is_refused() -> None:
    for data in (b"", b"text", pictures.jpeg(8, 8, 0)[:-9]):
        with pytest.raises(ImageError):
            measure(data)
