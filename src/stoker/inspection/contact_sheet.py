"""A picture of what is in a dataset: random samples side by side, with their labels and boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw

from stoker.config import check_range
from stoker.errors import StokerError
from stoker.inspection import tile
from stoker.inspection.sheet import begin_sheet, damage_of
from stoker.inspection.tile import TILE_HEIGHT, TILE_WIDTH

if TYPE_CHECKING:
    import os

    from stoker.inspection.sheet import Sheet, SheetReport

_GAP = 20
_HEADER = 92
_MAX_COUNT = 600  # 600 tiles are a picture of about 40 megapixels
_MAX_COLUMNS = 30


@dataclass(frozen=True, slots=True)
class SheetSpec:
    """What to show.

    Attributes:
        split: Which split; None takes the only one, or train.
        count: How many samples; all of them when there are fewer.
        seed: Decides which.
        columns: Samples in a row.
        boxes: Whether annotated boxes are drawn.
    """

    split: str | None = None
    count: int = 24
    seed: int = 17
    columns: int = 6
    boxes: bool = True

    def __post_init__(self) -> None:
        check_range("--count", self.count, 1, _MAX_COUNT)
        check_range("--columns", self.columns, 1, _MAX_COLUMNS)
        check_range("--seed", self.seed, 0, 2**63 - 1)


def write_contact_sheet(path: str | os.PathLike[str], out: str | os.PathLike[str], spec: SheetSpec) -> SheetReport:
    """Draw random samples of a dataset and write them as one PNG, atomically.

    The same dataset, split, count and seed show the same samples. A sample that cannot be read or decoded has a tile
    that says why. Memory: the sheet, and one decoded image at a time.

    Args:
        path: What `stoker.open` opens.
        out: The PNG to write.
        spec: What to show.

    Raises:
        ConfigError: ``out`` does not end in ``.png``, or there is no such split, or it is empty.
        DatasetNotFoundError: There is no dataset at ``path``.
        StokerError: The dataset as a whole cannot be opened.
        OSError: The PNG cannot be written.
    """
    begun = begin_sheet(path, out, spec.split, spec.count, spec.seed)
    return begun.write(*_draw(begun, spec))


def _draw(begun: Sheet, spec: SheetSpec) -> tuple[Image.Image, dict[int, str]]:
    dataset, keys = begun.dataset, begun.keys
    columns = min(spec.columns, len(keys))
    rows = -(-len(keys) // columns)
    size = (columns * (TILE_WIDTH + _GAP) + _GAP, _HEADER + rows * (TILE_HEIGHT + _GAP) + _GAP)
    sheet = Image.new("RGB", size, tile.BACKGROUND)
    _draw_header(sheet, begun, spec)
    damaged = {}
    for place, key in enumerate(keys):
        row, column = divmod(place, columns)
        try:
            drawn = tile.draw_sample(dataset[key], dataset.classes, boxes=spec.boxes)
        except StokerError as error:
            damaged[key] = damage_of(error, dataset, key)
            drawn = tile.draw_damaged(key, damaged[key])
        sheet.paste(drawn, (_GAP + column * (TILE_WIDTH + _GAP), _HEADER + row * (TILE_HEIGHT + _GAP)))
    return sheet, damaged


def _draw_header(sheet: Image.Image, begun: Sheet, spec: SheetSpec) -> None:
    draw, dataset = ImageDraw.Draw(sheet), begun.dataset
    width = sheet.width - 2 * _GAP
    title = tile.fitted(begun.title, tile.TITLE, width)
    draw.text((_GAP, 18), title, font=tile.TITLE, fill=tile.BRIGHT)
    shards = len(dataset.shards)
    parts = [f"{len(begun.keys)} of {len(dataset):,} samples", f"{shards:,} shard" + "s" * (shards != 1)]
    if dataset.manifest is not None:
        counts = dataset.manifest.splits[dataset.split].class_counts
        parts.append(f"{sum(count > 0 for count in counts):,} classes")
        parts.append(f"schema {dataset.manifest.schema.preset}")
    parts.append(f"seed {spec.seed}")
    draw.text((_GAP, 56), tile.fitted("   ·   ".join(parts), tile.TEXT, width), font=tile.TEXT, fill=tile.DIM)
