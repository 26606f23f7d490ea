"""What all sheets of samples have in common: which samples they show, the PNG that they become, what is said of it."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import ConfigError, StokerError
from stoker.feed.opening import open_main_split
from stoker.records.files import write_atomically
from stoker.storage import location

if TYPE_CHECKING:
    import os

    from PIL import Image

    from stoker.feed import Dataset


@dataclass(frozen=True, slots=True)
class SheetReport:
    """A sheet that was written.

    Attributes:
        path: The PNG.
        width: Its width in pixels.
        height: Its height in pixels.
        split: The split shown.
        keys: Numbers of the samples in the split, in the order of the tiles.
        damaged: What is wrong with those that could not be shown, by number.
    """

    path: str
    width: int
    height: int
    split: str
    keys: tuple[int, ...]
    damaged: dict[int, str]


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet before it is drawn.

    Attributes:
        out: The PNG, as it was named.
        dataset: Whose samples are shown.
        keys: Their numbers, in the order in which they are shown.
    """

    out: str
    dataset: Dataset
    keys: list[int]

    @property
    def title(self) -> str:
        """What is shown, for its head."""
        name = location(self.dataset.path).resolve().name or self.dataset.path
        return f"{name}  /  {self.dataset.split}"

    def write(self, drawn: Image.Image, damaged: dict[int, str]) -> SheetReport:
        """Write it atomically, and return what was written."""
        data = io.BytesIO()
        drawn.save(data, "PNG")
        write_atomically(location(self.out), data.getvalue())
        return SheetReport(self.out, drawn.width, drawn.height, self.dataset.split, tuple(self.keys), damaged)


def begin_sheet(
    path: str | os.PathLike[str], out: str | os.PathLike[str], split: str | None, count: int, seed: int
) -> Sheet:
    """Open a dataset and choose its samples; the same ones for the same dataset, split, count and seed.

    Raises:
        ConfigError: ``out`` does not end in ``.png``, or there is no such split, or it is empty.
        DatasetNotFoundError: There is no dataset at ``path``.
        StokerError: The dataset as a whole cannot be opened.
    """
    if location(out).suffix.lower() != ".png":
        raise ConfigError(f"the sheet is a PNG, so the name {str(out)!r} must end in .png")
    dataset = open_main_split(path, split)
    if len(dataset) == 0:
        raise ConfigError(f"split {dataset.split} of {path} has no samples, so there is nothing to show")
    keys = _native.permute(0, min(count, len(dataset)), len(dataset), seed, 0).tolist()
    return Sheet(str(out), dataset, keys)


def damage_of(error: StokerError, dataset: Dataset, key: int) -> str:
    """Return what is wrong with a sample; an error of its image does not know where the image lay."""
    if error.path is not None:
        return str(error)
    path, record, offset = dataset.records.where(key)
    return f"record {record} at byte {offset} of {path}: {error}"
