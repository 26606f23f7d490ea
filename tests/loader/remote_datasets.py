"""Datasets of this machine copied into stores, for the tests of reading from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import stoker
from storage.store_folders import copy, store_folder

if TYPE_CHECKING:
    import pytest

    from stoker.storage import StoreLocation

__all__ = ["TRANSFORM", "assert_same", "copy", "epochs", "folder_in"]

TRANSFORM = stoker.RandomResizedCrop(16, hflip=0.5)


def folder_in(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, proxy: str = ""
) -> StoreLocation:
    """An empty folder of a store, reached through the proxy at that URL, if one is given; with a cache of its own."""
    monkeypatch.setenv("STOKER_CACHE_DIR", str(request.getfixturevalue("tmp_path") / "user-cache"))
    return store_folder(kind, request, monkeypatch, proxy)


def epochs(dataset: stoker.Dataset | stoker.Mix, count: int = 2, **settings: Any) -> list[list[np.ndarray[Any, Any]]]:
    """All that some epochs give: images, labels, indices and the mark of what is valid, batch by batch."""
    with stoker.Loader(
        dataset, **({"batch_size": 8, "transform": TRANSFORM, "seed": 5, "threads": 3} | settings)
    ) as loader:
        batches = []
        for _ in range(count):
            batches += [[batch.images, batch.labels, batch.indices, batch.valid] for batch in loader]
        return batches


def assert_same(first: list[list[np.ndarray[Any, Any]]], second: list[list[np.ndarray[Any, Any]]]) -> None:
    assert len(first) == len(second)
    for batch, other in zip(first, second, strict=True):
        for array, like in zip(batch, other, strict=True):
            np.testing.assert_array_equal(array, like)
