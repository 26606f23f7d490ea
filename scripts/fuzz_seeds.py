"""Writes the inputs that fuzzing starts from: files that Stoker makes, odd ones, and those of a folder you name.

    python scripts/fuzz_seeds.py CORPUS [FOLDER]

``CORPUS/TARGET/`` gets the seeds of each target of ``src/native/fuzz`` and ``scripts/fuzz_python``. FOLDER is searched
for files that begin like a JPEG; each of up to 64 KiB becomes a seed of every target that takes JPEGs.
"""

from __future__ import annotations

import hashlib
import io
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from stoker import _native
from stoker.sample import DAMAGED, ODD, damage, encode_odd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stoker.types import FeatureKind

JPEG_TARGETS = ("jpeg", "region", "jpeg_header", "transcode", "transform")
LONGEST = 64 << 10
"""Bytes of a file that is worth being a seed: an input of more is tried too seldom."""
SIZES = ((1, 1), (17, 9), (40, 30), (3, 200), (130, 50))


def pixels(width: int, height: int, seed: int = 0) -> NDArray[np.uint8]:
    """Return a smooth picture with an edge and some noise, uint8 (height, width, 3)."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = np.stack([np.sin(x / (5 + c)) + np.cos(y / (7 + c)) for c in range(3)], axis=-1) * 50 + 128
    waves[:, width // 2 :] += 40
    return np.clip(waves + random.normal(0, 6, waves.shape), 0, 255).astype(np.uint8)


def saved(image: Image.Image, **options: Any) -> bytes:
    """Return a JPEG by Pillow."""
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    return file.getvalue()


def segment(marker: int, body: bytes) -> bytes:
    """Return a marker segment."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def regular_jpegs() -> Iterator[bytes]:
    """Yield pictures of every encoding that decoders tell apart."""
    for width, height in SIZES:
        image = Image.fromarray(pixels(width, height))
        for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
            yield saved(image, subsampling=subsampling, quality=85)
        yield saved(image, progressive=True)
        yield saved(image.convert("L"), progressive=True, quality=90)
        yield saved(image, optimize=True, quality=30)
        yield saved(image, restart_marker_blocks=1)
        yield saved(image, restart_marker_rows=1, progressive=True)
        yield saved(image, keep_rgb=True)
        for mode in ("L", "CMYK"):
            yield saved(image.convert(mode), restart_marker_blocks=2)
        yield _native.encode_jpeg(pixels(width, height), 90)
        yield _native.transcode_jpeg(saved(image, progressive=True)) or b""


