"""Every reader and writer that is measured: which program of which rival, in which form, on which lines."""

from __future__ import annotations

import contextlib
import inspect
import io
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import stoker
from benchmarks.rivals.environments import BEFORE, OURS
from benchmarks.rivals.stoker.stored import BUILDS
from benchmarks.rivals.work import FORMATS
from stoker import _native
from stoker.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LINES = {
    "train": "Training transform: random order, RandomResizedCrop(224) with mirror images, batches of 64, uint8",
    "multi-crop": "Two random crops of 224 and six of 96 of each photograph with mirror images, batches of 64, uint8",
    "eval": "Evaluation transform: shorter side 256, centre 224, batches of 64, uint8",
    "raw": "Raw 64 x 64 x 3 tensors in random order, batches of 256",
    "keep": "Build that keeps the bytes",
    "small": "Build at a shorter side of 256, JPEG quality 90",
    "scan": "Shards scanned with CRC checks, one core, in MB/s (the other lines: images/s)",
    "png": "Training transform of photographs as PNG, loose files",
    "webp": "Training transform of photographs as lossy WebP, loose files",
    "progressive": "Training transform of photographs as progressive JPEG, loose files",
    "camera": "Training transform of 12 megapixels as a camera's, JPEG, loose files",
    "dense": "Training transform of 12 megapixels with much detail, JPEG, loose files",
    "camera-progressive": "Training transform of 12 megapixels as a camera's, progressive JPEG, loose files",
    "dense-progressive": "Training transform of 12 megapixels with much detail, progressive JPEG, loose files",
    "thumbnails": "PNGs of 32 x 32 as they are in random order, loose files, batches of 256",
}
LARGE = ("camera", "dense", "camera-progressive", "dense-progressive")
GROUPS = {"build": ("keep", "small"), "formats": FORMATS, "large": LARGE}
"""Names for several lines."""

