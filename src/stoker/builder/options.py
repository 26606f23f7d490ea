"""What people type to say what is built: as options of commands, or as arguments of `stoker.build`."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, get_args

from stoker.builder.settings import (
    DEFAULT_SHARD_BYTES,
    BuildSettings,
    ShardSettings,
    SourceSettings,
    find_preset,
)
from stoker.config import available_cpus, check_choice, check_size, option
from stoker.errors import ConfigError
from stoker.format import ShardNaming
from stoker.recipe import CHECKS, FILTERS, MAX_PIXELS, JpegEncode, RawEncode, Recipe, parse_encode, parse_resize
from stoker.sources import SourceOptions
from stoker.storage import location
from stoker.types import Compression, DecodeMode

if TYPE_CHECKING:
    from stoker.builder.settings import Preset, PresetName
    from stoker.recipe import Check, Encode, Filter, StoredSize
    from stoker.storage import LocationLike

Exif = Literal["keep", "apply"]
Keeping = Literal["keep", "restart"]

COMPRESSIONS: tuple[Compression, ...] = get_args(Compression)
DECODES: tuple[DecodeMode, ...] = get_args(DecodeMode)
EXIF: tuple[Exif, ...] = get_args(Exif)
RECIPES: tuple[Keeping, ...] = get_args(Keeping)
_CHOICES = {
    "filter": FILTERS,
    "decode": DECODES,
    "recipe": RECIPES,
    "check": CHECKS,
    "exif": EXIF,
    "compression": COMPRESSIONS,
}
_TEXTS = ("preset", "resize", "encode", "split_fraction", "shard_names")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """The options of ``stoker build`` that say what is built, under the names that `stoker.build` documents.

    Whatever is left out has the value that the preset gives it, or the default.
    """

    labels: LocationLike | None = None
    validation_labels: LocationLike | None = None
    class_names: LocationLike | None = None
    boxes: LocationLike | None = None
    masks: bool = False
    num_images: int | None = None
    split_fraction: str | None = None
    crop_objects: bool = False
    preset: PresetName | None = None
    resize: str | None = None
    encode: str | None = None
    filter: Filter | None = None
    decode: DecodeMode = "exact"
    recipe: Keeping | None = None
    check: Check | None = None
    exif: Exif = "keep"
    max_pixels: int = MAX_PIXELS
    label_base: int | None = None
    shards: int | None = None
    shard_size: str | int | None = None
    validation_shards: int | None = None
    shard_names: str | None = None
    compression: Compression | None = None
    seed: int = 0
    threads: int | None = None
    max_rejects: int = 0
    allow_huge: bool = False

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the options."""
        return tuple(one.name for one in fields(cls))

    def settings(self, source: str | None, name: str | None = None) -> BuildSettings:
        """Return the settings that the options stand for.

        Args:
            source: Where the images are; None for records of a program.
            name: Path or URL that a preset that asks for it names the dataset after; None for the source.

        Raises:
            ConfigError: An option is out of range, or contradicts another.
        """
        self._check_kinds()
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

    def _check_kinds(self) -> None:
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ConfigError(f"{option(name)} is {value!r}; it must be a text")
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value is not None:
                check_choice(option(name), value, known)

    def _source(self, root: str | None, preset: Preset) -> SourceSettings:
        return SourceSettings(
            root=root,
            options=SourceOptions(
                boxes=_text(self.boxes),
                class_names=_text(self.class_names),
                labels=_text(self.labels),
                validation_labels=_text(self.validation_labels),
                imagenet_labels=preset.imagenet_labels,
                masks=self.masks or None,
            ),
            held_out=None if self.split_fraction is None else _held_out(self.split_fraction),
            limit=self.num_images,
            crop_objects=self.crop_objects,
        )

    def _recipe(self, preset: Preset) -> Recipe:
        self._refuse_contradictions()
        resize = parse_resize("off" if self.recipe == "keep" else self.resize or preset.resize)
        encode = self._encode(preset, resize)
        if (resize is not None or isinstance(encode, RawEncode)) and self.check is not None:
            raise ConfigError(f"{option('check')} has no effect where every image is decoded anyway; omit it")
        if resize is None and self.filter is not None:
            raise ConfigError(
                f"{option('filter')} has no effect without {option('resize')}; give {option('resize')} too, or omit it"
            )
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

    def _refuse_contradictions(self) -> None:
        if self.recipe == "keep" and self.resize is not None:
            raise ConfigError(f"{option('recipe')} and {option('resize')} contradict each other; give one of them")
        if self.shards is not None and self.shard_size is not None:
            raise ConfigError(f"{option('shards')} and {option('shard_size')} contradict each other; give one of them")

    def _shards(self, named: str, preset: Preset) -> ShardSettings:
        counted = self.shards is not None or self.validation_shards is not None or self.shard_size is not None
        if self.shard_names == "per-class" and self.shard_size is not None:
            message = f"{option('shard_size')} has no effect with {option('shard_names')} per-class"
            message += ", which makes a shard of every class"
            raise ConfigError(message)
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


def _text(place: LocationLike | None) -> str | None:
    return None if place is None else str(place)


def _dataset_name(source: str) -> str:
    """Return a name for TFDS, which allows lower-case letters, digits and underscores."""
    place = location(source).absolute()
    name = re.sub(r"[^a-z0-9]+", "_", place.name.removesuffix(place.suffix).lower()).strip("_")
    return name if name[:1].isalpha() else f"images_{name}".rstrip("_")


def _held_out(text: str) -> tuple[str, float]:
    split, _, fraction = text.partition("=")
    try:
        return split, float(fraction)
    except ValueError:
        raise ConfigError(f"{option('split_fraction')} {text!r} is not understood; write validation=0.1") from None
