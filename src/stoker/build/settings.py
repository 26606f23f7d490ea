"""What a build is told, checked before any file is opened."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.config import available_cpus, check_range
from stoker.errors import ConfigError
from stoker.recipe import Recipe
from stoker.records.layout import MAX_SHARDS
from stoker.schema import ImagenetSchema, Schema

DEFAULT_SHARD_BYTES = 128_000_000
"""Large enough to read in long strokes, small enough to copy, and to lose little when a build is interrupted."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where the images are and how they are divided.

    Attributes:
        root: Tree of class folders.
        boxes: Folder of box annotations; found beside the images when None.
        class_names: File with the classes' texts; found in the root when None.
        held_out: Split and fraction (0..1) of every class of train that is moved to it; None moves nothing.
    """

    root: str
    boxes: str | None = None
    class_names: str | None = None
    held_out: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        if self.held_out is None:
            return
        split, fraction = self.held_out
        if split not in ("validation", "test") or not 0 < fraction < 1:
            message = f"--split-fraction {split}={fraction:g} is not understood"
            raise ConfigError(f"{message}; write validation=0.1 or test=0.1, with a fraction between 0 and 1")


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Everything that decides the bytes of a dataset, and how they are made.

    Attributes:
        source: The images.
        recipe: What happens to pixels.
        schema: What a record says.
        shards: Shards of train; None makes them about ``shard_bytes`` long.
        validation_shards: Shards of validation; None gives it its share by bytes.
        shard_bytes: Length aimed at when ``shards`` is None.
        seed: Of the order of the records and of what is held out.
        threads: Items converted at the same time. Never changes the bytes.
        max_rejects: With more rejects the manifest is withheld. Never changes the bytes.
    """

    source: SourceSettings
    recipe: Recipe = field(default_factory=Recipe)
    schema: Schema = field(default_factory=ImagenetSchema)
    shards: int | None = None
    validation_shards: int | None = None
    shard_bytes: int = DEFAULT_SHARD_BYTES
    seed: int = 0
    threads: int = field(default_factory=available_cpus)
    max_rejects: int = 0

    def __post_init__(self) -> None:
        check_range("--seed", self.seed, 0, 2**63 - 1)
        check_range("--threads", self.threads, 1, 1024)
        check_range("--max-rejects", self.max_rejects, 0, 2**63 - 1)
        check_range("--shard-size", self.shard_bytes, 1, 2**62)
        for name, shards in (("--shards", self.shards), ("--validation-shards", self.validation_shards)):
            if shards is not None:
                check_range(name, shards, 1, MAX_SHARDS)
