"""Sources that are opened without a build, beside the libraries that they were written with: CPU time of an image.

python benchmarks/unbuilt_sources.py PHOTOS [--only webdataset] [--images 300] [--rounds 7] [--seconds 4] [--workers 0]

The photographs are written by each library as it stores them. Stoker opens what it wrote; the library reads it as its
own documentation has it, and PyTorch's DataLoader makes batches. Both do the same work: shuffled epochs, decoding,
RandomResizedCrop(224) as Pillow resizes, mirror images, batches of 64 in uint8, CHW, by torchvision's v2 transforms on
the one side and by `stoker.torch.DataLoader` on the other. Tars are also read with the transforms of tensors, whose
crops are resized by PyTorch. It needs torchvision beside Stoker and the two libraries. Every turn is a process of its
own on one thread (of the library: in that process, or in --workers others), which is warmed up first; turns alternate.
Quoted are medians of the CPU time of the process and its workers, and of the ratios of pairs of turns with the lowest
and the highest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCH, SIDE = 64, 224


def write_parquet(photos: list[Path], folder: Path) -> None:
    """Write the photographs with ``datasets``, as ``Dataset.to_parquet`` does."""
    import datasets  # noqa: PLC0415 - only this contestant needs it

    classes = sorted({photo.parent.name for photo in photos})
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=classes)})
    images = [{"bytes": photo.read_bytes(), "path": photo.name} for photo in photos]
    rows = {"image": images, "label": [photo.parent.name for photo in photos]}
    table = datasets.Dataset.from_dict(rows, features=features)
    half = len(table) // 2
    for number, part in enumerate((range(half), range(half, len(table)))):
        table.select(part).to_parquet(folder / f"train-{number:05d}-of-00002.parquet")


def read_parquet(folder: Path, workers: int) -> Iterator[int]:
    """Read Parquet with ``datasets``: unpacked into its Arrow cache, decoded and transformed batch by batch."""
    import datasets  # noqa: PLC0415
    import torch  # noqa: PLC0415

    datasets.disable_progress_bars()
    files = sorted(map(str, folder.glob("*.parquet")))
    dataset = datasets.load_dataset("parquet", data_files={"train": files}, split="train", cache_dir=f"{folder}.hf")
    pixels = transform()

    def decoded(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {"image": [pixels(image) for image in rows["image"]], "label": rows["label"]}

    loader: Any = torch.utils.data.DataLoader(
        dataset.with_transform(decoded), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    while True:
        for batch in loader:
            assert batch["image"].shape[1:] == (3, SIDE, SIDE)
            yield len(batch["label"])


def write_webdataset(photos: list[Path], folder: Path) -> None:
    """Write the photographs with ``webdataset``, four tars of them."""
    import webdataset  # noqa: PLC0415 - only this contestant needs it

    classes = sorted({photo.parent.name for photo in photos})
    pattern = str(folder / "train-%06d.tar")
    with webdataset.ShardWriter(pattern, maxcount=-(-len(photos) // 4), verbose=0) as shards:
        for number, photo in enumerate(photos):
            label = classes.index(photo.parent.name)
            shards.write({"__key__": f"{number:06d}", "jpg": photo.read_bytes(), "cls": label})


def read_webdataset(folder: Path, workers: int) -> Iterator[int]:
    """Read tars with ``webdataset``, decoded by Pillow and transformed as Pillow's images."""
    return webdataset_batches(folder, workers, transform())


def read_webdataset_tensors(folder: Path, workers: int) -> Iterator[int]:
    """The same, transformed as tensors, whose crops are resized by PyTorch."""
    from torchvision.transforms import v2  # noqa: PLC0415

    steps = v2.RGB(), v2.PILToTensor(), v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(0.5)
    return webdataset_batches(folder, workers, v2.Compose(steps))


def webdataset_batches(folder: Path, workers: int, pixels: Callable[[Any], Any]) -> Iterator[int]:
    """Read endless shuffled samples, of which the workers make batches."""
    import torch  # noqa: PLC0415
    import webdataset  # noqa: PLC0415

    torch.set_num_threads(1)
    shards = sorted(map(str, folder.glob("*.tar")))
    stages: Any = webdataset.WebDataset(shards, shardshuffle=len(shards), workersplitter=webdataset.split_by_worker)
    stages = stages.shuffle(1000).decode("pil").to_tuple("jpg", "cls").map_tuple(pixels, int)
    loader: Any = webdataset.WebLoader(stages.batched(BATCH).repeat(), batch_size=None, num_workers=workers)
    for images, labels in loader:
        assert images.shape[1:] == (3, SIDE, SIDE)
        yield len(labels)


