"""``ilsvrc.json``: the configuration of ALCF's example pipeline, accepted as a source.

Its section ``data`` names two lists of files, and says how they are read. Other sections (model, optimizer, ...) are
for training programs.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from stoker.storage import Location


_MAX_CONFIG_BYTES = 2**20
_TEXTS = ("handler",)
_LISTS = ("train_filelist", "test_filelist")
_NUMBERS = {
    "batch_size": 1,
    "shuffle_buffer": 0,
    "num_parallel_readers": 0,
    "prefetch_buffer_size": 0,
    "num_classes": 1,
    "num_channels": 1,
}
"""Keys of whole numbers, and the least that each can be."""

_SPELLINGS = {"prefectch_buffer_size": "prefetch_buffer_size"}
"""Keys as their program spells them."""

_SIDES = 2
_CHANNELS = 3


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """The section ``data``; None for keys that are absent.

    Attributes:
        where: The file.
        handler: Name of the module that reads the data.
        train_filelist: List of the training images.
        test_filelist: List of the test images.
        batch_size: Images a batch.
        shuffle_buffer: Images among which a random one is chosen; 0 for none.
        reshuffle_each_iteration: Whether each epoch has an order of its own.
        num_parallel_readers: Threads that read.
        prefetch_buffer_size: Batches made ahead.
        crop_image_size: Height and width of the images that leave the pipeline.
        num_classes: Classes there are.
        num_channels: Channels of the images: 3.
    """

    where: Location
    handler: str | None = None
    train_filelist: Location | None = None
    test_filelist: Location | None = None
    batch_size: int | None = None
    shuffle_buffer: int | None = None
    reshuffle_each_iteration: bool | None = None
    num_parallel_readers: int | None = None
    prefetch_buffer_size: int | None = None
    crop_image_size: tuple[int, int] | None = None
    num_classes: int | None = None
    num_channels: int | None = None

    def lists(self) -> dict[Location, str]:
        """Return the split of each list."""
        named = {"train": self.train_filelist, "test": self.test_filelist}
        lists = {split: path for split, path in named.items() if path is not None}
        if not lists:
            raise ConfigError(f"{self.where} names neither train_filelist nor test_filelist in its section data")
        if len(set(lists.values())) < len(lists):
            raise ConfigError(f"{self.where} names {self.train_filelist} as train_filelist and as test_filelist")
        return {path: split for split, path in lists.items()}


_OTHERS = 'a COCO file has a list "images", and a table with a JSON object on each line is called *.jsonl'
"""What another file called ``*.json`` may have been meant to be."""


def is_config(path: Location) -> bool:
    """Return whether a file is taken for a configuration, by its name."""
    return path.suffix.lower() == ".json"


def read_config(path: Location) -> PipelineConfig:
    """Read a configuration. Paths in it are relative to its folder.

    Raises:
        ConfigError: A value has the wrong type or is out of range, or a key of the section has no effect.
        SourceError: It is not JSON, or has no section ``data``.
        OSError: It cannot be read.
    """
    if path.size() > _MAX_CONFIG_BYTES:
        message = f"{path} is larger than {_MAX_CONFIG_BYTES} bytes, so it is not a configuration"
        raise SourceError(f"{message}; {_OTHERS}", path=str(path))
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{path} is not JSON: {error}", path=str(path)) from error
    section = document.get("data") if isinstance(document, dict) else None
    if not isinstance(section, dict):
        message = f'{path} has no section "data" with train_filelist and test_filelist'
        raise SourceError(f"{message}; {_OTHERS}", path=str(path))
    values: dict[str, Any] = {}
    for spelled, value in section.items():
        key = _SPELLINGS.get(spelled, spelled)
        if key in _FIELDS:
            values[key] = _checked(path, key, spelled, value)
    unknown = sorted(f"data.{key}" for key in section if _SPELLINGS.get(key, key) not in _FIELDS)
    if unknown:
        what = f"{unknown[0]} has" if len(unknown) == 1 else f"{' and '.join(unknown)} have"
        known = ", ".join(sorted(_FIELDS))
        raise ConfigError(
            f"{path}: {what} no effect; correct the spelling or remove it; the keys of data that are read: {known}"
        )
    return PipelineConfig(path, **values)


_FIELDS = frozenset(PipelineConfig.__dataclass_fields__) - {"where"}


def _checked(path: Location, key: str, spelled: str, value: object) -> object:
    if key in _TEXTS and isinstance(value, str):
        return value
    if key in _LISTS and isinstance(value, str) and _is_path(value):
        return path.beside(value)
    if key == "num_channels" and value != _CHANNELS:
        raise ConfigError(f"{path}: data.{spelled} is {value!r}; it must be {_CHANNELS}: images are RGB")
    if key in _NUMBERS and type(value) is int and value >= _NUMBERS[key]:
        return value
    if key == "reshuffle_each_iteration" and isinstance(value, bool):
        return value
    if key == "crop_image_size" and isinstance(value, list) and len(value) == _SIDES:
        sides = [side for side in value if type(side) is int and side >= 1]
        if len(sides) == _SIDES:
            return sides[0], sides[1]
    raise ConfigError(f"{path}: data.{spelled} is {value!r}; it must be {_expected(key)}")


def _is_path(text: str) -> bool:
    try:
        return bool(text) and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # JSON can spell half of a surrogate pair, which no path has
        return False


def _expected(key: str) -> str:
    if key in _LISTS:
        return "the path or URL of a list of files"
    if key in _NUMBERS:
        return f"a whole number of at least {_NUMBERS[key]}"
    if key == "crop_image_size":
        return "two whole numbers, height and width"
    return "true or false" if key == "reshuffle_each_iteration" else "a string"
