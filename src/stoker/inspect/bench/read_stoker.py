"""Stoker's loader over each form of the images and over the user's data where they lie; and its codec alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.inspect.bench.cases import SEED
from stoker.inspect.measuring import decode_endlessly
from stoker.loader import Loader, MemoryCache, open_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.inspect.bench.cases import BenchSpec, Case
    from stoker.inspect.bench.images import BenchImages

_MOST_IMAGES = 4096  # kept in memory by the codec alone; enough that the processor's caches do not help
_IMAGES_A_RUN = 512  # of the codec: its threads are started again each run, so a run is long compared with that
_CACHE_BUDGET = 2**40  # whether there is enough memory was checked before
_ANY_NUMBER = 2**31


def batches(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Read epoch after epoch in the way of a case; yield the images of each batch."""
    if case.key == "codec":
        yield from _codec_alone(spec, images)
    is_own = case.needs == "own"
    with Loader(
        images.open_own() if is_own else open_dataset(images.place(case.needs), "train"),
        batch_size=spec.batch_size,
        transform=spec.crop,
        decode="fast" if case.key == "stoker-fast" else "exact",
        shuffle=spec.is_shuffled,
        seed=SEED,
        threads=spec.threads,
        tail="wrap",
        rank=0,
        world_size=1,
        cache=MemoryCache(_CACHE_BUDGET, keep="decoded") if case.keeps else None,
        # Only the user's own data may hold images that cannot be decoded.
        on_bad="substitute" if is_own else "raise",
        max_bad=_ANY_NUMBER,
    ) as loader:
        while True:
            for batch in loader:
                yield len(batch)


def _codec_alone(spec: BenchSpec, images: BenchImages) -> Iterator[int]:
    """Decode and resize the regions that the loader decodes, from memory, in the loader's order."""
    dataset = open_dataset(images.place("plain"), "train")
    encoded = [dataset[i].encoded for i in range(min(len(dataset), _MOST_IMAGES))]
    return decode_endlessly(encoded, spec.crop, spec.threads, _IMAGES_A_RUN, seed=SEED if spec.is_shuffled else None)
