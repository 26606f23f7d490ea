"""One shard from its first byte to the last pixel: frames, index, every record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import StorageError
from stoker.inspection.verify_records import check_records
from stoker.inspection.verify_shard import check_shard, unreadable
from stoker.storage import local_copy

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from stoker.inspection.problem import Problem
    from stoker.inspection.verify_progress import VerifyProgress
    from stoker.inspection.verify_records import RecordRules, RecordsResult
    from stoker.inspection.verify_shard import ShardCheck
    from stoker.records.manifest import Shard
    from stoker.storage import LocalCopy, Location

_CHUNK_RECORDS = 32


@dataclass(frozen=True, slots=True)
class Target:
    """A shard to check.

    Attributes:
        split: The split it belongs to.
        path: Where it is.
        listed: What the manifest says of it.
    """

    split: str
    path: Location
    listed: Shard | None


@dataclass(frozen=True, slots=True)
class WholeResult:
    """What the check of one shard came to: numbers only, for there may be very many shards of very many records.

    Attributes:
        records: Records looked into.
        size_bytes: Length of the shard; 0 when it is missing.
        shard_problems: Damage of the shard as a whole.
        record_problems: Damage of its records, in their order.
        labels: How often each label was seen.
    """

    records: int
    size_bytes: int
    shard_problems: list[Problem]
    record_problems: list[Problem]
    labels: Counter[int]


class WholeCheck:
    """Checks shards, one for each call; in any thread but those of its pool.

    Args:
        rules: What every record must satisfy.
        pool: Checks runs of records.
        shown: Told of what is done.
    """

    def __init__(self, rules: RecordRules, pool: ThreadPoolExecutor, shown: VerifyProgress) -> None:
        self._rules = rules
        self._pool = pool
        self._shown = shown

    def __call__(self, target: Target) -> WholeResult:
        """Check a shard; of one in a store, a copy, which is compared with it again before damage is reported.

        Raises:
            OSError: There is no room for temporary files, or the store is gone.
        """
        try:
            with local_copy(target.path) as copy:
                check = self._check_frames(target, copy)
                self._shown.add_shard(len(check.rows), len(check.problems))
                results = self._check_records(target, check, copy)
        except OSError as error:
            if isinstance(error, StorageError):
                target.path.parent.is_dir()  # a store that is gone says so now, and is no damage
            check, results = unreadable(target.path, error), []
            self._shown.add_shard(0, 1)
        labels: Counter[int] = Counter()
        for result in results:
            labels.update(result.labels)
        record_problems = [problem for result in results for problem in result.problems]
        return WholeResult(len(check.rows), check.size_bytes, check.problems, record_problems, labels)

    def _check_frames(self, target: Target, copy: LocalCopy) -> ShardCheck:
        copy.fetch()
        check = check_shard(target.path, copy.path, target.listed)
        if any(problem.path == str(target.path) for problem in check.problems) and copy.confirm():
            check = check_shard(target.path, copy.path, target.listed)
        return check

    def _check_records(self, target: Target, check: ShardCheck, copy: LocalCopy) -> list[RecordsResult]:
        plain = check.readable(copy.path)

        def run(first: int) -> RecordsResult:
            rows = check.rows[first : first + _CHUNK_RECORDS]
            result = check_records(target.path, plain, first, rows, self._rules)
            self._shown.add_records(result)
            return result

        return list(self._pool.map(run, range(0, len(check.rows), _CHUNK_RECORDS)))
