"""Extra images, and masks: a file with as many pixels as the image of its record."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args

import numpy as np

from stoker.config import format_size
from stoker.errors import ConfigError, ExampleError, SourceError
from stoker.fields.base import describe, read_feature, refusal
from stoker.types import BatchForm, EncodedImage, FeatureSpec, Field, StoredFormat

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

    from stoker.types import ArrowColumn, FeatureKind, Features, Pixels


class ImageField(Field):
    """A field whose values have as many pixels as the image of their record; four features, below its name."""

    __slots__ = ()

    is_image: ClassVar[bool] = True

    def features(self, name: str) -> dict[str, FeatureSpec]:
        """Return the features by their keys: ``NAME/encoded``, ``format``, ``height`` and ``width``."""
        kinds: dict[str, FeatureKind] = {"encoded": "bytes", "format": "bytes", "height": "int64", "width": "int64"}
        return {f"{name}/{key}": FeatureSpec(kind, 1) for key, kind in kinds.items()}

    @abstractmethod
    def _stored(self, name: str, value: Any, image: Pixels) -> EncodedImage:
        """Return the value of a source as it stands beside the image of its record."""

    def encode(self, name: str, value: Any, image: Pixels | None = None) -> Features:
        """Return the four features that store an image or a mask; see `Field.encode`."""
        assert image is not None, "an image or a mask stands beside one"
        stored = self._stored(name, value, image)
        return {
            f"{name}/encoded": ("bytes", [stored.encoded]),
            f"{name}/format": ("bytes", [stored.format.upper().encode()]),
            f"{name}/height": ("int64", [stored.height]),
            f"{name}/width": ("int64", [stored.width]),
        }

    def decode(self, name: str, features: Features) -> EncodedImage:
        """Return the file that the features hold; its pixels are not looked at. See `Field.decode`."""
        values = {key: read_feature(key, spec, features)[0] for key, spec in self.features(name).items()}
        stored_format = cast("bytes", values[f"{name}/format"])
        names = {known.upper().encode(): known for known in get_args(StoredFormat) if known != "raw"}
        if stored_format not in names:
            raise ExampleError(f"feature {name}/format is {describe(stored_format)}, not one of JPEG, PNG and WEBP")
        height, width = (cast("int", values[f"{name}/{side}"]) for side in ("height", "width"))
        return EncodedImage(cast("bytes", values[f"{name}/encoded"]), names[stored_format], height, width)

    def show(self, value: EncodedImage) -> str:
        """Return the format, the size in pixels and that of the file."""
        return f"{value.format}, {value.width} x {value.height}, {format_size(len(value.encoded))}"

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        """Return a column of files with the names that they have."""
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())]), {"_type": "Image"}

    def to_arrow(self, value: bytes) -> dict[str, bytes | None]:
        """Return a file without a name."""
        return {"bytes": value, "path": None}


@dataclass(frozen=True, slots=True)
class Image(ImageField):
    """An image. An extra one must be as large as the first; the recipe does the same to both."""

    kind: ClassVar[str] = "image"

    def _stored(self, name: str, value: Any, image: Pixels) -> EncodedImage:
        return image.image(name, value)

    def form(self) -> BatchForm:
        """Return pixels in the form of the first image."""
        return BatchForm("image")


@dataclass(frozen=True, slots=True)
class Mask(ImageField):
    """A class for each pixel of the image, stored as a grey PNG whose values are the ids.

    The values of a file or PIL image with a palette are its indices, of one with 1 bit 0 and 1.

    Attributes:
        bits: 8 for ids up to 255, 16 for ids up to 65,535.

    Raises:
        ConfigError: ``bits`` is neither.
    """

    kind: ClassVar[str] = "mask"
    bits: int = 8

    def __post_init__(self) -> None:
        if self.bits not in (8, 16) or isinstance(self.bits, bool):
            raise ConfigError(f"a mask has 8 or 16 bits, not {describe(self.bits)}")

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the bits."""
        return {"kind": self.kind, "bits": self.bits}

    @property
    def summary(self) -> str:
        """The bits of the ids."""
        return f"mask of {self.bits} bits"

    def form(self) -> BatchForm:
        """Return ids: uint8 or uint16 (B, H, W)."""
        return BatchForm("mask", f"uint{self.bits}")

    def _stored(self, name: str, value: Any, image: Pixels) -> EncodedImage:
        return image.mask(name, value, self.bits)


def mask_pixels(name: str, ids: NDArray[Any], bits: int) -> NDArray[Any]:
    """Return ids, integers or bool (H, W) or (H, W, 1), as a mask of 8 or 16 bits stores them: uint8 or uint16 (H, W).

    Raises:
        SourceError: It is something else, or an id is out of range.
    """
    must = f"must be class ids, whole numbers of shape (height, width), 0 to {2**bits - 1}"
    flat = ids[:, :, 0] if ids.ndim == 3 and ids.shape[2] == 1 else ids
    if flat.ndim != 2 or flat.size == 0 or flat.dtype.kind not in "biu":
        raise refusal(name, ids, must)
    low, high = int(flat.min()), int(flat.max())
    if low < 0 or high >= 2**bits:
        wider = "; records with fields.Mask(bits=16) and images/ beside masks/ may have it" if high < 2**16 else ""
        raise SourceError(f"field {name!r} has the class id {low if low < 0 else high}, but {must}{wider * (low >= 0)}")
    return np.ascontiguousarray(flat, np.uint8 if bits == 8 else np.uint16)
