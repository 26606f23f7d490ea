"""One verdict on every odd file: builds with each check, verify, the loader on every path, and Pillow."""

from __future__ import annotations

import base64
import json
import struct
import warnings
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from hostile.png_and_webp_rows import PNG_ROWS, WEBP_ROWS, animated
from hostile.verdict_rows import Row, bad, good, unseen
from loader.shards import payload
from reference import pictures, tfrecord, transform
from reference.jpeg import EOI, SOS, in_frame, put, resized, segment
from small_cases import each
from stoker import _native
from stoker.cli.main import main
from stoker.errors import BadSampleWarning, ImageError
from stoker.inspect import verify_dataset
from stoker.recipe import NATIVE_FORMATS, sniff
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.decodes("png", "webp")  # the table has the verdicts of the core
SOI = b"\xff\xd8"
WIDTH, HEIGHT = 70, 90

# What Pillow does not write, by libjpeg-turbo: waves of 40 x 32 pixels.
BY_LIBJPEG = {
    "arithmetic": (
        "/9j/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYV"
        "FSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//yQARCAAgACgDASIAAhEBAxEB/8wACgAQEAUB"
        "EBEF/9oADAMBAAIRAxEAPwDSXxIhIc40wtWkkC/7FYL9vkOSOE/F4OenC06HTnHGvGOk17SJdxQB40kVc6EuyiXe0Xh3avFCCI7T/Vp85aPHhb7X"
        "5W/5x5e7ybtj5o2TvZl9UxO2UKQQp71HQmmNRaMKfoEeHtmuitfmOkEHNc5olsZdib+85tSofaiWRzgrXuHp4vclM4AF36T/2Q=="
    ),
    "arithmetic progressive": (
        "/9j/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYV"
        "FSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//ygARCAAgACgDASIAAhEBAxEB/8wABgAQARD/"
        "2gAMAwEAAhADEAAAAdHPkivxdZXpKqQfm63E+AvugcYqHf0WJT5YH5Wz8cFA/8wABBAF/9oACAEBAAEFAoSi7MFaXJ/ss62Li8paAW1Kn61Tbo3A"
        "/8wABBEF/9oACAEDAQE/ARQv7+V9WdFKqM2IXucY/8wABBEF/9oACAECAQE/AUuimdbRCIcQskTLtsm4goD/zAAEEAX/2gAIAQEABj8CsP/MAAQQ"
        "Bf/aAAgBAQABPyGUICwsCmpMIv/aAAwDAQACAAMAAAAQn+w+2ID/zAAEEQX/2gAIAQMBAT8Qq2XeRD7Y/8wABBEF/9oACAECAQE/ENNCg+kP5f/M"
        "AAQQBf/aAAgBAQABPxDVJDaSJcFnL7RlszuF5kqo/9k="
    ),
    "411": (
        "/9j/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9lnN+gXz/2wBDARUXFx4aHjsh"
        "ITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wAARCAAgACgDAUEAAhEBAxEB/8QAFgABAQEA"
        "AAAAAAAAAAAAAAAABQAE/8QAHRAAAgMBAQADAAAAAAAAAAAAAAEEEiECAxMUIv/EABcBAQEBAQAAAAAAAAAAAAAAAAMEBQL/xAAdEQACAgIDAQAA"
        "AAAAAAAAAAABAgADERITIiME/9oADAMBAAIRAxEAPwBlTVQNmTVob91XEoc1YFQx2aK9fkIk5qoRESMxyYq19RMC8nQOmeT0M+J3E4fk8NigJs0l"
        "sv8AIRF+ToRESMK8mKt/UTSulQOmdLQyyuJw+lhzRW+zTMdTxCIvpUIiJGrfJiqp1Eyq9A2ZfQ393Eod8NWi8bNLnqHEIk70IiJG+gZMVahqJ//Z"
    ),
    "chroma halved in width only, luma 2 x 2": (
        "/9j/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9lnN+gXz/2wBDARUXFx4aHjsh"
        "ITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wAARCAAgACgDASIAAhIBAxIB/8QAGQABAAMB"
        "AQAAAAAAAAAAAAAABQADBAYC/8QAHRAAAgMBAQADAAAAAAAAAAAAAAEEEiECAxMUIv/EABcBAQEBAQAAAAAAAAAAAAAAAAQFAwL/xAAcEQACAwEB"
        "AQEAAAAAAAAAAAAAAwECEhEhIgT/2gAMAwEAAhEDEQA/AGVNVA2ZNWnteToHTPJ6CvedjbxTYlC/DJD/AAr+6riUOasOe+J3E4fk8O6WnA2kUwcO"
        "X6ZOf6dA5qoQwPydCEFlp0NZFNDFr+TJb/k0rpUDpnS0vV6Bsy+g7rvsVd8bBIrPCmhUcM9lcTh9LAL93Eod8NqLvgVR8YIjqz0puVHRx9KhDK70"
        "IRGLvoUz9EaBrrOSmtUZP//Z"
    ),
    "a scan for each component": (
        "/9j/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9lnN+gXz/2wBDARUXFx4aHjsh"
        "ITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wAARCAAgACgDASIAAhEBAxEB/8QAFQABAQAA"
        "AAAAAAAAAAAAAAAABQT/xAAdEAACAwEBAAMAAAAAAAAAAAAAAQQSIQIDExQi/9oACAEBAAA/AGVNVA2ZNWhv3VcShzVgk5qoQLydA6Z5PQz4ncTh"
        "+TwRfk6FK6VA6Z0tDLK4nD6WCL6VCVXoGzL6G/u4lDvgk70P/8QAFgEBAQEAAAAAAAAAAAAAAAAABQAD/8QAGREAAgMBAAAAAAAAAAAAAAAAAAMC"
        "EjIB/9oACAECEQA/AMZq7fQhBXaaDWK7bRTWu+hCC100HMWq2j//xAAVAQEBAAAAAAAAAAAAAAAAAAADBP/EABoRAAIDAQEAAAAAAAAAAAAAAAAD"
        "AQIRBBL/2gAIAQMRAD8AdF14TOuvR13X5CRzThO7mnR180+T/9k="
    ),
}


