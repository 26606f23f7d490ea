"""What a loader has done so far, and where the time went.

The core counts: each thread has counters of its own, without locks. Where samples take only microseconds, as raw pixels
do, one of 16 is timed and stands for all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


STAGES = ("read", "remote", "check", "parse", "convert", "decode", "resample", "write")
"""What a decoding thread does with a sample, in this order; `LoaderStats.stages` explains each stage."""
_NANO = 1e-9


@dataclass(frozen=True, slots=True)
class StageStats:
    """What decoding threads did in one stage.

    Attributes:
        count: Samples that went through it.
        seconds: Wall-clock time that all threads together spent in it, including waits for a disk or for a CPU.
    """

    count: int
    seconds: float

    def __sub__(self, earlier: StageStats) -> StageStats:
        """Return what was done since ``earlier``."""
        return StageStats(self.count - earlier.count, self.seconds - earlier.seconds)


@dataclass(frozen=True, slots=True)
class LoaderStats:
    """Figures of one loader since it was made; ``later - earlier`` is what was done in between.

    Attributes:
        seconds: Wall-clock time.
        batches: Batches that were handed out.
        samples: Samples in those batches.
        wait_seconds: Time that the consumer was blocked, waiting for a batch.
        gil_seconds: The part of ``wait_seconds`` in which the batch was ready, and the consumer waited for the GIL.
        consumer_seconds: Time between taking a batch and asking for the next of the same epoch.
        ready_batches: Finished batches that were ready when the consumer asked, summed over its requests.
        threads: Number of decoding threads.
        busy_seconds: Time that decoding threads had work, all together.
        idle_seconds: Time that they had none, since all that may be decoded ahead was decoded.
        cpu_seconds: CPU time of the decoding threads; None if the system does not tell.
        bytes_read: Bytes of records or files that were read from a disk, a cache on it, or a store.
        stages: ``read``: bytes from files or a cache; ``remote``: waiting for a store; ``check``: checksums;
            ``parse``: finding image, label and boxes; ``convert``: Pillow decodes a format that the core does not;
            ``decode``: an image file to pixels; ``resample``: to the transforms' sizes and colours; ``write``: into the
            batch, if ``output`` changes the values of the transform, or if raw pixels are copied and checked in one
            pass.
    """

    seconds: float
    batches: int
    samples: int
    wait_seconds: float
    gil_seconds: float
    consumer_seconds: float
    ready_batches: int
    threads: int
    busy_seconds: float
    idle_seconds: float
    cpu_seconds: float | None
    bytes_read: int
    stages: Mapping[str, StageStats]

    def __sub__(self, earlier: LoaderStats) -> LoaderStats:
        """Return what was done since ``earlier``."""
        values: dict[str, Any] = {}
        for field in fields(self):
            new, old = getattr(self, field.name), getattr(earlier, field.name)
            values[field.name] = None if new is None or old is None else new - old if field.name in _SUMS else new
        values["stages"] = {name: stage - earlier.stages[name] for name, stage in self.stages.items()}
        return LoaderStats(**values)

    def scalars(self) -> dict[str, float]:
        """Return rates, and shares of time, for a training log, by name.

        Any writer takes them: ``for name, value in scalars.items(): writer.add_scalar(name, value, step)``.
        """
        seconds, threads = max(self.seconds, _NANO), max(self.busy_seconds + self.idle_seconds, _NANO)
        figures = {
            "input/images_per_second": self.samples / seconds,
            "input/bytes_per_second": self.bytes_read / seconds,
            "input/wait_share": self.wait_seconds / max(self.wait_seconds + self.consumer_seconds, _NANO),
            "input/gil_share": self.gil_seconds / max(self.wait_seconds + self.consumer_seconds, _NANO),
            "input/ready_batches": self.ready_batches / max(self.batches, 1),
            "input/threads_busy_share": self.busy_seconds / threads,
        }
        for name, stage in self.stages.items():
            figures[f"input/{name}_share"] = stage.seconds / threads
        return figures

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """Return the counters in Prometheus's text format, for the metrics endpoint of the process.

        Args:
            labels: Labels of every line, for example ``{"split": "train", "rank": "0"}``.
        """
        given = dict(labels or {})
        lines: list[str] = []
        for name, kind, text, value in self._metrics():
            lines += [f"# HELP stoker_{name} {text}", f"# TYPE stoker_{name} {kind}"]
            values = value if isinstance(value, dict) else {None: value}
            for stage, number in values.items():
                lines.append(f"stoker_{name}{_labels(given if stage is None else given | {'stage': stage})} {number!r}")
        return "\n".join(lines) + "\n"

    def _metrics(self) -> list[tuple[str, str, str, float | dict[str, float]]]:
        metrics: list[tuple[str, str, str, float | dict[str, float]]] = [
            ("batches_total", "counter", "Batches handed out.", self.batches),
            ("samples_total", "counter", "Samples handed out.", self.samples),
            ("read_bytes_total", "counter", "Bytes of records or files read.", self.bytes_read),
            ("wait_seconds_total", "counter", "The consumer was blocked, waiting for a batch.", self.wait_seconds),
            ("gil_seconds_total", "counter", "The part of wait_seconds_total spent on the GIL.", self.gil_seconds),
            ("consumer_seconds_total", "counter", "The consumer was busy with a batch.", self.consumer_seconds),
            ("ready_batches_total", "counter", "Finished batches found at each request.", self.ready_batches),
            ("busy_seconds_total", "counter", "Decoding threads had work.", self.busy_seconds),
            ("idle_seconds_total", "counter", "Decoding threads had no work.", self.idle_seconds),
            ("threads", "gauge", "Decoding threads.", self.threads),
        ]
        if self.cpu_seconds is not None:
            metrics.append(("cpu_seconds_total", "counter", "CPU time of decoding threads.", self.cpu_seconds))
        seconds: dict[str, float] = {name: stage.seconds for name, stage in self.stages.items()}
        counts: dict[str, float] = {name: stage.count for name, stage in self.stages.items()}
        metrics.append(("stage_seconds_total", "counter", "Time of decoding threads in each stage.", seconds))
        metrics.append(("stage_samples_total", "counter", "Samples that went through each stage.", counts))
        return metrics


_SUMS = {field.name for field in fields(LoaderStats)} - {"threads", "stages"}


def stats_of(totals: Mapping[str, Any], seconds: float) -> LoaderStats:
    """Return what the core has counted, `_native.BatchEngine.totals`, ``seconds`` after it began."""
    cpu = totals["cpu_ns"]
    return LoaderStats(
        seconds=seconds,
        batches=totals["batches"],
        samples=totals["samples"],
        wait_seconds=totals["wait_ns"] * _NANO,
        gil_seconds=totals["handover_ns"] * _NANO,
        consumer_seconds=totals["consume_ns"] * _NANO,
        ready_batches=totals["ready"],
        threads=totals["threads"],
        busy_seconds=totals["busy_ns"] * _NANO,
        idle_seconds=totals["idle_ns"] * _NANO,
        cpu_seconds=None if cpu is None else cpu * _NANO,
        bytes_read=totals["bytes_read"],
        stages={name: StageStats(count, spent * _NANO) for name, (count, spent) in totals["stages"].items()},
    )


def _labels(labels: Mapping[str, str]) -> str:
    """Return labels as the text format spells them: backslash, quote and newline are escaped."""
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    inside = ",".join(f'{name}="{value.translate(escaped)}"' for name, value in labels.items())
    return f"{{{inside}}}" if inside else ""
