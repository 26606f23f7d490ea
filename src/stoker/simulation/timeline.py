"""When each batch of one rank is ready: requests, budget, connections and decoding threads, event by event."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.simulation.model import Ranks, Storage


@dataclass(frozen=True, slots=True)
class Fetch:
    """A range that is fetched.

    Attributes:
        length: Its bytes.
        last_use: The last sample that needs it.
    """

    length: int
    last_use: int


@dataclass(frozen=True, slots=True)
class Timing:
    """What a rank goes through.

    Attributes:
        first: Seconds until the first batch is there.
        total: Seconds until the last one is.
        waited: Seconds of these in which the training step waited for a batch, the first one not counted.
        peak_bytes: The most that was asked for and not let go of yet.
    """

    first: float
    total: float
    waited: float
    peak_bytes: int


class _Line:
    """The way to the store: a number of connections, and a pipe that they share with other ranks.

    A request waits for a connection and then for its first byte; its bytes then pass the pipe behind those that were
    ready before.
    """

    def __init__(self, storage: Storage, ranks: Ranks) -> None:
        shares = [
            (storage.node_bandwidth, ranks.per_node),
            (storage.total_bandwidth, ranks.world_size),
        ]
        self._seconds_a_byte = max((sharers / rate for rate, sharers in shares if rate is not None), default=0.0)
        self._seconds_a_byte_alone = 1 / storage.connection_bandwidth if storage.connection_bandwidth else 0.0
        self._seconds_a_request = ranks.world_size / storage.total_requests if storage.total_requests else 0.0
        self._latency = storage.latency
        self._free = [0.0] * ranks.read_ahead.connections
        self._piped = 0.0
        self._asked = 0.0

    def fetch(self, length: int, earliest: float) -> tuple[float, float]:
        """Return when a request is made and when its last byte is there."""
        begin = max(earliest, heapq.heappop(self._free), self._asked)
        self._asked = begin + self._seconds_a_request
        ready = begin + self._latency
        self._piped = max(self._piped, ready) + length * self._seconds_a_byte
        there = max(self._piped, ready + length * self._seconds_a_byte_alone)
        heapq.heappush(self._free, there)
        return begin, there


class Timeline:
    """One rank, from its first request on.

    Args:
        storage: What requests take.
        ranks: How the rank reads and decodes.
        requests: The ranges in the order in which they are asked for.
        request_of: For each sample in order, the request that brings it; -1 for none.
    """

    def __init__(self, storage: Storage, ranks: Ranks, requests: Sequence[Fetch], request_of: Sequence[int]) -> None:
        self._line = _Line(storage, ranks)
        self._ranks = ranks
        self._budget = ranks.read_ahead.budget_bytes
        self._requests = requests
        self._request_of = request_of
        self._there: list[float] = []  # when each request that was made is answered
        self._held = 0
        self._peak = 0
        self._releases: list[tuple[float, int]] = []  # when bytes are let go of

    def run(self) -> Timing:
        """Go through all batches."""
        ranks = self._ranks
        service = ranks.threads / ranks.rate
        workers = [0.0] * ranks.threads
        asked: list[float] = []  # when the step asks for each batch
        taken: list[float] = []
        for first in range(0, len(self._request_of), ranks.batch_size):
            number = len(taken)
            asked.append(taken[-1] + ranks.step if taken else 0.0)
            queued = asked[number - ranks.prefetch] if number > ranks.prefetch else 0.0
            done = queued
            for use in range(first, min(first + ranks.batch_size, len(self._request_of))):
                begin = max(heapq.heappop(workers), queued, self._arrival(use))
                heapq.heappush(workers, begin + service)
                self._let_go(use, begin + service)
                done = max(done, begin + service)
            taken.append(max(done, asked[-1]))
        waited = sum(there - wanted for there, wanted in zip(taken[1:], asked[1:], strict=True))
        return Timing(taken[0], taken[-1], waited, self._peak)

    def _arrival(self, use: int) -> float:
        number = self._request_of[use]
        while len(self._there) <= number:
            length = self._requests[len(self._there)].length
            begin, there = self._line.fetch(length, self._admit(length))
            while self._releases and self._releases[0][0] <= begin:
                self._held -= heapq.heappop(self._releases)[1]
            self._held += length
            self._peak = max(self._peak, self._held)
            self._there.append(there)
        return self._there[number] if number >= 0 else 0.0

    def _admit(self, length: int) -> float:
        """Return when the budget has room for a request; what is needed next is always let in."""
        when = 0.0
        while self._held + length > self._budget and self._releases:
            when, freed = heapq.heappop(self._releases)
            self._held -= freed
        return when

    def _let_go(self, use: int, when: float) -> None:
        number = self._request_of[use]
        if number >= 0 and self._requests[number].last_use == use:
            heapq.heappush(self._releases, (when, self._requests[number].length))
