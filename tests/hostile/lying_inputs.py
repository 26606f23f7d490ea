"""Inputs that claim far more than they hold, and the memory that each takes in a process of its own.

By hand it prints a table: ``PYTHONPATH=tests python -m hostile.lying_inputs``, perhaps with a part of a name behind.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import resource
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

import stoker
from hostile.image_bombs import GIB, MIB, SIDE, bmp, bombs, extended, gif, tiff, tiff_tags
from hostile.image_mutations import webp_of
from hostile.lying_store import BUCKET, lying_store
from reference import pictures
from reference.jpeg import in_frame, inside, resized
from reference.png import END, chunk, header
from stoker import _native
from stoker.errors import StokerError
from stoker.format import JOURNAL_NAME
from stoker.inspect import verify_dataset
from stoker.storage import location, retrying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stoker.builder import BuildReport
    from stoker.storage import Location


# The parts of files.


def small_jpeg(mode: str = "RGB", **settings: Any) -> bytes:
    return pictures.encode(
        Image.new(mode, (16, 16), 128 if mode == "L" else (128,) * len(mode)), format="JPEG", **settings
    )


def huge(jpeg: bytes) -> bytes:
    """A JPEG that claims nearly as many pixels as there may be."""
    return resized(jpeg, SIDE, SIDE)


def with_data(jpeg: bytes, count: int) -> bytes:
    """A JPEG whose last scan is zeros, so many bytes of them: enough for what its header claims, but no image."""
    start = jpeg.rindex(b"\xff\xda")
    return jpeg[: start + 2 + int.from_bytes(jpeg[start + 2 : start + 4], "big")] + bytes(count) + b"\xff\xd9"


def scan_by_scan(jpeg: bytes) -> bytes:
    """The same coefficients with only the first component in the scan."""
    start = jpeg.rindex(b"\xff\xda")
    end = start + 2 + int.from_bytes(jpeg[start + 2 : start + 4], "big")
    return jpeg[:start] + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + jpeg[end:]


def png(data: bytes, kind: int = 2) -> bytes:
    return header(SIDE, SIDE, kind, 8) + chunk(b"IDAT", data) + END


def frame_header(length: int) -> bytes:
    """The first 12 bytes of a record of so many bytes."""
    packed = struct.pack("<Q", length)
    crc = _native.crc32c(packed)
    return packed + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record_of(image_file: bytes) -> bytes:
    return _native.frame_example({"image/encoded": ("bytes", [image_file]), "image/class/label": ("int64", [1])})


def sparse(path: Path, size: int, head: bytes = b"", tail: bytes = b"") -> Path:
    """A file of so many bytes, most of which are a hole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)
        file.seek(size - len(tail))
        file.write(tail)
    return path


def source(folder: Path, name: str, data: bytes) -> None:
    """A folder of one class with one image of its own and one that is sound."""
    class_folder = folder / "source" / "class"
    class_folder.mkdir(parents=True)
    (class_folder / name).write_bytes(data)
    (class_folder / "sound.jpg").write_bytes(small_jpeg())


def shard_of(folder: Path, *records: bytes) -> Path:
    (folder / "shards").mkdir(parents=True)
    path = folder / "shards" / "train-00000-of-00001"
    path.write_bytes(b"".join(records))
    return path


def dataset(folder: Path) -> Path:
    source(folder, "other.jpg", small_jpeg("L"))
    dataset_of(folder)
    return folder / "dataset"


def dataset_of(folder: Path) -> BuildReport:
    return stoker.build(folder / "source", folder / "dataset", threads=1)


# What is done with them. Each returns what came of it, in words.


def build(folder: Path, name: str = "source", **settings: Any) -> str:
    with tempfile.TemporaryDirectory(dir=folder) as built:
        out = Path(built) / "dataset"
        report = stoker.build(folder / name, out, shards=1, threads=1, max_rejects=1, **settings)
    return f"{len(report.rejects)} rejects" + "".join(f": {reject.reason}" for reject in report.rejects[:1])


def read(path: Path | Location, split: str = "train") -> str:
    opened = stoker.open(path, split)
    with stoker.Loader(opened, 1, transform=stoker.Resize(64), threads=1) as loader:
        return f"{sum(len(batch.labels) for batch in loader)} images"


def verify(path: Path) -> str:
    report = verify_dataset(path, threads=1)
    return f"{len(report.problems)} problems" + "".join(f": {problem.what}" for problem in report.problems[:1])


