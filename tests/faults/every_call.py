"""Run by a test under the shim: lets every call of an action fail, and looks at what each failure leaves behind.

Prints a JSON object: of each case how many calls there are, and what became of them.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from cases import CASES, Case, Stage
from shim import INTERRUPT_OFTEN, SHORT_ALWAYS, Outcome, in_child, positions


def ours(case: Case, outcome: Outcome) -> bool:
    """Whether an error says enough: it is of the system or of Stoker, and names a file that has to do with it."""
    if outcome.message == "can't start new thread":  # as Python says it
        return True
    known = ("Error" in outcome.error) and outcome.error not in ("AssertionError", "RuntimeError", "TypeError")
    return known and any(name in outcome.message for name in case.blamed)


def play(case: Case, stage: Stage, most: int) -> dict[str, Any]:
    """Every call of one case, or so many of them, from the first to the last."""
    expected = case.finished(stage)
    fresh = stage.fresh(case)
    count = positions(lambda: case.act(fresh), case.fault_in(fresh))
    assert count > 0, case.name
    seen: Counter[str] = Counter()
    tried = 1 if case.how in (SHORT_ALWAYS, INTERRUPT_OFTEN) else min(most, count)  # these two meet all calls at once
    for position in sorted({1 + (count - 1) * number // max(1, tried - 1) for number in range(tried)}):
        folder = stage.fresh(case)
        outcome = in_child(lambda folder=folder: case.act(folder), case.fault_in(folder), position)
        where = f"{case.name}, call {position}: {outcome}\n{outcome.trace}"
        assert outcome.status == 0 or case.dies, where
        if outcome.error:
            assert ours(case, outcome), where
        elif outcome.status == 0:
            assert case.tolerates(outcome.value, expected.value), where
        case.check_left(folder, expected, where)
        seen[outcome.error or ("killed" if outcome.status else "as if nothing had happened")] += 1
        again = in_child(lambda folder=folder: case.act(folder), None)
        assert not again.error, f"{where}\nand again: {again}\n{again.trace}"
        assert case.tolerates(again.value, expected.value), f"{where}\nand again: {again}"
        assert case.contents(folder) == expected.files, f"{where}: other files than without a fault"
        shutil.rmtree(folder)
    return {"calls": count, **seen}


def main() -> None:
    """Play the cases that are named, all when none is."""
    work, source, dataset, most, *names = sys.argv[1:]
    stage = Stage(Path(work), Path(source), Path(dataset))
    outcomes: dict[str, Any] = {}
    for case in CASES:
        if not names or any(case.name.startswith(name) for name in names):
            try:
                outcomes[case.name] = play(case, stage, int(most))
            except AssertionError as error:
                outcomes[case.name] = {"wrong": str(error)}
    json.dump(outcomes, sys.stdout)


main()
