"""Images per second from JPEG to batch: Stoker, the codec's limit, and rivals, on a folder of photographs.

python benchmarks/reading.py PHOTOS [--seconds 5] [--rounds 5] [--out results.json]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

from stoker.measure import BenchReport, BenchSpec, run_bench
from stoker.measure.task import ViewName


def build(photos: Path, dataset: Path) -> None:
    """Store the original bytes in eight shards."""
    command = [sys.executable, "-m", "stoker.cli.main", "build", str(photos), str(dataset), "--shards", "8"]
    subprocess.run(command, check=True)


def show(report: BenchReport) -> None:
    """Print one table."""
    print(f"\n{report.task.view} view, {report.images} images, {report.task.threads} threads, {report.rounds} rounds")
    loader = next(row for row in report.rows if row.name.startswith("stoker"))
    print(f"{'reader':30} {'images/s':>9} {'per CPU s':>9} {'of limit':>9} {'stoker is':>10}")
    for row in report.rows:
        per_cpu = sorted(row.images_per_cpu_second)[len(row.images_per_cpu_second) // 2]
        ratios = sorted(a / b for a, b in zip(loader.images_per_second, row.images_per_second, strict=True))
        ratio = ratios[len(ratios) // 2]
        print(f"{row.name:30} {row.median:9.0f} {per_cpu:9.0f} {row.of_limit:9.2f} {ratio:9.2f}x")


def main() -> None:
    """Build, measure both views, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    reports = []
    with tempfile.TemporaryDirectory() as scratch:
        dataset = Path(scratch, "dataset")
        build(args.photos, dataset)
        for view in get_args(ViewName):
            spec = BenchSpec(str(dataset), view=view, seconds=args.seconds, rounds=args.rounds)
            reports.append(run_bench(spec))
            show(reports[-1])
    if args.out:
        args.out.write_text(json.dumps([dataclasses.asdict(report) for report in reports], indent=1) + "\n")


if __name__ == "__main__":
    main()