ACTIONS: dict[str, Callable[[Path], str]] = {
    "build": build,
    "build, all decoded": lambda folder: build(folder, check="decode"),
    "build, resized": lambda folder: build(folder, resize="short:64"),
    "build again": lambda folder: str(len(dataset_of(folder).rejects)),
    "open folder": lambda folder: read(folder / "source"),
    "open shards": lambda folder: read(folder / "shards"),
    "open dataset": lambda folder: read(folder / "dataset"),
    "verify shards": lambda folder: verify(folder / "shards"),
    "verify dataset": lambda folder: verify(folder / "dataset"),
}
FILES = ("build, all decoded", "build, resized", "open folder")
SHARDS = ("open shards", "verify shards")
DATASET = ("open dataset", "verify dataset")


@dataclass(frozen=True)
class Lie:
    """One input.

    Attributes:
        name: What it is.
        claims: Bytes of memory that it claims, about.
        make: Fills a folder.
        actions: What is done with it.
        pixels: Of an image that is what it claims to be, of one colour in nearly all of them.
    """

    name: str
    claims: int
    make: Callable[[Path], object]
    actions: Sequence[str]
    pixels: int = 0


def image(name: str, data: Callable[[], bytes], claims: int = SIDE * SIDE * 3, suffix: str = "jpg") -> Lie:
    return Lie(name, claims, lambda folder: source(folder, f"lie.{suffix}", data()), FILES)


def jpeg_lies() -> Iterator[Lie]:
    grey = image("JPEG, grey", lambda: huge(small_jpeg("L")))
    yield replace(grey, actions=("build", *FILES))
    yield image("JPEG, 4:2:0", lambda: huge(small_jpeg()))
    yield image("JPEG, 4:4:4 with restart markers", lambda: huge(small_jpeg(subsampling=0, restart_marker_blocks=1)))
    yield image("JPEG, 65,500 wide", lambda: resized(small_jpeg(), 65_500, 2_049))
    yield image("JPEG, 65,500 high", lambda: resized(small_jpeg(), 2_049, 65_500))
    yield image("JPEG, inks", lambda: huge(small_jpeg("CMYK")))
    yield image("JPEG, one component a scan", lambda: huge(scan_by_scan(small_jpeg(subsampling=0))))
    yield image("JPEG, progressive", lambda: huge(small_jpeg(progressive=True)))
    for name, marker in (("arithmetic", 0xC9), ("arithmetic and progressive", 0xCA)):
        file = resized(small_jpeg(progressive=marker == 0xCA), 6_000, 6_000)
        blank = image(f"JPEG, {name}", lambda file=file, marker=marker: in_frame(file, 1, bytes([marker])))  # type: ignore[misc]
        yield replace(blank, claims=6_000**2 * 4, pixels=6_000**2)
    yield image("JPEG, lossless", lambda: in_frame(huge(small_jpeg("L")), 1, b"\xc3"))
    yield image(
        "JPEG with a megabyte of comments",
        lambda: inside(huge(small_jpeg()), b"".join(b"\xff\xfe\xff\xff" + bytes(65_533) for _ in range(16))),
    )
    yield image("JPEG with zeros for data", lambda: with_data(huge(small_jpeg()), MIB))
    yield image("JPEG, progressive, with zeros for data", lambda: with_data(huge(small_jpeg(progressive=True)), MIB))


def other_image_lies() -> Iterator[Lie]:
    yield image("PNG without pixels", lambda: png(b""), suffix="png")
    yield image("PNG with a few rows", lambda: png(zlib.compress(bytes(10 * SIDE * 3))), suffix="png")
    yield image("PNG of a palette, cut short", lambda: png(zlib.compress(bytes(1000)), 0), suffix="png")
    yield image("GIF", lambda: gif(SIDE, SIDE, (SIDE, SIDE), 1, b"\x02\x01\x44\0"), suffix="gif")
    yield image("BMP", lambda: bmp(SIDE, SIDE), suffix="bmp")
    yield image("PPM", lambda: b"P6\n%d %d\n255\n" % (SIDE, SIDE), suffix="ppm")
    yield image("TIFF", lambda: tiff(*tiff_tags(SIDE, SIDE, 1, SIDE**2)), suffix="tiff")
    yield image("TIFF, deflated", lambda: tiff(*tiff_tags(SIDE, SIDE, 8)), suffix="tiff")
    yield image("WebP, extended", lambda: webp_of([extended(SIDE, SIDE), (bytes(4), b"")]), suffix="webp")
    yield image(
        "WebP, lossless",
        lambda: b"RIFF\x1a\0\0\0WEBPVP8L\x0d\0\0\0\x2f" + (SIDE - 1 | SIDE - 1 << 14).to_bytes(4, "little") + bytes(8),
        suffix="webp",
    )
    yield image("JPEG 2000", jpeg_2000, suffix="jp2")
    for bomb in bombs():
        yield replace(image(bomb.name, bomb.make, bomb.claims, bomb.suffix), pixels=bomb.pixels)