def picture(seed: int = 0, mode: str = "RGB", **options: object) -> bytes:
    return pictures.jpeg(WIDTH, HEIGHT, seed, mode, **options)


def scans(data: bytes) -> list[int]:
    """Where each scan's header begins."""
    return [at for at in range(len(data) - 1) if data[at : at + 2] == SOS]


def without_scans(data: bytes, missing: int) -> bytes:
    """A file without its last scans, with an end."""
    return data[: scans(data)[-missing]] + EOI


def without_scan(data: bytes, number: int) -> bytes:
    """A file without one of its scans, and the tables before it."""
    starts = [*scans(data), len(data) - 2]
    return data[: starts[number]] + data[starts[number + 1] :]


def part(data: bytes, share: float) -> bytes:
    """The begin of a file: up to a share of the entropy-coded data."""
    begin = scans(data)[0] + 14
    return data[: begin + round((len(data) - begin) * share)]


def in_scan(data: bytes, at: int, value: bytes, number: int = 0) -> bytes:
    """Another value at an offset in a scan's header; of three components 12 is the end of the band of coefficients."""
    return put(data, scans(data)[number] + at, value)


def before(data: bytes, marker: bytes, added: bytes) -> bytes:
    at = data.index(marker)
    return data[:at] + added + data[at:]


def within_data(data: bytes, share: float, value: bytes) -> bytes:
    """Other bytes somewhere in the entropy-coded data, never within a marker."""
    begin = scans(data)[-1] + 14
    at = begin + round((len(data) - begin) * share)
    while 0xFF in data[at - 1 : at + len(value) + 1]:
        at += 1
    return put(data, at, value)


def restarts(data: bytes) -> list[int]:
    begin = scans(data)[0]
    return [at for at in range(begin, len(data) - 1) if data[at] == 0xFF and 0xD0 <= data[at + 1] <= 0xD7]


@cache
def baseline() -> bytes:
    return picture()


@cache
def progressive(mode: str = "RGB") -> bytes:
    return picture(1, mode, progressive=True)


@cache
def marked() -> bytes:
    return picture(2, restart_marker_blocks=2)


def by_libjpeg(name: str) -> bytes:
    return base64.b64decode(BY_LIBJPEG[name])


def ids(data: bytes, names: bytes) -> bytes:
    """Other names for the three components, in the frame and in the scan."""
    frame, scan = data.index(b"\xff\xc0"), scans(data)[0]
    for i, name in enumerate(names):
        data = put(put(data, frame + 10 + 3 * i, bytes([name])), scan + 5 + 2 * i, bytes([name]))
    return data


