"""`stoker.image`: pixels are those of Pillow, wherever they go and in any number of threads; files are described."""

from __future__ import annotations

import mmap
import os
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mixed_images import FILES, HEIGHT, WIDTH
from reference import pictures
from reference.png import KINDS, chunk, png
from reference.strategies import regions
from reference.transform import FILTERS
from small_cases import each
from stoker import image
from stoker.errors import ConfigError, ImageError, ImageTooLargeError
from stoker.recipe import Recipe, convert, parse_encode
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable

Pixels = np.ndarray[Any, Any]
CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4, "I;16": 1}
NATIVE = ("plain.jpg", "progressive.jpg", "plain.png", "lossy.webp")
pytestmark = pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")


def array_for(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Pixels | None, Pixels]:
    """Where pixels may go, and all of the memory around it."""
    height, width, channels = shape
    around = np.full((3, height + 2, width + 5, channels), 77, dtype)
    if kind == "a new array":
        return None, around
    if kind == "an image of a batch":
        batch = np.full((3, *shape), 77, dtype)
        return batch[1], batch
    return around[1, 1:-1, 2:-3], around


@given(
    name=st.sampled_from(sorted(FILES)),
    mode=st.sampled_from(sorted(CHANNELS)),
    region=st.none() | regions(WIDTH, HEIGHT),
    size=st.none() | st.integers(1, 70) | st.tuples(st.integers(1, 70), st.integers(1, 70)),
    resampling=st.sampled_from(sorted(FILTERS)),
    kind=st.sampled_from(["a new array", "an image of a batch", "rows of a larger array"]),
)
def test_the_pixels_are_those_of_pillow(
    name: str,
    mode: str,
    region: tuple[int, int, int, int] | None,
    size: int | tuple[int, int] | None,
    resampling: str,
    kind: str,
) -> None:
    settings: dict[str, Any] = {"region": region, "size": size, "mode": mode, "filter": resampling}
    try:
        picture = pictures.in_mode(pictures.opened(FILES[name]), mode)
    except ValueError:
        with pytest.raises(ImageError, match=r"mode"):
            image.decode(FILES[name], **settings)
        return
    picture = picture if region is None else picture.crop(region)
    height, width = (size, size) if isinstance(size, int) else size or (picture.height, picture.width)
    expected = pictures.channels_last(picture.resize((width, height), FILTERS[resampling]))
    out, around = array_for(kind, expected.shape, expected.dtype)
    decoded = image.decode(FILES[name], **settings, out=out)
    assert (decoded.shape, decoded.dtype) == (expected.shape, expected.dtype)
    assert (decoded == expected).all()
    if out is not None:
        assert decoded is out
        out[...] = 77
        assert (around == 77).all()  # nothing was written beside it


@pytest.mark.parametrize("decode", ["exact", "fast"])
def test_the_pixels_are_those_of_the_loader(tmp_path: Path, decode: Any) -> None:
    import stoker  # noqa: PLC0415

    photo = pictures.jpeg(640, 480, seed=3)
    photos = write_files(tmp_path, {"class/a.jpg": photo})
    with stoker.Loader(stoker.open(photos), 1, transform=stoker.Resize((70, 90)), decode=decode) as loader:
        [batch] = loader
    assert (batch.images[0] == image.decode(photo, size=(70, 90), decode=decode)).all()
    exact = image.decode(photo, size=(70, 90))
    assert (image.decode(photo, size=(70, 90), decode=decode) == exact).all() == (decode == "exact")


@pytest.mark.parametrize("name", NATIVE)
def test_bytes_come_in_any_form(tmp_path: Path, name: str) -> None:
    data = FILES[name]
    expected = image.decode(data)
    path = tmp_path / "photo"
    path.write_bytes(data)
    held = b"\0" * 7 + data + b"\0" * 9
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        forms: list[Any] = [
            bytearray(data), memoryview(data), memoryview(held)[7:-9], np.frombuffer(data, np.uint8),
            memoryview(data).cast("b"), mapped, path, str(path),
        ]  # fmt: skip
        for form in forms:
            assert (image.decode(form) == expected).all()
            assert image.info(form) == image.info(data)
        del forms, form