def jpeg_2000() -> bytes:
    buffer = pictures.encode(Image.new("RGB", (16, 16)), format="JPEG2000")
    size, small = struct.pack(">II", SIDE, SIDE), struct.pack(">II", 16, 16)
    return buffer.replace(small, size)


def file_lies() -> Iterator[Lie]:
    for name, size, head in (
        ("a sparse file of 100 GiB, a JPEG at its start", 100 * GIB, small_jpeg()),
        ("a sparse file of 100 GiB", 100 * GIB, b""),
        ("a sparse file of 256 MiB", 256 * MIB, b""),
    ):
        yield Lie(name, size, lambda folder, size=size, head=head: _with_sparse(folder, size, head), FILES)  # type: ignore[misc]
    yield Lie("a tar whose member claims 8 GiB", 8 * GIB, lambda folder: _tar(folder, 8 * GIB), ("build tar",))
    yield Lie("a sparse tar with a member of 8 GiB", 8 * GIB, _sparse_tar, ("build tar",))
    yield Lie("a sparse tar with a member of 512 MiB", 512 * MIB, lambda folder: _sparse_tar(folder, 512 * MIB),
              ("build tar",))  # fmt: skip
    yield Lie("a tar with a header of 4 GiB", 4 * GIB, _tar_header, ("build tar",))
    yield Lie("a list without an end of line", GIB, lambda folder: sparse(folder / "list.txt", GIB), ("build list",))
    yield Lie("a table without an end of line", 200 * MIB,
              lambda folder: _with_table(folder, "metadata.csv"), ("build", "open folder"))  # fmt: skip


def _with_sparse(folder: Path, size: int, head: bytes) -> None:
    source(folder, "other.jpg", small_jpeg("L"))
    sparse(folder / "source" / "class" / "lie.jpg", size, head)


def _with_table(folder: Path, name: str) -> None:
    source(folder, "other.jpg", small_jpeg("L"))
    sparse(folder / "source" / name, 200 * MIB, b"file_name,label\n")