def adobe(transform_code: int) -> bytes:
    jfif_ends = baseline().index(b"\xff\xdb")
    body = b"Adobe\x00\x64\x00\x00\x00\x00" + bytes([transform_code])
    return SOI + segment(0xEE, body) + baseline()[jfif_ends:]


def two_pictures() -> bytes:
    """An MPO: two JPEGs in a file, as some cameras make them."""
    first, second = (Image.fromarray(pictures.pixels(WIDTH, HEIGHT, seed)) for seed in (5, 6))
    return pictures.encode(first, format="MPO", save_all=True, append_images=[second])


ROWS: dict[str, Row] = {
    # What is whole.
    "baseline": good(baseline),
    "444": good(lambda: picture(subsampling=0)),
    "422": good(lambda: picture(subsampling=1)),
    "greyscale": good(lambda: picture(mode="L")),
    "small": good(lambda: pictures.jpeg(9, 8)),
    "restart markers": good(marked),
    "optimised tables": good(lambda: picture(optimize=True)),
    "progressive": good(progressive),
    "progressive greyscale": good(lambda: progressive("L")),
    "progressive with restart markers": good(lambda: picture(progressive=True, restart_marker_blocks=2)),
    "cmyk": good(lambda: picture(mode="CMYK")),
    "cmyk progressive": good(lambda: picture(mode="CMYK", progressive=True)),
    **{name: good(lambda name=name: by_libjpeg(name)) for name in BY_LIBJPEG},
    "greyscale with sampling factors": good(lambda: in_frame(picture(mode="L"), 11, b"\x22")),
    "rgb": good(lambda: ids(picture(subsampling=0).replace(b"JFIF\0", b"XFIF\0"), b"RGB")),
    "adobe transform unknown": good(lambda: adobe(7)),
    "adobe transform 1": good(lambda: adobe(1)),
    "jfif of a later version": good(lambda: baseline().replace(b"JFIF\0\x01", b"JFIF\0\x07")),
    "exif damaged": good(lambda: before(baseline(), b"\xff\xdb", segment(0xE1, b"Exif\0\0II*\0\xff\xff\xff\xff"))),
    "exif thumbnail": good(lambda: before(baseline(), b"\xff\xdb", segment(0xE1, b"Exif\0\0" + pictures.jpeg(8, 8)))),
    "colour profile damaged": good(lambda: before(baseline(), b"\xff\xdb", segment(0xE2, b"ICC_PROFILE\0\x09\x02x"))),
    "bytes between segments": good(lambda: before(baseline(), b"\xff\xc4", b"\x12\x34\x56")),
    "fill bytes between segments": good(lambda: before(baseline(), b"\xff\xc4", b"\xff" * 9)),
    "bytes behind the end": good(lambda: baseline() + bytes(500)),
    "bytes behind the end, progressive": good(lambda: progressive() + bytes(500)),
    "two files in one": good(lambda: baseline() + picture(9)),
    "mpo": good(two_pictures),
    "band of coefficients 0": good(lambda: in_scan(baseline(), 12, b"\0")),
    "band of coefficients 0, 444 with restart markers": good(lambda: in_scan(marked(), 12, b"\0")),
    "band of coefficients 0, cmyk": good(lambda: in_scan(picture(mode="CMYK"), 14, b"\0")),
    "a marker too many behind the last": good(lambda: marked()[:-2] + b"\xff\xd3" + EOI),
    "comment behind the scan": good(lambda: baseline()[:-2] + segment(0xFE, b"c") + EOI),
    "bytes behind the scan": good(lambda: baseline()[:-2] + b"\x12\x34" + EOI),
    "lines told behind the scan": good(lambda: baseline()[:-2] + segment(0xDC, struct.pack(">H", HEIGHT)) + EOI),
    # Scans that are missing.
    **{
        f"progressive, {n} scans missing": unseen(
            lambda n=n: without_scans(progressive(), n), "scans are missing: component 1 of 3 lacks"
        )
        for n in range(1, 10)
    },
    **{
        f"progressive greyscale, {n} scans missing": unseen(
            lambda n=n: without_scans(progressive("L"), n), "scans are missing: component 1 of 1 lacks"
        )
        for n in range(1, 6)
    },
    "progressive, the last bit of DC missing": unseen(
        lambda: without_scan(progressive("L"), 4), "component 1 of 1 lacks the last bits of coefficients 0 to 0"
    ),
    "progressive, a component's refinement missing": unseen(
        lambda: without_scan(progressive(), 8), "component 2 of 3 lacks the last bits of coefficients 1 to 63"
    ),
    "progressive, high coefficients missing": unseen(
        lambda: without_scan(progressive(), 4), "Inconsistent progression"
    ),
    "progressive cmyk, a scan missing": bad(  # every build decodes inks
        lambda: without_scans(picture(mode="CMYK", progressive=True), 1), "scans are missing", pillow=True
    ),
    "arithmetic progressive, a scan missing": bad(  # the same
        lambda: without_scans(by_libjpeg("arithmetic progressive"), 1),
        "scans are missing: component 1 of 3",
        pillow=True,
    ),
    "a scan for each component, one missing": unseen(
        lambda: without_scans(by_libjpeg("a scan for each component"), 1), "none holds component 3 of 3"
    ),
    "progressive, first scan missing": unseen(
        lambda: without_scan(progressive(), 0), "Inconsistent progression", pillow=False
    ),
    "progressive, a scan twice": unseen(
        lambda: progressive()[: scans(progressive())[1]] + progressive()[scans(progressive())[0] :],
        "",
    ),
    # Cut short.
    **{
        f"{name}, {share:.0%}": bad(lambda make=make, share=share: part(make(), share), "cut short")
        for name, make in {"baseline": baseline, "progressive": progressive, "restart markers": marked}.items()
        for share in (0.02, 0.3, 0.6, 0.97)
    },
    "baseline cut, with an end": unseen(lambda: part(baseline(), 0.6) + EOI, "premature end of data", crop=True),
    "progressive cut in its last scan, with an end": unseen(lambda: part(progressive(), 0.95) + EOI, "premature end"),
    "progressive cut in a segment, with an end": bad(lambda: part(progressive(), 0.05) + EOI, "cut short inside"),
    "restart markers cut, with an end": unseen(lambda: part(marked(), 0.6) + EOI, "restart markers"),
    "cut in the header": bad(lambda: baseline()[:300], "cut short"),
    "end missing": bad(lambda: baseline()[:-2], "no end-of-image marker"),
    "end missing, progressive": bad(lambda: progressive()[:-2], "no end-of-image marker"),
    "segment behind the scan cut": bad(
        lambda: baseline()[:-2] + b"\xff\xfe\x10\x00x" + EOI, "cut short inside", pillow=True, crop=True
    ),
    # Damaged.
    "code that is none": unseen(lambda: within_data(baseline(), 0.7, b"\xff\0" * 8), "bad Huffman code", crop=True),
    "restart marker missing": unseen(lambda: put(marked(), restarts(marked())[4], b"\x12\x34"), "out of turn"),
    "restart marker wrong": unseen(lambda: put(marked(), restarts(marked())[4], b"\xff\xd7"), "out of turn"),
    "two start markers": unseen(lambda: SOI + baseline(), "two SOI", pillow=False),
    "tables missing": unseen(
        lambda: baseline()[: baseline().index(b"\xff\xdb")] + baseline()[baseline().index(b"\xff\xc0") :],
        "Quantization table",
        pillow=False,
    ),
    "names of components differ": unseen(lambda: in_scan(baseline(), 5, b"\x09"), "Invalid component ID", pillow=False),
    "sampling beyond four": unseen(lambda: in_frame(baseline(), 11, b"\x55"), "sampling factors", pillow=False),
    "higher than its data": unseen(lambda: in_frame(baseline(), 5, b"\x00\xf0"), "premature end of data", crop=True),
    # Not for us.
    "12 bits": bad(lambda: in_frame(baseline(), 4, b"\x0c"), "12 bits per sample"),
    "lossless": bad(lambda: in_frame(baseline(), 1, b"\xc3"), "lossless"),
    "hierarchical": unseen(lambda: in_frame(baseline(), 1, b"\xc5"), "Unsupported JPEG process", pillow=False),
    "two components": bad(lambda: in_frame(baseline(), 9, b"\x02"), "2 components"),
    "width 0": bad(lambda: in_frame(baseline(), 7, b"\0\0"), "width or height 0"),
    "height 0, told behind the scan": bad(
        lambda: in_frame(baseline(), 5, b"\0\0")[:-2] + segment(0xDC, struct.pack(">H", HEIGHT)) + EOI,
        "width or height 0",
    ),
    "a size beyond its bytes": bad(lambda: resized(baseline(), 8192, 8192), "take at least", pillow=True),
    "a size beyond all limits": bad(lambda: resized(baseline(), 65535, 65535), "65535"),
    "two frames": bad(
        lambda: before(baseline(), b"\xff\xda", baseline()[baseline().index(b"\xff\xc0") :][:19]), "second"
    ),
    # Not a JPEG at all.
    "gif animated": good(lambda: animated("GIF")),
    **PNG_ROWS,
    **WEBP_ROWS,
}


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return {name: row.make() for name, row in ROWS.items()}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> Path:
    """A folder of all files, of one class."""
    folder = tmp_path_factory.mktemp("odd") / "photos"
    return write_files(folder, {f"class/{number:03}.jpg": data for number, data in enumerate(files.values())})


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> Path:
    """A shard of all files as they are, which no build has looked at."""
    path = tmp_path_factory.mktemp("shard") / "train-00000-of-00001"
    path.write_bytes(b"".join(tfrecord.frame(payload(i, data)) for i, data in enumerate(files.values())))
    return path


