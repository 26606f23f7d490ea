"""The few values that every package uses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

MAX_CLASSES = 2**22
"""Most classes that a dataset may have."""

FeatureKind = Literal["bytes", "int64", "float"]
Feature = tuple[FeatureKind, list[bytes] | list[int] | list[float]]
"""One feature of a ``tf.train.Example``: its kind and its values."""

Features = dict[str, Feature]

ArrowColumn = tuple[Any, dict[str, Any]]
"""A type of Arrow, and the feature that the library ``datasets`` reads it as."""

Compression = Literal["none", "gzip", "zlib"]
"""Compression of a whole shard."""

ImageEncoding = Literal["file", "raw"]
StoredFormat = Literal["jpeg", "png", "webp", "raw"]
"""What the image of a record is: a file of a format, or pixels."""

LabelEncoding = Literal["id", "one-hot"]
TensorOrder = Literal["HWC", "CHW"]

Mode = Literal["RGB", "L", "RGBA", "I;16"]
"""Channels and depth of decoded images, in Pillow's words: colour, grey, colour with alpha, and grey of 16 bits."""

Exif = Literal["keep", "apply"]
"""Whether images stay as stored, or are turned upright as their metadata say, with their boxes and masks."""

Filter = Literal["nearest", "box", "bilinear", "bicubic", "lanczos"]
"""A resampling filter, as Pillow has it."""

