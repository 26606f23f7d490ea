"""Two TensorFlow processes train on uneven data: equal steps, disjoint samples, no hang."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loader.processes import free_ports, run_together
from loader.shards import write_shards

if TYPE_CHECKING:
    from pathlib import Path

# Every step adds up a number of both processes, so one that made a step more would wait for ever.
PROGRAM = """
    import json, os, sys
    index, addresses, path, tail = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
    import tensorflow as tf
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    import stoker
    import stoker.tensorflow

    train = stoker.open(path)

    def share(context):
        return stoker.tensorflow.dataset(
            train,
            batch_size=context.get_per_replica_batch_size(8),
            transform=stoker.RandomResizedCrop(16),
            shuffle=True,
            seed=2,
            tail=tail,
            rank=context.input_pipeline_id,
            world_size=context.num_input_pipelines,
            fields=("images", "indices", "valid"),
        )

    @tf.function
    def step(images, valid):
        def of_replica(images, valid):
            return tf.reduce_sum(tf.cast(valid, tf.int32))
        return strategy.reduce("SUM", strategy.run(of_replica, (images, valid)), axis=None)

    keys, totals = [], []
    for images, own, valid in strategy.distribute_datasets_from_function(share):
        totals.append(int(step(images, valid)))
        own, valid = (strategy.experimental_local_results(field)[0].numpy() for field in (own, valid))
        keys += own[valid].tolist()
    print(json.dumps({"indices": keys, "totals": totals}))
"""


@pytest.mark.needs("tensorflow")
@pytest.mark.parametrize("tail", ["pad", "short", "drop"])
def test_two_processes_share_an_epoch(tmp_path: Path, tail: str) -> None:
    write_shards(tmp_path, 37, 3)  # four steps of two batches of four, and five samples
    addresses = json.dumps([f"localhost:{port}" for port in free_ports(2)])
    first, second = run_together(PROGRAM, [[str(index), addresses, str(tmp_path), tail] for index in range(2)])
    assert first["totals"] == second["totals"] == [8, 8, 8, 8] + ([] if tail == "drop" else [5])
    both = first["indices"] + second["indices"]
    assert len(both) == len(set(both)) == (32 if tail == "drop" else 37)
