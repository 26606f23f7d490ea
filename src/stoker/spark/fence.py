"""Keeps attempts that nobody waits for any more from touching what has taken the place of their build.

Spark may lose sight of an attempt that goes on: on a machine that is cut off, of a driver that was killed. While the
same build is under way, a late attempt does no harm, for it writes the same bytes. Afterwards somebody may have begun
another one in the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from stoker.errors import ConfigError
from stoker.records.layout import BUILD_FOLDER, JOURNAL_NAME
from stoker.storage import open_regular

if TYPE_CHECKING:
    from stoker.storage import Location


@dataclass(frozen=True, slots=True)
class Fence:
    """A build that is under way.

    Attributes:
        settings: What its journal begins with.
    """

    settings: bytes

    @classmethod
    def of(cls, destination: Location) -> Self:
        """Return that of the build that has begun in a destination."""
        return cls(_settings(destination))

    def check(self, destination: Location) -> None:
        """See that this build is still under way.

        Raises:
            ConfigError: It is not, or it cannot be seen from this machine.
        """
        try:
            same = _settings(destination) == self.settings
        except FileNotFoundError:
            message = f"{destination} is not the directory that the driver builds in, or that build has ended"
            raise ConfigError(f"{message}; build into a directory that all executors share, or into a bucket") from None
        if not same:
            raise ConfigError(f"another build has begun in {destination}")


def _settings(destination: Location) -> bytes:
    if isinstance(destination, Path):
        with open_regular(destination / JOURNAL_NAME) as file:
            return file.readline()
    return (destination / BUILD_FOLDER / "settings.json").read_bytes()
