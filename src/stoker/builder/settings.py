"""The options of a build, the settings that they stand for, and presets for the layouts of other systems."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from stoker.config import available_cpus, check_size, option, refuse_contradicting, refuse_ineffective
from stoker.declare import Command, Instance, Range
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
from stoker.recipe import (
    KEPT_FORMATS,
    MAX_PIXELS,
    Check,
    Filter,
    JpegEncode,
    RawEncode,
    Recipe,
    parse_encode,
    parse_resize,
)
from stoker.sources import SourceOptions
from stoker.splits import full_split_name
from stoker.storage import location
from stoker.types import Compression, DecodeMode, Exif

_SHARD_BYTES = 128_000_000
"""Large enough to read in long requests, small enough to copy, and to lose little when a build is interrupted."""


DropDuplicates = Literal["within", "across-splits"]


_JPEG = frozenset({"jpeg"})

PresetName = Literal["imagenet", "imagenet-nvidia", "dlbs", "tiny-imagenet", "dogs-onehot", "tfds"]


@dataclass(frozen=True, slots=True)
class Preset:
    """What a preset sets, unless options say otherwise."""

    schema: type[Schema]  # builds its schema: called with a label base
    label_base: int = 0  # number of the first class
    resize: str = "off"  # as ``--resize`` has it; ``off`` for none
    # as ``--encode`` has it; None leaves it to the recipe. JPEG encoding applies only with a resize
    encode: str | None = None
    filter: Filter | None = None  # as ``--filter`` has it; None leaves it to the recipe
    shard_names: str = "default"  # as ``--shard-names`` has it
    shards: tuple[int, int] | None = None  # preferred shards of train and of validation; None: by their length
    compression: Compression = "none"
    # whether each line of ``labels.txt`` begins with its number and a colon, as TF-Slim's do
    numbered_labels: bool = False
    imagenet_labels: bool | None = None  # as in `BuildOptions`
    formats: frozenset[str] = KEPT_FORMATS  # image formats that its readers take, as in `stoker.recipe.Recipe`


_IMAGENET = Preset(
    ImagenetSchema,
    1,
    shard_names="google",
    shards=(1024, 128),
    numbered_labels=True,
    imagenet_labels=True,
    formats=_JPEG,
)

PRESETS: dict[PresetName | None, Preset] = {
    # Without a preset: Google's 15 keys, class ids from 0, in shards that are named and numbered for any reader
    None: Preset(ImagenetSchema),
    "imagenet": _IMAGENET,
    "imagenet-nvidia": replace(
        _IMAGENET, schema=NvidiaSchema, resize="exact:352x352", encode="jpeg:90", filter="bilinear"
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


Keeping = Literal["keep", "restart"]
_Text = Instance("a text")


@dataclass(frozen=True, kw_only=True)
class BuildOptions(SourceOptions):
    """What is built: the settings of `stoker.build`, and of ``stoker build``, ``plan`` and ``repack`` as options.

    A setting that is None has the value of the preset, or else the default.

    Raises:
        ConfigError: The value of a setting is not allowed, or contradicts another setting.
    """

    shards: Annotated[
        int | None,
        Range(1, MAX_SHARDS),
        Command("shards", "N", ("--shards", "--num-shards")),
        "Number of shards of train. Default: as many as ``shard_size`` makes.",
    ] = None
    shard_size: Annotated[
        str | int | None,
        Command("shards", "SIZE"),
        "Length of a shard, such as ``1GiB``. Default: 128MB.",
    ] = None
    validation_shards: Annotated[
        int | None,
        Range(1, MAX_SHARDS),
        Command("shards", "N"),
        "Number of shards of validation. Default: its share by bytes.",
    ] = None
    shard_names: Annotated[
        str | None,
        _Text,
        Command("shards", "HOW"),
        '``"default"``, ``"google"``, ``"tfds:NAME"``, ``"part"``, ``"per-class"`` or a template.',
    ] = None
    compression: Annotated[
        Compression | None,
        Command("shards", "HOW"),
        'Compression of whole shards: ``"none"``, ``"gzip"`` or ``"zlib"``. Default: none.',
    ] = None
    resize: Annotated[
        str | None,
        Instance("a text such as 'short:256'"),
        Command("stored", "HOW"),
        '``"short:256"``, ``"long:512"``, ``"max:512"``, ``"exact:300x200"`` (width x height), ``"square:300"`` or '
        '``"off"``. Default: off.',
    ] = None
    encode: Annotated[
        str | None,
        Instance("a text such as 'jpeg:90'"),
        Command("stored", "HOW"),
        'How every image is stored: ``"jpeg:90"``, ``"jpeg:90:420"``, ``"jpeg:90:444"``, ``"jpeg:90:standard"``, '
        '``"png"``, ``"webp:90"``, ``"webp:lossless"``, ``"raw"`` or ``"raw:CHW"``. Default: as it is, or as PNG; with '
        "``resize``, JPEG and lossy WebP as jpeg:90, others as PNG.",
        "The standard Huffman tables are encoded in a fifth less time, with 3 % more bytes.",
    ] = None
    filter: Annotated[
        Filter | None,
        Command("stored", "NAME"),
        "With ``resize``, the resampling filter. Default: bicubic.",
    ] = None
    decode: Annotated[
        DecodeMode,
        Command("stored", "HOW"),
        'With ``resize``: ``"exact"`` decodes like libjpeg\'s accurate decoder, ``"fast"`` faster and close to it. '
        "Default: exact.",
    ] = "exact"
    recipe: Annotated[
        Keeping | None,
        Command("stored", "HOW"),
        '``"keep"``: every JPEG, PNG and WebP is stored as it is, as without ``resize``. ``"restart"``: the same with '
        "restart markers in JPEGs, without loss.",
    ] = None
    check: Annotated[
        Check | None,
        Command("stored", "HOW"),
        'How images that are kept are checked: ``"header"``, ``"entropy"`` (all data, without making pixels) or '
        '``"decode"``. Default: header.',
    ] = None
    exif: Annotated[
        Exif,
        Command("stored", "HOW"),
        'EXIF orientation: ``"keep"`` it as stored, or ``"apply"`` it: JPEGs that it turns are encoded anew, '
        "with loss. Default: keep.",
    ] = "keep"
    max_pixels: Annotated[
        int,
        Range(1, 2**32),
        Command("stored", "N"),
        "Largest number of pixels of an image; larger ones are rejected. Default: 2**27.",
    ] = MAX_PIXELS
    preset: Annotated[
        PresetName | None,
        Command("stored", "NAME"),
        'Layout that readers of another system expect: ``"imagenet"``, ``"imagenet-nvidia"``, ``"dlbs"``, '
        '``"tiny-imagenet"``, ``"dogs-onehot"`` or ``"tfds"``.',
    ] = None
    label_base: Annotated[
        int | None,
        Command("stored", "N", choices=(0, 1)),
        "Number of the first class, 0 or 1. Default: as the preset has it, otherwise 0.",
    ] = None
    num_images: Annotated[
        int | None,
        Range(1, 2**62),
        Command("selection", "N"),
        "Number of images of train to use, chosen by the seed. Default: all.",
    ] = None
    split_fraction: Annotated[
        str | None,
        Instance("a text such as 'validation=0.1'"),
        Command("selection", "SPLIT=F"),
        'Moves a seeded part of every class of train to another split: ``"val=0.1"`` or ``"test=0.1"``.',
        "For a sequence, all labels are read first.",
    ] = None
    crop_objects: Annotated[
        bool,
        Command("selection"),
        "Whether every annotated object becomes a record instead of every image.",
    ] = False
    drop_duplicates: Annotated[
        DropDuplicates | None,
        Command("selection", "HOW"),
        'Leaves out all but the first of equal files: ``"within"`` each split; with ``"across-splits"``, also those of '
        "train that are in another split. They are listed as rejects. Default: none.",
        "Every image is read once more, before the build.",
    ] = None
    seed: Annotated[
        int,
        Range(0, 2**63 - 1),
        Command("shards", "N"),
        "Seed of the order of the records. Default: 0.",
    ] = 0
    threads: Annotated[
        int | None,
        Range(1, 1024),
        Command("running", "N", ("--threads", "--num-workers")),
        "Number of images converted at a time. Default: one per CPU.",
        "If given, this many threads may read records of a sequence at the same time, also of one that `stoker.open` "
        "has opened. By default only one does, because many objects allow no more.",
    ] = None
    max_rejects: Annotated[
        int,
        Range(0, 2**63 - 1),
        Command("running", "N"),
        "Number of images that may be missing in the dataset because they cannot be stored. Default: 0.",
    ] = 0
    allow_huge: Annotated[
        bool,
        Command("running", names=("--yes",)),
        "Whether to build a dataset that is huge, or may not fit on the disk.",
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_contradicting({"recipe": self.recipe == "keep", "resize": self.resize})
        refuse_contradicting({"shards": self.shards, "shard_size": self.shard_size})
        refuse_contradicting({"drop_duplicates": self.drop_duplicates, "num_images": self.num_images})
        refuse_contradicting({"drop_duplicates": self.drop_duplicates, "crop_objects": self.crop_objects})
        if self.shard_names == "per-class":
            where = f"with {option('shard_names')} per-class, which makes a shard of every class"
            refuse_ineffective(self._counts, where)

    @property
    def _counts(self) -> dict[str, object]:
        """The options that say how many shards there are, as far as they are given."""
        counting = ("shards", "shard_size", "validation_shards")
        return {name: value for name, value in self.given().items() if name in counting}

    def settings(self, source: str | None, name: str | None = None) -> BuildSettings:
        """Return the settings that the options stand for.

        Args:
            source: Where the images are; None for records of a program.
            name: Path or URL that preset tfds names the dataset after; None for the source.
        """
        preset, values = PRESETS[self.preset], self.values()
        if self.imagenet_labels is None:
            values["imagenet_labels"] = preset.imagenet_labels
        return BuildSettings(
            root=source,
            options=self,
            source=SourceOptions.among(values),
            held_out=None if self.split_fraction is None else _held_out(self.split_fraction),
            recipe=self._recipe(preset),
            schema=preset.schema(preset.label_base if self.label_base is None else self.label_base),
            naming=self._naming(name or source or "", preset),
            shard_bytes=check_size(
                option("shard_size"), _SHARD_BYTES if self.shard_size is None else self.shard_size, 1
            ),
            preferred_shards=None if self._counts else preset.shards,
            compression=self.compression or preset.compression,
            threads=available_cpus() if self.threads is None else self.threads,
        )

    def _recipe(self, preset: Preset) -> Recipe:
        resize = parse_resize("off" if self.recipe == "keep" else self.resize or preset.resize)
        named = preset.encode if self.encode is None else self.encode
        encode = None if named is None else parse_encode(named)
        if resize is None and self.encode is None and isinstance(encode, JpegEncode):
            encode = None  # the preset's is for images that are resized
        if resize is not None or isinstance(encode, RawEncode):
            refuse_ineffective({"check": self.check}, "where every image is decoded anyway")
        if resize is None:
            advice = f"give {option('resize')} too, or omit it"
            refuse_ineffective({"filter": self.filter}, f"without {option('resize')}", advice)
        if self.recipe == "keep" and not isinstance(encode, RawEncode | None):
            message = f"{option('recipe')} keep stores images as they are, and {option('encode')} {encode} does not"
            raise ConfigError(f"{message}; give one of them")
        return Recipe(
            resize=resize,
            encode=encode,
            filter=self.filter or preset.filter or "bicubic",
            check=self.check or "header",
            exif=self.exif,
            max_pixels=self.max_pixels,
            restart=self.recipe == "restart",
            decode=self.decode,
            formats=preset.formats,
        )

    def _naming(self, named: str, preset: Preset) -> ShardNaming:
        names = self.shard_names or preset.shard_names
        if self.shard_names is None and names == "per-class" and self._counts:
            names = "default"  # the preset's own names leave no choice of shards
        return ShardNaming(f"tfds:{_dataset_name(named)}" if names == "tfds" else names)


def _dataset_name(source: str) -> str:
    """Return a name for TFDS, which allows lower-case letters, digits and underscores."""
    path = location(source).absolute()
    name = re.sub(r"[^a-z0-9]+", "_", path.name.removesuffix(path.suffix).lower()).strip("_")
    return name if name[:1].isalpha() else f"images_{name}".rstrip("_")


def _held_out(text: str) -> tuple[str, float]:
    split, _, number = text.partition("=")
    try:
        fraction = float(number)
    except ValueError:
        fraction = 0.0
    name = full_split_name(split)
    if name not in ("validation", "test") or not 0 < fraction < 1:
        example = text if re.fullmatch(r"0?\.\d+", text) else "0.1"
        message = f"{option('split_fraction')} {text!r} is not understood; write validation={example} or test={example}"
        raise ConfigError(f"{message}, with a fraction between 0 and 1")
    return name, fraction


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """The settings that options stand for, given a preset and a source."""

    root: str | None  # a source or an existing dataset; None for the records of a program
    options: BuildOptions  # as they are given
    source: SourceOptions  # what the listing cannot find out by itself
    # ``validation`` or ``test`` and the fraction (0..1) of every class of train that is moved to it; None moves nothing
    held_out: tuple[str, float] | None
    recipe: Recipe  # what happens to pixels
    schema: Schema  # what a record says
    naming: ShardNaming  # what shards are called
    shard_bytes: int  # target length of shards whose number is not given
    # shards of train and of validation, if each then has at least `stoker.builder.plan.FULL_SHARD` records
    preferred_shards: tuple[int, int] | None
    compression: Compression
    threads: int  # items converted at the same time. Never changes the bytes

    def __post_init__(self) -> None:
        preset, encode = self.schema.info(0), self.recipe.encode
        if preset.preset == "tfds" and self.compression != "none":
            message = "TensorFlow Datasets reads no compressed shards"
            raise ConfigError(f"{message}; omit {option('compression')}, or {option('preset')} tfds")
        raw = isinstance(encode, RawEncode)
        if raw != (self.schema.stores == "raw"):
            what, advice = "pixels", f"{option('encode')} raw or {option('preset')} imagenet"
            if raw:
                what, advice = "JPEG files", f"{option('preset')} dlbs for {option('encode')} raw"
            raise ConfigError(f"the layout {preset.preset} stores {what}, not {encode or 'files'}; use {advice}")
        if encode == RawEncode("CHW") and not preset.order_key:
            raise ConfigError(
                f"preset {preset.preset} cannot say that its pixels are CHW; use {option('preset')} dlbs or raw:HWC"
            )
