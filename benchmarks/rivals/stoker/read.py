"""Stoker's loader, and the codec alone, in the forms ``DATASET`` and ``DATASET-SETTING``.

Settings: ``fast`` (inexact decoding), ``unchecked`` (no CRC), ``codec`` (decode and resize from memory, without a
loader), ``codec-fast``. The dataset ``files`` is the folder of images itself.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

import stoker
from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.work import RAW_SIDE, RESIZE, SIDE, THUMBNAIL_SIDE, VIEWS, Work
from stoker import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 17
_BATCHES_A_RUN = 8  # the codec's threads are started anew each run, so a run is long compared with that


def transform_of(line: str) -> Any:
    """The transform of a line."""
    if line == "raw":
        return stoker.RawTensor(RAW_SIDE)
    if line == "thumbnails":
        return stoker.TopLeft(THUMBNAIL_SIDE)
    if line == "multi-crop":
        return stoker.MultiCrop(*(stoker.RandomResizedCrop(side, scale=scale, hflip=0.5) for side, scale in VIEWS))
    return stoker.CenterCrop(SIDE, RESIZE) if line == "eval" else stoker.RandomResizedCrop(SIDE, hflip=0.5)


def loaded(work: Work, dataset: stoker.Dataset, settings: dict[str, Any]) -> Iterator[Batch]:
    """Batches of epoch after epoch."""
    with stoker.Loader(
        dataset,
        batch_size=work.batch,
        transform=transform_of(work.line),
        shuffle=work.line != "eval",
        seed=SEED,
        threads=work.threads,
        tail="wrap",
        **settings,
    ) as loader:
        while True:
            for batch in loader:
                yield Batch(batch.images[0] if work.line == "multi-crop" else batch.images, batch.indices)


def codec_alone(work: Work, dataset: stoker.Dataset, settings: dict[str, Any]) -> Iterator[Batch]:
    """The regions that the loader decodes, from memory; there are no pixels to look at."""
    images = [dataset[number].encoded for number in range(len(dataset))]
    transform = transform_of(work.line).native()
    nothing = np.zeros((1, 1, 1), np.uint8)
    for epoch in itertools.count():
        order = _native.permute(0, len(images), len(images), SEED, epoch)
        for start in range(0, len(images), work.batch * _BATCHES_A_RUN):
            indices = order[start : start + work.batch * _BATCHES_A_RUN]
            _native.decode_loop(
                images=images,
                indices=indices,
                transform=transform,
                seed=SEED,
                epoch=epoch,
                threads=work.threads,
                **settings,
            )
            yield Batch(nothing, indices)


def batches(work: Work) -> Iterator[Batch]:
    """Read without end."""
    name, _, setting = work.form.partition("-")
    dataset = stoker.open(work.tree if name == "files" else work.path_of(name), split="train")
    settings: dict[str, Any] = {}
    if setting.endswith("fast"):
        settings = {"decode": "fast"}
    if setting == "unchecked":
        settings = {"check": False}
    return (codec_alone if setting.startswith("codec") else loaded)(work, dataset, settings)


if __name__ == "__main__":
    serve_batches(batches)