def transform() -> Callable[[Any], Any]:
    """Return what the libraries do with an image of Pillow."""
    import torch  # noqa: PLC0415
    from torchvision.transforms import v2  # noqa: PLC0415

    torch.set_num_threads(1)
    steps = v2.RGB(), v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(0.5), v2.PILToTensor()
    composed: Callable[[Any], Any] = v2.Compose(steps)
    return composed


def read_with_stoker(folder: Path, workers: int) -> Iterator[int]:  # noqa: ARG001 - one thread in this process
    """Read any of these sources with Stoker."""
    import stoker  # noqa: PLC0415

    transform = stoker.RandomResizedCrop(SIDE, hflip=0.5)
    loader = stoker.torch.DataLoader(
        stoker.open(folder, "train"),
        BATCH,
        shuffle=True,
        seed=17,
        transform=transform,
        output=stoker.Output(layout="NCHW"),
        threads=1,
    )
    while True:
        for images, labels in loader:
            assert tuple(images.shape[1:]) == (3, SIDE, SIDE)
            yield len(labels)


SOURCES: dict[str, tuple[str, Callable[[list[Path], Path], None], Callable[[Path, int], Iterator[int]]]] = {
    "parquet": ("datasets", write_parquet, read_parquet),
    "webdataset": ("webdataset", write_webdataset, read_webdataset),
    "webdataset-tensors": ("webdataset", write_webdataset, read_webdataset_tensors),
}
"""Of each kind of source the library, what writes it, and what reads it and yields the lengths of batches."""


def cpu_seconds() -> float:
    """Return the CPU time of this process and its workers: those that live, and those that have ended."""
    spent = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for child in Path("/proc/self/task").glob("*/children"):
        for pid in child.read_text().split():
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent) + ticks / os.sysconf("SC_CLK_TCK")


def turn(batches: Iterator[int], seconds: float) -> dict[str, float]:
    """Return the CPU and the wall milliseconds of an image."""
    warm = time.monotonic() + seconds / 4
    while time.monotonic() < warm:
        next(batches)
    images, cpu, begun = 0, cpu_seconds(), time.monotonic()
    while time.monotonic() < begun + seconds:
        images += next(batches)
    return {"cpu": 1e3 * (cpu_seconds() - cpu) / images, "wall": 1e3 * (time.monotonic() - begun) / images}


def measure(name: str, folder: Path, args: argparse.Namespace) -> None:
    """Print the row of one kind of source."""
    library = SOURCES[name][0]
    figures: dict[str, list[dict[str, float]]] = {"stoker": [], library: []}
    for number in range(args.rounds + 1):
        for contestant in sorted(figures, reverse=number % 2 == 0):
            command = [sys.executable, __file__, str(folder), "--turn", f"{name} {contestant}"]
            command += ["--seconds", str(args.seconds), "--workers", str(args.workers)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            if number:  # the first round fills the caches of both
                figures[contestant].append(json.loads(done.stdout.splitlines()[-1]))
    ours, theirs = ([figure["cpu"] for figure in figures[contestant]] for contestant in ("stoker", library))
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    print(
        f"| {name} | {library} | {statistics.median(ours):.2f} | {statistics.median(theirs):.2f} |"
        f" {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, metavar="PHOTOS", help="a folder of class folders of JPEGs")
    parser.add_argument("--only", choices=SOURCES)
    parser.add_argument("--images", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--workers", type=int, default=0, help="of PyTorch's DataLoader, for the library")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.turn:
        name, contestant = args.turn.split()
        read = read_with_stoker if contestant == "stoker" else SOURCES[name][2]
        print(json.dumps(turn(read(args.photos, args.workers), args.seconds)))
        return
    photos = list(islice(cycle(sorted(args.photos.glob("*/*.[jJ]*"))), args.images))
    print(
        "| source | library | Stoker, CPU ms an image | library | rate of Stoker / library |\n|---|---|---:|---:|---:|"
    )
    for name in [args.only] if args.only else SOURCES:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / name
            folder.mkdir()
            SOURCES[name][1](photos, folder)
            os.environ["STOKER_CACHE_DIR"] = f"{folder}.cache"
            measure(name, folder, args)


if __name__ == "__main__":
    main()
