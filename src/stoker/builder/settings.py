"""What people type to say what is built, what it stands for, and the presets of other systems' layouts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

from stoker.config import (
    available_cpus,
    check_range,
    check_size,
    full_split_name,
    option,
    refuse_contradicting,
    refuse_ineffective,
)
from stoker.declare import Command, Instance
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
from stoker.storage import location
from stoker.types import Compression, DecodeMode, Exif

if TYPE_CHECKING:
    from stoker.recipe import Encode, StoredSize


DEFAULT_SHARD_BYTES = 128_000_000
"""Large enough to read in long requests, small enough to copy, and to lose little when a build is interrupted."""


DropDuplicates = Literal["within", "across-splits"]


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """Where the images are, which of them are taken, and how they are divided."""

    root: str | None  # a source or an existing dataset; None for the records of a program
    options: SourceOptions = field(default_factory=SourceOptions)  # what the listing cannot find out by itself
    # split (``validation``, also called ``val``, or ``test``) and fraction (0..1) of every class of train that is
    # moved to it; None moves nothing
    held_out: tuple[str, float] | None = None
    limit: int | None = None  # images of train that are taken, a seeded choice; None takes all
    crop_objects: bool = False  # whether every annotated object becomes a record of its own
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
    accept_size: bool = False  # whether it may be huge, or larger than the free space
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
    shards: tuple[int, int] | None = None  # preferred shards of train and of validation; None: by their length
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


Keeping = Literal["keep", "restart"]
_Text = Instance("a text")


@dataclass(frozen=True, kw_only=True)
class BuildOptions(SourceOptions):
    """What is built: the settings of `stoker.build`, and of ``stoker build``, ``plan`` and ``repack`` as options.

    Where a setting is None, it has the value that the preset gives it, or the default.

    Raises:
        ConfigError: A setting is none of those allowed.
    """

    shards: Annotated[
        int | None,
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
        'Of whole shards: ``"none"``, ``"gzip"`` or ``"zlib"``. Default: none.',
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
        Command("stored", "N"),
        "Number of pixels of an image above which it is rejected. Default: 2**27.",
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
        Command("selection", "N"),
        "Number of images of train that are taken, a seeded choice. Default: all.",
    ] = None
    split_fraction: Annotated[
        str | None,
        Instance("a text such as 'validation=0.1'"),
        Command("selection", "SPLIT=F"),
        'Moves a seeded part of every class of train to another split: ``"val=0.1"`` or ``"test=0.1"``.',
        "Of a sequence all labels are read first.",
    ] = None
    crop_objects: Annotated[
        bool,
        Command("selection"),
        "Whether every annotated object becomes a record instead of every image.",
    ] = False
    drop_duplicates: Annotated[
        DropDuplicates | None,
        Command("selection", "HOW"),
        'Leaves out files of the same bytes but for the first: ``"within"`` each split; ``"across-splits"``, also out '
        "of train what is in another split. They are listed as rejects. Default: none.",
        "Every image is read once more, before the build.",
    ] = None
    seed: Annotated[int, Command("shards", "N"), "Seed of the order of the records. Default: 0."] = 0
    threads: Annotated[
        int | None,
        Command("running", "N", ("--threads", "--num-workers")),
        "Number of images converted at a time. Default: one per CPU.",
        "So many threads may read a record of a sequence at the same time, also of one that `stoker.open` has, if it "
        "is given; by default one, as many objects allow no more.",
    ] = None
    max_rejects: Annotated[
        int,
        Command("running", "N"),
        "Number of images that may be missing in the dataset because they cannot be stored. Default: 0.",
    ] = 0
    allow_huge: Annotated[
        bool,
        Command("running", names=("--yes",)),
        "Whether a dataset is built also if it is huge, or may not fit on the disk.",
    ] = False

    def settings(self, source: str | None, name: str | None = None) -> BuildSettings:
        """Return the settings that the options stand for.

        Args:
            source: Where the images are; None for records of a program.
            name: Path or URL that a preset that asks for it names the dataset after; None for the source.
        """
        preset = find_preset(self.preset)
        return BuildSettings(
            source=self._source(source, preset),
            recipe=self._recipe(preset),
            schema=preset.make_schema(self.label_base),
            shards=self._shards(name or source or "", preset),
            seed=self.seed,
            threads=available_cpus() if self.threads is None else self.threads,
            max_rejects=self.max_rejects,
            accept_size=self.allow_huge,
            numbered_labels=preset.numbered_labels,
        )

    def _source(self, root: str | None, preset: Preset) -> SourceSettings:
        values = self.values()
        if self.imagenet_labels is None:
            values["imagenet_labels"] = preset.imagenet_labels
        return SourceSettings(
            root=root,
            options=SourceOptions.among(values),
            held_out=None if self.split_fraction is None else _held_out(self.split_fraction),
            limit=self.num_images,
            crop_objects=self.crop_objects,
            drop_duplicates=self.drop_duplicates,
        )

    def _recipe(self, preset: Preset) -> Recipe:
        refuse_contradicting({"recipe": self.recipe == "keep", "resize": self.resize})
        resize = parse_resize("off" if self.recipe == "keep" else self.resize or preset.resize)
        encode = self._encode(preset, resize)
        if resize is not None or isinstance(encode, RawEncode):
            refuse_ineffective({"check": self.check}, "where every image is decoded anyway")
        if resize is None:
            advice = f"give {option('resize')} too, or omit it"
            refuse_ineffective({"filter": self.filter}, f"without {option('resize')}", advice)
        if self.recipe == "keep" and not isinstance(encode, RawEncode | None):
            message = f"{option('recipe')} keep stores images as they are, and {option('encode')} {encode} does not"
            message += "; give one of them"
            raise ConfigError(message)
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

    def _encode(self, preset: Preset, resize: StoredSize | None) -> Encode | None:
        if self.encode is not None:
            return parse_encode(self.encode)
        encode = None if preset.encode is None else parse_encode(preset.encode)
        return None if resize is None and isinstance(encode, JpegEncode) else encode

    def _shards(self, named: str, preset: Preset) -> ShardSettings:
        refuse_contradicting({"shards": self.shards, "shard_size": self.shard_size})
        counted = self.shards is not None or self.validation_shards is not None or self.shard_size is not None
        if self.shard_names == "per-class":
            where = f"with {option('shard_names')} per-class, which makes a shard of every class"
            given = {name: getattr(self, name) for name in ("shards", "validation_shards", "shard_size")}
            refuse_ineffective(given, where)
        names = self.shard_names or preset.shard_names
        if self.shard_names is None and names == "per-class" and counted:
            names = "default"  # the preset's own names leave no choice of shards
        if names == "tfds":
            names = f"tfds:{_dataset_name(named)}"
        return ShardSettings(
            naming=ShardNaming(names),
            train=self.shards,
            validation=self.validation_shards,
            preferred=None if counted else preset.shards,
            size_bytes=DEFAULT_SHARD_BYTES
            if self.shard_size is None
            else check_size(option("shard_size"), self.shard_size, 1),
            compression=self.compression or preset.compression,
        )


def _dataset_name(source: str) -> str:
    """Return a name for TFDS, which allows lower-case letters, digits and underscores."""
    path = location(source).absolute()
    name = re.sub(r"[^a-z0-9]+", "_", path.name.removesuffix(path.suffix).lower()).strip("_")
    return name if name[:1].isalpha() else f"images_{name}".rstrip("_")


def _held_out(text: str) -> tuple[str, float]:
    split, _, fraction = text.partition("=")
    try:
        return split, float(fraction)
    except ValueError:
        example = text if re.fullmatch(r"0?\.\d+", text) else "0.1"
        message = f"{option('split_fraction')} {text!r} is not understood; write validation={example}"
        raise ConfigError(message) from None
