"""The settings of a build, checked before any file is opened, and the presets of other systems' layouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast, get_args

from stoker.config import available_cpus, check_range, full_split_name, option, refuse_contradicting
from stoker.errors import ConfigError
from stoker.format import (
    MAX_SHARDS,
    DlbsSchema,
    DogsSchema,
    ImagenetSchema,
    NvidiaSchema,
    Schema,
    ShardNaming,
    TfdsSchema,
    TinySchema,
)
from stoker.recipe import KEPT_FORMATS, RawEncode, Recipe
from stoker.sources import SourceOptions

if TYPE_CHECKING:
    from stoker.recipe import Filter
    from stoker.types import Compression


DEFAULT_SHARD_BYTES = 128_000_000
"""Large enough to read in long requests, small enough to copy, and to lose little when a build is interrupted."""


DropDuplicates = Literal["within", "across-splits"]


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where the images are, which of them are taken, and how they are divided."""

    # any source that `stoker.sources.list_source` lists, or an existing dataset; None for the records of a program
    root: str | None
    options: SourceOptions = field(default_factory=SourceOptions)  # what the listing cannot find out by itself
    # split (``validation``, also called ``val``, or ``test``) and fraction (0..1) of every class of train that is
    # moved to it; None moves nothing
    held_out: tuple[str, float] | None = None
    limit: int | None = None  # images of train that are taken, a seeded choice; None takes all
    # whether every annotated object becomes a record of its own; an image without one stays whole
    crop_objects: bool = False
    drop_duplicates: DropDuplicates | None = None  # which equal files are left out; None leaves none out

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_range(option("num_images"), self.limit, 1, 2**62)
        if self.drop_duplicates is not None:
            refuse_contradicting({"drop_duplicates": True, "num_images": self.limit, "crop_objects": self.crop_objects})
        if self.held_out is None:
            return
        split, fraction = self.held_out
        object.__setattr__(self, "held_out", (full_split_name(split), fraction))
        if full_split_name(split) not in ("validation", "test") or not 0 < fraction < 1:
            message = f"{option('split_fraction')} {split}={fraction:g} is not understood"
            raise ConfigError(f"{message}; write validation=0.1 or test=0.1, with a fraction between 0 and 1")


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """How records are divided into files."""

    naming: ShardNaming = field(default_factory=ShardNaming)  # what the files are called
    train: int | None = None  # shards of train; None makes them about ``size_bytes`` long
    validation: int | None = None  # shards of validation; None gives it its share by bytes
    # shards of train and of validation when ``train`` is None, where that leaves each at least
    # `stoker.builder.plan.FULL_SHARD` records
    preferred: tuple[int, int] | None = None
    size_bytes: int = DEFAULT_SHARD_BYTES  # length aimed at otherwise
    compression: Compression = "none"

    def __post_init__(self) -> None:
        check_range(option("shard_size"), self.size_bytes, 1, 2**62)
        for name, shards in ((option("shards"), self.train), (option("validation_shards"), self.validation)):
            if shards is not None:
                check_range(name, shards, 1, MAX_SHARDS)


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """Everything that decides the bytes of a dataset, and how they are made."""

    source: SourceSettings
    recipe: Recipe = field(default_factory=Recipe)  # what happens to pixels
    schema: Schema = field(default_factory=ImagenetSchema)  # what a record says
    shards: ShardSettings = field(default_factory=ShardSettings)  # how records are divided into files
    seed: int = 0  # of the order of the records, and of what is held out or left out
    threads: int = field(default_factory=available_cpus)  # items converted at the same time. Never changes the bytes
    max_rejects: int = 0  # with more rejects the manifest is withheld. Never changes the bytes
    # whether a dataset is begun that is expected to be huge, or larger than the space that is free
    accept_size: bool = False
    # whether each line of ``labels.txt`` begins with its number and a colon, as TF-Slim's do
    numbered_labels: bool = False

    def __post_init__(self) -> None:
        check_range(option("seed"), self.seed, 0, 2**63 - 1)
        check_range(option("threads"), self.threads, 1, 1024)
        check_range(option("max_rejects"), self.max_rejects, 0, 2**63 - 1)
        preset = self.schema.info(0)
        if preset.preset == "tfds" and self.shards.compression != "none":
            message = "TensorFlow Datasets reads no compressed shards"
            raise ConfigError(f"{message}; omit {option('compression')}, or {option('preset')} tfds")
        raw = isinstance(self.recipe.encode, RawEncode)
        if raw != (self.schema.stores == "raw"):
            what = "pixels" if self.schema.stores == "raw" else "JPEG files"
            advice = (
                f"{option('encode')} raw or {option('preset')} imagenet"
                if not raw
                else f"{option('preset')} dlbs for {option('encode')} raw"
            )
            other = self.recipe.encode or "files"
            raise ConfigError(f"the layout {preset.preset} stores {what}, not {other}; use {advice}")
        if isinstance(self.recipe.encode, RawEncode) and self.recipe.encode.order != "HWC" and not preset.order_key:
            raise ConfigError(
                f"preset {preset.preset} cannot say that its pixels are CHW; use {option('preset')} dlbs or raw:HWC"
            )


