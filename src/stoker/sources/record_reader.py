"""One record of a program: a dict of values to an image with its fields. Sequences and streams read records by it.

And what stands for its values: other values, another digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stoker import _native, fields
from stoker.config import format_some
from stoker.errors import ConfigError, SourceError
from stoker.sources.known_datasets import find_fields
from stoker.sources.reader import Latency, Reader, SourceImage
from stoker.sources.reading import read_file, read_web
from stoker.storage import from_uri, is_web, without_signature
from stoker.types import Box, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from stoker.fields import Roles

ROOT = "the source"
"""What messages call records."""

_SHOWN, _LONG_BYTES = 8, 4096
_PAIR = ("image", "label")
_LIKE_BOXES = ("objects", "bbox", "bboxes", "annotations", "detections")
_NO_SUCH_FILE = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


def as_record(record: object) -> Mapping[str, Any]:
    """Return a record as its values by name."""
    if isinstance(record, (tuple, list)) and len(record) == len(_PAIR):
        record = dict(zip(_PAIR, record, strict=True))
    if isinstance(record, Mapping):
        return {name: _plain(value) for name, value in record.items()}
    if type(record).__name__ == "Sample" and type(record).__module__.startswith("stoker."):
        raise SourceError("it is a sample of a stoker.Dataset; give a part of that, such as dataset[[0, 5]]")
    advice = "; of paths make [{'image': path} for path in paths]" if isinstance(record, (str, os.PathLike)) else ""
    message = f"it is of type {type(record).__name__}; a record is a dict, or a pair of image and label"
    raise SourceError(message + advice)


def _plain(value: Any) -> Any:
    """Return a tensor in the memory of the CPU as an array, an array without sides as its number, and times as text.

    Decimal numbers are text, too: no number of a field has all of their digits.
    """
    if any(cls.__name__ == "Tensor" for cls in type(value).__mro__) and hasattr(value, "__array__"):
        with contextlib.suppress(RuntimeError, TypeError):  # of another device, or of a dtype that NumPy lacks
            value = np.asarray(value)
    if (isinstance(value, np.ndarray) and value.ndim == 0) or isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    return str(value) if isinstance(value, (date, time, timedelta, Decimal)) else value


def fields_of_first(records: Any, first: Callable[[], Any]) -> dict[str, Field]:
    """Return the fields of records; ``first`` returns the first of them."""
    try:
        record = as_record(first())
    except SourceError as error:
        message = f"the fields of the records are unknown: of record 0, {error}"
        raise SourceError(f"{message}; give fields={{...}}" if error.__cause__ else message) from error
    return find_fields(records, record)


@dataclass(frozen=True, slots=True)
class RecordFields:
    """Makes images to build from of records. Safe in any thread."""

    roles: Roles  # what their fields are
    label: fields.Label | None  # the field of the class; None without one
    boxes: fields.Boxes | None  # that of the boxes; None without any
    is_guess: bool  # whether nobody has said which fields there are
    # names of values that are no fields, met by `read` where it is a guess
    unknown: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, record_fields: Mapping[str, Field], *, is_guess: bool) -> RecordFields:
        """Return what reads records with some fields."""
        if not isinstance(record_fields, Mapping):
            raise ConfigError(f"fields is of type {type(record_fields).__name__}; give a dict of names and fields")
        roles = fields.roles(record_fields)
        label = None if roles.label is None else cast("fields.Label", record_fields[roles.label])
        boxes = None if roles.boxes is None else cast("fields.Boxes", record_fields[roles.boxes])
        return cls(roles, label, boxes, is_guess)

    @property
    def classes(self) -> tuple[bytes, ...]:
        """Names of the classes; the index is the label. Empty where labels are numbers alone."""
        return tuple(os.fsencode(name) for name in (self.label.names or ())) if self.label is not None else ()

    @property
    def may_be_ids(self) -> bool:
        """Whether ``label``, a float in the first record, may be the class: pandas writes ids so."""
        return self.is_guess and self.label is None and isinstance(self.roles.extra.get("label"), fields.Float)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all fields."""
        roles = self.roles
        own = (roles.image, roles.label, roles.boxes)
        return (*(name for name in own if name is not None), *roles.extra)

    @property
    def box_names(self) -> tuple[str, ...]:
        """Names of the classes of boxes; empty where boxes have those of the images."""
        if self.boxes is None or self.boxes.names is None:
            return ()
        same = self.label is not None and self.label.names == self.boxes.names
        return () if same else tuple(self.boxes.names)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the records read so far have to say."""
        label, messages = self.roles.label, []
        if self.is_guess and label not in (None, "label"):
            messages.append(f"{ROOT}: nothing is called 'label'; the classes are {label!r}")
        like_boxes = next((name for name in self.roles.extra if name in _LIKE_BOXES), None)
        if self.is_guess and self.boxes is None and like_boxes is not None:
            message = f"{ROOT}: {like_boxes!r} is a field, not the boxes of images; these are called 'boxes'"
            messages.append(f"{message}, each (xmin, ymin, xmax, ymax) in fractions of the image, or a dict with label")
        if not self.unknown:
            return tuple(messages)
        names = format_some(sorted(self.unknown), _SHOWN, repr)
        message = f"records have values that the first record lacks, and that are not stored: {names}"
        return (*messages, f"{message}; give fields={{...}} with the fields to store")

    def description(self) -> str:
        """Return text that changes with the names and the kinds of the fields."""
        roles = self.roles
        kinds = [kind and kind.to_json() for kind in (self.label, self.boxes, *roles.extra.values())]
        return json.dumps([roles.image, roles.label, roles.boxes, [*roles.extra], kinds])

    def read(self, number: int, record: Mapping[str, Any]) -> SourceImage:
        """Return what a record holds."""
        roles = self.roles
        if self.is_guess and len(self.unknown) <= _SHOWN:
            self.unknown.update(str(name) for name in record.keys() - set(self.names))
        for name in self.names:
            fields.given_value(name, record)
        label, boxes = self.label_of(record), self.boxes_of(record)
        data, filename = self.image_of(record)
        return SourceImage(data, filename or b"%d" % number, boxes, None, self.extra_of(record, roles.extra), label)

    def image_of(self, record: Mapping[str, Any]) -> tuple[bytes | NDArray[Any], bytes]:
        """Return the bytes or the pixels of the image of a record, and the name of its file."""
        name = self.roles.image
        data, filename = read_image(name, fields.given_value(name, record))
        return data if isinstance(data, (bytes, np.ndarray)) else _pixels(name, data), filename

    def label_of(self, record: Mapping[str, Any]) -> int:
        """Return the class of a record; -1 without one."""
        name = self.roles.label
        if self.label is None or name is None:
            return -1
        _, ids = self.label.encode(name, fields.given_value(name, record))[name]
        return cast("int", ids[0])

    def boxes_of(self, record: Mapping[str, Any]) -> list[Box]:
        """Return the boxes of a record."""
        name = self.roles.boxes
        if self.boxes is None or name is None:
            return []
        boxes = self.boxes.boxes(name, fields.given_value(name, record))
        return [replace(box, label=-1) if box.label is None and self.box_names else box for box in boxes]

    def extra_of(self, record: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Return the values of some of the extra fields of a record."""
        values = {name: fields.given_value(name, record) for name in names}
        return {
            name: read_image(name, value)[0] if self.roles.extra[name].is_image else value
            for name, value in values.items()
        }


