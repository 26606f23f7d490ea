"""One line: its programs are started and warmed up, then they take turns, round after round."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.rivals.calibration import Calibration
from benchmarks.rivals.catalogue import BUILD_LINES, Entry
from benchmarks.rivals.turns import RivalProgram
from benchmarks.rivals.work import Work
from stoker.inspect.measuring import ProgramFailed, in_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
        entry: Which program in which form.
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

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Row:
        """The row that `to_json` wrote."""
        entry = Entry(**{**content["entry"], "lines": tuple(content["entry"]["lines"])})
        return cls(entry, **{name: value for name, value in content.items() if name not in ("key", "entry")})


class Contest:
    """Measures lines."""

    def __init__(self, environments: Environments, settings: Settings, say: Callable[[str], None]) -> None:
        self._environments, self._settings, self._say = environments, settings, say

    def work(self, line: str, owner: str, form: str = "") -> Work:
        """What is to be done on a line with the data of a rival."""
        work = Work(
            line=line,
            form=form,
            data=str(self._environments.data(owner)),
            sources=str(self._environments.sources),
            threads=self._settings.threads,
            samples=self._settings.amounts.raw,
        )
        return work if line == "raw" else replace(work, samples=len(work.photos()))

    def measure(self, line: str, entries: Sequence[Entry]) -> list[Row]:
        """Measure all entries of a line; one that fails is left out from then on, and the table says so."""
        rows = [Row(entry) for entry in entries]
        with ExitStack() as stack:
            programs = {}
            for row in rows:
                program = self._started(line, row, stack)
                if program is not None:
                    programs[row.entry.key] = program
            self._take_turns(line, {row.entry.key: row for row in rows}, programs)
        return rows

    def _started(self, line: str, row: Row, stack: ExitStack) -> RivalProgram | None:
        work = self.work(line, row.entry.data_of or row.entry.rival, row.entry.form)
        self._say(f"{line}: warming up {row.entry.title}")
        command = self._environments.command(row.entry.rival, row.entry.program, work.to_json())
        log = self._environments.directory / "logs" / f"{line}-{row.entry.key.replace(':', '-')}.txt"
        variables = self._environments.variables(row.entry.rival)
        program = stack.enter_context(RivalProgram(command, log, variables))
        try:
            program.wait_until_ready()
        except ProgramFailed as error:
            self._fail(row, program, error)
            return None
        row.check, row.stored_mb = program.ready, stored_mb(work, row.entry)
        return program

    def _take_turns(self, line: str, rows: dict[str, Row], programs: dict[str, RivalProgram]) -> None:
        settings = self._settings
        photos = (self._environments.sources / "photos.txt").read_text().splitlines()
        calibration = Calibration(photos, settings.threads)
        before = calibration.measure()

        def turn(key: str, seconds: float) -> None:
            nonlocal before
            row, program = rows[key], programs[key]
            self._say(f"{line}: turn {len(row.turns) + 1} of {settings.rounds}: {row.entry.title}")
            answer = program.take_turn(seconds)
            after = calibration.measure()
            row.turns.append(answer | {"calibration": (before + after) / 2})
            row.peak_mb, before = program.peak_mb, after

        in_turns(
            {key: partial(turn, key) for key in programs},
            settings.rounds,
            settings.seconds,
            failed=lambda key, why: self._fail(rows[key], programs[key], why),
        )
        for row in rows.values():
            if line in BUILD_LINES and row.turns:
                row.stored_mb = row.turns[-1]["bytes"] / 1e6

    def _fail(self, row: Row, program: RivalProgram, error: ProgramFailed) -> None:
        program.end()
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
    as_json = {line: [row.to_json() for row in rows] for line, rows in lines.items()}
    return json.dumps({**described, "lines": as_json}, indent=1) + "\n"
