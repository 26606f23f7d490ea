"""`stoker.tensorflow.profile`: what TensorFlow's profiler says of a pipeline of its own ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import tensorflow as tf

import stoker
from stoker.errors import StokerError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_ops_of_a_pipeline_are_in_the_profile(dataset: Path, tmp_path: Path) -> None:
    train = stoker.open(dataset, split="train")
    pipeline = stoker.tensorflow.graph_dataset(train, batch_size=4, transform=stoker.CenterCrop(32))
    with stoker.tensorflow.profile(tmp_path / "logs") as folder:
        assert sum(int(labels.shape[0]) for _, labels in pipeline) == len(train)
        with pytest.raises(StokerError, match=r"more: .*does not start"), stoker.tensorflow.profile(tmp_path / "more"):
            pass
    (profile,) = folder.glob("plugins/profile/*/*.xplane.pb")
    found = profile.read_bytes()
    assert tf.profiler is not None
    for name in (b"Iterator::", b"TFRecord", b"ParallelMap"):
        assert name in found
