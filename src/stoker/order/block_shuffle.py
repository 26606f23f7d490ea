"""The settings of a block shuffle."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.config import check_range


@dataclass(frozen=True, slots=True)
class BlockShuffle:
    """A shuffle for storage that wants long reads: random blocks, and samples shuffled among a few of them.

    Contiguous blocks of samples are visited in an order of the epoch's own, and the samples are shuffled within windows
    of consecutive visits. A reader has at most ``window`` blocks in hand, or twice as many while the batches of two
    windows are made at once. Like the full shuffle it is a pure function in constant memory. `docs/order.md` defines it
    and shows how good it is.

    Attributes:
        block: Samples of a block; the last one of a dataset may be shorter.
        window: Blocks whose samples are mixed.

    Raises:
        ConfigError: A number is below 1, or above 2**32.
    """

    block: int = 256
    window: int = 16

    def __post_init__(self) -> None:
        check_range("block", self.block, 1, 2**32)
        check_range("window", self.window, 1, 2**32)

    @property
    def name(self) -> str:
        """What a saved state calls it: ``block:256:16``."""
        return f"block:{self.block}:{self.window}"
