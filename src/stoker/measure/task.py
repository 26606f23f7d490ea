"""What all contenders of a benchmark do: the same images, the same view, the same batch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from stoker.errors import ConfigError
from stoker.views import CenterCrop, ObjectCrops, RandomResizedCrop

if TYPE_CHECKING:
    from stoker.types import Box

ViewName = Literal["train", "eval", "objects"]
SIDE = 224
RESIZE = 256
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
SEED = 17
RAW_SIDE = 256
"""Height and width of the tensors that raw records hold."""

_FILES = "files"
_LIST = "files.json"


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of work.

    Attributes:
        dataset: Path or URL of what the user wants measured.
        split: Its split.
        view: ``train``: random order, random crop resized to 224 with flips. ``eval``: in order, shorter side 256,
            centre 224. ``objects``: random order, each annotated object cut out and resized to 224. All
            are bilinear, uint8.
        batch_size: Images per batch.
        threads: Threads or worker processes.
        cold: Whether a contender's files are dropped from the page cache before every measurement.
        data: Folder with the images in all the forms that contenders read; see `stoker.measure.preparing`.
    """

    dataset: str
    split: str
    view: ViewName
    batch_size: int
    threads: int
    cold: bool = False
    data: str = ""

    def __post_init__(self) -> None:
        if self.view not in get_args(ViewName):
            raise ConfigError(f"view is {self.view!r}; it must be one of {', '.join(get_args(ViewName))}")

    @property
    def stoker_view(self) -> RandomResizedCrop | CenterCrop | ObjectCrops:
        """The work as one of Stoker's views."""
        if self.view == "train":
            return RandomResizedCrop(SIDE, SCALE, RATIO, hflip=0.5)
        return CenterCrop(SIDE, RESIZE) if self.view == "eval" else ObjectCrops(SIDE)

    @property
    def is_shuffled(self) -> bool:
        """Whether every epoch has an order of its own."""
        return self.view != "eval"

    def place(self, name: str) -> Path:
        """Where something that was prepared lies."""
        return Path(self.data, name)

    def files(self) -> LooseFiles:
        """The images as loose JPEG files."""
        return LooseFiles.read(Path(self.data))


Corners = tuple[float, float, float, float]
"""ymin, xmin, ymax, xmax, in fractions of the image."""


@dataclass(frozen=True, slots=True)
class LooseFiles:
    """The images as JPEG files; the position is the number of the image.

    Attributes:
        paths: Where each is.
        labels: Its class; -1 where there is none.
        corners: Its annotated objects; one that is the whole image where there are none.
    """

    paths: tuple[str, ...]
    labels: tuple[int, ...]
    corners: tuple[tuple[Corners, ...], ...]

    @classmethod
    def read(cls, data: Path) -> LooseFiles:
        """Read the list that `write` has left."""
        found = json.loads((data / _LIST).read_text(encoding="utf-8"))
        paths = tuple(str(data / _FILES / name) for name in found["names"])
        boxes = tuple(tuple((a, b, c, d) for a, b, c, d in image) for image in found["corners"])
        return cls(paths, tuple(found["labels"]), boxes)

    @staticmethod
    def write(data: Path, names: list[str], labels: list[int], boxes: list[list[Box]]) -> None:
        """Leave a list of the files in ``data/files``, of which the names are given below that."""
        corners = [[(b.ymin, b.xmin, b.ymax, b.xmax) for b in image] or [(0.0, 0.0, 1.0, 1.0)] for image in boxes]
        text = json.dumps({"names": names, "labels": labels, "corners": corners})
        (data / _LIST).write_text(text, encoding="utf-8")

    @property
    def samples(self) -> int:
        """How many annotated objects there are, images without any counted as one."""
        return sum(map(len, self.corners))
