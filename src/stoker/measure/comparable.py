"""Which datasets every contender can read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.errors import ConfigError

if TYPE_CHECKING:
    from stoker.feed import Dataset


def refuse_incomparable(dataset: Dataset) -> None:
    """Refuse what the other contenders cannot read, so that no figure stands alone.

    Raises:
        ConfigError: It is no dataset of JPEG records in uncompressed shards.
    """
    is_raw = dataset.schema.image_encoding == "raw"
    if dataset.shards and not is_raw and all(shard.inflated is None for shard in dataset.shards):
        return
    what = "raw tensors" if is_raw else "compressed shards" if dataset.shards else "image files"
    command = "stoker repack" if dataset.shards else "stoker build"
    message = f"bench compares readers of JPEG records in uncompressed shards, and {dataset.path} holds {what}"
    raise ConfigError(f"{message}; '{command}' makes a dataset that all of them read")