def _member(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    info.type = kind
    return info.tobuf(tarfile.GNU_FORMAT)


def _tar(folder: Path, size: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "images.tar").write_bytes(_member("class/lie.jpg", size) + small_jpeg() + bytes(2048))


def _sparse_tar(folder: Path, size: int = 8 * GIB) -> None:
    sparse(folder / "images.tar", 512 + size + 1024, _member("class/lie.jpg", size) + small_jpeg())


def _tar_header(folder: Path) -> None:
    sparse(folder / "images.tar", 5 * GIB, _member("././@LongLink", 4 * GIB, tarfile.GNUTYPE_LONGNAME))


def read_store(folder: Path) -> str:
    retrying._SECONDS = 1.0  # a store that lies is asked again, for two minutes otherwise
    key, claims, data = json.loads((folder / "store.json").read_text(encoding="utf-8"))
    with lying_store(key, claims, bytes.fromhex(data)) as url:
        os.environ |= {"AWS_ENDPOINT_URL": url, "AWS_SKIP_SIGNATURE": "true", "AWS_REGION": "nowhere-1"}
        return read(location(f"s3://{BUCKET}/data"))


ACTIONS["open store"] = read_store
ACTIONS["build tar"] = lambda folder: build(folder, name="images.tar")
ACTIONS["build list"] = lambda folder: build(folder, name="list.txt")


def shard_lies() -> Iterator[Lie]:
    name = "train-00000-of-00001"

    def sparse_shard(folder: Path, size: int, head: bytes = b"", index: bytes | None = None) -> None:
        sparse(folder / "shards" / "a.tfrecord", size, head)
        if index is not None:
            (folder / "shards" / "a.tfrecord.idx").write_bytes(index)

    yield Lie("a record that claims 1 TiB", 2**40, lambda folder: shard_of(folder, frame_header(2**40)), SHARDS)
    yield Lie("a record that claims 2**64 bytes", 2**64,
              lambda folder: shard_of(folder, frame_header(2**64 - 1)), SHARDS)  # fmt: skip
    yield Lie("a sparse shard of 12 GiB and an index of one record", 12 * GIB,
              lambda folder: sparse_shard(folder, 12 * GIB, b"", b"0 %d\n" % (12 * GIB)), SHARDS)  # fmt: skip
    yield Lie("a sparse shard of 256 MiB and an index of one record", 256 * MIB,
              lambda folder: sparse_shard(folder, 256 * MIB, b"", b"0 %d\n" % (256 * MIB)), SHARDS)  # fmt: skip
    yield Lie("a sparse shard of one record of 256 MiB", 256 * MIB,
              lambda folder: sparse_shard(folder, 256 * MIB, frame_header(256 * MIB - 16)), SHARDS)  # fmt: skip
    yield Lie("a sparse shard of one record of 12 GiB", 12 * GIB,
              lambda folder: sparse_shard(folder, 12 * GIB, frame_header(12 * GIB - 16)), SHARDS)  # fmt: skip
    yield Lie("a sparse shard of 12 GiB without an index", 12 * GIB,
              lambda folder: sparse_shard(folder, 12 * GIB), SHARDS)  # fmt: skip

    def sparse_index(folder: Path) -> None:
        sparse_shard(folder, 12 * GIB, frame_header(12 * GIB - 16))
        sparse(folder / "shards" / "a.tfrecord.idx", 20 * GIB, b"0 %d\n" % (12 * GIB))

    yield Lie("a sparse index of 20 GiB", 20 * GIB, sparse_index, SHARDS)

    def bomb(folder: Path) -> None:
        (folder / "shards").mkdir(parents=True)
        with gzip.open(folder / "shards" / f"{name}.gz", "wb", 6) as file:
            file.write(frame_header(2**40))
            for _ in range(96):
                file.write(bytes(MIB))

    yield Lie("a compressed shard of 96 MiB of zeros", 2**40, bomb, SHARDS)

    def example(payload: bytes) -> Callable[[Path], object]:
        return lambda folder: shard_of(folder, _native.frame_record(payload))

    yield Lie("an Example whose fields claim 2**60 bytes", 2**60,
              example(b"\x0a" + b"\xff" * 8 + b"\x0f" + bytes(64)), SHARDS)  # fmt: skip
    yield Lie("an Example with a feature of 2**31 bytes", 2**31,
              example(b"\x0a\x10\x0a\x0e\x0a\x01a\x12\x09\x0a\x07\x0a\xff\xff\xff\xff\x07a"), SHARDS)  # fmt: skip

    def raw(folder: Path) -> None:
        features = {
            "image/encoded": ("bytes", [bytes(64 * 64 * 3)]),
            "image/class/label": ("int64", [1]),
            "image/height": ("int64", [2**31 - 1]),
            "image/width": ("int64", [2**31 - 1]),
            "image/order": ("bytes", [b"HWC"]),
        }
        shard_of(folder, _native.frame_example(features))

    yield Lie("a record of pixels that claims 2**62 of them", 2**62, raw, SHARDS)
    for each in jpeg_lies():
        if "progressive" in each.name or "4:2:0" in each.name or "zeros" in each.name:
            make = partial(_record_of, lie=each)
            yield replace(each, name=f"a record of a {each.name}", make=make, actions=SHARDS)


def _record_of(folder: Path, lie: Lie) -> None:
    lie.make(folder)
    data = (folder / "source" / "class" / "lie.jpg").read_bytes()
    shard_of(folder, record_of(data))


def dataset_lies() -> Iterator[Lie]:
    def replaced(name: str, size: int, head: bytes = b"") -> Callable[[Path], object]:
        def make(folder: Path) -> None:
            sparse(dataset(folder) / name, size, head)

        return make

    for name in ("manifest.json", "labels.txt", "rejects.jsonl"):
        yield Lie(f"{name} of 100 GiB", 100 * GIB, replaced(name, 100 * GIB), DATASET)
        yield Lie(f"{name} of 250 MiB, sparse", 250 * MIB, replaced(name, 250 * MIB), DATASET)

    def journal(folder: Path) -> None:
        built = dataset(folder)
        (built / "manifest.json").unlink()
        sparse(built / JOURNAL_NAME, 250 * MIB)

    yield Lie("a journal of 250 MiB, sparse", 250 * MIB, journal, ("build again", *DATASET))

    def index(folder: Path) -> None:
        built = dataset(folder)
        path = next(built.rglob("*.idx"))
        sparse(path, 30 * GIB, path.read_bytes())

    yield Lie("an index of a dataset of 30 GiB", 30 * GIB, index, DATASET)

    def shard(folder: Path) -> None:
        built = dataset(folder)
        path = next(file for file in built.iterdir() if file.name.startswith("train-"))
        sparse(path, 30 * GIB, path.read_bytes())

    yield Lie("a shard of a dataset of 30 GiB", 30 * GIB, shard, DATASET)


def store_lies() -> Iterator[Lie]:
    for key, claims, data in (
        ("data/class/image.jpg", 900 * MIB, small_jpeg()),
        ("data/class/image.jpg", 100 * GIB, small_jpeg()),
        ("data/a.tfrecord", 12 * GIB, frame_header(2**30)),
        ("data/manifest.json", 200 * MIB, b"{}"),
    ):
        told = json.dumps([key, claims, data.hex()])
        yield Lie(
            f"an object {key} of {claims >> 20} MiB",
            claims,
            lambda folder, told=told: (folder.mkdir(exist_ok=True), (folder / "store.json").write_text(told)),  # type: ignore[misc]
            ("open store",),
        )


def lies() -> list[Lie]:
    return [*jpeg_lies(), *other_image_lies(), *file_lies(), *shard_lies(), *dataset_lies(), *store_lies()]


# Measuring.


def bytes_present(folder: Path) -> int:
    """What a folder takes on the disk: holes count nothing."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Outcome:
    """What came of an input.

    Attributes:
        status: The exit status of the process.
        message: What came of the action, or the kind of the error and its message.
        is_refusal: Whether it was an error of Stoker's or of the system.
        is_right: Whether it was none.
        peak: Bytes of resident memory above those at the start.
        seconds: Of a processor that it took.
    """

    status: int
    message: str
    is_refusal: bool
    is_right: bool
    peak: int
    seconds: float


def _largest_resident() -> int:
    match = re.search(r"VmHWM:\s+([0-9]+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert match is not None
    return int(match[1]) * 1024


def _outcome_of(action: str, folder: Path) -> dict[str, Any]:
    before = _largest_resident()
    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + 4 * GIB, resource.RLIM_INFINITY))  # spares the machine
    is_refusal = is_right = False
    try:
        message = ACTIONS[action](folder)
        is_right = True
    except (StokerError, OSError) as error:
        message, is_refusal = f"{type(error).__name__}: {error}", True
    except BaseException as error:  # noqa: BLE001 - a process root: the other end judges
        message = f"{type(error).__name__}: {error}"
    peak = _largest_resident() - before
    seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    return {"message": message, "is_refusal": is_refusal, "is_right": is_right, "peak": peak, "seconds": seconds}


def serve() -> None:
    """Answer requests, a line of JSON each, in a forked process each: what is imported is shared by all."""
    source_of_all = Path(tempfile.mkdtemp())
    with contextlib.suppress(Exception):  # so that all is imported and each kind of memory has been taken once
        dataset(source_of_all)
        Image.init()
    for line in sys.stdin:
        action, folder = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with contextlib.suppress(BaseException), open(os.devnull, "w") as nowhere:  # noqa: PTH123 - a device
                os.dup2(nowhere.fileno(), 1)
                os.dup2(nowhere.fileno(), 2)
                os.write(writer, json.dumps(_outcome_of(action, Path(folder))).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as answers:
            answer = answers.read()
        _, status = os.waitpid(child, 0)
        died = {"message": "died", "is_refusal": False, "is_right": False, "peak": 0, "seconds": 0.0}
        known = json.loads(answer) if answer else died
        sys.stdout.write(json.dumps({"status": status, **known}) + "\n")
        sys.stdout.flush()


class Server:
    """A process that forks for each request."""

    def __enter__(self) -> Server:
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:  # its end closes both pipes; it ends with its input
            assert process.stdin is not None
            process.stdin.close()

    def ask(self, action: str, folder: Path) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([action, str(folder)]), file=self._process.stdin, flush=True)
        return Outcome(**json.loads(self._process.stdout.readline()))


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.stdout.write(
        f"{'input':52} {'action':18} {'present':>8} {'claimed':>10} {'peak':>7} {'CPU':>6}  outcome (sizes in MiB)\n"
    )
    with tempfile.TemporaryDirectory() as top, Server() as server:
        for number, lie in enumerate(lies()):
            if wanted not in lie.name:
                continue
            folder = Path(top) / str(number)
            lie.make(folder)
            present = bytes_present(folder)
            for action in lie.actions:
                answer = server.ask(action, folder)
                sizes = f"{present / MIB:8.2f} {lie.claims / MIB:10.3g} {answer.peak / MIB:7.1f} {answer.seconds:6.2f}"
                outcome = answer.message if answer.status == 0 else f"[{answer.status}] {answer.message}"
                sys.stdout.write(f"{lie.name:52} {action:18} {sizes}  {outcome[:150]}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
