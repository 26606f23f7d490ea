"""Loaders of all frameworks take the same settings; other words are refused with the one to use.

What a type checker says of their uses is in `typed_loaders.py`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.needs("jax", "tensorflow", "torch")
TRANSFORM = stoker.CenterCrop(8)
LOADERS: dict[str, Callable[..., Any]] = {
    "stoker.Loader": stoker.Loader,
    "stoker.torch.DataLoader": stoker.torch.DataLoader,
    "stoker.tensorflow.dataset": stoker.tensorflow.dataset,
    "stoker.jax.batches": stoker.jax.batches,
}
OWN = {
    "stoker.Loader": set(),
    "stoker.torch.DataLoader": {"pin_memory"},
    "stoker.tensorflow.dataset": {"elements", "state"},
    "stoker.jax.batches": {"epochs", "sharding"},
}
REFUSED = {
    "num_workers": "threads=",
    "collate_fn": "transform=",
    "sampler": "MapDataset",
    "batch_sampler": "MapDataset",
    "worker_init_fn": "threads=",
    "persistent_workers": "threads=",
    "multiprocessing_context": "threads=",
    "timeout": "threads=",
    "prefetch_factor": "prefetch=",
    "generator": "seed=",
    "num_replicas": "world_size=",
    "drop_remainder": "drop_last=",
    "shard_index": "rank=",
    "droplast": "did you mean drop_last=?",
    "colour": "its settings are dataset, batch_size, shuffle, transform",
}
RECORDS = 7


def settings_of(name: str) -> list[tuple[str, Any, Any, str]]:
    """Name, kind, default and annotation of each setting that a loader has in common with the others, in order."""
    parameters = inspect.signature(LOADERS[name]).parameters.values()
    annotations = {"TransformT_co": "Transform"}  # a variable that stands for one of them
    return [
        (each.name, each.kind, each.default, annotations.get(each.annotation, each.annotation))
        for each in parameters
        if each.name not in OWN[name]
    ]


@pytest.mark.parametrize("name", LOADERS)
def test_all_loaders_take_the_same_settings(name: str) -> None:
    assert settings_of(name) == settings_of("stoker.Loader")
    assert settings_of(name)[-1][3] == "Never"
    assert set(inspect.signature(LOADERS[name]).parameters) > OWN[name]


def test_modules_show_what_there_is_to_use() -> None:
    assert {"open", "Loader", "torch", "tensorflow", "jax", "spark", "__version__"} <= set(dir(stoker))
    assert "importlib" not in dir(stoker)
    assert dir(stoker.torch) == ["DataLoader", "MapDataset", "TorchBatch"]
    assert dir(stoker.tensorflow) == ["dataset", "state_at"]
    assert dir(stoker.jax) == ["BatchIterator", "batches"]
    for module in (stoker, stoker.torch, stoker.tensorflow, stoker.jax):
        assert all(hasattr(module, name) for name in dir(module) if name not in ("torch", "tensorflow", "jax", "spark"))


@pytest.mark.parametrize("name", LOADERS)
def test_batch_size_and_shuffle_go_by_position(train: stoker.Dataset, name: str) -> None:
    batches = LOADERS[name](train, 3, True, transform=TRANSFORM, drop_last=True)
    batch = next(iter(batches))
    images = batch["images"] if isinstance(batch, dict) else batch[0] if isinstance(batch, tuple) else batch.images
    assert len(images) == 3
    if name == "stoker.tensorflow.dataset":
        assert batches.cardinality() == 2
    else:
        loader = getattr(batches, "loader", batches)
        assert (len(loader), loader.settings.shuffle, loader.topology.tail) == (2, True, "drop")
        batches.close()


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("word", REFUSED)
def test_words_of_other_loaders_are_refused_with_the_one_to_use(train: stoker.Dataset, name: str, word: str) -> None:
    with pytest.raises(TypeError) as caught:
        LOADERS[name](train, transform=TRANSFORM, **{word: 0})
    assert str(caught.value).startswith(f"{name} has no setting '{word}': ")
    assert REFUSED[word] in str(caught.value)


@pytest.mark.parametrize("name", LOADERS)
def test_two_words_for_the_last_batch_may_not_contradict_each_other(train: stoker.Dataset, name: str) -> None:
    with pytest.raises(ConfigError, match="drop_last=True and tail='pad' contradict each other"):
        LOADERS[name](train, transform=TRANSFORM, drop_last=True, tail="pad")
    with pytest.raises(ConfigError, match="drop_last is 'yes'"):
        LOADERS[name](train, transform=TRANSFORM, drop_last="yes")
