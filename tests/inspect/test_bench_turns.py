"""What is timed, and what is not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stoker.inspect.bench.reading import Meter, turn

if TYPE_CHECKING:
    from collections.abc import Iterator

READY = 50
SLOW_SECONDS = 0.03


class Pipeline:
    """A reader that had time to make batches ahead: these come at once, the others take their time."""

    def __init__(self) -> None:
        self.ready = 0
        self.read = 0

    def batches(self) -> Iterator[int]:
        while True:
            if self.ready:
                self.ready -= 1
            else:
                time.sleep(SLOW_SECONDS)
            self.read += 1
            yield 10


def test_what_was_made_ahead_is_not_measured() -> None:
    pipeline = Pipeline()
    meter = Meter(pipeline.batches())
    meter.measure(5 * SLOW_SECONDS)
    pipeline.ready = READY
    found = turn(meter, 10 * SLOW_SECONDS, 1000, None)
    assert pipeline.ready == 0
    assert found["images"] / found["seconds"] <= 10 / SLOW_SECONDS


def test_the_lead_in_ends_also_if_everything_is_quick() -> None:
    pipeline = Pipeline()
    meter = Meter(pipeline.batches())
    meter.measure(5 * SLOW_SECONDS)
    pipeline.ready = 10**9
    meter.lead_in(0.05)
    assert pipeline.ready > 0


def test_a_cold_turn_is_one_pass_at_most() -> None:
    pipeline = Pipeline()
    pipeline.ready = 10**9
    found = turn(Meter(pipeline.batches()), 0.2, 95, [])
    assert found["images"] == 100
    assert found["still_cached"] == 0.0


def test_a_warm_up_reads_what_a_cache_is_to_hold() -> None:
    pipeline = Pipeline()
    pipeline.ready = 10**9
    Meter(pipeline.batches()).warm_up(0.01, 10**5)
    assert pipeline.read >= 10**4