TRANSFORMS = ("train", "eval")
BUILD_LINES = ("keep", "small")


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the tables.

    Attributes:
        rival: Folder of the rival.
        form: Form of it, as its program names it.
        title: What the tables call it.
        lines: On which lines it takes part.
        program: ``read``, ``write`` or ``scan``.
        data_of: The rival whose data it reads; None: its own.
        stores: What it reads; empty for the original bytes.
        files: Pattern of the files it reads, below its data; ``{kind}`` stands for ``raw`` or ``photos``.
        exact: Whether the pixels are those of a full decode with the accurate DCT and an antialiased resize.
    """

    rival: str
    form: str
    title: str
    lines: tuple[str, ...]
    program: str = "read"
    data_of: str | None = None
    stores: str = ""
    files: str = ""
    exact: bool = False

    @property
    def key(self) -> str:
        """Short name, unique on a line."""
        return f"{self.rival}:{self.form}"

    @property
    def limit(self) -> str | None:
        """Key of the codec alone on the same bytes, where there is such a thing."""
        name, _, setting = self.form.partition("-")
        if self.rival != OURS or self.program != "read" or name not in _JPEG or setting.startswith("codec"):
            return None
        return f"{OURS}:{name}-codec" + ("-fast" if setting == "fast" else "")


_PHOTOS = tuple(line for line in FORMATS if line != "thumbnails")
_JPEG_LINES = ("progressive", *LARGE)
_SHARDS = "train-*[0-9d]"  # named with .tfrecord or without, as the preset has it; and not their indices
_JPEG = ("original", "restart", "rebuilt500")
_STORES = {"restart": "restart markers", "rebuilt500": "max 500, JPEG 90 + restart", "raw500": "max 500, raw"}

RIVALS: tuple[Entry, ...] = (
    Entry("tf_data", "tuned", "tf.data, tuned", (*TRANSFORMS, "raw"), files="{kind}/*.tfrecord"),
    Entry("tf_data", "idiom", "tf.data, tuned, TensorFlow's crop draw", ("train",), files="{kind}/*.tfrecord"),
    Entry("tf_data", "files", "tf.data, tuned, loose files", (*TRANSFORMS, *FORMATS)),
    Entry("tf_data", "files-smaller", "tf.data, tuned, loose files, decoded smaller", LARGE),
    Entry("tf_data", "naive", "tf.data, as in tutorials", (*TRANSFORMS, "raw"), files="{kind}/*.tfrecord"),
    Entry("ffcv", "jpg", "FFCV, JPEG", TRANSFORMS, stores="JPEG 90 anew", files="jpg.beton"),
    Entry(
        "ffcv",
        "500_50_90",
        "FFCV, max 500, half raw",
        TRANSFORMS,
        stores="max 500, half raw, half JPEG 90",
        files="500_50_90.beton",
    ),
    Entry("ffcv", "500_raw", "FFCV, max 500, raw", TRANSFORMS, stores="max 500, raw", files="500_raw.beton"),
    Entry("ffcv", "raw64", "FFCV", ("raw",), files="raw64.beton"),
    Entry(
        "dali",
        "tfrecord",
        "DALI on the CPU, TFRecord",
        (*TRANSFORMS, "raw"),
        data_of="tf_data",
        files="{kind}/*.tfrecord",
    ),
    Entry("dali", "files", "DALI on the CPU, loose files", (*TRANSFORMS, *FORMATS), data_of="tf_data"),
    Entry("grain", "threads", "Grain + ArrayRecord, threads", (*TRANSFORMS, "raw"), files="{kind}-*.array_record"),
    Entry("grain", "processes", "Grain + ArrayRecord, processes", (*TRANSFORMS, "raw"), files="{kind}-*.array_record"),
    Entry("webdataset", "tar", "WebDataset", (*TRANSFORMS, "raw"), files="{kind}-*.tar"),
    Entry("mosaic", "mds", "Mosaic Streaming", (*TRANSFORMS, "raw"), files="{kind}/*.mds"),
    Entry("litdata", "chunks", "LitData", (*TRANSFORMS, "raw")),
    Entry("pytorch", "simplejpeg", "PyTorch + simplejpeg", (*TRANSFORMS, "multi-crop", *_JPEG_LINES)),
    Entry("pytorch", "simplejpeg-smaller", "PyTorch + simplejpeg, decoded smaller", LARGE),
    Entry("pytorch", "opencv", "PyTorch + OpenCV", (*TRANSFORMS, "multi-crop", *FORMATS)),
    Entry("pytorch", "opencv-smaller", "PyTorch + OpenCV, decoded smaller", LARGE),
    Entry("pytorch", "pillow", "PyTorch + Pillow", (*TRANSFORMS, "multi-crop", *_PHOTOS), exact=True),
    Entry("pytorch", "pillow-smaller", "PyTorch + Pillow, decoded smaller", LARGE),
    Entry("torchvision", "tensors", "PyTorch + torchvision", _PHOTOS),
    Entry("torchvision", "imagefolder", "ImageFolder, one process", ("thumbnails",), exact=True),
    Entry("torchvision", "imagefolder-workers", "ImageFolder, workers", ("thumbnails",), exact=True),
    Entry("pytorch", "memmap", "PyTorch, mapped array, one process", ("raw",)),
    Entry("pytorch", "memmap-workers", "PyTorch, mapped array, workers", ("raw",)),
    Entry("spdl", "threads", "SPDL + simplejpeg", TRANSFORMS),
    Entry("hf_datasets", "arrow", "Hugging Face datasets", TRANSFORMS),
    Entry("tf_data", "plain", "TensorFlow's writer, bytes only", ("keep",), "write"),
    Entry("tf_data", "inception", "TensorFlow's writer, decoding", BUILD_LINES, "write"),
    Entry("ffcv", "jpg", "FFCV's writer", BUILD_LINES, "write", stores="JPEG 90 anew"),
    Entry("grain", "array_record", "ArrayRecord's writer", BUILD_LINES, "write"),
    Entry("webdataset", "tar", "WebDataset's writer", BUILD_LINES, "write"),
    Entry("mosaic", "mds", "Mosaic's writer", BUILD_LINES, "write"),
    Entry("litdata", "chunks", "LitData's optimize", BUILD_LINES, "write"),
)


def own_entries(data: Path) -> tuple[Entry, ...]:
    """What this version of Stoker can do of what is measured; ``data`` is where its datasets were built."""
    entries = [
        Entry(OURS, "files", "Stoker, loose files", (*TRANSFORMS, "multi-crop", *FORMATS), exact=True),
        Entry(OURS, "files-fast", "Stoker, fast decode, loose files", _JPEG_LINES),
    ]
    for name in (name for name in BUILDS if name != "raw64" and (data / name / "manifest.json").exists()):
        stores = _STORES.get(name, "")
        title = "Stoker" + (f", {stores}" if stores else "")
        entries.append(Entry(OURS, name, title, TRANSFORMS, stores=stores, files=f"{name}/{_SHARDS}", exact=True))
        if name in _JPEG:
            entries += _fast_and_codec(name, stores)
    entries += [
        Entry(OURS, "raw64", "Stoker", ("raw",), files=f"raw64/{_SHARDS}", exact=True),
        Entry(OURS, "raw64-unchecked", "Stoker, without CRC", ("raw",), exact=True),
        Entry(OURS, "exact", "Stoker", BUILD_LINES, "write", exact=True),
        Entry(OURS, "scan", "Stoker", ("scan",), "scan"),
        Entry(OURS, "copy", "memory copy (the limit)", ("scan",), "scan"),
    ]
    if "--decode" in _build_help():
        entries.append(Entry(OURS, "fast", "Stoker, fast decode", ("small",), "write"))
    if ":standard" in _build_help():
        entries.append(Entry(OURS, "standard", "Stoker, fast decode, standard tables", ("small",), "write"))
    return tuple(entries)


def entries_before(own: Sequence[Entry]) -> list[Entry]:
    """The same of another version of Stoker, without what only limits or explains.

    It scans the same files, since how the page cache holds a file changes the speed of a scan.
    """
    left_out = ("copy", "standard", "unchecked")
    return [
        replace(
            entry,
            rival=BEFORE,
            title=entry.title.replace("Stoker", "Stoker before", 1),
            data_of=OURS if entry.program == "scan" else None,
        )
        for entry in own
        if "codec" not in entry.form and not entry.form.endswith(left_out)
    ]


def _fast_and_codec(name: str, stores: str) -> list[Entry]:
    of = f", {stores}" if stores else ""
    entries = [Entry(OURS, f"{name}-codec", f"codec alone (the limit){of}", TRANSFORMS, stores=stores, exact=True)]
    if "decode" in inspect.signature(stoker.Loader).parameters:
        entries.append(Entry(OURS, f"{name}-fast", f"Stoker, fast decode{of}", TRANSFORMS, stores=stores))
    if "decode" in str(getattr(_native.decode_loop, "__nb_signature__", "")):
        title = f"codec alone, fast decode (the limit){of}"
        entries.append(Entry(OURS, f"{name}-codec-fast", title, TRANSFORMS, stores=stores))
    return entries


def _build_help() -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main(["build", "--help"])
    return printed.getvalue()


def lines_named(names: str) -> list[str]:
    """Lines of a list with commas, groups spelled out.

    Raises:
        ValueError: There is no such line.
    """
    named = [line for name in names.split(",") for line in GROUPS.get(name, (name,))]
    if unknown := set(named) - set(LINES):
        raise ValueError(f"no line is called {', '.join(sorted(unknown))}; there are {', '.join([*LINES, *GROUPS])}")
    return [line for line in LINES if line in named]


def rivals_named(names: str) -> set[str]:
    """Folders of a list with commas.

    Raises:
        ValueError: There is no such rival.
    """
    named, known = set(names.split(",")), {OURS, *(entry.rival for entry in RIVALS)}
    if unknown := named - known:
        raise ValueError(f"no rival is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return named
