"""Two JAX processes of two devices each make global arrays of uneven data."""

from __future__ import annotations

from typing import Any

import pytest

from loader.processes import free_ports, run_together
from loader.shards import write_shards

# The sum over a global array is a collective: a process that made a step more would wait for ever.
PROGRAM = """
    import json, sys
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    index, port, path, tails = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 2)
    jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=index)
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
TAILS = ("pad", "drop")


@pytest.fixture(scope="module")
def epochs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes had of an epoch with every tail."""
    shards = tmp_path_factory.mktemp("shards")
    write_shards(shards, 37, 3)
    (port,) = free_ports(1)
    return run_together(PROGRAM, [[str(index), str(port), str(shards), *TAILS] for index in range(2)], "jax")


@pytest.mark.needs("jax")
@pytest.mark.parametrize("tail", TAILS)
def test_two_processes_share_an_epoch(epochs: list[dict[str, Any]], tail: str) -> None:
    first, second = (epoch[tail] for epoch in epochs)
    assert first["totals"] == second["totals"] == [8, 8, 8, 8] + ([] if tail == "drop" else [5])
    both = first["indices"] + second["indices"]
    assert len(both) == len(set(both)) == (32 if tail == "drop" else 37)
