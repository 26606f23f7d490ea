"""Images per second of the loader that a configuration file describes: one figure, and nothing to compare it with."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.config import check_range, check_seconds
from stoker.inspect.measuring import Meter
from stoker.loader import Loader, loader_settings, open_main_split

if TYPE_CHECKING:
    import os

_WARM_UP_SECONDS = 1.0
_ANY_NUMBER = 2**31


@dataclass(frozen=True, slots=True)
class LoaderSpeed:
    """How fast batches come with the settings of a configuration file.

    Attributes:
        dataset: The file.
        split: The split that was read.
        images_per_second: Median over the rounds; images that leave the loader, so each cut-out object is one.
        lowest: The slowest round.
        highest: The fastest round.
        batch_size: Images a batch.
        shape: Height, width and channels of each.
        threads: Threads that read and decode.
        prefetch: Batches made ahead of the consumer; None: as many as a loader makes by default.
    """

    dataset: str
    split: str
    images_per_second: float
    lowest: float
    highest: float
    batch_size: int
    shape: tuple[int, ...]
    threads: int
    prefetch: int | None


def measure_configured(
    path: str | os.PathLike[str],
    split: str | None = None,
    *,
    batch_size: int | None = None,
    threads: int | None = None,
    seconds: float = 1.0,
    rounds: int = 3,
) -> LoaderSpeed:
    """Read with the loader that a configuration file describes, on this machine, and time it.

    Images that cannot be decoded are replaced by others.

    Args:
        path: An ``ilsvrc.json``; see `stoker.loader_settings`.
        split: Which split; None: the only one, or train.
        batch_size: Images a batch, instead of the file's.
        threads: Threads, instead of the file's readers.
        seconds: Time of each round, 0.1 to 3600.
        rounds: How many rounds, after a warm-up of the same length, a second at most.

    Raises:
        ConfigError: A setting is out of range, or one of the file is wrong or has no effect.
        DatasetNotFoundError: A list names no images.
        OSError: A file cannot be read.
    """
    check_seconds("--seconds", seconds, 0.1, 3600)
    check_range("--rounds", rounds, 1, 1000)
    settings = loader_settings(path)
    settings |= {} if batch_size is None else {"batch_size": batch_size}
    settings |= {} if threads is None else {"threads": threads}
    dataset = open_main_split(path, split)
    settings |= {"rank": 0, "world_size": 1, "seed": 0}
    with Loader(dataset, **settings, on_bad="substitute", max_bad=_ANY_NUMBER) as loader:
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
        shape = next(batches).images.shape[1:]
        meter = Meter(len(batch) for batch in batches)
        meter.warm_up(min(_WARM_UP_SECONDS, seconds), images=1)
        speeds = [meter.rate(seconds) for _ in range(rounds)]
        used = loader.stats().threads
    return LoaderSpeed(
        dataset=str(path),
        split=dataset.split,
        images_per_second=statistics.median(speeds),
        lowest=min(speeds),
        highest=max(speeds),
        batch_size=settings["batch_size"],
        shape=shape,
        threads=used,
        prefetch=settings.get("prefetch"),
    )