def read_image(name: str, value: Any) -> tuple[Any, bytes]:
    """Return the bytes of the file, the array or the PIL image that a value stands for, and the name of the file.

    Args:
        name: Of the field, for messages.
        value: A path or URL, the bytes of a file, an array of pixels, a PIL image, or a dict with ``bytes`` or ``path``
            as ``datasets`` has it.
    """
    if isinstance(value, Mapping) and ("bytes" in value or "path" in value):
        path, data = value.get("path"), value.get("bytes")
        filename = os.path.basename(without_signature(os.fsencode(path))) if isinstance(path, str) else b""  # noqa: PTH119
        if data is not None or path is None:
            return read_image(name, data)[0], filename
        value = path
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), b""
    if isinstance(value, (str, os.PathLike)):
        place = os.fsencode(value)
        shown = without_signature(place)
        try:
            return (read_web if is_web(place) else read_file)(place), shown[shown.rfind(b"/") + 1 :]
        except _NO_SUCH_FILE as error:
            raise SourceError(f"field {name!r}: {os.fsdecode(shown)}: {error.strerror or error}") from error
    if isinstance(value, np.ndarray) or fields.is_pil_image(value):
        return value, b""
    must = "an image: a path, a URL, bytes of a file, an array or a PIL image"
    raise SourceError(f"field {name!r} is of type {type(value).__name__}, but must be {must}")


def _pixels(name: str, image: Any) -> NDArray[Any]:
    """Return the pixels of a PIL image, in a mode that a PNG has."""
    if image.mode in ("I", "F"):
        message = f"field {name!r} is a PIL image of mode {image.mode!r}, whose range of values is unknown"
        raise SourceError(f"{message}; give an array of uint8 or uint16")
    others = {"1": "L", "La": "LA", "PA": "RGBA", "RGBa": "RGBA"}
    try:
        if image.mode not in ("L", "LA", "RGB", "RGBA", "I;16"):
            image = image.convert(others.get(image.mode, "RGBA" if "transparency" in image.info else "RGB"))
        return np.asarray(image)
    except (OSError, SyntaxError, ValueError) as error:  # of a file that it has not read yet
        raise SourceError(f"field {name!r}: the pixels of the PIL image cannot be read: {error}") from error


