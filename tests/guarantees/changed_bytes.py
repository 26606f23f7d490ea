"""Change each byte of small datasets in turn, and see that it is found.

    python tests/guarantees/changed_bytes.py [EVERY]

For a dataset of each kind in `KINDS`, every byte of its text files and of compressed shards, and one of 16 of other
shards, is changed in three ways (of all these one of EVERY): `verify` must find each change, and reading must either
fail or give what it gave before. The latter is allowed for the files of `HARMLESS`, and for the bytes of a compressed
shard that hold no data.
"""

from __future__ import annotations

import random
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts import compat_dataset
from stoker.cli.main import main as stoker_command
from stoker.errors import StokerError
from stoker.inspect import verify_dataset
from stoker.loader import Loader, open_splits
from stoker.transforms import Resize

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = {
    "keep": ["--shards", "2"],
    "restart": ["--shards", "2", "--recipe", "restart", "--label-base", "1"],
    "resize": ["--shards", "1", "--resize", "short:16", "--encode", "jpeg:90"],
    "raw HWC": ["--shards", "1", "--preset", "dlbs", "--img-size", "8", "--encode", "raw:HWC"],
    "raw CHW": ["--shards", "1", "--preset", "dlbs", "--img-size", "8", "--encode", "raw:CHW"],
    "objects": ["--shards", "1", "--crop-objects"],
    "per class": ["--shards", "3", "--shard-names", "google"],
    "imagenet": ["--shards", "1", "--preset", "imagenet"],
    "nvidia": ["--shards", "1", "--preset", "imagenet-nvidia", "--resize", "exact:16x16"],
    "tiny-imagenet": ["--preset", "tiny-imagenet", "--resize", "exact:8x8"],
    "dogs-onehot": ["--preset", "dogs-onehot", "--resize", "exact:16x16", "--shard-names", "{split}-{shard}.tfrecord"],
    "tfds": ["--shards", "1", "--preset", "tfds"],
    "gzip": ["--shards", "1", "--compression", "gzip"],
    "zlib": ["--shards", "1", "--compression", "zlib"],
}
HARMLESS = ("rejects.jsonl", "dataset_info.json", "features.json", "label.labels.txt", "sizes.txt")
COMPRESSED = ("gzip", "zlib")
SHARD_EVERY = 16
FEWEST = 8  # bytes of each file


def build(kind: str, scratch: Path) -> Path:
    """A dataset of ten small images, with boxes and a reject."""
    source, built = scratch / "photos", scratch / kind.replace(" ", "-")
    if not source.exists():
        compat_dataset.photographs(source)
    assert stoker_command(["build", str(source), str(built), *KINDS[kind], "--max-rejects", "1", "--quiet"]) == 0
    return built


def contents(directory: Path) -> list[tuple[Any, ...]]:
    """What reading gives: every record by itself, and every batch of a loader."""
    parts: list[tuple[Any, ...]] = []
    for split, dataset in sorted(open_splits(directory).items()):
        parts.append((split, dataset.classes, dataset.identity, dataset.schema, compat_dataset.contents(dataset)))
        with Loader(dataset, 4, transform=Resize(8), threads=1) as loader:
            parts += [(batch.labels.tolist(), zlib.crc32(batch.images.tobytes())) for batch in loader]
    return parts


def changes(directory: Path, every: int, seed: int) -> Iterator[tuple[Path, bytes, int]]:
    """Yield a file, its content with a byte changed to another bit, digit or blank, and where."""
    rng = random.Random(seed)
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        content = path.read_bytes()
        is_text = path.suffix in (".json", ".txt", ".jsonl", ".idx")
        step = every if is_text or directory.name in COMPRESSED else every * SHARD_EVERY
        step = min(step, len(content) // FEWEST + 1)
        for at in range(rng.randrange(step), len(content), step):
            old = content[at]
            for new in {old ^ 1 << rng.randrange(8), ord("7" if old != ord("7") else "1"), ord(" ")} - {old}:
                yield path, content[:at] + bytes([new]) + content[at + 1 :], at


def missed(directory: Path, *, every: int, seed: int, counted: Counter[str]) -> list[str]:
    """The changes that are not found; ``counted`` counts all by the name of the file and by what came of them."""
    whole, wrong = contents(directory), []
    for path, changed, at in changes(directory, every, seed):
        name = str(path.relative_to(directory))
        before = path.read_bytes()
        path.write_bytes(changed)
        try:
            where = f"{directory.name}/{name}, byte {at}: {before[at]:#x} -> {changed[at]:#x}"
            if not found_by_verify(directory):
                wrong.append(f"{where}: verify finds nothing")
            try:
                read = contents(directory)
            except StokerError:
                counted[f"{name}: refused"] += 1
            else:
                counted[f"{name}: read as before"] += 1
                if read != whole:
                    wrong.append(f"{where}: reads something else")
                elif name not in HARMLESS and not (directory.name in COMPRESSED and path.suffix == ".tfrecord"):
                    wrong.append(f"{where}: reading finds nothing")
        finally:
            path.write_bytes(before)
    return wrong


def found_by_verify(directory: Path) -> bool:
    """Whether ``stoker verify`` finds a problem, or refuses the dataset."""
    try:
        return bool(verify_dataset(directory, threads=1).problems)
    except StokerError:
        return True


def main(every: str = "1") -> int:
    """Try all kinds."""
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for kind in KINDS:
            counted: Counter[str] = Counter()
            wrong = missed(build(kind, Path(scratch)), every=int(every), seed=1, counted=counted)
            failed += len(wrong)
            sys.stdout.write(f"{kind}: {counted.total()} changes, {len(wrong)} not found\n")
            sys.stdout.writelines(f"  {count:6} {what}\n" for what, count in sorted(counted.items()))
            sys.stdout.writelines(f"  {what}\n" for what in wrong[:20])
            sys.stdout.flush()
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
