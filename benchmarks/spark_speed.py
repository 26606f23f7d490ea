"""How much faster a build is with more threads, and with more workers of a Spark cluster.

python -m benchmarks.spark_speed SOURCE [--copies 10] [--rounds 5] [OPTIONS OF STOKER BUILD]

SOURCE is a tree that ``stoker build`` takes; its training images are linked so many times over. In each round it is
built by the local engine with one thread and with two, and by a real standalone cluster of two workers with one core
each, of which the application gets one and then both. A build is timed from listing to manifest; the start of an
application is not in it, and each application has built a little before.

Printed are medians over the rounds, with the lowest and the highest: of images a second; of the ratio to the turn with
one thread or worker less in the same round; of images for each second of CPU time, in which a busy machine shows least;
and of the cores that everything else on the machine kept busy.
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
from stoker.builder import BuildSettings, LocalEngine, build_source, open_source
from stoker.cli.options import add_dataset, add_declared, build_settings
from stoker.spark import started_session
from tests.servers import spark_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.builder import BuildReport, BuildSettings, EngineFactory

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
    """One build.

    Attributes:
        images: How many.
        seconds: From listing to manifest.
        cpu_seconds: Of this process, of the driver, and of the whole cluster.
        others: Cores that the rest of the machine kept busy meanwhile.
        dataset_id: What was made.
    """

    images: int
    seconds: float
    cpu_seconds: float
    others: float
    dataset_id: str

    @property
    def rate(self) -> float:
        """Images a second."""
        return self.images / self.seconds


def copied(source: Path, top: Path, copies: int) -> Path:
    """A tree with every training image so many times, as links with different names; all else once."""
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        copy_path = top / path.relative_to(source)
        copy_path.parent.mkdir(parents=True, exist_ok=True)
        trains = path.suffix.lower() in {".jpeg", ".jpg"} and not {"val", "test"} & set(copy_path.parts)
        for copy in range(copies if trains else 1):
            link = copy_path.with_name(f"{copy_path.stem}-{copy}{copy_path.suffix}") if copy else copy_path
            link.symlink_to(path.resolve())
    return top


def timed(run: Callable[[], BuildReport]) -> Turn:
    """Time a build."""
    busy, own, began = busy_seconds(), _own_seconds(), time.perf_counter()
    report = run()
    busy, own, seconds = busy_seconds() - busy, _own_seconds() - own, time.perf_counter() - began
    return Turn(report.items, seconds, own, max(0.0, busy - own) / seconds, report.manifest.dataset_id)


def _own_seconds() -> float:
    """CPU time of this process and of those that it has started."""
    return tree_seconds({os.getpid()} | descendants(os.getpid()))


def build(settings: BuildSettings, destination: Path, engine: EngineFactory) -> BuildReport:
    """List the source and build it."""
    return build_source(open_source(settings), settings, destination, engine=engine)


def turn(way: Way, settings: BuildSettings, cluster: spark_cluster.SparkCluster, folder: Path) -> Turn:
    """Build once."""
    if way.engine == "local":
        return timed(lambda: build(replace(settings, threads=way.count), folder / "out", LocalEngine))
    conf = {**cluster.settings(), "spark.cores.max": str(way.count)}
    with started_session(conf.pop("spark.master"), conf) as session:
        warm = replace(settings, options=replace(settings.options, num_images=_WARM_IMAGES))
        build(warm, folder / "warm", stoker.spark.engine(session))
        return timed(lambda: build(settings, folder / "out", stoker.spark.engine(session)))


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
    dataset_ids = {each.dataset_id for own in turns.values() for each in own}
    assert len(dataset_ids) == 1, f"one tree, several datasets: {dataset_ids}"
    return turns


def table(turns: dict[Way, list[Turn]]) -> list[str]:
    """Rows of Markdown."""
    heads = ("engine", "images/s", "to one less", "images per CPU second", "others' cores")
    rows = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for way, own in turns.items():
        one_less = turns.get(Way(way.engine, way.count - 1), [])
        cells = (
            _summary([turn.rate for turn in own], 0),
            _summary([turn.rate / fewer.rate for turn, fewer in zip(own, one_less, strict=False)], 2),
            _summary([turn.images / turn.cpu_seconds for turn in own], 0),
            _summary([turn.others for turn in own], 1),
        )
        rows.append(f"| {way.name} | {' | '.join(cells)} |")
    return rows


def _summary(values: list[float], digits: int) -> str:
    """Median, lowest and highest."""
    if not values:
        return ""
    middle, low, high = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    args, options_of_build = parser.parse_known_args()
    of_build = argparse.ArgumentParser(prog="stoker build")
    add_declared(of_build, "which images", "source", "selection")
    add_dataset(of_build)
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
