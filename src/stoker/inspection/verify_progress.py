"""How far a check has come, told by many threads."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoker.inspection.verify_records import RecordsResult
    from stoker.types import Progress


class VerifyProgress:
    """Adds up what threads have done. Safe in any thread.

    Args:
        progress: Told of it; None for nobody.
        shards: How many there are to check.
        records: Records in all of them; None: estimated from those shards whose frames were looked at.
        problems: Those that are known already.
    """

    def __init__(self, progress: Progress | None, shards: int, records: int | None, problems: int) -> None:
        self._progress = progress
        self._shards = shards
        self._records = records
        self._lock = threading.Lock()
        self._seen_shards = self._seen_records = 0
        self._done = self._size_bytes = 0
        self._problems = problems

    def add_shard(self, records: int, problems: int) -> None:
        """Note a shard whose frames were looked at."""
        with self._lock:
            self._seen_shards += 1
            self._seen_records += records
            self._problems += problems

    def add_records(self, result: RecordsResult) -> None:
        """Note a run of records, and tell."""
        with self._lock:
            self._done += result.records
            self._size_bytes += result.size_bytes
            self._problems += len(result.problems)
            if self._progress is not None:
                total = max(self._done, self._total())
                self._progress(done=self._done, total=total, size_bytes=self._size_bytes, rejects=self._problems)

    def _total(self) -> int:
        if self._seen_shards == self._shards or self._records is None:
            return self._seen_records * self._shards // max(1, self._seen_shards)
        return self._records
