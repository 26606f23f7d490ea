"""Two TensorFlow processes train on uneven data: equal steps, disjoint samples, no hang."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loader.processes import free_ports, run_together
from loader.shards import write_shards

# Every step adds up a number of both processes, so one that made a step more would wait for ever.
PROGRAM = """
    import json, os, sys
    index, addresses, path, tails = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], sys.argv[4:]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
    import tensorflow as tf
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    import stoker
    import stoker.tensorflow

    train = stoker.open(path)

    def share(context, tail):
        return stoker.tensorflow.dataset(
            train,
            batch_size=context.get_per_replica_batch_size(8),
            transform=stoker.RandomResizedCrop(16),
            shuffle=True,
            seed=2,
            tail=tail,
            rank=context.input_pipeline_id,
            world_size=context.num_input_pipelines,
            elements=("images", "indices", "valid"),
        )

    @tf.function
    def step(images, valid):
        def of_replica(images, valid):
            return tf.reduce_sum(tf.cast(valid, tf.int32))
        return strategy.reduce("SUM", strategy.run(of_replica, (images, valid)), axis=None)

    def epoch(tail):
        indices, totals = [], []
        for images, own, valid in strategy.distribute_datasets_from_function(lambda context: share(context, tail)):
            totals.append(int(step(images, valid)))
            own, valid = (strategy.experimental_local_results(field)[0].numpy() for field in (own, valid))
            indices += own[valid].tolist()
        return {"indices": indices, "totals": totals}

    print(json.dumps({tail: epoch(tail) for tail in tails}))
"""
TAILS = ("pad", "short", "drop")


@pytest.fixture(scope="module")
def epochs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes had of an epoch with every tail."""
    shards = tmp_path_factory.mktemp("shards")
    write_shards(shards, 37, 3)  # four steps of two batches of four, and five samples
    addresses = json.dumps([f"localhost:{port}" for port in free_ports(2)])
    return run_together(PROGRAM, [[str(index), addresses, str(shards), *TAILS] for index in range(2)], "tensorflow")


@pytest.mark.needs("tensorflow")
@pytest.mark.parametrize("tail", TAILS)
def test_two_processes_share_an_epoch(epochs: list[dict[str, Any]], tail: str) -> None:
    first, second = (epoch[tail] for epoch in epochs)
    assert first["totals"] == second["totals"] == [8, 8, 8, 8] + ([] if tail == "drop" else [5])
    both = first["indices"] + second["indices"]
    assert len(both) == len(set(both)) == (32 if tail == "drop" else 37)