def build(tree: Path, destination: Path, *options: str) -> dict[str, str]:
    """Why each file was rejected, if it was."""
    main(["build", str(tree), str(destination), *options, "--max-rejects", "1000", "--quiet"])
    lines = (destination / "rejects.jsonl").read_text().splitlines()
    rejects = {reject["key"]: reject["reason"] for reject in map(json.loads, lines)}
    return {name: rejects[f"class/{i:03}.jpg"] for i, name in enumerate(ROWS) if f"class/{i:03}.jpg" in rejects}


def load(path: Path, shown: object, **settings: object) -> tuple[dict[str, str], dict[str, list[np.ndarray]]]:
    """Why each file was refused, if it was, and the pixels of the others."""
    # With another seed all that are tried in place of one may be bad.
    settings = {"on_bad": "substitute", "max_bad": 1000, "batch_size": len(ROWS), "threads": 2, "seed": 0, **settings}
    names = list(ROWS)
    with (
        warnings.catch_warnings(),
        stoker.Loader(stoker.open(str(path)), transform=shown, **settings) as loader,
    ):
        warnings.simplefilter("ignore", BadSampleWarning)
        batch = next(iter(loader))
        refused = {names[bad.index]: str(bad.error) for bad in loader.bad_samples.samples}
    several = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    pixels = {name: [images[i] for images in several] for i, name in enumerate(names) if name not in refused}
    return refused, pixels


