"""The settings of reading ahead from stores."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.config import check_range, check_size
from stoker.feed.range_plan import RangeLimits


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How a loader reads a dataset that lies in a bucket or in HDFS; of local files it changes nothing.

    A loader knows which samples it will need, in which order, also in the epoch to come. It asks for their bytes as far
    ahead as the budget reaches, so that the store's latency is waited for once and not once for each sample.
    `docs/remote.md` says which numbers fit which store.

    Attributes:
        budget: The most bytes that are asked for and not used yet, such as ``"1GB"`` or a number. Half of it is what
            the loader looks at in one go to find bytes that lie side by side.
        connections: Requests at a time.
        gap: Up to so many bytes between two samples are read rather than asking twice.
        longest: The most bytes of one request, unless a single sample has more.

    Raises:
        ConfigError: A size is no size, or a number is out of range.
    """

    budget: str | int = "256MB"
    connections: int = 32
    gap: str | int = "64KB"
    longest: str | int = "8MB"

    def __post_init__(self) -> None:
        check_range("connections", self.connections, 1, 1024)
        self.limits()

    @property
    def budget_bytes(self) -> int:
        """The budget as a number."""
        return check_size("budget", self.budget, 1)

    def limits(self) -> RangeLimits:
        """Return how pieces become ranges: two windows fit the budget."""
        window = max(1, self.budget_bytes // 2)
        return RangeLimits(window, check_size("gap", self.gap, 0), min(window, check_size("longest", self.longest, 1)))
