"""How large a dataset will be, told before it is begun."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.config import format_size
from stoker.errors import ConfigError
from stoker.storage import RemotePath

if TYPE_CHECKING:
    from stoker.build.plan import Plan
    from stoker.storage import Location

LARGE_BYTES = 200_000_000_000
"""A dataset that is expected to be larger needs a person's consent: ImageNet's JPEGs do not, its pixels do."""


@dataclass(frozen=True, slots=True)
class RecordSize:
    """How long records are, told by a sample of them.

    Attributes:
        per_source_byte: Bytes of records for each byte of source.
        per_record: Bytes of a record, where all are about as long; None where that depends on the source.
    """

    per_source_byte: float
    per_record: float | None = None

    def of(self, items: int, source_bytes: int) -> float:
        """Return the expected bytes of so many records."""
        return source_bytes * self.per_source_byte if self.per_record is None else items * self.per_record


@dataclass(frozen=True, slots=True)
class ExpectedSize:
    """What a dataset will take.

    Attributes:
        records: How many records it will have.
        size_bytes: Expected bytes of its shards before compression.
        free_bytes: Free space where it will lie; None where a store does not say.
    """

    records: int
    size_bytes: int
    free_bytes: int | None

    @classmethod
    def of(cls, plan: Plan, size: RecordSize, destination: Location) -> ExpectedSize:
        """Return what a plan amounts to."""
        return cls(plan.items, round(size.of(plan.items, plan.size_bytes)), _free_bytes(destination))

    def refuse_huge(self) -> None:
        """Refuse a dataset that is huge, or larger than the space that is free.

        Raises:
            ConfigError: It is.
        """
        size, free = format_size(self.size_bytes), format_size(self.free_bytes or 0)
        if self.size_bytes > LARGE_BYTES:
            message = f"the dataset will take about {size}, more than {format_size(LARGE_BYTES)}"
            message += "" if self.free_bytes is None else f"; {free} are free"
            raise ConfigError(f"{message}; add --yes to build it all the same")
        if self.free_bytes is not None and self.size_bytes > self.free_bytes:
            message = f"the dataset will take about {size}, and only {free} are free; make room or build elsewhere"
            raise ConfigError(f"{message}, or add --yes to begin all the same: a full disk leaves a build to resume")


def _free_bytes(destination: Location) -> int | None:
    if isinstance(destination, RemotePath):
        return None
    place = destination.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free
