"""Near duplicates planted among photographs: who finds them, and in how much CPU time.

python -m benchmarks.duplicates PHOTOS [--images 1000] [--rounds 3] [--build build/duplicates] [--json]

Of that many photographs, each is copied once in each of the ways of `CHANGES`. `stoker audit`, imagededup (PHash, at
its own distance of 10) and CleanVision look for duplicates among all of them, in turns, each in a program of its own.
Rivals have environments of their own, made on the first run (5 GB). Recall of a change: the share of its copies that
are in a pair, or in one group, with their photograph. Precision: the share of all pairs whose images come from the same
photograph; of a group of n images all n (n - 1) / 2 pairs count. Photographs that are duplicates before anything is
planted are so counted against everybody. CPU time is that of the whole program, imports included.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image, ImageEnhance, ImageOps

from benchmarks.rivals.install import fill

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
RIVALS = ("imagededup", "cleanvision")
ORIGINAL = "original"
Pairs = set[tuple[str, str]]
"""Names of two files each, sorted."""


def cropped(image: Image.Image, left: float, top: float) -> Image.Image:
    """Without 5% of width and height, of which these shares are lost on the left and at the top."""
    lost_x, lost_y = image.width * 0.05, image.height * 0.05
    x, y = round(lost_x * left), round(lost_y * top)
    return image.crop((x, y, x + round(image.width - lost_x), y + round(image.height - lost_y)))


def warmer(image: Image.Image) -> Image.Image:
    """More saturated, and with more red than blue."""
    red, green, blue = ImageEnhance.Color(image).enhance(1.3).split()
    return Image.merge("RGB", (red.point(lambda v: v * 1.08), green, blue.point(lambda v: v * 0.92)))


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "quality 60": lambda image: image,
    "resized to 0.6": lambda image: image.resize((round(image.width * 0.6), round(image.height * 0.6))),
    "mirrored": ImageOps.mirror,
    "colours shifted": warmer,
    "cropped by 5%, centre": lambda image: cropped(image, 0.5, 0.5),
    "cropped by 5%, corner": lambda image: cropped(image, 0, 0),
}


def main() -> int:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, metavar="PHOTOS", help="folder with JPEGs, at any depth")
    parser.add_argument("--images", type=int, default=1000, metavar="N", help="photographs to copy (default 1000)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", type=Path, default=Path("build", "duplicates"))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    build = args.build.resolve()
    planted = build / "planted"
    plant(args.photos, planted, args.images)
    pythons = {"stoker": sys.executable, **{name: install(build, name) for name in RIVALS}}
    seconds: dict[str, list[float]] = {name: [] for name in pythons}
    results: dict[str, Pairs] = {}
    for _ in range(args.rounds):
        for name, python in pythons.items():
            results[name], cpu_seconds = find(name, python, planted)
            seconds[name].append(cpu_seconds)
    count = sum(1 for _ in planted.iterdir())
    rows = {name: {**scores(results[name], planted), **speed(seconds[name], count)} for name in pythons}
    print(json.dumps(rows, indent=1) if args.json else table(rows, count))
    return 0


def plant(photos: Path, planted: Path, images: int) -> None:
    """Write photographs and their copies into one folder, as NUMBER-CHANGE.jpg; nothing if it is there."""
    if planted.exists():
        return
    paths = sorted(path for path in photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    paths = paths[:: max(1, len(paths) // images)][:images]
    scratch = planted.with_name("planting")
    scratch.mkdir(parents=True, exist_ok=True)
    for number, path in enumerate(paths):
        (scratch / f"{number}-{ORIGINAL}.jpg").write_bytes(path.read_bytes())
        with Image.open(path) as file:
            image = file.convert("RGB")
        for name, change in CHANGES.items():
            quality = 60 if name == "quality 60" else 90
            change(image).save(scratch / f"{number}-{name}.jpg", quality=quality)
    scratch.rename(planted)


def install(build: Path, name: str) -> str:
    """Return the interpreter of a rival's environment, made if it is not there."""
    wanted = (HERE / f"{name}.txt").read_text(encoding="utf-8")
    python, stamp = build / name / "venv" / "bin" / "python", build / name / "installed.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        fill(python, stamp, wanted)
    return str(python)


def find(name: str, python: str, planted: Path) -> tuple[Pairs, float]:
    """Return the pairs that a program finds, and its CPU seconds."""
    own = ["-m", "stoker.cli.main", "audit", str(planted), "--json", "--quiet"]
    command = [python, *(own if name == "stoker" else [str(HERE / f"find_{name}.py"), str(planted)])]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=variables)
    if done.returncode != 0:
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if name == "stoker":
        duplicates = json.loads(done.stdout)["duplicates"]
        groups = [[Path(image["path"]).name for image in group["images"]] for group in duplicates]
    else:
        groups = json.loads(done.stdout.splitlines()[-1])
    pairs = {pair for group in groups for pair in itertools.combinations(sorted(group), 2)}
    return pairs, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def scores(pairs: Pairs, planted: Path) -> dict[str, float]:
    """Recall of each change, and precision."""
    photographs = [path.name.partition("-")[0] for path in planted.glob(f"*-{ORIGINAL}.jpg")]
    recalls = {}
    for change in CHANGES:
        copies = [sorted((f"{number}-{ORIGINAL}.jpg", f"{number}-{change}.jpg")) for number in photographs]
        recalls[change] = sum(tuple(pair) in pairs for pair in copies) / len(photographs)
    right = sum(first.partition("-")[0] == second.partition("-")[0] for first, second in pairs)
    return {**recalls, "precision": right / len(pairs) if pairs else 0.0}


def speed(seconds: list[float], images: int) -> dict[str, float]:
    """Images per CPU second: the median of the rounds, the slowest and the fastest."""
    rates = [images / second for second in seconds]
    return {"images/CPU s": statistics.median(rates), "slowest": min(rates), "fastest": max(rates)}


def table(rows: dict[str, dict[str, float]], images: int) -> str:
    """A line for each score."""
    lines = [f"{images} images", f"{'':24}" + "".join(f"{name:>14}" for name in rows)]
    for score in next(iter(rows.values())):
        digits = 3 if score in CHANGES or score == "precision" else 1
        lines.append(f"{score:24}" + "".join(f"{row[score]:>14.{digits}f}" for row in rows.values()))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