DecodeMode = Literal["exact", "fast"]
"""How closely JPEGs are decoded and resized: to the last bit as libjpeg and Pillow do, or nearly so."""


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """Kind and number of the values that every record has under one key."""

    kind: FeatureKind  # type of the values
    length: int | None  # number of values; None if it differs from record to record, and may be 0


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image or a mask as a record holds it."""

    encoded: bytes  # the bytes of its file
    format: StoredFormat  # of the file
    height: int  # rows of pixels
    width: int  # columns of pixels


class Pixels(Protocol):
    """The image of a record, to which the images and masks beside it must fit."""

    def image(self, name: str, value: Any) -> EncodedImage:
        """Return another image, the value of a field, as it is stored; `SourceError` if it is not an image."""

    def mask(self, name: str, value: Any, bits: int) -> EncodedImage:
        """Return a mask, the value of a field, as it is stored; `SourceError` if it is not a mask."""


@dataclass(frozen=True, slots=True)
class BatchForm:
    """The form of a field in batches, which a framework must know before the first one."""

    # ``text``, ``bytes`` and ``json`` are lists; ``dense``, ``ragged`` and ``padded`` hold numbers; ``mask`` and
    # ``image`` are pixels
    kind: str
    dtype: str = "uint8"  # of numbers and of the pixels of a mask
    shape: tuple[int, ...] = ()  # of the numbers of one sample; for ragged and padded ones, of each of its values
    pad_to: int = 0  # values of each sample, if they are padded
    fill: int = 0  # what they are padded with
    stored: FeatureKind = "bytes"  # values are a list of this kind in the record
    group: int = 1  # stored values that make one sample of dense values, or one value of others

    @property
    def fixed(self) -> bool:
        """Whether every record has the same number of values."""
        return self.kind == "dense"

    @property
    def is_plane(self) -> bool:
        """Whether it is pixels."""
        return self.kind in ("mask", "image")

    @property
    def bits(self) -> int:
        """Bits of the ids of a mask; 0 for other fields."""
        return int(self.dtype.removeprefix("uint")) if self.kind == "mask" else 0


class Field(ABC):
    """A named value that every record has; `stoker.fields` has the kinds. Immutable."""

    __slots__ = ()

    kind: ClassVar[str]  # name of the kind in manifests
    is_image: ClassVar[bool] = False  # whether a value is a file with as many pixels as the image of its record
    missing: ClassVar[Any] = None  # value that stands for null; None if null is an error
    missing_shown: ClassVar[str] = ""  # the same in words

    @property
    def summary(self) -> str:
        """What the field is, in words: ``array of float32 (any, 4)``."""
        return self.kind

    @property
    def class_names(self) -> Sequence[str] | None:
        """Names of the classes, if its values are ids of classes with names; otherwise None."""
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the field for ``schema.fields`` of a manifest: its kind, and settings that are not the defaults."""
        content: dict[str, Any] = {"kind": self.kind}
        for setting in fields(cast("Any", self)):
            value = getattr(self, setting.name)
            if setting.init and value != setting.default:
                content[setting.name] = list(value) if isinstance(value, tuple) else value
        return content

    @abstractmethod
    def features(self, name: str) -> dict[str, FeatureSpec]:
        """Return the features that every record has for a field of this name, by their keys."""

    def from_cell(self, text: str) -> Any:
        """Return the value that the text of a cell stands for, None for an empty cell; ``ValueError`` if not valid."""
        return text

    @abstractmethod
    def encode(self, name: str, value: Any, image: Pixels | None = None) -> Features:
        """Return the features, under the name of the field, that store a value from a source.

        The image of the record is needed only if `is_image` is True.

        Raises:
            SourceError: The value does not fit this field; the message names the field and the value.
        """

    @abstractmethod
    def decode(self, name: str, features: Features) -> Any:
        """Return the value that a record holds, given all of its features; for an image or a mask, its file.

        Raises:
            ExampleError: The record holds no value, or one that this field cannot have.
        """

    @abstractmethod
    def show(self, value: Any) -> str:
        """Return a value that `decode` has returned as one line for people."""

    @abstractmethod
    def arrow(self, pa: ModuleType) -> ArrowColumn:
        """Return the column of an export to Parquet; ``pa`` is the library ``pyarrow``."""

    def to_arrow(self, value: Any) -> Any:
        """Return a value in the form of the column `arrow`; for an image or a mask, ``value`` is its file."""
        return self.to_plain(value)

    def to_plain(self, value: Any) -> Any:
        """Return a value as JSON."""
        return value

    @abstractmethod
    def form(self) -> BatchForm:
        """Return the form of the field in batches; `ConfigError` if batches do not hold it as a field."""


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """The features of a record, as a reader needs to know them."""

    preset: str  # name of the layout
    features: Mapping[str, FeatureSpec]  # every key that a record has; empty where not specified
    image_key: str  # key of the image
    label_key: str  # key of the class
    filename_key: str | None  # key of the source file's base name, if it is stored
    label_base: int  # number of the first class
    # ``id``: one int64. ``one-hot``: a list of int64, or one bytes value, of zeros and a single 1, whose position is
    # the class before ``label_base`` is added; all zeros is no class (-1)
    label_encoding: LabelEncoding = "id"
    image_encoding: ImageEncoding = "file"  # ``file``: an image file of any format. ``raw``: uint8 pixels, end to end
    height_key: str | None = None  # key of the rows of a raw image; without it they are squares of three channels
    width_key: str | None = None  # key of its columns
    order_key: str | None = None  # key of ``HWC`` or ``CHW``; without it, or where a record lacks it, ``HWC``
    # what precedes ``xmin``, ``xmax``, ``ymin`` and ``ymax``, float lists in 0..1; None without boxes. Without a slash
    # at its end it is the key of one list of all, four values for each object, in TFDS's order: ``ymin``, ``xmin``,
    # ``ymax``, ``xmax``
    box_prefix: str | None = None
    # what records have beside the image, the class and the boxes, by name
    fields: Mapping[str, Field] = field(default_factory=dict)
    # names of the classes of boxes, the first of which has the number ``label_base``; empty where boxes have the
    # classes of the images
    box_names: tuple[str, ...] = ()

    @property
    def label_note(self) -> str:
        """A note for people about the class ids; empty where they start at 0."""
        return f"labels start at {self.label_base} (preset {self.preset})" if self.label_base else ""


@dataclass(frozen=True, slots=True)
class Box:
    """An annotated object, in fractions of the stored image's width and height (0..1)."""

    xmin: float  # left edge
    ymin: float  # top edge
    xmax: float  # right edge, greater than ``xmin``
    ymax: float  # bottom edge, greater than ``ymin``
    label: int | None = None  # its class; -1 for none, None for that of its image

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """``xmin, ymin, xmax, ymax``."""
        return self.xmin, self.ymin, self.xmax, self.ymax


BOX_SIDES = ("xmin", "ymin", "xmax", "ymax")
"""Names of the corners of a `Box`, in their order."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A source item that is not in the dataset, and why."""

    key: str  # path of the item below the source root, with forward slashes
    split: str  # split it would have been in
    reason: str  # one sentence for a person


class Progress(Protocol):
    """Receives the progress of a long job. Called from one thread, as often as the job likes."""

    def __call__(self, *, done: int, total: int, size_bytes: int, rejects: int) -> None:
        """Report progress.

        Args:
            done: Items finished so far, the rejected ones included.
            total: Number of all items; 0 while it is not known.
            size_bytes: Bytes processed so far.
            rejects: Items rejected so far.
        """
