"""How much faster a build is with more threads, and with more workers of a Spark cluster.

python -m benchmarks.spark_speed SOURCE [--copies 10] [--rounds 5] [OPTIONS OF STOKER BUILD]

SOURCE is a tree that ``stoker build`` takes; its training images are linked so many times over. In each round it is
built by the local engine with one thread and with two, and by a real standalone cluster of two workers with one core
each, of which the application gets one and then both. A build is timed from listing to manifest; the start of an
application is not in it, and each application has built a little before. Ratios are those of one round, to the turn
with one thread; medians and spreads are over the rounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import stoker.spark
from benchmarks.rivals.serving import descendants, tree_seconds
from benchmarks.rivals.turns import busy_seconds
from stoker.build import BuildSettings, build
from stoker.cli.build_options import add_dataset_options, add_source_options, build_settings
from stoker.spark.session import spark_session
from tests.servers import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.build import BuildReport, BuildSettings

_WARM_IMAGES = 100


@dataclass(frozen=True)
class Way:
    """An engine, and how many threads or workers it has."""

    engine: str
    count: int

    @property
    def name(self) -> str:
        """What the table calls it."""
        things = "thread" if self.engine == "local" else "worker"
        return f"{self.engine}, {self.count} {things}{'s' if self.count > 1 else ''}"


WAYS = (Way("local", 1), Way("local", 2), Way("Spark", 1), Way("Spark", 2))


@dataclass(frozen=True)
class Turn:
    """One build: how many images in how many seconds, to which dataset; and how many cores others kept busy."""

    images: int
    seconds: float
    dataset_id: str
    others: float

    @property
    def rate(self) -> float:
        """Images a second."""
        return self.images / self.seconds


def copied(source: Path, top: Path, copies: int) -> Path:
    """A tree with every training image so many times, as links with different names; all else once."""
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        place = top / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        trains = path.suffix.lower() in {".jpeg", ".jpg"} and not {"val", "test"} & set(place.parts)
        for copy in range(copies if trains else 1):
            link = place.with_name(f"{place.stem}-{copy}{place.suffix}") if copy else place
            link.symlink_to(path.resolve())
    return top


def timed(run: Callable[[], BuildReport]) -> Turn:
    """Time a build."""
    others, began = _others_seconds(), time.perf_counter()
    report = run()
    seconds = time.perf_counter() - began
    return Turn(report.items, seconds, report.manifest.dataset_id, max(0.0, _others_seconds() - others) / seconds)


def _others_seconds() -> float:
    """CPU time of all processes but this one and those that it has started."""
    return busy_seconds() - tree_seconds({os.getpid()} | descendants(os.getpid()))


def turn(way: Way, settings: BuildSettings, cluster: spark_cluster.SparkCluster, folder: Path) -> Turn:
    """Build once."""
    if way.engine == "local":
        return timed(lambda: build(replace(settings, threads=way.count), folder / "out"))
    conf = {**cluster.settings(), "spark.cores.max": str(way.count)}
    with spark_session(conf.pop("spark.master"), conf) as session:
        warm = replace(settings, source=replace(settings.source, limit=_WARM_IMAGES))
        stoker.spark.build(session, warm, folder / "warm")
        return timed(lambda: stoker.spark.build(session, settings, folder / "out"))


def measured(settings: BuildSettings, rounds: int) -> dict[Way, list[Turn]]:
    """Turns of each way, one in each round."""
    turns: dict[Way, list[Turn]] = {way: [] for way in WAYS}
    with ExitStack() as ends:
        top = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="stoker-speed-")))
        cluster = ends.enter_context(spark_cluster.running(spark_cluster.Size(workers=2, cores=1, memory_mb=1500)))
        os.environ.update(cluster.environment())
        for _ in range(rounds):
            for way in WAYS:
                (top / "turn").mkdir()
                turns[way].append(turn(way, settings, cluster, top / "turn"))
                shutil.rmtree(top / "turn")
                print(f"{way.name}: {turns[way][-1]}; load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    made = {one.dataset_id for found in turns.values() for one in found}
    assert len(made) == 1, f"one tree, several datasets: {made}"
    return turns


def table(turns: dict[Way, list[Turn]]) -> list[str]:
    """Rows of Markdown."""
    rows = ["| engine | images/s | spread | of one thread | spread | others' cores |", "|---|---:|---:|---:|---:|---:|"]
    for way, found in turns.items():
        rates = [one.rate for one in found]
        ratios = [one.rate / first.rate for one, first in zip(found, turns[WAYS[0]], strict=True)]
        others = statistics.median(one.others for one in found)
        middle, ratio = statistics.median(rates), statistics.median(ratios)
        spreads = f"{min(rates):.0f} to {max(rates):.0f}", f"{min(ratios):.2f} to {max(ratios):.2f}"
        rows.append(f"| {way.name} | {middle:.0f} | {spreads[0]} | {ratio:.2f} | {spreads[1]} | {others:.1f} |")
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    args, options_of_build = parser.parse_known_args()
    of_build = argparse.ArgumentParser(prog="stoker build")
    add_source_options(of_build)
    add_dataset_options(of_build)
    with tempfile.TemporaryDirectory(prefix="stoker-tree-") as folder:
        tree = copied(args.source, Path(folder, args.source.name), args.copies)
        options = of_build.parse_args(options_of_build, argparse.Namespace(source=str(tree)))
        turns = measured(build_settings(options), args.rounds)
    images = turns[WAYS[0]][0].images
    print(
        f"{images} images of {args.source.name}, {args.rounds} rounds, options: {' '.join(options_of_build)}",
        end="\n\n",
    )
    print("\n".join(table(turns)))


if __name__ == "__main__":
    main()