class RecordReader(Reader):
    """Reads records of a program.

    Args:
        record_fields: What makes images of them.
        latency: What reading an image waits for, as far as a few records tell.
    """

    def __init__(self, record_fields: RecordFields, latency: Latency) -> None:
        self.record_fields = record_fields
        self.latency = latency
        self.fields = record_fields.roles.extra
        self.box_names = record_fields.box_names

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.record_fields.warnings


def size_of(value: Any) -> int:
    """Return about how many bytes an image has; 0 where that is not known."""
    path, size = path_and_size(value)
    if path and not size:
        try:
            return os.stat(path).st_size  # noqa: PTH116 - of a URL there is none
        except (OSError, ValueError):
            return 0
    if size is not None or isinstance(value, np.ndarray):
        return value.nbytes if size is None else size
    width, height = getattr(value, "size", (0, 0))
    return 3 * width * height


def path_and_size(value: Any) -> tuple[bytes, int | None]:
    """Return the path or the URL of an image, nothing without one, and of how many bytes it is; None if not known."""
    path, data = (value.get("path"), value.get("bytes")) if isinstance(value, Mapping) else (value, value)
    size = len(data) if isinstance(data, (bytes, bytearray, memoryview)) else None
    return os.fsencode(path) if isinstance(path, (str, os.PathLike)) else b"", size


def place_of(value: Any) -> bytes:
    """Return the path or the URL of an image; nothing where it is there already."""
    path, size = path_and_size(value)
    return path if size is None else b""


def latency_of(places: Iterable[bytes]) -> Latency:
    """Return what reading images waits for, given the paths or URLs of some; one without any is there already."""
    others = [place for place in places if place]
    if any(map(is_web, others)):
        return "web"
    return "disk" if all(from_uri(place).is_local for place in others) else "store"


def digest_of(value: Any) -> bytes:
    """Return 32 bytes that change with a value, whatever it is: of an image the bytes or pixels, of a path its text.

    Of long values their CRC-32C is in it, not they themselves.
    """
    digest = hashlib.sha256()
    _add(digest, value)
    return digest.digest()


def image_digest(data: bytes | NDArray[Any]) -> bytes:
    """Return 16 bytes that only equal files have, or equal pixels of the same shape and type."""
    if isinstance(data, bytes):
        return hashlib.sha256(data).digest()[:16]
    digest = hashlib.sha256(f"{data.dtype}{data.shape}".encode())
    digest.update(np.ascontiguousarray(data).data)
    return digest.digest()[:16]


def _add(digest: Any, value: Any) -> None:
    """Add a value to a digest, after its type and length, so that different values never look alike."""
    if isinstance(value, Mapping):
        digest.update(b"m%d " % len(value))
        for name in sorted(value, key=str):
            _add(digest, str(name))
            _add(digest, value[name])
    elif isinstance(value, (list, tuple)):
        digest.update(b"l%d " % len(value))
        for item in value:
            _add(digest, item)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        _add_bytes(digest, b"b", bytes(value))
    elif isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        _add_bytes(digest, b"s", data)
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        _add_bytes(digest, f"a{value.dtype.str}{value.shape} ".encode(), value.tobytes())
    elif fields.is_pil_image(value):
        _add_pixels(digest, value)
    elif value is None or isinstance(value, (bool, int, float, np.generic, Box)):
        text = f"{type(value).__name__} {value!r}".encode()
        digest.update(b"n%d " % len(text) + text)
    else:  # no field takes it
        name = f"{type(value).__module__}.{type(value).__qualname__}".encode()
        digest.update(b"t%d " % len(name) + name)


def _add_bytes(digest: Any, kind: bytes, data: bytes) -> None:
    digest.update(kind + b"%d " % len(data))
    # SHA-256 of an image would take as long as storing it.
    digest.update(data if len(data) <= _LONG_BYTES else _native.crc32c(data).to_bytes(4, "little"))


def _add_pixels(digest: Any, image: Any) -> None:
    digest.update(f"i{image.mode}{image.size} ".encode())
    with contextlib.suppress(OSError, SyntaxError, ValueError):  # of a file that is damaged
        _add_bytes(digest, b"p", image.tobytes())
        if image.mode in ("P", "PA"):
            _add(digest, [image.getpalette(None), image.info.get("transparency")])
