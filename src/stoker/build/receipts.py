"""``.stoker-build/``: the journal of a build in a store, where nothing can be appended to.

::

    .stoker-build/settings.json           the settings; created only if it is not there, so one build decides them
    .stoker-build/shards/NAME.json        for each finished shard, its entry after the CRC32C of settings and entry

There is no lock: two builds with the same settings write the same bytes and may run at once; one with other settings
is refused. All of it is removed after the manifest is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from stoker import _native
from stoker.build.journal_entries import format_result, format_settings, parse_result, parse_settings
from stoker.errors import DestinationError
from stoker.records.layout import BUILD_FOLDER
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from types import TracebackType

    from stoker.build.job import ShardResult
    from stoker.storage import RemotePath

_READ_AT_ONCE = 32
_SUFFIX = ".json"
_CHECKSUM_BYTES = 9  # eight digits and a newline


class Receipts:
    """The journal of one destination in a store; see `stoker.build.journal.Journal`.

    Args:
        destination: The dataset.

    Raises:
        DestinationError: There is something else under its name.
        OSError: The store fails; from any method.
    """

    def __init__(self, destination: RemotePath) -> None:
        self._destination = destination
        self._store = destination.store
        self._folder = destination / BUILD_FOLDER
        self._begun = self._folder / "settings.json"
        self.settings: dict[str, Any] | None = self._read_settings()
        self.results: list[ShardResult] = self._read_results() if self.settings is not None else []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def begin(self, settings: dict[str, Any]) -> None:
        """Put the settings there, unless another build has just put its own, which then hold."""
        created = self._store.create(self._begun.key, format_settings(settings))
        self.settings = settings if created else self._read_settings()

    def append(self, result: ShardResult) -> None:
        """Note that a shard is complete."""
        line = format_result(result)
        self._receipt(result.file.name).write_bytes(self._checksum(line) + line)
        self.results.append(result)

    def remove(self) -> None:
        """Delete everything of it."""
        self._store.delete_below(self._folder.key)

    def _checksum(self, line: bytes) -> bytes:
        """Return what a receipt begins with; that of other settings begins with something else."""
        assert self.settings is not None, "no build has begun"
        return b"%08x\n" % _native.crc32c_of_parts([format_settings(self.settings), line])

    def _receipt(self, shard: str) -> RemotePath:
        return self._folder / "shards" / f"{shard}{_SUFFIX}"

    def _read_settings(self) -> dict[str, Any] | None:
        try:
            settings = parse_settings(self._begun.read_bytes())
        except FileNotFoundError:
            return None
        if isinstance(settings, str):
            message = f"{self._begun} {settings}; delete {self._destination} or build somewhere else"
            raise DestinationError(message, path=str(self._begun))
        return settings

    def _read_results(self) -> list[ShardResult]:
        keys = [entry.key for entry in self._store.entries((self._folder / "shards").key)]
        with stoppable_pool(_READ_AT_ONCE, "stoker-receipts") as pool:
            return [result for result in pool.map(self._read_result, keys) if result is not None]

    def _read_result(self, key: str) -> ShardResult | None:
        """Return the shard of a receipt, or None if the receipt is damaged, of other settings, or gone by now."""
        try:
            text = self._store.read(key)
        except FileNotFoundError:
            return None
        checksum, line = text[:_CHECKSUM_BYTES], text[_CHECKSUM_BYTES:]
        if checksum != self._checksum(line):
            return None
        result = parse_result(line)
        return result if result is not None and self._receipt(result.file.name).key == key else None