_JPEG = frozenset({"jpeg"})

PresetName = Literal["imagenet", "imagenet-nvidia", "dlbs", "tiny-imagenet", "dogs-onehot", "tfds"]


@dataclass(frozen=True, slots=True)
class Preset:
    """What a preset means unless other options say otherwise."""

    schema: type[Schema]  # builds its schema: called with a label base
    label_base: int = 0  # number of the first class
    resize: str = "off"  # as ``--resize`` has it; ``off`` for none
    # as ``--encode`` has it; None leaves it to the recipe. Without a resize, a JPEG is not encoded so
    encode: str | None = None
    filter: Filter | None = None  # as ``--filter`` has it; None leaves it to the recipe
    shard_names: str = "default"  # as ``--shard-names`` has it
    # preferred shards of train and of validation; None for as many as their length asks for
    shards: tuple[int, int] | None = None
    compression: Compression = "none"
    numbered_labels: bool = False  # as in `BuildSettings`
    imagenet_labels: bool | None = None  # as in `BuildOptions`
    formats: frozenset[str] = KEPT_FORMATS  # what its readers take, as in `stoker.recipe.Recipe`

    def make_schema(self, label_base: int | None) -> Schema:
        """Return the schema with a label base, or, given None, with that of the preset."""
        return self.schema(self.label_base if label_base is None else label_base)


PLAIN = Preset(ImagenetSchema)
"""Without a preset: Google's 15 keys, class ids from 0, in shards that are named and numbered as suits any reader."""

PRESETS: dict[PresetName, Preset] = {
    "imagenet": Preset(
        ImagenetSchema,
        1,
        shard_names="google",
        shards=(1024, 128),
        numbered_labels=True,
        imagenet_labels=True,
        formats=_JPEG,
    ),
    "imagenet-nvidia": Preset(
        NvidiaSchema,
        1,
        "exact:352x352",
        "jpeg:90",
        "bilinear",
        shard_names="google",
        shards=(1024, 128),
        numbered_labels=True,
        imagenet_labels=True,
        formats=_JPEG,
    ),
    "dlbs": Preset(
        DlbsSchema,
        resize="square:256",
        encode="raw",
        filter="bilinear",
        shard_names="google",
        imagenet_labels=True,
    ),
    "tiny-imagenet": Preset(
        TinySchema, resize="exact:64x64", encode="raw", shard_names="per-class", imagenet_labels=False
    ),
    "dogs-onehot": Preset(
        DogsSchema, 0, "exact:224x224", "jpeg:95", "tf2-nearest", "part", (4, 1), "gzip", formats=_JPEG
    ),
    "tfds": Preset(TfdsSchema, shard_names="tfds", formats=frozenset({"jpeg", "png"})),
}


def find_preset(name: str | None) -> Preset:
    """Return the preset of a name, or `PLAIN` without one."""
    if name is None:
        return PLAIN
    if name not in get_args(PresetName):
        raise ConfigError(f"{option('preset')} {name!r} is unknown; there are {', '.join(PRESETS)}")
    return PRESETS[cast("PresetName", name)]
