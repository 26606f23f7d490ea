"""One line: everyone on it is started and warmed up, then they take turns, round after round."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.rivals.calibration import Calibration
from benchmarks.rivals.catalogue import BUILD_LINES
from benchmarks.rivals.turns import Contestant, TurnError, timed_turn
from benchmarks.rivals.work import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.rivals.catalogue import Entry
    from benchmarks.rivals.environments import Environments
    from benchmarks.rivals.sources import Amounts


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is measured.

    Attributes:
        rounds: Turns of each.
        seconds: Length of a turn; a build takes as long as it takes.
        threads: Threads or worker processes of each.
        amounts: How much there is to read.
    """

    rounds: int
    seconds: float
    threads: int
    amounts: Amounts


@dataclass
class Row:
    """What came of one entry: its turns, or why there are none.

    Attributes:
        entry: Who.
        turns: One a round: images, seconds, cpu_seconds, other_cores, and the calibrations before and after.
        check: What its batches are: shape, dtype, mean pixel, distinct samples of a first pass.
        peak_mb: Largest memory that was seen of it and its processes.
        stored_mb: Size of what it reads; of a build, of what it wrote; None where that is the photographs themselves.
        failed: Why there are no turns; empty if there are.
    """

    entry: Entry
    turns: list[dict[str, float]] = field(default_factory=list)
    check: dict[str, Any] = field(default_factory=dict)
    peak_mb: float = 0.0
    stored_mb: float | None = None
    failed: str = ""

    def to_json(self) -> dict[str, Any]:
        """Every raw number."""
        return {"key": self.entry.key, **asdict(self)}


class Contest:
    """Plays lines."""

    def __init__(self, environments: Environments, settings: Settings, say: Callable[[str], None]) -> None:
        self._environments, self._settings, self._say = environments, settings, say

    def work(self, line: str, owner: str, form: str = "") -> Work:
        """What is to be done on a line with the data of a rival."""
        environments, amounts = self._environments, self._settings.amounts
        return Work(
            line=line,
            form=form,
            data=str(environments.data(owner)),
            sources=str(environments.sources),
            threads=self._settings.threads,
            samples=amounts.raw if line == "raw" else amounts.photos,
        )

    def play(self, line: str, entries: Sequence[Entry]) -> list[Row]:
        """Measure everyone on a line; who fails is left out from then on, and says so."""
        rows = [Row(entry) for entry in entries]
        with ExitStack() as stack:
            playing = {}
            for row in rows:
                contestant = self._started(line, row, stack)
                if contestant is not None:
                    playing[row.entry.key] = contestant
            self._play_rounds(line, rows, playing)
        return rows

    def _started(self, line: str, row: Row, stack: ExitStack) -> Contestant | None:
        work = self.work(line, row.entry.data_of or row.entry.rival, row.entry.form)
        self._say(f"{line}: warming up {row.entry.title}")
        command = self._environments.command(row.entry.rival, row.entry.program, work.to_json())
        log = self._environments.place / "logs" / f"{line}-{row.entry.key.replace(':', '-')}.txt"
        contestant = stack.enter_context(Contestant(command, log))
        try:
            contestant.warm_up()
        except TurnError as error:
            self._fail(row, contestant, error)
            return None
        row.check, row.stored_mb = contestant.check, stored_mb(work, row.entry)
        return contestant

    def _play_rounds(self, line: str, rows: Sequence[Row], playing: dict[str, Contestant]) -> None:
        settings = self._settings
        photos = (self._environments.sources / "photos.txt").read_text().splitlines()
        calibration = Calibration(photos, settings.threads)
        before = calibration.measure()
        for number in range(settings.rounds):
            self._say(f"{line}: round {number + 1} of {settings.rounds}")
            for row in rows:
                contestant = playing.get(row.entry.key)
                if contestant is None:
                    continue
                try:
                    said = timed_turn(contestant, settings.seconds)
                except TurnError as error:
                    self._fail(row, contestant, error)
                    del playing[row.entry.key]
                    continue
                after = calibration.measure()
                row.turns.append(said | {"calibration": (before + after) / 2})
                row.peak_mb, before = contestant.peak_mb, after
        for row in rows:
            if line in BUILD_LINES and row.turns:
                row.stored_mb = row.turns[-1]["bytes"] / 1e6

    def _fail(self, row: Row, contestant: Contestant, error: TurnError) -> None:
        contestant.end()
        row.failed, row.turns = str(error), []
        self._say(f"{row.entry.title} FAILED: {error}")


def stored_mb(work: Work, entry: Entry) -> float | None:
    """Size of what an entry reads."""
    if not entry.files:
        return None
    pattern = entry.files.format(kind="raw" if work.line == "raw" else "photos")
    return sum(path.stat().st_size for path in Path(work.data).glob(pattern)) / 1e6


def document(lines: dict[str, list[Row]], **described: Any) -> str:
    """Everything as JSON."""
    found = {line: [row.to_json() for row in rows] for line, rows in lines.items()}
    return json.dumps({**described, "lines": found}, indent=1) + "\n"
