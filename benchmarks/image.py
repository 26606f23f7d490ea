"""`stoker.image.decode` beside the decoders of other libraries, each with its exact settings.

python -m benchmarks.image PHOTOS [--only KINDS] [--libraries NAMES] [--forms memory,0,2] [--json FILE]

Two forms, as imread-benchmark has them: files in memory, decoded to RGB arrays by one thread; and files on disk,
decoded in a PyTorch `DataLoader` with so many workers (0: in the process itself). What is compared is CPU time, that of
workers too.
Libraries take turns, who is first changes, and each ratio is one of neighbours in time: medians over the rounds, with
the interval that holds the true one with 95 %. Libraries that are not installed are left out: torch, torchvision,
opencv-python-headless, simplejpeg, imagecodecs, and PyTurboJPEG (TURBOJPEG=FILE says where libturbojpeg is).

Kinds of files, all made of the photographs: ``baseline`` (the photographs as they are), ``progressive``, ``grey``, and
``camera`` and ``camera-progressive`` of 12 megapixels.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from benchmarks.quick import ratio_of
from benchmarks.rivals.formats import large
from benchmarks.rivals.formats import progressive as made_progressive
from benchmarks.rivals.serving import descendants, tree_seconds
from stoker import image
from stoker.inspect.bench import describe_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.quick import Ratio
    from benchmarks.rivals.formats import UnsavedImage

KINDS = ("baseline", "progressive", "grey", "camera", "camera-progressive")
_ENLARGED = 3  # photographs in a row of a picture of a camera
_LARGE_SHARE = 25  # of so many photographs one picture of a camera
_BATCH = 8


@dataclass(frozen=True, slots=True)
class Library:
    """A decoder of JPEGs.

    Attributes:
        name: Of the library.
        settings: What of its settings matters.
        decode: From the bytes of a file to uint8 pixels, (H, W, 3) or (3, H, W).
    """

    name: str
    settings: str
    decode: Callable[[bytes], Any]


def _stoker() -> Library:
    return Library("stoker", "decode='exact'", image.decode)


def _pillow() -> Library:
    return Library("Pillow", "convert('RGB')", lambda data: np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))


def _opencv() -> Library:
    import cv2  # noqa: PLC0415

    cv2.setNumThreads(0)
    flag = cv2.IMREAD_COLOR_RGB
    return Library("OpenCV", "IMREAD_COLOR_RGB", lambda data: cv2.imdecode(np.frombuffer(data, np.uint8), flag))


def _torchvision() -> Library:
    import torch  # noqa: PLC0415
    from torchvision.io import ImageReadMode, decode_jpeg  # noqa: PLC0415

    torch.set_num_threads(1)

    def decode(data: bytes) -> Any:
        return decode_jpeg(torch.frombuffer(data, dtype=torch.uint8), ImageReadMode.RGB)

    return Library("torchvision", "decode_jpeg, CPU", decode)


def _simplejpeg() -> Library:
    import simplejpeg  # noqa: PLC0415

    settings = "fastdct=False, fastupsample=False"
    return Library("simplejpeg", settings, lambda data: simplejpeg.decode_jpeg(data, "RGB"))


def _turbojpeg() -> Library:
    import turbojpeg  # noqa: PLC0415

    codec = turbojpeg.TurboJPEG(os.environ.get("TURBOJPEG"))
    return Library("PyTurboJPEG", "no flags", lambda data: codec.decode(data, pixel_format=turbojpeg.TJPF_RGB))


def _imagecodecs() -> Library:
    import imagecodecs  # noqa: PLC0415

    return Library("imagecodecs", "jpeg8_decode", lambda data: imagecodecs.jpeg8_decode(data, outcolorspace="RGB"))


MAKERS: dict[str, Callable[[], Library]] = {
    "stoker": _stoker,
    "simplejpeg": _simplejpeg,
    "PyTurboJPEG": _turbojpeg,
    "imagecodecs": _imagecodecs,
    "torchvision": _torchvision,
    "OpenCV": _opencv,
    "Pillow": _pillow,
}


def libraries(names: Sequence[str]) -> tuple[list[Library], dict[str, str]]:
    """Return those that can be used, Stoker first, and why others cannot."""
    usable, missing = [_stoker()], {}
    for name in names:
        if name == "stoker":
            continue
        try:
            usable.append(MAKERS[name]())
        except (ImportError, OSError, RuntimeError) as error:
            missing[name] = str(error).split("\n", 1)[0]
    return usable, missing


def files(kind: str, photos: Sequence[Path]) -> Iterator[bytes]:
    """Yield files of a kind."""
    if kind.startswith("camera"):
        for number in range(max(1, len(photos) // _LARGE_SHARE)):
            yield _saved(large(photos, number, _ENLARGED, progressive=kind.endswith("progressive")))
        return
    for photo in photos:
        if kind == "baseline":
            yield photo.read_bytes()
        elif kind == "progressive":
            yield _saved(made_progressive(photo))
        else:
            opened = Image.open(photo)
            buffer = io.BytesIO()
            opened.convert("L").save(buffer, "JPEG", qtables=[opened.quantization[0]])  # type: ignore[attr-defined]
            yield buffer.getvalue()


def _saved(unsaved: UnsavedImage) -> bytes:
    file = io.BytesIO()
    unsaved.image.save(file, "JPEG", **unsaved.settings)
    return file.getvalue()


def largest_difference(library: Library, data: Sequence[bytes]) -> int:
    """Return by how much a library's pixels differ from Pillow's."""
    exact = _pillow()
    most = 0
    for file in data:
        expected, pixels = exact.decode(file), np.asarray(library.decode(file))
        if pixels.shape != expected.shape:
            pixels = pixels.transpose(1, 2, 0)
        most = max(most, int(np.abs(expected.astype(np.int16) - pixels).max()))
    return most


def in_turns(
    works: Sequence[Callable[[], int]], clock: Callable[[], float], rounds: int, seconds: float
) -> list[list[float]]:
    """Return, of each work, what the clock says of an image in each round; each says how many it has decoded."""
    for work in works:
        work()
    per_image: list[list[float]] = [[] for _ in works]
    for number in range(rounds):
        for turn in range(len(works)):
            which = (turn + number) % len(works)
            count, taken, began, end = 0, 0.0, clock(), time.monotonic() + seconds
            while taken <= 0 or time.monotonic() < end:  # the clock may go in steps of 10 ms
                count += works[which]()
                taken = clock() - began
            per_image[which].append(taken / count)
    return per_image


def from_memory(library: Library, data: Sequence[bytes]) -> Callable[[], int]:
    """Decode all files once."""

    def work() -> int:
        for file in data:
            library.decode(file)
        return len(data)

    return work


def in_loader(library: Library, paths: Sequence[Path], workers: int) -> Callable[[], int]:
    """Read and decode all files once, in a DataLoader; images differ in size, so that batches are lists."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)

    class Files(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(paths)

        def __getitem__(self, number: int) -> Any:
            return torch.as_tensor(library.decode(paths[number].read_bytes()))

    loader: Any = torch.utils.data.DataLoader(
        Files(), batch_size=_BATCH, num_workers=workers, collate_fn=list, persistent_workers=workers > 0
    )
    return lambda: sum(map(len, loader))


def of_all_processes() -> float:
    """CPU time of this process and its workers."""
    return tree_seconds({os.getpid()} | descendants(os.getpid()))


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one library on one kind of files.

    Attributes:
        kind: Of the files.
        form: ``memory``, or with how many workers.
        library: Its name.
        milliseconds: CPU time of an image, the median.
        ratio: That time over Stoker's in the same round.
        difference: The largest difference to Pillow's pixels.
    """

    kind: str
    form: str
    library: str
    milliseconds: float
    ratio: Ratio
    difference: int


def rows_of(kind: str, data: Sequence[bytes], usable: Sequence[Library], args: argparse.Namespace) -> Iterator[Row]:
    """Measure a kind of files in all forms."""
    differences = [largest_difference(library, data) for library in usable]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{number}.jpg") for number in range(len(data))]
        for path, file in zip(paths, data, strict=True):
            path.write_bytes(file)
        for form in args.forms.split(","):
            if form == "memory":
                works, clock = [from_memory(library, data) for library in usable], time.process_time
            else:
                works = [in_loader(library, paths, int(form)) for library in usable]
                clock = of_all_processes if int(form) else time.process_time
            times = in_turns(works, clock, args.rounds, args.seconds)
            for library, own, difference in zip(usable, times, differences, strict=True):
                ratio = ratio_of(list(zip(own, times[0], strict=True)))
                named = form if form == "memory" else f"DataLoader, {form} workers"
                yield Row(kind, named, library.name, 1000 * statistics.median(own), ratio, difference)


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print; write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="folder of JPEGs")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of files, with commas (default: all)")
    parser.add_argument("--libraries", default=",".join(MAKERS), help="with commas (default: all that are installed)")
    parser.add_argument("--forms", default="memory,0,2", help="memory, and numbers of workers (default: %(default)s)")
    parser.add_argument("--images", type=int, default=100, help="photographs (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn, at least (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args(words)
    for name, given, known in (("kind", args.only, KINDS), ("library", args.libraries, tuple(MAKERS))):
        if unknown := set(given.split(",")) - set(known):
            parser.error(f"there is no {name} {min(unknown)!r}; there are {', '.join(known)}")
    photos = sorted(path for path in args.photos.rglob("*") if is_jpeg(path))
    if not photos:
        parser.error(f"{args.photos} has no JPEGs")
    photos = photos[:: max(1, len(photos) // args.images)][: args.images]
    warnings.filterwarnings("ignore", "The given (buffer|NumPy array) is not writable")  # nothing writes to it
    usable, missing = libraries(args.libraries.split(","))
    machine = describe_machine()
    print(f"{machine.processor}, {machine.cpus} CPUs, {machine.kernels}, Python {machine.python}; {len(photos)} photos")
    print("".join(f"{library.name}: {library.settings}\n" for library in usable), end="")
    print("".join(f"{name} is left out: {why}\n" for name, why in missing.items()))
    print("| files | form | library | CPU ms an image | over Stoker's | 95 % | largest difference to Pillow |")
    print("|---|---|---|---:|---:|---|---:|", flush=True)
    rows = []
    for kind in args.only.split(","):
        for row in rows_of(kind, list(files(kind, photos)), usable, args):
            rows.append(row)
            ratio = f"{row.ratio.median:.2f} | {row.ratio.low:.2f} to {row.ratio.high:.2f}"
            start = f"| {row.kind} | {row.form} | {row.library} | {row.milliseconds:.3f}"
            print(f"{start} | {ratio} | {row.difference} |", flush=True)
    if args.json:
        settings = {library.name: library.settings for library in usable}
        report = {"machine": asdict(machine), "settings": settings, "missing": missing, "rows": list(map(asdict, rows))}
        args.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def is_jpeg(path: Path) -> bool:
    """Whether a file begins as a JPEG, whatever its name."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(3) == b"\xff\xd8\xff"


if __name__ == "__main__":
    sys.exit(main())