def test_what_is_not_bytes_is_refused() -> None:
    for wrong, message in ((3, "of type int"), (memoryview(FILES["plain.jpg"])[::2], "do not lie side by side")):
        with pytest.raises(ConfigError, match=message):
            image.decode(wrong)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=message):
            image.info(wrong)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"nowhere\.jpg"):
        image.decode("nowhere.jpg")


@each("name", [*NATIVE, "plain.gif"])
@each(
    ("make", "message"),
    [
        (lambda: np.zeros((HEIGHT, WIDTH + 1, 3), np.uint8), r"shape \(44, 61, 3\), and the pixels \(44, 60, 3\)"),
        (lambda: np.zeros((HEIGHT, WIDTH), np.uint8), r"uint8 of shape \(44, 60\); pixels of mode RGB"),
        (lambda: np.zeros((HEIGHT, WIDTH, 4), np.uint8), r"of shape \(height, width, 3\)"),
        (lambda: np.zeros((0, WIDTH, 3), np.uint8), r"of shape \(height, width, 3\)"),
        (lambda: np.zeros((HEIGHT, WIDTH, 3), np.float32), "float32 of shape .*are uint8"),
        (lambda: np.zeros((HEIGHT, WIDTH, 3), np.int8), "int8 of shape .*are uint8"),
        (lambda: np.frombuffer(bytes(HEIGHT * WIDTH * 3), np.uint8).reshape(HEIGHT, WIDTH, 3), "cannot be written to"),
        (lambda: np.zeros((HEIGHT, WIDTH, 4), np.uint8)[:, :, :3], "gaps in its rows"),
        (lambda: np.zeros((HEIGHT, WIDTH, 3), np.uint8)[:, :, ::-1], "gaps in its rows"),
        (lambda: np.zeros((HEIGHT, WIDTH, 3), np.uint8)[::-1], "follow each other"),
        (lambda: np.zeros((WIDTH, HEIGHT, 3), np.uint8).transpose(1, 0, 2), "gaps in its rows"),
        (
            lambda: np.lib.stride_tricks.as_strided(np.zeros(40_000, np.uint8), (HEIGHT, WIDTH, 3), (9, 3, 1)),
            "follow each other",
        ),
        (lambda: [[0]], "out is of type list; it must be a NumPy array"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(name: str, make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        image.decode(FILES[name], out=make())


def test_an_array_in_the_memory_of_the_file_is_refused() -> None:
    data = FILES["plain.jpg"]
    size = HEIGHT * WIDTH * 3
    held = np.zeros(len(data) + 2 * size, np.uint8)
    file = held[size : size + len(data)]
    file[:] = np.frombuffer(data, np.uint8)
    expected = image.decode(data)
    for start in (1, size, size + len(data) - 1):
        with pytest.raises(ConfigError, match="memory of what is decoded"):
            image.decode(file.data, out=held[start : start + size].reshape(HEIGHT, WIDTH, 3))
    for start in (0, size + len(data)):  # it ends where the file begins, and begins where that ends
        decoded = image.decode(file.data, out=held[start : start + size].reshape(HEIGHT, WIDTH, 3))
        assert (decoded == expected).all()


@each("name", [*NATIVE, "plain.bmp"])
@each(
    ("settings", "message"),
    [
        ({"region": (0, 0, 61, 5)}, r"\(0, 0, 61, 5\) is empty or leaves the image of 60 x 44"),
        ({"region": (0, 0, 5, 45)}, r"\(0, 0, 5, 45\) is empty or leaves the image of 60 x 44"),
        ({"region": (5, 0, 5, 3)}, r"region is \(5, 0, 5, 3\); it must be \(left, top, right, bottom\)"),
        ({"region": (-1, 0, 5, 3)}, r"region is \(-1, 0, 5, 3\)"),
        ({"region": (0, 0, 2**40, 3)}, r"region is \(0, 0, 1099511627776, 3\)"),
        ({"region": (0, 0, 5.5, 3)}, r"region is \(0, 0, 5.5, 3\)"),
        ({"region": (0, 0, 5)}, r"region is \(0, 0, 5\)"),
        ({"region": 5}, "region is 5"),
        ({"size": 0}, r"size \(height\) is 0; it must be between 1 and 65536"),
        ({"size": (4, 65537)}, r"size \(width\) is 65537"),
        ({"size": "big"}, r"size is 'big'; it must be a number of pixels, or \(height, width\)"),
        ({"size": "32"}, r"size is '32'; it must be a number of pixels, or \(height, width\)"),
        ({"mode": "BGR"}, "mode is 'BGR'; it must be 'RGB', 'L', 'RGBA' or 'I;16'"),
        ({"filter": "cubic"}, "filter is 'cubic'; it must be 'nearest', 'box', 'bilinear', 'bicubic' or 'lanczos'"),
        ({"decode": "quick"}, "decode is 'quick'; it must be 'exact' or 'fast'"),
        ({"max_pixels": 0}, "max_pixels is 0"),
    ],
)
def test_settings_out_of_range_are_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        image.decode(FILES[name], **settings)


def test_an_error_names_the_file_and_the_byte(tmp_path: Path) -> None:
    cut = FILES["plain.jpg"][:700]
    path = tmp_path / "photo.jpg"
    path.write_bytes(cut)
    with pytest.raises(ImageError, match=rf"^{path}: .*at byte 700") as caught:
        image.decode(path)
    assert (caught.value.path, caught.value.offset) == (str(path), 700)
    with pytest.raises(ImageError, match=r"^The file is cut short.*at byte 700"):
        image.decode(cut)
    with pytest.raises(ConfigError, match=rf"^{path}: region is 3"):
        image.decode(path, region=3)  # type: ignore[arg-type]
    path.write_bytes(b"<html>not found</html>")
    for call in (image.decode, image.info):
        with pytest.raises(ImageError, match=rf"^{path}: not an image but text: it starts with '<html>"):
            call(path)


@pytest.mark.parametrize("name", [*NATIVE, "plain.gif"])
def test_more_pixels_than_allowed_are_refused(name: str) -> None:
    image.decode(FILES[name], max_pixels=WIDTH * HEIGHT)
    with pytest.raises(ImageTooLargeError, match=r"declares 60 x 44 pixels; the limit is 2639 \(raise max_pixels"):
        image.decode(FILES[name], max_pixels=WIDTH * HEIGHT - 1)


@pytest.mark.parametrize("name", NATIVE)
def test_a_file_cut_short_is_an_error_or_the_whole_image(name: str) -> None:
    data = FILES[name]
    whole = image.decode(data)
    out = np.empty_like(whole)
    for size in range(0, len(data), 1 + len(data) // 150):
        try:
            decoded = image.decode(data[:size], out=out)
        except ImageError:
            assert size < 12 or info_problem(data[:size])
        else:
            assert (decoded == whole).all()
    assert (image.decode(data, out=out) == whole).all()  # and the decoder goes on


def info_problem(data: bytes) -> bool:
    """Whether info() says that something is wrong."""
    try:
        return image.info(data).problem is not None
    except ImageError:
        return True


class OneThread:
    """Other threads get Python's lock only from one that gives it away."""

    def __enter__(self) -> None:
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(1000.0)

    def __exit__(self, *exc_info: object) -> None:
        sys.setswitchinterval(self._interval)


LARGE = np.tile(pictures.pixels(500, 400, 5), (4, 4, 1))


@cache
def large(encode: str) -> bytes:
    return image.encode(LARGE, encode)


def test_a_large_image_is_that_of_pillow() -> None:
    """Its memory is asked for in another way."""
    assert (image.decode(large("jpeg:90")) == pictures.whole(large("jpeg:90"))).all()


@pytest.mark.parametrize("encode", ["jpeg:90", "png", "webp:90"])
def test_decoding_lets_other_threads_run(encode: str) -> None:
    data = large(encode)
    assert runs_beside(lambda: image.decode(data, size=50))


def test_encoding_a_jpeg_lets_other_threads_run() -> None:
    assert runs_beside(lambda: image.encode(LARGE, "jpeg:90"))


def test_pure_python_lets_no_other_thread_run() -> None:
    """What the two tests above are worth."""
    assert not runs_beside(lambda: sum(range(1000)))


def runs_beside(work: Callable[[], object]) -> bool:
    """Whether this thread runs after another has begun to work, and before it is done."""
    started, done = threading.Event(), []

    def other() -> None:
        started.set()
        work()
        done.append(True)

    work()
    with OneThread():
        thread = threading.Thread(target=other)
        thread.start()
        started.wait()
        beside = not done
        thread.join()
    return beside


def test_threads_do_not_meet() -> None:
    expected = {name: image.decode(data, size=(31, 17)) for name, data in FILES.items()}
    batch = np.empty((8, len(FILES), 31, 17, 3), np.uint8)

    def decode_all(row: int) -> None:
        for number, (name, data) in enumerate(sorted(FILES.items())[row:] + sorted(FILES.items())[:row]):
            image.decode(data, size=(31, 17), out=batch[row, number])
            assert (batch[row, number] == expected[name]).all(), name

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(decode_all, range(8)))


@each("name", sorted(FILES))
def test_info_says_what_pillow_says(name: str) -> None:
    info = image.info(FILES[name])
    with pictures.opened(FILES[name]) as opened:
        assert info.format == opened.format.lower().replace("mpo", "jpeg")  # type: ignore[union-attr]
        assert (info.width, info.height) == opened.size
        deep = opened.mode.startswith("I")
        alpha = opened.has_transparency_data
        grey = opened.mode in ("1", "L", "LA")
        progressive = bool(opened.info.get("progressive") or opened.info.get("interlace"))
    assert info.mode == ("I;16" if deep else "RGBA" if alpha else "L" if grey else "RGB")
    assert (info.bits, info.orientation, info.progressive) == (16 if deep else 8, 1, progressive)
    assert (info.subsampling is not None) == (info.format == "jpeg")
    assert info.problem is None
    assert image.decode(FILES[name], mode=info.mode).shape[:2] == (info.height, info.width)


@each(("color", "bits"), KINDS)
@each("interlaced", [False, True])
def test_info_of_every_kind_of_png(color: int, bits: int, *, interlaced: bool) -> None:
    info = image.info(png(9, 7, color, bits, interlaced=interlaced))
    grey, alpha = color in (0, 4), color in (4, 6)
    assert (info.width, info.height, info.bits, info.progressive) == (9, 7, bits, interlaced)
    assert info.mode == ("RGBA" if alpha else "I;16" if grey and bits == 16 else "L" if grey else "RGB")


@each("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@each("orientation", range(1, 9))
def test_info_gives_the_orientation(kind: str, orientation: int) -> None:
    picture = Image.fromarray(pictures.pixels(20, 10))
    data = pictures.encode(picture, format=kind, exif=pictures.exif(orientation))
    info = image.info(data)
    pixels = image.decode(data)
    assert (info.height, info.width) == pixels.shape[:2]
    assert info.orientation == (1 if kind == "TIFF" else orientation)
    assert pixels.shape[:2] == ((20, 10) if kind == "TIFF" and orientation > 4 else (10, 20))


@pytest.mark.parametrize("where", ["before the pixels", "behind them"])
def test_a_png_may_say_its_orientation_as_text(where: str) -> None:
    data = png(20, 10, 2, 8)
    exif = b"Exif\0\0" + pictures.exif(6).removeprefix(b"Exif\0\0")  # as ImageMagick writes it into a PNG
    profile = b"Raw profile type exif\0\0" + zlib.compress(b"\nexif\n%8d\n%s\n" % (len(exif), exif.hex().encode()))
    at = 33 if where == "before the pixels" else len(data) - 12
    turned = data[:at] + chunk(b"zTXt", profile) + data[at:]
    assert image.info(data).orientation == 1
    opened = pictures.opened(turned)
    opened.load()
    assert image.info(turned).orientation == opened.getexif().get(274) == 6


@pytest.mark.parametrize("name", NATIVE)
def test_info_says_that_a_file_is_cut_short(name: str) -> None:
    data = FILES[name]
    assert image.info(data).problem is None
    info = image.info(data[: len(data) * 2 // 3])
    assert "cut short" in (info.problem or "")
    assert (info.width, info.height) == (WIDTH, HEIGHT)


@pytest.mark.parametrize("length", [20, 24, 28])
def test_info_of_a_png_that_ends_in_its_header_is_an_error(length: int) -> None:
    with pytest.raises(ImageError, match="it ends inside its header"):
        image.info(FILES["plain.png"][:length])


def test_info_says_that_a_chunk_of_a_png_is_damaged() -> None:
    data = bytearray(FILES["plain.png"])
    data[-20] ^= 1
    assert "checksum" in (image.info(data).problem or "")


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "I;16"])
def test_png_and_lossless_webp_come_back(mode: Any) -> None:
    channels = CHANNELS[mode]
    pixels: Pixels = np.random.default_rng(3).integers(0, 256, (13, 17, channels), np.uint8)
    if mode == "I;16":
        pixels = pixels.astype(np.uint16) * 251
    assert (image.decode(image.encode(pixels, "png"), mode=mode) == pixels).all()
    if channels == 1:
        assert image.encode(pixels[:, :, 0], "png") == image.encode(pixels, "png")
    if mode != "I;16":
        assert (image.decode(image.encode(pixels, "webp:lossless"), mode=mode) == pixels).all()
    with_gaps = np.repeat(pixels, 2, axis=1)[:, ::2]
    assert image.encode(with_gaps, "png") == image.encode(pixels, "png")


@pytest.mark.parametrize("encode", ["jpeg:90", "jpeg:55:444", "png", "webp:70", "webp:lossless"])
def test_files_are_those_that_a_build_stores(encode: str) -> None:
    pixels = pictures.pixels(40, 30)
    assert image.encode(pixels, encode) == convert(pixels, Recipe(encode=parse_encode(encode))).data


def test_grey_becomes_a_grey_jpeg() -> None:
    pixels = pictures.pixels(40, 30)[:, :, 0]
    data = image.encode(pixels, "jpeg:95")
    assert pictures.opened(data).mode == image.info(data).mode == "L"
    assert np.abs(image.decode(data, mode="L")[:, :, 0].astype(int) - pixels).mean() < 3


@each(
    ("shape", "dtype", "encode", "message"),
    [
        ((4, 4, 3), "float32", "png", r"float32 of shape \(4, 4, 3\) is not an image"),
        ((4, 4, 5), "uint8", "png", "is not an image"),
        ((4,), "uint8", "png", "is not an image"),
        ((0, 4, 3), "uint8", "png", "is not an image"),
        ((4, 4, 3), "uint16", "png", "is not an image"),
        ((4, 4, 4), "uint8", "jpeg:90", "jpeg does not hold uint8 pixels of 4 channels; use png"),
        ((4, 4), "uint16", "jpeg:90", "jpeg does not hold uint16"),
        ((4, 4, 2), "uint8", "webp:90", "webp does not hold uint8 pixels of 2 channels"),
        ((65_501, 1, 3), "uint8", "jpeg:90", "end at 65500"),
        ((1, 16_384, 3), "uint8", "webp:90", "end at 16383"),
        ((4, 4, 3), "uint8", "jpeg:101", "the quality of encode is 101; it must be between 1 and 100"),
        ((4, 4, 3), "uint8", "gif", "encode 'gif' is not understood; write jpeg:90"),
        ((4, 4, 3), "uint8", "raw", "encode is 'raw', which is pixels as they are"),
    ],
)
def test_what_cannot_be_encoded_is_refused(shape: tuple[int, ...], dtype: str, encode: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        image.encode(np.zeros(shape, dtype), encode)


@pytest.mark.slow
def test_a_thread_gives_its_memory_back_at_its_end() -> None:
    data = large("webp:90")  # whose decoder works on all of its pixels at once, 13 MB of them

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    image.decode(data, size=8)
    before = resident()
    for _ in range(8):
        thread = threading.Thread(target=image.decode, args=(data,), kwargs={"size": 8})
        thread.start()
        thread.join()
    assert resident() - before < 60_000_000  # with what eight threads have it would be 100 MB