def odd_jpegs() -> Iterator[bytes]:
    """Yield what `stoker sample` makes of odd and damaged files, and oddities of single markers."""
    for kind in ODD:
        if kind != "png":
            yield encode_odd(kind, pixels(48, 32), 80)
    for kind in DAMAGED:
        yield damage(kind, saved(Image.fromarray(pixels(48, 32))))
    exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\3\0\1\0\0\0\x06\0\0\0"
    whole = saved(Image.fromarray(pixels(40, 24)), subsampling="4:2:0", exif=exif)
    yield whole + b"behind the end"
    yield whole[: len(whole) // 2]
    yield whole[:2] + segment(0xE2, b"ICC_PROFILE\0\1\1" + bytes(90)) + segment(0xFE, b"a comment") + whole[2:]
    yield whole[:2] + segment(0xEE, b"Adobe\0\x64\0\0\0\0\0") + whole[2:]
    frame = whole.index(b"\xff\xc0")
    yield whole[: frame + 4] + b"\x0c" + whole[frame + 5 :]  # 12 bits a sample
    yield whole[: frame + 5] + b"\xff\xff\xff\xff" + whole[frame + 9 :]  # 65,535 x 65,535
    yield whole[: frame + 1] + b"\xc9" + whole[frame + 2 :]  # arithmetic coding
    yield whole[: frame + 11] + b"\x41" + whole[frame + 12 :]  # 4:1:1
    yield whole[: frame + 11] + b"\x12" + whole[frame + 12 :]  # 4:4:0


def jpegs_below(folder: Path) -> Iterator[bytes]:
    """Yield the files of a folder that begin like a JPEG and are short enough."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_size <= LONGEST:
            data = path.read_bytes()
            if data.startswith(b"\xff\xd8"):
                yield data


def pngs() -> Iterator[bytes]:
    """Yield pictures of every mode that Pillow writes as PNG."""
    for width, height in SIZES:
        image = Image.fromarray(pixels(width, height))
        for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
            file = io.BytesIO()
            (image.convert("I").convert(mode) if mode == "I;16" else image.convert(mode)).save(file, "PNG")
            yield file.getvalue()
        for bits in (1, 2, 4):
            file = io.BytesIO()
            image.quantize(1 << bits).save(file, "PNG", bits=bits, transparency=0)
            yield file.getvalue()


def webps() -> Iterator[bytes]:
    """Yield lossy, lossless and transparent pictures, and an animation."""
    for width, height in SIZES:
        image = Image.fromarray(pixels(width, height))
        for mode in ("RGB", "RGBA"):
            for lossless in (False, True):
                file = io.BytesIO()
                image.convert(mode).save(file, "WEBP", lossless=lossless, quality=30)
                yield file.getvalue()
        file = io.BytesIO()
        image.save(file, "WEBP", save_all=True, append_images=[image.rotate(180)])
        yield file.getvalue()


def choices(target: str, number: int) -> bytes:
    """Return the choices that a target takes from the end of an input: a part, a size, a kind of transform."""
    lengths = {
        "jpeg_header": 0,
        "transcode": 0,
        "jpeg": 17,
        "png": 17,
        "webp": 16,
        "transform": 83,
        "raw_pixels": 59,
        "resample": 7,
        "order": 27,
    }
    return hashlib.shake_128(b"%d" % number).digest({**lengths, "remote_ranges": 300}.get(target, 9))


def example(**features: list[bytes] | list[int] | list[float]) -> bytes:
    """Return an Example of these features, each named after its key."""
    kinds: dict[type, FeatureKind] = {bytes: "bytes", int: "int64", float: "float"}
    return _native.write_example({key: (kinds[type(values[0])], values) for key, values in features.items()})


def examples() -> Iterator[bytes]:
    """Yield Examples with the keys that the target looks for, and some laid out otherwise."""
    jpeg = saved(Image.fromarray(pixels(16, 12)))
    raw = pixels(4, 3).tobytes()
    yield example(i=[raw], h=[3], w=[4], o=[b"HWC"], l=[0, 1, 0], s=[b"a.jpg"])
    yield example(i=[raw], h=[3], w=[4], o=[b"CHW"], l=[b"\0\1\0"])
    edges: dict[str, list[int] | list[float]] = {
        "b/xmin": [0.0],
        "b/ymin": [0.1],
        "b/xmax": [0.9],
        "b/ymax": [1.0],
        "b/label": [3],
    }
    yield example(i=[raw], h=[3], w=[4], l=[1], b=[0.1, 0.0, 1.0, 0.9], label=[3], **edges)
    yield example(image=[jpeg], label=[7], source=[b"n1_2.JPEG"])
    feature = b"\x0a\x03\x0a\x01\x00"
    yield b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x08\xac\x02"  # unpacked
    yield b"\x0a\x10\x0a\x0e\x0a\x01f\x12\x09\x12\x07\x0d\0\0\x80\x3f\x18\1" + b"\x13\x14"  # unknown field, group
    yield b"\x0a\x0c\x0a\x0a\x0a\x01i\x12\x05" + feature + b"\x0a\x0a\x0a\x08\x0a\x01i\x12\x03\x1a\x01\x0a"  # twice


def frames(payloads: list[bytes]) -> tuple[bytes, bytes]:
    """Return a shard of these payloads, and its index."""
    shard, lines = b"", b""
    for payload in payloads:
        frame = _native.frame_record(payload)
        lines += b"%d %d\n" % (len(shard), len(frame))
        shard += frame
    return shard, lines


def picture_seeds(folder: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield target and seed of those that take image files."""
    jpegs = [data for data in (*regular_jpegs(), *odd_jpegs()) if data]
    if folder is not None:
        jpegs += jpegs_below(folder)
    files = {**dict.fromkeys(JPEG_TARGETS, jpegs), "png": list(pngs()), "webp": list(webps())}
    for target, pictures in files.items():
        for number, data in enumerate(pictures):
            yield target, data + choices(target, number)


def native_seeds(folder: Path | None) -> Iterator[tuple[str, bytes]]:
    """Yield target and seed."""
    yield from picture_seeds(folder)
    for data in examples():
        yield "example", data
        yield "example_protobuf", data
    shard, index = frames([b"", b"ab" * 20, *examples()])
    short, short_index = frames([b"", b"\x0a\x00", next(examples())])
    yield "tfrecord", b"\0" + shard
    yield "tfrecord", b"\2" + b"\x08\1" + b"abcdefgh" + b"\4\1" + b"abcd" + b"\1" + struct.pack(">Q", 40)
    for claimed in (5, 2**32, 2**63, 2**64 - 16, 2**64 - 1):  # what a length and its frame must not add up to
        yield "tfrecord", b"\0\1" + struct.pack(">Q", claimed)
    for records, cut, text in ((3, 0, short_index), (2, 0, short_index), (3, 5, short_index), (200, 0, index)):
        for choice, lie in ((0, 3), (4, 8), (0, 12)):
            yield "record_set", text + b"#" + short[: len(short) - cut] + bytes([0, 0, records, lie, choice])
    wide = b"0 4294967296\n4294967296 4294967312\n"
    yield "record_set", wide + b"#" + bytes([0, 16, 2, 3, 3])
    sizes = bytes([0, 40, len(next(examples()))])
    yield "node_cache", short + bytes([0, 0, 0]) + sizes[::-1] + bytes([2])
    yield "node_cache", shard + bytes([8, 3, 0xFF]) + bytes(8) + bytes([7])
    for number in range(16):
        yield "raw_pixels", pixels(24, 18, number).tobytes() + choices("raw_pixels", number)
        yield "resample", pixels(24, 18, number).tobytes() + choices("resample", number)
        yield "order", choices("order", number)
        yield "remote_ranges", choices("remote_ranges", number)
    for choice in (6, 2, 0, 1):
        yield "file_set", bytes(range(200)) + bytes([4, 1]) + bytes([1, 0] * 40) + bytes([3, choice])


def write_seeds(corpus: Path, seeds: Iterator[tuple[str, bytes]]) -> int:
    """Write seeds to ``corpus/TARGET``, under names that tell their bytes; return how many there are."""
    count = 0
    for target, data in seeds:
        directory = corpus / target
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"seed-{hashlib.sha256(data).hexdigest()[:16]}").write_bytes(data)
        count += 1
    return count


if __name__ == "__main__":
    where = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    sys.stdout.write(f"{write_seeds(Path(sys.argv[1]), native_seeds(where))} seeds\n")
