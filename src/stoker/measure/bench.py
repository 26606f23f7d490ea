"""The benchmark: contenders take turns on the same work, several rounds; medians and spreads are reported.

What is timed: reading, decoding, cropping, resizing and batching of images, nothing else. Each contender runs in a
process of its own, is warmed up first, and is measured for the same time in every round, so that a machine whose speed
drifts does not favour one of them. Files come from the page cache after the warm-up, or, with ``cold``, from the disk:
they are dropped from the page cache before every measurement, which then is one pass over them at most.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.config import available_cpus, format_size
from stoker.feed.opening import open_main_split
from stoker.measure.choosing import Situation, sorted_out
from stoker.measure.figures import BenchReport, BenchRow, BenchSpec, LeftOut
from stoker.measure.machine import describe_machine
from stoker.measure.preparing import Wanted, prepare
from stoker.measure.rounds import Rounds
from stoker.measure.rungs import LIMIT, chosen_rungs
from stoker.measure.selection import files_read_by
from stoker.measure.task import Task
from stoker.measure.watching import Outlook, Unwatched
from stoker.storage import is_remote
from stoker.storage.page_cache import require_cold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stoker.feed import Dataset
    from stoker.measure.figures import Prepared
    from stoker.measure.process import Contender
    from stoker.measure.rungs import Rung
    from stoker.measure.watching import Watcher

_MOST_OF_MEMORY = 0.5


def run_bench(spec: BenchSpec, watcher: Watcher | None = None) -> BenchReport:
    """Measure every way to read the user's images that applies and is installed.

    A contender that fails is reported as left out, with its last words; the others are measured.

    Args:
        spec: What to measure.
        watcher: Is told how far it is.

    Raises:
        ConfigError: A setting is wrong; no image can be read; or cold figures cannot be had, not on this system or not
            where these files are.
        DatasetNotFoundError: There is no such dataset.
        DestinationError: The folder to keep what is prepared holds something else, or has no room.
        OSError: What is prepared cannot be written, or the store has gone.
    """
    rungs = chosen_rungs(spec.only, spec.against)
    # As it is, with its symbolic links.
    path = spec.dataset if is_remote(spec.dataset) else os.path.abspath(spec.dataset)  # noqa: PTH100
    dataset = open_main_split(path, spec.split)
    with _scratch(spec.keep) as data:
        return _Bench(replace(spec, dataset=path), dataset, data).run(rungs, watcher or Unwatched())


@contextmanager
def _scratch(keep: str | None) -> Iterator[Path]:
    if keep is not None:
        yield Path(keep).absolute()
        return
    with tempfile.TemporaryDirectory(prefix="stoker-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class _Bench:
    """One benchmark in its scratch folder."""

    def __init__(self, spec: BenchSpec, dataset: Dataset, data: Path) -> None:
        self._spec, self._dataset, self._data = spec, dataset, data
        self._threads = available_cpus() if spec.threads is None else spec.threads
        self._machine = describe_machine()

    def run(self, chosen: Sequence[Rung], watcher: Watcher) -> BenchReport:
        """Prepare what the chosen rungs need, measure those that apply, and report."""
        spec = self._spec
        fit, left = sorted_out(chosen, Situation.of(self._dataset, spec).objection)
        forms = frozenset(rung.needs for rung in fit)
        caches_file = any(rung.key == "cache-file" for rung in fit)
        wanted = Wanted(spec.dataset, spec.images, forms, self._threads, caches_file=caches_file)
        prepared = prepare(self._dataset, wanted, self._data, watcher.phase)
        fit, too_large = sorted_out(fit, lambda rung: self._lacks_memory(rung, prepared))
        split, data = self._dataset.split, str(self._data)
        task = Task(spec.dataset, split, spec.view, spec.batch_size, self._threads, spec.cold, data)
        if spec.cold:
            require_cold(sorted({path for rung in fit for path in files_read_by(rung, task)}))
        rounds = Rounds(fit, task, spec.seconds, spec.rounds)
        watcher.begin(Outlook(len(fit), rounds.forecast_seconds(prepared.images), prepared))
        contenders = rounds.play(watcher)
        return self._report(task, prepared, contenders, [*left, *too_large, *rounds.failed])

    def _lacks_memory(self, rung: Rung, prepared: Prepared) -> str:
        room = _MOST_OF_MEMORY * self._machine.memory_bytes
        if not rung.holds or not room or prepared.decoded_bytes <= room:
            return ""
        size = format_size(prepared.decoded_bytes)
        return f"the decoded images take {size}, more than half of this machine's memory; take fewer --images"

    def _report(
        self, task: Task, prepared: Prepared, contenders: Sequence[Contender], left: Sequence[LeftOut]
    ) -> BenchReport:
        limits = next((one.rates("seconds") for one in contenders if one.rung.key == LIMIT), ())
        cached = [result["still_cached"] for one in contenders for result in one.results]
        return BenchReport(
            task=task,
            images=len(self._dataset),
            seconds=self._spec.seconds,
            rounds=self._spec.rounds,
            machine=self._machine,
            rows=tuple(_row(contender, limits) for contender in contenders),
            left_out=tuple(left),
            prepared=prepared,
            still_cached=max(cached, default=0.0) if task.cold else None,
        )


def _row(contender: Contender, limits: Sequence[float]) -> BenchRow:
    rung, rates = contender.rung, contender.rates("seconds")
    shares = [rate / limit for rate, limit in zip(rates, limits, strict=True)] if limits else []
    of_limit = statistics.median(shares) if shares else None
    return BenchRow(rung.name, rung.group, rung.note, rates, contender.rates("cpu_seconds"), of_limit, rung.key)
