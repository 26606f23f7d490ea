"""The same batches from NumPy, PyTorch and TensorFlow."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import tensorflow as tf
import torch

import stoker
from feed.shards import image, write_shards
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = {"batch_size": 4, "view": stoker.RandomResizedCrop(24, hflip=0.5), "shuffle": True, "seed": 9}


@pytest.fixture
def train(tmp_path: Path) -> stoker.Dataset:
    write_shards(tmp_path, 18, 2)
    return stoker.open(tmp_path)


def test_all_frameworks_give_the_same_batches(train: stoker.Dataset) -> None:
    in_tensorflow = stoker.tensorflow.dataset(train, **SETTINGS)
    with stoker.Loader(train, **SETTINGS) as plain, stoker.torch.DataLoader(train, **SETTINGS) as in_torch:
        assert len(plain) == len(in_torch) == in_tensorflow.cardinality() == 5
        for _ in range(2):
            for a, b, c in zip(plain, in_torch, in_tensorflow, strict=True):
                assert (a.images == b.images.numpy()).all()
                assert (a.images == c[0].numpy()).all()
                images, labels = b
                assert images.dtype == torch.uint8
                assert labels.dtype == torch.int64
                assert (a.labels == labels.numpy()).all()
                assert (a.labels == c[1].numpy()).all()


def test_the_tensorflow_dataset_has_static_shapes(train: stoker.Dataset) -> None:
    images, labels = stoker.tensorflow.dataset(train, tail="drop", **SETTINGS).element_spec
    assert images == tf.TensorSpec((4, 24, 24, 3), tf.uint8, name="images")
    assert labels == tf.TensorSpec((4,), tf.int64, name="labels")
    assert stoker.tensorflow.dataset(train, **SETTINGS).element_spec[0].shape.as_list() == [None, 24, 24, 3]


def test_every_pass_over_a_tensorflow_dataset_is_whole(train: stoker.Dataset) -> None:
    made = stoker.tensorflow.dataset(train, **SETTINGS)
    assert len(list(made.take(1))) == 1
    assert [len(labels) for _, labels in made] == [4, 4, 4, 4, 2]
    pairs = list(tf.data.Dataset.zip((made, made)))  # two passes at once
    assert len(pairs) == 5
    first, second = ([label for pair in pairs for label in pair[side][1].numpy()] for side in (0, 1))
    assert sorted(first) == sorted(second) == list(range(1, 19))
    assert first != second


def test_errors_reach_tensorflow_with_their_message(tmp_path: Path) -> None:
    write_shards(tmp_path, 4, 1, {2: image(2)[:100]})
    broken = stoker.tensorflow.dataset(stoker.open(tmp_path), **SETTINGS)
    with pytest.raises(tf.errors.OpError, match=r"picture-2\.JPEG"):
        list(broken)


def test_states_pass_between_frameworks(train: stoker.Dataset) -> None:
    with stoker.torch.DataLoader(train, **SETTINGS) as first:
        taken = next(iter(first)).keys.tolist()
        state = first.state_dict()
    with stoker.Loader(train, **SETTINGS) as second:
        second.load_state_dict(state)
        rest = [k for batch in second for k in batch.keys.tolist()]
    assert sorted(taken + rest) == list(range(18))


def test_pinning_needs_cuda(train: stoker.Dataset) -> None:
    if torch.cuda.is_available():
        assert next(iter(stoker.torch.DataLoader(train, pin_memory=True, **SETTINGS))).images.is_pinned()
    else:
        with pytest.raises(ConfigError, match="CUDA"):
            stoker.torch.DataLoader(train, pin_memory=True, **SETTINGS)


def test_importing_stoker_loads_no_framework() -> None:
    program = "import stoker, sys; assert not {'torch', 'tensorflow', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
