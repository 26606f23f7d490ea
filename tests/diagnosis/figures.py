"""Evidence as plain cases give it, for tests that change a figure or two."""

from __future__ import annotations

import dataclasses
from typing import Any

from stoker.diagnosis import Consumer, Evidence, Files, OtherThread, Setup, Spot

SPIN = Spot("spin", "logging_thread.py", 7, "while True:", "python", 1.0)
LOCAL = Files("dataset", remote=False, size_bytes=10**9, room_bytes=10**10, cached_before=1.0, cached_after=1.0)
REMOTE = Files("s3://bucket/dataset", remote=True)


def evidence(**changed: Any) -> Evidence:
    """A loader whose two threads decode all the time for a consumer that only waits, with everything in memory."""
    plain = Evidence(
        seconds=10.0,
        batches=100,
        samples=6400,
        wait_share=0.9,
        gil_share=0.0,
        consumer_share=0.1,
        busy_share=0.99,
        cpu_share=0.95,
        queue_share=0.03,
        stages={"read": 0.03, "parse": 0.01, "decode": 0.85, "resample": 0.1},
        bytes_per_second=7e7,
        process_cpus=1.98,
        other_cpus=0.01,
        gil_held_share=0.02,
        consumer=Consumer(cpu_share=0.9, works={"model": 1.0}, top_speed=5000.0),
        threads=(),
        files=LOCAL,
        setup=Setup(threads=2, cpus=2, shuffle="full", batch_size=64),
    )
    return dataclasses.replace(plain, **changed)


def busy_consumer(**changed: Any) -> Evidence:
    """A consumer that never waits, and a loader with twice the speed."""
    given = {"wait_share": 0.01, "consumer_share": 0.99, "busy_share": 0.5, "process_cpus": 1.5} | changed
    return evidence(**given)


def spinner(busy_share: float) -> OtherThread:
    """A thread that does nothing but Python."""
    return OtherThread("logger", busy_share, SPIN)
