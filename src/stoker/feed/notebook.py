"""How datasets, loaders and batches show themselves: in plain text, and in a notebook.

Nothing here raises: what cannot be shown says so in its place. The HTML stands alone, and takes its colours from the
notebook.
"""

from __future__ import annotations

import html
import time
from typing import TYPE_CHECKING, Any, cast

from stoker import _native
from stoker.config import format_size
from stoker.errors import ImageError
from stoker.feed.batch_pictures import batch_pictures
from stoker.feed.thumbnails import boxes_of, data_uri, draw_boxes, fit
from stoker.recipe import dimensions, sniff

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from PIL import Image

    from stoker.feed.dataset import Dataset
    from stoker.feed.loader import Loader
    from stoker.feed.sample import Sample
    from stoker.records.labels import ClassLabel

_STRIP = 8
_SIDE = 112
_MOST_SECONDS = 1.0
_MOST_PIXELS = 2**25  # a strip is not worth decoding larger images
_MOST_SHOWN = 24  # samples of a batch
_MOST_NAMES = 12
_DIM = "opacity:.65"
_TEXT = "font-family:system-ui,sans-serif;font-size:13px;line-height:1.5"
_ROW = "display:flex;flex-wrap:wrap;gap:12px;margin-top:8px"
_FIGURE = f"margin:0;width:{_SIDE}px;font-size:12px;line-height:1.35;overflow:hidden"
_SQUARE = f"width:{_SIDE}px;height:{_SIDE}px;overflow:hidden"
_DASHED = "box-sizing:border-box;border:1px dashed;border-radius:6px;padding:6px"
_IMAGE = f"display:block;max-width:{_SIDE}px;max-height:{_SIDE}px;border-radius:6px;margin:0"
_LINE = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap"


