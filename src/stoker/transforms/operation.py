"""What every operation on pixels has in common."""

from __future__ import annotations

from typing import ClassVar

from stoker.declare import Settings
from stoker.transforms.settings import short_text
from stoker.types import Mode


class Operation(Settings):
    """An operation on pixels: a frozen dataclass, whose fields are its settings.

    Attributes:
        modes: In which it has a meaning.
    """

    modes: ClassVar[tuple[Mode, ...]] = ("RGB", "L", "RGBA", "I;16")

    __repr__ = short_text
