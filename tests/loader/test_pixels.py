"""Pixels of batches against Pillow, and the properties that threads, prefetch and topology never change them."""

from __future__ import annotations

import pytest

import stoker
from loader.shards import image
from reference import pictures, transform
from transforms.cases import of_any_image

RECORDS = 48
SEED = 2**63 + 17


CROP = stoker.RandomResizedCrop(32, hflip=0.5)


@pytest.mark.parametrize("chosen", of_any_image(40, 30), ids=str)
@pytest.mark.slow
def test_every_transform_gives_the_pixels_of_pillow(train: stoker.Dataset, chosen: stoker.transforms.Transform) -> None:
    with stoker.Loader(train, batch_size=7, transform=chosen, shuffle=True, seed=SEED, threads=2) as loader:
        for epoch in range(2):
            seen = []
            for batch in loader:
                for pixels, label, index in zip(batch.images, batch.labels, batch.indices.tolist(), strict=True):
                    draws = transform.Draws(SEED, epoch, index)
                    assert (pixels == transform.show(pictures.rgb(image(index)), chosen, draws)).all(), (index, epoch)
                    assert label == index + 1
                    seen.append(index)
            assert sorted(seen) == list(range(RECORDS))


def collect(train: stoker.Dataset, **settings: object) -> dict[int, bytes]:
    settings = {"batch_size": 5, "transform": CROP, "shuffle": True, "seed": 3, **settings}
    with stoker.Loader(train, **settings) as loader:
        return {k: p.tobytes() for b in loader for k, p in zip(b.indices.tolist(), b.images, strict=True)}


def test_threads_prefetch_and_batch_size_change_nothing(train: stoker.Dataset) -> None:
    reference = collect(train, threads=1, prefetch=1)
    assert list(collect(train, threads=1, prefetch=1)) == list(reference)
    for settings in [{"threads": 2, "prefetch": 4}, {"threads": 5, "prefetch": 2}, {"batch_size": 48, "threads": 3}]:
        again = collect(train, **settings)
        assert again == reference
        assert list(again) == list(reference)


def test_ranks_share_an_epoch_without_overlap_and_with_the_same_pixels(train: stoker.Dataset) -> None:
    reference = collect(train)
    parts = [collect(train, rank=rank, world_size=3, tail="short") for rank in range(3)]
    assert sum(map(len, parts)) == RECORDS
    assert {k: v for part in parts for k, v in part.items()} == reference


def test_a_batch_belongs_to_its_consumer(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=6, transform=CROP, threads=3) as loader:
        kept = list(loader)
        copies = [batch.images.copy() for batch in kept]
        for batch in loader:
            batch.images[:] = 0
    for batch, copy in zip(kept, copies, strict=True):
        assert (batch.images == copy).all()
        assert batch.images.flags.c_contiguous
        assert batch.images.flags.writeable
