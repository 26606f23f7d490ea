"""``ilsvrc.json``: the configuration of ALCF's example pipeline, accepted as a source.

Its section ``data`` names two lists of files, and says how they are read. Other sections (model, optimizer, ...) are
for training programs.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from stoker.errors import ConfigError, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.storage import Location


_MAX_CONFIG_BYTES = 2**20
_SPELLINGS = {"prefectch_buffer_size": "prefetch_buffer_size"}
"""Keys as their program spells them."""


def _key(take: Callable[[Location, Any], Any], must: str) -> Any:
    """Return the field of a key, given what takes its value, None of a wrong one, and what it must be."""
    return field(default=None, metadata={"take": take, "must": must})


def _at_least(least: int) -> Any:
    must = f"a whole number of at least {least}"
    return _key(lambda _, value: value if type(value) is int and value >= least else None, must)


def _file() -> Any:
    return _key(_file_beside, "the path or URL of a list of files")


def _file_beside(path: Location, value: Any) -> Location | None:
    try:
        is_path = bool(value) and b"\0" not in os.fsencode(value)
    except (TypeError, UnicodeEncodeError):  # JSON can spell half of a surrogate pair, which no path has
        return None
    return path.beside(value) if is_path else None


def _sides(_: Location, value: Any) -> tuple[int, int] | None:
    is_pair = isinstance(value, list) and len(value) == 2 and all(type(side) is int and side >= 1 for side in value)
    return (value[0], value[1]) if is_pair else None


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """The section ``data``; None for keys that are absent."""

    where: Location  # the file
    # name of the module that reads the data
    handler: str | None = _key(lambda _, value: value if isinstance(value, str) else None, "a string")
    train_filelist: Location | None = _file()  # noqa: RUF009 - a field
    test_filelist: Location | None = _file()  # noqa: RUF009 - a field
    batch_size: int | None = _at_least(1)
    shuffle_buffer: int | None = _at_least(0)  # images among which a random one is chosen; 0 for none
    reshuffle_each_iteration: bool | None = _key(
        lambda _, value: value if isinstance(value, bool) else None, "true or false"
    )
    num_parallel_readers: int | None = _at_least(0)
    prefetch_buffer_size: int | None = _at_least(0)  # batches made ahead
    # height and width of the images that leave the pipeline
    crop_image_size: tuple[int, int] | None = _key(_sides, "two whole numbers, height and width")
    num_classes: int | None = _at_least(1)
    num_channels: int | None = _key(lambda _, value: 3 if value == 3 else None, "3: images are RGB")

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
    known = {each.name: each.metadata for each in fields(PipelineConfig) if each.metadata}
    values: dict[str, Any] = {}
    for spelled, value in section.items():
        if (key := _SPELLINGS.get(spelled, spelled)) in known:
            values[key] = known[key]["take"](path, value)
            if values[key] is None:
                raise ConfigError(f"{path}: data.{spelled} is {value!r}; it must be {known[key]['must']}")
    unknown = sorted(f"data.{key}" for key in section if _SPELLINGS.get(key, key) not in known)
    if unknown:
        message = f"{path}: {' and '.join(unknown)} {'has' if len(unknown) == 1 else 'have'} no effect; correct the"
        message += f" spelling or remove it; the keys of data that are read: {', '.join(sorted(known))}"
        raise ConfigError(message)
    return PipelineConfig(path, **values)
