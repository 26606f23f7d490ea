"""A picture of what the model sees: each sample as it is stored, and beside it its views in several epochs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw

from stoker.config import check_range
from stoker.errors import ConfigError, StokerError
from stoker.inspection import tile, view_tile
from stoker.inspection.seen_views import ViewOfDataset, is_random
from stoker.inspection.sheet import begin_sheet, damage_of
from stoker.views import ObjectCrops

if TYPE_CHECKING:
    import os

    from stoker.feed import Dataset, Sample
    from stoker.inspection.sheet import Sheet, SheetReport
    from stoker.inspection.view_text import SheetView

_GAP = 16
_HEADER = 104
_MOST_OBJECTS = 3
_MOST_CELLS = 600  # a picture of about 50 megapixels
_MOST_SAMPLES = 200


@dataclass(frozen=True, slots=True)
class ViewSheetSpec:
    """What to show.

    Attributes:
        views: What to show of each sample.
        epochs: In which epochs; of a view without random choices only the first is shown.
        split: Which split; None takes the only one, or train.
        count: How many samples; all of them when there are fewer.
        seed: Of the loader; also decides which samples.
        boxes: Whether annotated boxes are drawn.
    """

    views: tuple[SheetView, ...]
    epochs: tuple[int, ...] = (0, 1, 2, 3)
    split: str | None = None
    count: int = 6
    seed: int = 17
    boxes: bool = True

    def __post_init__(self) -> None:
        check_range("--count", self.count, 1, _MOST_SAMPLES)
        check_range("--seed", self.seed, 0, 2**63 - 1)
        cells = self.count * (1 + len(columns_of(self)))
        if cells > _MOST_CELLS:
            message = f"{self.count} samples with {len(columns_of(self))} views each are {cells} pictures"
            raise ConfigError(f"{message}; show at most {_MOST_CELLS}: fewer --count, --views or --epochs")


@dataclass(frozen=True, slots=True)
class Column:
    """One view of every sample.

    Attributes:
        view: Number of the view in the spec.
        epoch: In which epoch.
        object: Which object, where the view shows objects.
        title: What stands above it.
    """

    view: int
    epoch: int
    object: int
    title: str


def columns_of(spec: ViewSheetSpec, objects: int = _MOST_OBJECTS) -> list[Column]:
    """Return the columns of a sheet, from the left; of objects, no more than there are in one image."""
    made = []
    for number, view in enumerate(spec.views):
        if isinstance(view, ObjectCrops):
            made += [Column(number, spec.epochs[0], one, f"object {one + 1}") for one in range(objects)]
        elif is_random(view):
            made += [Column(number, epoch, 0, f"epoch {epoch}") for epoch in spec.epochs]
        else:
            made.append(Column(number, spec.epochs[0], 0, "every epoch"))
    return made


def write_view_sheet(path: str | os.PathLike[str], out: str | os.PathLike[str], spec: ViewSheetSpec) -> SheetReport:
    """Draw samples as stored and as the model sees them, and write them as one PNG, atomically.

    The pixels of a view are those of a batch of `stoker.Loader` with the same view and seed in that epoch. They are
    shown as they are, or larger by a whole factor; only those of more than 240 pixels are made smaller. Outlines in the
    stored image show where each column comes from. A sample that cannot be read has a tile that says why.

    Args:
        path: What `stoker.open` opens.
        out: The PNG to write.
        spec: What to show.

    Raises:
        ConfigError: ``out`` does not end in ``.png``; there is no such split, or it is empty; or a view wants objects,
            and there are none.
        DatasetNotFoundError: There is no dataset at ``path``.
        StokerError: The dataset as a whole cannot be opened.
        OSError: The PNG cannot be written.
    """
    begun = begin_sheet(path, out, spec.split, spec.count, spec.seed)
    with ExitStack() as stack:
        views = [stack.enter_context(ViewOfDataset(begun.dataset, view, spec.seed)) for view in spec.views]
        drawn = _draw(begun, spec, views)
    return begun.write(*drawn)


def _draw(begun: Sheet, spec: ViewSheetSpec, views: list[ViewOfDataset]) -> tuple[Image.Image, dict[int, str]]:
    dataset, keys = begun.dataset, begun.keys
    most = max(view.objects(key) for view in views for key in keys)
    columns = columns_of(spec, min(_MOST_OBJECTS, most))
    width = _GAP + (tile.TILE_WIDTH + _GAP) * (1 + len(columns))
    sheet = Image.new("RGB", (width, _HEADER + len(keys) * (tile.TILE_HEIGHT + _GAP)), tile.BACKGROUND)
    _draw_header(sheet, begun.title, spec, columns)
    damaged = {}
    for row, key in enumerate(keys):
        top = _HEADER + row * (tile.TILE_HEIGHT + _GAP)
        try:
            tiles = _row(dataset[key], dataset, views, columns, boxes=spec.boxes)
        except StokerError as error:
            damaged[key] = damage_of(error, dataset, key)
            tiles = [tile.draw_damaged(key, damaged[key])]
        for place, drawn in enumerate(tiles):
            sheet.paste(drawn, (_left(place), top))
    return sheet, damaged


def _row(
    sample: Sample, dataset: Dataset, views: list[ViewOfDataset], columns: list[Column], *, boxes: bool
) -> list[Image.Image]:
    """Return the tiles of one sample: as stored, then each column.

    Raises:
        StokerError: It cannot be read.
    """
    pixels = sample.decode()
    extent = (pixels.shape[1], pixels.shape[0])
    cells, outlines = [], []
    for place, column in enumerate(columns):
        view = views[column.view]
        if column.object >= view.objects(sample.key):
            cells.append(view_tile.draw_nothing())
            continue
        seen = view.see(sample, extent, column.epoch, column.object)
        cells.append(view_tile.draw_seen(seen, boxes=boxes))
        outlines.append((seen.region, view_tile.color_of(place)))
    stored = tile.draw_sample(sample, dataset.classes, boxes=boxes)
    view_tile.outline(stored, extent, outlines)
    return [stored, *cells]


def _draw_header(sheet: Image.Image, head: str, spec: ViewSheetSpec, columns: list[Column]) -> None:
    draw = ImageDraw.Draw(sheet)
    step = tile.TILE_WIDTH + _GAP
    title = tile.fitted(head, tile.TITLE, step - _GAP)
    draw.text((_GAP, 16), title, font=tile.TITLE, fill=tile.BRIGHT)
    draw.text((_GAP, 50), f"seed {spec.seed}", font=tile.TEXT, fill=tile.DIM)
    draw.text((_GAP, 76), "as stored", font=tile.TEXT, fill=tile.DIM)
    for number, view in enumerate(spec.views):
        mine = [place for place, column in enumerate(columns) if column.view == number]
        width = len(mine) * step - _GAP
        lines = tile.wrapped(repr(view), tile.TEXT, width, 2)
        for line, text in enumerate(lines, 2 - len(lines)):
            draw.text((_left(mine[0] + 1), 24 + 20 * line), text, font=tile.TEXT, fill=tile.BRIGHT)
    for place, column in enumerate(columns):
        left = _left(place + 1)
        draw.rounded_rectangle((left, 79, left + 12, 91), 3, view_tile.color_of(place))
        draw.text((left + 20, 76), column.title, font=tile.TEXT, fill=tile.DIM)


def _left(place: int) -> int:
    return _GAP + place * (tile.TILE_WIDTH + _GAP)
