"""What a check of the resume law has tried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResumeChange:
    """One change of topology, and at how many places of an epoch it was tried.

    Attributes:
        before: Ranks and batch size up to the stop, such as ``1 x 7``; of the row of all changes, in their turn.
        after: Ranks and batch size from there on.
        tail: What happened to samples that filled no last batch.
        stops: How often a run was stopped and resumed.
        steps: Steps that all ranks made together after a stop.
        samples: Samples that were compared after a stop, on all ranks together.
    """

    before: str
    after: str
    tail: str
    stops: int
    steps: int
    samples: int


@dataclass(frozen=True, slots=True)
class ResumeReport:
    """A resume law that held. ``str(report)`` is a table.

    Attributes:
        dataset: What was read.
        samples: Samples that were read of the epoch: all, or its last ones.
        epoch_samples: Samples of an epoch.
        epoch: Number of the epoch.
        seed: Of the order and the pixels.
        state_bytes: Length of the longest state that was seen, as JSON.
        changes: What was tried.
    """

    dataset: str
    samples: int
    epoch_samples: int
    epoch: int
    seed: int
    state_bytes: int
    changes: tuple[ResumeChange, ...]

    def __str__(self) -> str:
        part = "all" if self.samples == self.epoch_samples else f"the last {self.samples:,} of"
        samples = f"{part} {self.epoch_samples:,} samples of epoch {self.epoch}, seed {self.seed}"
        lines = [
            f"the resume law holds: {self.dataset}, {samples}; states of at most {self.state_bytes} bytes",
            f"{'before':>12}    {'after':<12}{'tail':<7}{'stops':>7}{'steps':>9}{'samples':>11}",
        ]
        lines += [
            f"{row.before:>12} -> {row.after:<12}{row.tail:<7}{row.stops:>7,}{row.steps:>9,}{row.samples:>11,}"
            for row in self.changes
        ]
        return "\n".join(lines)
