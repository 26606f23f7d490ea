"""The layouts that can be asked for by name, each with the settings that belong to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast, get_args

from stoker.errors import ConfigError
from stoker.schema import DlbsSchema, DogsSchema, ImagenetSchema, NvidiaSchema, TfdsSchema, TinySchema

if TYPE_CHECKING:
    from stoker.recipe.recipe import Filter
    from stoker.schema import Schema
    from stoker.types import Compression

PresetName = Literal["imagenet", "imagenet-nvidia", "dlbs", "tiny-imagenet", "dogs-onehot", "tfds"]


@dataclass(frozen=True, slots=True)
class Preset:
    """What a preset means unless other options say otherwise.

    Attributes:
        schema: Builds its schema: called with a label base, or with nothing for its own.
        resize: As ``--resize`` has it; ``off`` for none.
        encode: As ``--encode`` has it; None leaves it to the recipe.
        filter: As ``--filter`` has it; None leaves it to the recipe.
        shard_names: As ``--shard-names`` has it.
        shards: Preferred shards of train and of validation; None for as many as their length asks for.
        compression: Of the shards.
    """

    schema: type[DlbsSchema | DogsSchema | ImagenetSchema | NvidiaSchema | TfdsSchema | TinySchema]
    resize: str = "off"
    encode: str | None = None
    filter: Filter | None = None
    shard_names: str = "default"
    shards: tuple[int, int] | None = None
    compression: Compression = "none"

    def make_schema(self, label_base: int | None) -> Schema:
        """Return the schema with a label base, or with its own.

        Raises:
            ConfigError: It has no such base.
        """
        return self.schema() if label_base is None else self.schema(label_base)


PLAIN = Preset(ImagenetSchema)
"""Without a preset: Google's 15 keys in shards that are named and numbered as suits any reader."""

PRESETS: dict[PresetName, Preset] = {
    "imagenet": Preset(ImagenetSchema, shard_names="google", shards=(1024, 128)),
    "imagenet-nvidia": Preset(
        NvidiaSchema, "exact:352x352", "jpeg:90", "bilinear", shard_names="google", shards=(1024, 128)
    ),
    "dlbs": Preset(DlbsSchema, "square:256", "raw", "bilinear", shard_names="google"),
    "tiny-imagenet": Preset(TinySchema, encode="raw", shard_names="per-class"),
    "dogs-onehot": Preset(DogsSchema, "exact:224x224", "jpeg:95", "tf2-nearest", "part", (4, 1), "gzip"),
    "tfds": Preset(TfdsSchema, shard_names="tfds"),
}


def find_preset(name: str | None) -> Preset:
    """Return the preset of a name, or `PLAIN` without one.

    Raises:
        ConfigError: There is none of that name.
    """
    if name is None:
        return PLAIN
    if name not in get_args(PresetName):
        raise ConfigError(f"--preset {name!r} is unknown; there are {', '.join(PRESETS)}")
    return PRESETS[cast("PresetName", name)]