def pillow(data: bytes) -> Image.Image | None:
    """The image, if it is one to Pillow; grey of 16 bits as Stoker makes 8 of it."""
    try:
        return Image.fromarray(pictures.whole(data))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return None


def wrong(refused: dict[str, str], accepted: dict[str, bool], *, reasons: bool = True) -> list[str]:
    """What is not as the table says."""
    differences = []
    for name, row in ROWS.items():
        if (name not in refused) != accepted[name]:
            differences.append(f"{name}: {refused.get(name, 'accepted')}")
        elif name in refused and reasons and row.why.lower() not in refused[name].lower():
            differences.append(f"{name}: refused because of {refused[name]!r}, not {row.why!r}")
    return differences


HEADER = {name: row.header for name, row in ROWS.items()}
WHOLE = {name: row.whole for name, row in ROWS.items()}
UPPER = {name: row.whole or row.crop for name, row in ROWS.items()}


BUILDS = {
    "--check header": HEADER,
    "--check entropy": WHOLE,
    "--check decode": WHOLE,
    "--recipe restart": WHOLE,
    "--resize short:24": WHOLE,
    "--preset dlbs --encode raw": WHOLE,
}


@pytest.mark.parametrize("options", BUILDS)
def test_builds(tree: Path, tmp_path: Path, options: str) -> None:
    rejected = build(tree, tmp_path / "out", *options.split())
    # A transcode reads all files with libjpeg, which has words of its own.
    assert wrong(rejected, BUILDS[options], reasons="restart" not in options) == []


@pytest.mark.slow
def test_verify_of_records_that_nothing_has_checked(shard: Path) -> None:
    problems = {problem.record: problem.what for problem in verify_dataset(str(shard)).problems}
    assert wrong({name: problems[i] for i, name in enumerate(ROWS) if i in problems}, WHOLE) == []


