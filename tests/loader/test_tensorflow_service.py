"""Behind tf.data service: the loader works where the worker is in its process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import tensorflow as tf

import stoker

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = {"batch_size": 4, "transform": stoker.RandomResizedCrop(24)}

SERVER = """
import sys
import tensorflow as tf
service = tf.data.experimental.service
dispatcher = service.DispatchServer()
worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1]))
print(dispatcher.target, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """Address of a dispatcher that runs, with its worker, in another process, which has never heard of Stoker."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()  # a worker whose client has failed may never end by itself


def served(elements: tf.data.Dataset, target: str) -> tf.data.Dataset:
    service = tf.data.experimental.service
    return elements.apply(service.distribute(processing_mode=service.ShardingPolicy.OFF, service=target))


def test_the_loader_is_served_from_its_own_process(train: stoker.Dataset) -> None:
    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1]))
    elements = stoker.tensorflow.dataset(train, elements=("indices",), shuffle=True, seed=9, **SETTINGS)
    epochs = [
        [index for (indices,) in served(elements, dispatcher.target) for index in indices.numpy().tolist()]
        for _ in range(2)
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(18))
    assert epochs[0] != epochs[1]
    del worker


def test_the_loader_cannot_travel_to_another_process(train: stoker.Dataset, elsewhere: str) -> None:
    # As docs/how-to/tensorflow.md says; should a later TensorFlow know how to, this page is to be written anew.
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(served(stoker.tensorflow.dataset(train, **SETTINGS), elsewhere))
