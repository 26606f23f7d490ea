"""What all contenders of a benchmark do: the same images, the same view, the same batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stoker.errors import ConfigError
from stoker.views import CenterCrop, RandomResizedCrop

ViewName = Literal["train", "eval", "objects"]
SIDE = 224
RESIZE = 256
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
SEED = 17


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of work.

    Attributes:
        dataset: Path of the dataset.
        split: Its split.
        view: ``train``: random order, random crop resized to 224 with flips. ``eval``: in order, shorter side 256,
            centre 224. Both bilinear, uint8.
        batch_size: Images per batch.
        threads: Threads or worker processes.
        cold: Whether the shards are dropped from the page cache before every measurement.
    """

    dataset: str
    split: str
    view: ViewName
    batch_size: int
    threads: int
    cold: bool = False

    def __post_init__(self) -> None:
        if self.view not in ("train", "eval"):
            raise ConfigError(f"view is {self.view!r}; it must be train or eval")

    @property
    def stoker_view(self) -> RandomResizedCrop | CenterCrop:
        """The work as one of Stoker's views."""
        if self.view == "train":
            return RandomResizedCrop(SIDE, SCALE, RATIO, hflip=0.5)
        return CenterCrop(SIDE, RESIZE)