def test_verify_of_what_a_build_has_kept(tree: Path, tmp_path: Path) -> None:
    rejected = build(tree, tmp_path / "out", "--check", "header")
    kept = [name for name in ROWS if name not in rejected]
    problems = {problem.source: problem.what for problem in verify_dataset(str(tmp_path / "out")).problems}
    numbers = list(ROWS)
    files = {name: f"{numbers.index(name):03}.jpg" for name in kept}
    refused = {name: problems[file] for name, file in files.items() if file in problems}
    assert wrong(rejected | refused, WHOLE) == []
    build(tree, tmp_path / "checked", "--check", "entropy")
    assert verify_dataset(str(tmp_path / "checked")).problems == ()


WHOLES = (stoker.Resize(24), stoker.MultiCrop(stoker.TopLeft(8), stoker.Resize(24)))
# The one exception: a file of one scan is read no further than its crop, and so damage below it is not seen.
CROPS = (stoker.TopLeft(8), stoker.MultiCrop(stoker.TopLeft(8), stoker.TopLeft(6)))


@pytest.mark.parametrize("layout", ["tree", "shard"])
@pytest.mark.parametrize(
    ("shown", "verdicts", "cache"),
    [
        *((shown, WHOLE, cache) for shown in WHOLES for cache in (None, "encoded", "decoded")),
        *((shown, UPPER, cache) for shown in CROPS for cache in (None, "decoded")),
    ],
)
@pytest.mark.slow
def test_loader(
    shown: object,
    verdicts: dict[str, bool],
    cache: str | None,
    layout: str,
    files: dict[str, bytes],
    request: pytest.FixtureRequest,
) -> None:
    """A cache changes nothing about what is refused."""
    kept = None if cache is None else stoker.MemoryCache("64MB", cache)
    refused, pixels = load(request.getfixturevalue(layout), shown, cache=kept)
    assert wrong(refused, verdicts) == []
    same_pixels(pixels, shown, files)


@pytest.mark.parametrize("layout", ["tree", "shard"])
def test_centre_crops_are_those_of_pillow(layout: str, files: dict[str, bytes], request: pytest.FixtureRequest) -> None:
    shown = stoker.CenterCrop(16, 24)
    refused, pixels = load(request.getfixturevalue(layout), shown)
    assert [name for name in refused if WHOLE[name]] == []
    assert [name for name in pixels if not UPPER[name]] == []
    same_pixels({name: images for name, images in pixels.items() if WHOLE[name]}, shown, files)


def same_pixels(pixels: dict[str, list[np.ndarray]], shown: object, files: dict[str, bytes]) -> None:
    """Compare with Pillow."""
    for name, several in pixels.items():
        image = pillow(files[name])
        if image is None:
            continue
        for chosen, images in zip(getattr(shown, "transforms", (shown,)), several, strict=True):
            expected = transform.show(image, chosen, transform.Draws(0, 0, 0))
            assert (images == expected).all(), name


def test_pillow(files: dict[str, bytes]) -> None:
    differing = [name for name, row in ROWS.items() if (pillow(files[name]) is not None) != row.pillow]
    assert differing == []


@each("name", [name for name, row in ROWS.items() if row.whole])
def test_what_is_accepted_has_the_pixels_of_pillow_in_every_region(name: str, files: dict[str, bytes]) -> None:
    data = files[name]
    if sniff(data) not in NATIVE_FORMATS or not ROWS[name].pillow:
        return
    expected = np.asarray(pillow(data))
    assert (_native.decode_image(data) == expected).all()
    height, width = expected.shape[:2]
    _native.check_image(data)
    for left, top, right, bottom in (
        (0, 0, 1, 1),
        (width // 2, 0, width, height),
        (width // 3, height // 3, width // 3 + 5, height),
        (3, height // 2, width - 3, height - 1),
        (width - 2, height - 2, width, height),
    ):
        region = _native.decode_image(data, (left, top, right, bottom))
        assert (region == expected[top:bottom, left:right]).all()


@each("name", [name for name, row in ROWS.items() if not row.whole])
def test_what_is_refused_is_refused_with_the_same_words(name: str, files: dict[str, bytes]) -> None:
    data = files[name]
    if sniff(data) not in NATIVE_FORMATS:
        return
    reasons = set()
    for look in (_native.decode_image, _native.check_image):
        with pytest.raises(ImageError) as caught:
            look(data)
        reasons.add(str(caught.value))
    assert len(reasons) == 1
