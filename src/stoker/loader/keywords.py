"""Keywords that people bring from other loaders, and which setting does the same here."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NO_WORKERS = "decoding runs on threads and not in worker processes; omit it, and give threads= to say how many"
_OWN_SAMPLER = (
    "use shuffle=, sampling=stoker.Balanced() or stoker.Weighted(weights), "
    "or give a stoker.torch.MapDataset and your sampler to torch.utils.data.DataLoader"
)
_ALWAYS_IN_ORDER = "batches always come in the same order; omit it"

_INSTEAD = {
    # torch.utils.data.DataLoader and its DistributedSampler
    "sampler": _OWN_SAMPLER,
    "batch_sampler": _OWN_SAMPLER,
    "num_workers": "decoding runs on threads and not in worker processes; use threads=",
    "collate_fn": "batches are put together natively; use transform= for images, and change whole batches in your loop",
    "timeout": _NO_WORKERS,
    "worker_init_fn": _NO_WORKERS,
    "multiprocessing_context": _NO_WORKERS,
    "persistent_workers": _NO_WORKERS,
    "prefetch_factor": "use prefetch=, the number of batches that are decoded ahead",
    "generator": "use seed=",
    "in_order": _ALWAYS_IN_ORDER,
    "pin_memory": "only stoker.torch.DataLoader pins memory",
    "pin_memory_device": "use pin_memory=",
    "num_replicas": "use world_size=",
    # tf.data
    "drop_remainder": "use drop_last=",
    "buffer_size": "use shuffle=True, which shuffles the whole epoch, or shuffle=stoker.BlockShuffle(...)",
    "num_parallel_calls": "use threads=",
    "deterministic": _ALWAYS_IN_ORDER,
    # JAX and Grain
    "shard_index": "use rank=",
    "shard_count": "use world_size=",
    "worker_count": "decoding runs on threads and not in worker processes; use threads=",
}


def refuse_unknown(name: str, parameters: Iterable[str], unknown: Mapping[str, object]) -> None:
    """Refuse keywords that a loader does not have, with the setting to use instead.

    Args:
        name: Of the loader, as people type it.
        parameters: Names of its parameters.
        unknown: The keywords that are none of them.

    Raises:
        TypeError: There are some; the message is about the first.
    """
    settings = [parameter for parameter in parameters if parameter not in ("self", "unknown")]
    for keyword in unknown:
        similar = difflib.get_close_matches(keyword, settings, n=1)
        if keyword in _INSTEAD:
            hint = _INSTEAD[keyword]
        elif similar:
            hint = f"did you mean {similar[0]}=?"
        else:
            hint = f"its settings are {', '.join(settings)}"
        raise TypeError(f"{name} has no setting {keyword!r}: {hint}")
