"""Two processes, of JAX with two devices each or of TensorFlow, share uneven data: equal steps, disjoint samples."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loader.processes import run_together
from loader.shards import write_shards
from servers.processes import free_ports

if TYPE_CHECKING:
    from pathlib import Path

# Every step adds up a number of both processes, so one that made a step more would wait for ever.
JAX = """
    import json, sys
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    index, addresses, path, tails = int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3], sys.argv[4:]
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(addresses[0], num_processes=2, process_id=index)
    import stoker

    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    train, transform = stoker.open(path), stoker.RandomResizedCrop(16)
    count = jax.jit(lambda valid: valid.sum())

    def epoch(tail):
        keys, totals = [], []
        with stoker.jax.batches(
            train, batch_size=4, transform=transform, sharding=sharding, tail=tail, shuffle=True, seed=2, epochs=1
        ) as batches:
            for batch in batches:
                assert batch["images"].shape == (8, 16, 16, 3), batch["images"].shape
                totals.append(int(count(batch["valid"])))
                for part, valid in zip(batch["indices"].addressable_shards, batch["valid"].addressable_shards):
                    keys += np.asarray(part.data)[np.asarray(valid.data)].tolist()
            assert len(totals) == batches.steps_per_epoch
        return {"indices": keys, "totals": totals}

    print(json.dumps({tail: epoch(tail) for tail in tails}))
"""
TENSORFLOW = """
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


@pytest.mark.parametrize(
    ("framework", "program", "tails"),
    [
        pytest.param("jax", JAX, ("pad", "drop"), marks=pytest.mark.needs("jax")),
        pytest.param("tensorflow", TENSORFLOW, ("pad", "short", "drop"), marks=pytest.mark.needs("tensorflow")),
    ],
    ids=["jax", "tensorflow"],
)
def test_two_processes_share_an_epoch(framework: str, program: str, tails: tuple[str, ...], tmp_path: Path) -> None:
    write_shards(tmp_path, 37, 3)  # four steps of two batches of four, and five samples
    addresses = json.dumps([f"localhost:{port}" for port in free_ports(2)])
    arguments = [[str(index), addresses, str(tmp_path), *tails] for index in range(2)]
    epochs = run_together(program, arguments, framework)
    for tail in tails:
        first, second = (epoch[tail] for epoch in epochs)
        assert first["totals"] == second["totals"] == [8, 8, 8, 8] + ([] if tail == "drop" else [5])
        both = first["indices"] + second["indices"]
        assert len(both) == len(set(both)) == (32 if tail == "drop" else 37)
