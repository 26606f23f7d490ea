"""The settings of reading ahead from stores."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.config import check_range, parse_size
from stoker.feed.range_plan import RangeLimits

_MOST_BYTES = 2**62


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
        check_range("budget", self.budget_bytes, 1, _MOST_BYTES)
        check_range("connections", self.connections, 1, 1024)
        check_range("gap", _bytes_of(self.gap), 0, _MOST_BYTES)
        check_range("longest", _bytes_of(self.longest), 1, _MOST_BYTES)

    @property
    def budget_bytes(self) -> int:
        """The budget as a number."""
        return _bytes_of(self.budget)

    def limits(self) -> RangeLimits:
        """Return how pieces become ranges: two windows fit the budget."""
        window = max(1, self.budget_bytes // 2)
        return RangeLimits(window, _bytes_of(self.gap), min(window, _bytes_of(self.longest)))


def _bytes_of(size: str | int) -> int:
    return parse_size(size) if isinstance(size, str) else size