def text(value: object) -> str:
    """Return text that any page can hold: escaped, without the stray bytes of a name."""
    return html.escape("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(value)))


def dataset_html(dataset: Dataset) -> str:
    """Return a dataset for a notebook: what it is, its classes, and some of its images.

    At most eight images are read, none of them where they lie in a store, and no further one after a second.
    """
    shards = len(dataset.shards)
    where = f"{shards:,} shard{'s' * (shards != 1)}" if shards else "files"
    facts = [f"{len(dataset):,} samples in {where}, {format_size(dataset.size_bytes)}"]
    if dataset.classes:
        named = dataset.classes[dataset.schema.label_base :]
        facts.append(f"{len(named):,} classes: {_names(named)}")
    title = f"<b>{text(dataset.path)}</b> / {text(dataset.split)}"
    return _block(title, facts, _strip(dataset))


def _names(classes: Sequence[ClassLabel]) -> str:
    names = [known.text.split(",")[0].strip() or known.name for known in classes[:_MOST_NAMES]]
    return ", ".join(names) + (", …" if len(classes) > _MOST_NAMES else "")


def _strip(dataset: Dataset) -> list[str]:
    if dataset.remote is not None:
        return []
    count = min(_STRIP, len(dataset))
    keys = _native.permute(0, count, len(dataset), 17, 0).tolist() if count else []
    shown, ends = [], time.monotonic() + _MOST_SECONDS
    for key in keys:
        if time.monotonic() > ends:
            break
        try:
            sample = dataset[key]
            picture: Image.Image | str = _thumbnail(sample)
            lines = [class_text(dataset.classes, sample.label), f"#{key}"]
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a sample, a person wants to see the others
            picture, lines = f"damaged: {error}", [f"#{key}"]
        shown.append(_figure(picture, lines))
    return shown


def _thumbnail(sample: Sample) -> Image.Image:
    if sample.schema.image_encoding == "jpeg":
        kind = sniff(sample.encoded)
        info = _native.probe_jpeg(sample.encoded) if kind == "jpeg" else None
        width, height = (info.width, info.height) if info else dimensions(sample.encoded, kind)
        if width * height > _MOST_PIXELS:
            raise ImageError(f"{width} x {height} pixels are too many for a small picture")
    picture = fit(sample.decode(), 2 * _SIDE, 2 * _SIDE)
    draw_boxes(picture, boxes_of(sample))
    return picture


def class_text(classes: Sequence[ClassLabel], label: int) -> str:
    """Return what a class is called: its first words, else its name, else its number."""
    if not 0 <= label < len(classes):
        return f"label {label}" if label >= 0 else "no label"
    return classes[label].text.split(",")[0].strip() or classes[label].name


def sample_text(sample: Sample) -> str:
    """Return a sample in one line."""
    size = f"{format_size(len(sample.encoded))} of {sample.schema.image_encoding}"
    source = f" from {sample.source!r}" if sample.source else ""
    label = f"label {sample.label}" if sample.label >= 0 else "no label"
    return f"<stoker.Sample #{sample.key}{source}: {label}, {size}, {len(sample.features)} features>"


def sample_html(sample: Sample) -> str:
    """Return a sample for a notebook: its image with its boxes."""
    boxes = 0
    try:
        picture: Image.Image | str = _thumbnail(sample)
        boxes = len(list(boxes_of(sample)))
    except Exception as error:  # noqa: BLE001 - the rest of it can be shown all the same
        picture = f"damaged: {error}"
    facts = [f"{boxes} box{'es' * (boxes != 1)}"] if boxes else []
    return _block(
        f"<b>{text(sample_text(sample)[1:-1])}</b>", facts, [_figure(picture, [class_text((), sample.label)])]
    )


class ShownLoader:
    """How a `stoker.Loader` shows itself: its settings, and where it is."""

    def __repr__(self) -> str:
        loader = cast("Loader", self)
        return "\n  ".join([f"<stoker.Loader of {loader.dataset!r}", *_loader_facts(loader)]) + ">"

    def _repr_html_(self) -> str:
        loader = cast("Loader", self)
        return _block(f"<b>stoker.Loader</b> of {text(loader.dataset)}", _loader_facts(loader), [])


def _loader_facts(loader: Loader) -> list[str]:
    settings, topology, state = loader.settings, loader.topology, loader.state_dict()
    output = settings.output
    steps = f"{len(loader):,} batches of {topology.batch_size:,} an epoch, tail {topology.tail!r}"
    ranks = "" if topology.world_size == 1 else f", rank {topology.rank} of {topology.world_size}"
    order = f"shuffle={settings.shuffle}, seed={settings.seed}"
    pixels = f"{output.dtype} {output.layout}, decode {settings.decode!r}, {settings.threads} threads"
    return [
        f"view {loader.view!r}",
        f"{pixels}{'' if settings.cache is None else f', {settings.cache!r}'}",
        f"{steps}{ranks}, {order}",
        f"at epoch {state['epoch']}, {state['consumed']:,} samples consumed",
    ]


def batch_text(batch: Any) -> str:
    """Return a `stoker.Batch`, or what has its fields, in one line."""
    images = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    shapes = " and ".join(f"{getattr(one, 'dtype', '?')} {tuple(getattr(one, 'shape', ()))}" for one in images)
    boxes = "" if batch.boxes is None else ", with boxes"
    position = batch.position
    where = "" if position is None else f", epoch {position.epoch} up to sample {position.consumed:,}"
    return f"<stoker.{type(batch).__name__} of {len(batch)}: images {shapes}{boxes}{where}>"


def batch_html(batch: Any) -> str:
    """Return a batch for a notebook: its first images with labels and boxes, whatever their type and scale."""
    try:
        classes = batch.origin.classes if batch.origin else ()
        shown = []
        for place, pictures in enumerate(batch_pictures(batch, _MOST_SHOWN)):
            lines = [class_text(classes, int(batch.labels[place])), f"#{int(batch.keys[place])}"]
            if not batch.valid[place]:
                lines[1] += ", fills up"
            shown += [_figure(picture, lines) for picture in pictures]
        more = len(batch) - min(len(batch), _MOST_SHOWN)
        return _block(
            f"<b>{text(batch_text(batch)[1:-1])}</b>",
            [f"the first {_MOST_SHOWN}; {more:,} more"] if more else [],
            shown,
        )
    except Exception as error:  # noqa: BLE001 - a batch that somebody has changed must not break the notebook
        return f"<div>{text(type(batch).__name__)}<br><span style='{_DIM}'>cannot be shown: {text(error)}</span></div>"


def _block(title: str, facts: Iterable[str], figures: Sequence[str]) -> str:
    lines = "".join(f"<div style='{_DIM}'>{text(fact)}</div>" for fact in facts)
    strip = f"<div style='{_ROW}'>{''.join(figures)}</div>" if figures else ""
    return f"<div style='{_TEXT}'><div>{title}</div>{lines}{strip}</div>"


def _figure(picture: Image.Image | str, lines: Sequence[str]) -> str:
    if isinstance(picture, str):
        body = f"<div style='{_SQUARE};{_DASHED};{_DIM}'>{text(picture[:90])}</div>"
    else:
        image = f"<img src='{data_uri(picture)}' style='{_IMAGE}' alt='{text(lines[0])}'>"
        body = f"<div style='{_SQUARE};display:flex;align-items:center;justify-content:center'>{image}</div>"
    styles = [_LINE, *[f"{_LINE};{_DIM}"] * (len(lines) - 1)]
    said = "".join(f"<div style='{style}'>{text(line)}</div>" for style, line in zip(styles, lines, strict=True))
    return f"<figure style='{_FIGURE}' title='{text(' '.join(lines))}'>{body}{said}</figure>"
