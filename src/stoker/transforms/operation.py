"""What every operation on pixels has in common."""

from __future__ import annotations

from numbers import Real
from typing import ClassVar

from stoker.declare import Settings
from stoker.transforms.settings import short_text
from stoker.types import Mode


class Operation(Settings):
    """An operation on pixels: a frozen dataclass, whose fields are its settings.

    The operation of the same name in ``src/native/core/operations`` carries it out.

    Attributes:
        modes: In which it has a meaning.
    """

    modes: ClassVar[tuple[Mode, ...]] = ("RGB", "L", "RGBA", "I;16")

    __repr__ = short_text

    def operations(self) -> dict[str, Operation]:
        """Return those among the settings: what follows on the result."""
        return {name: value for name, value in self.values().items() if isinstance(value, Operation)}

    def native_settings(self) -> tuple[str, dict[str, str | list[float]]]:
        """Return name and own settings of the operation as the core takes them: words, and numbers in lists."""
        return type(self).__name__, {
            name: value
            if isinstance(value, str)
            else [float(each) for each in ((value,) if isinstance(value, Real) else value)]
            for name, value in self.values().items()
            if value is not None and not isinstance(value, Operation)
        }
