"""The settings of a loader from ALCF's ``ilsvrc.json``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker.errors import ConfigError
from stoker.sources.config_file import read_config
from stoker.views import ObjectCrops

if TYPE_CHECKING:
    import os


def loader_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what `stoker.Loader`, or an adapter, has to be told to do what such a file asks for.

    ``batch_size`` is taken as it is, ``crop_image_size`` becomes ``view=ObjectCrops(...)``, any ``shuffle_buffer``
    ``shuffle=True`` (a whole shuffle, anew in each epoch), ``num_parallel_readers`` ``threads`` and
    ``prefetch_buffer_size`` ``prefetch``. What the file leaves open, or has as 0, is left to the loader.

    Raises:
        ConfigError: The file lacks ``batch_size`` or ``crop_image_size``, or a value is not what it should be.
        SourceError: It is no such file.
    """
    config = read_config(Path(path))
    if config.batch_size is None or config.crop_image_size is None:
        message = f"{path} lacks {'batch_size' if config.batch_size is None else 'crop_image_size'} in its section data"
        raise ConfigError(f"{message}, without which no batch has a shape")
    settings: dict[str, Any] = {
        "batch_size": config.batch_size,
        "view": ObjectCrops(config.crop_image_size),
        "shuffle": bool(config.shuffle_buffer),
        "threads": config.num_parallel_readers or None,
    }
    return settings | ({"prefetch": config.prefetch_buffer_size} if config.prefetch_buffer_size else {})
