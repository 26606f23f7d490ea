"""The layouts of records: the features that each preset writes, and recognising the layout of a record."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from stoker.config import check_range, format_some, option
from stoker.errors import ConfigError
from stoker.fields import check_extra
from stoker.types import BOX_SIDES, FeatureSpec, SchemaInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stoker.types import Box, Features, Field, ImageEncoding, StoredFormat, TensorOrder


_OBJECT_PREFIX = "image/object/"
BOX_PREFIX = _OBJECT_PREFIX + "bbox/"
_SYNSET = re.compile(rb"n[0-9]{8}")
_LABEL_KEY = "image/class/label"
_OBJECT_LABEL_KEY = _OBJECT_PREFIX + "class/label"
_TFDS_BOXES = "objects/bbox"
_CLASSLESS_KEYS = {
    *(f"image/{key}" for key in ("channels", "colorspace", "encoded", "filename", "format", "height", "width")),
    *("image/key/sha256", "image/order", "image/source_id"),
    *(BOX_PREFIX + side for side in BOX_SIDES),
}
"""Keys that hold no class. A record with any other key may hold a class there, which must not be lost."""
_SHOWN_KEYS = 20
_NAME_KEYS = ("file_name", "filename", "image/filename", "image/file_name", "path", "name")


@dataclass(frozen=True, slots=True)
class StoredSample:
    """Everything that is known about one stored image."""

    image: bytes  # the stored file, or the stored pixels
    format: StoredFormat  # what ``image`` is
    width: int  # columns of pixels in ``image``
    height: int  # rows of pixels in ``image``
    order: TensorOrder  # order of the axes where ``image`` is pixels
    filename: bytes  # base name of the source file
    label: int  # index of the class, before any label base; -1 for none
    classes: int  # how many classes there are
    class_name: bytes  # name of the class folder; empty without a class
    class_text: bytes  # the class in words; empty when unknown
    boxes: Sequence[Box]  # annotated objects, in fractions of the stored image
    fields: Features = field(default_factory=dict)


def format_name(stored: str) -> bytes:
    """Return the value of ``image/format`` for an image: ``tensor`` for ``raw``, otherwise the format in capitals."""
    return b"tensor" if stored == "raw" else stored.upper().encode()


def _stored_label(label: int, label_base: int) -> int:
    """Return the number that a record holds for a class: -1 for none, whatever the base."""
    return label + label_base if label >= 0 else -1


def _one_hot(sample: StoredSample) -> list[int]:
    return [int(label == sample.label) for label in range(sample.classes)]


def _box_labels(sample: StoredSample, base: int) -> list[int]:
    """Return the labels of the boxes: that of the image, unless a box has one of its own."""
    return [_stored_label(sample.label if box.label is None else box.label, base) for box in sample.boxes]


_BYTES, _INT64, _INT64S = FeatureSpec("bytes", 1), FeatureSpec("int64", 1), FeatureSpec("int64", None)
_FLOATS = FeatureSpec("float", None)

# A feature: its kind and length, and a function that returns its values for a sample and the label base.
_Value = tuple[FeatureSpec, "Callable[[StoredSample, int], list[Any]]"]
_VALUES: dict[str, _Value] = {
    "channels": (_INT64, lambda *_: [3]),
    "class/label": (_INT64, lambda sample, base: [_stored_label(sample.label, base)]),
    "class/synset": (_BYTES, lambda sample, _: [sample.class_name]),
    "class/text": (_BYTES, lambda sample, _: [sample.class_text]),
    "colorspace": (_BYTES, lambda *_: [b"RGB"]),
    "encoded": (_BYTES, lambda sample, _: [sample.image]),
    "filename": (_BYTES, lambda sample, _: [sample.filename]),
    "format": (_BYTES, lambda sample, _: [format_name(sample.format)]),
    "height": (_INT64, lambda sample, _: [sample.height]),
    "object/bbox/label": (_INT64S, _box_labels),
    "object/bbox/xmax": (_FLOATS, lambda sample, _: [box.xmax for box in sample.boxes]),
    "object/bbox/xmin": (_FLOATS, lambda sample, _: [box.xmin for box in sample.boxes]),
    "object/bbox/ymax": (_FLOATS, lambda sample, _: [box.ymax for box in sample.boxes]),
    "object/bbox/ymin": (_FLOATS, lambda sample, _: [box.ymin for box in sample.boxes]),
    "one-hot": (_INT64S, lambda sample, _: _one_hot(sample)),
    "one-hot bytes": (_BYTES, lambda sample, _: [bytes(_one_hot(sample))]),
    "order": (_BYTES, lambda sample, _: [sample.order.encode()]),
    "width": (_INT64, lambda sample, _: [sample.width]),
}
_BOXES = ("object/bbox/label", *(f"object/bbox/{side}" for side in BOX_SIDES))
_SHARED = ("channels", "class/label", "class/text", "colorspace", "encoded", "filename", "format", "height", "width")
_SHARED_VALUES = {f"image/{value}": _VALUES[value] for value in _SHARED}


def _layout(preset: str, values: Mapping[str, _Value], image_key: str, label_key: str, **more: Any) -> SchemaInfo:
    features = {key: values[key][0] for key in sorted(values)}
    return SchemaInfo(preset, features, image_key, label_key, **({"filename_key": None, "label_base": 0} | more))


def _image_class_layout(preset: str, values: Mapping[str, _Value], box_prefix: str | None = None) -> SchemaInfo:
    """Return a layout that has the ``image/...`` keys of Google's layout."""
    more: dict[str, Any] = {"filename_key": "image/filename", "box_prefix": box_prefix}
    if "image/order" in values:
        more |= {"image_encoding": "raw"} | {f"{key}_key": f"image/{key}" for key in ("height", "width", "order")}
    return _layout(preset, values, "image/encoded", _LABEL_KEY, **more)


@dataclass(frozen=True, slots=True)
class Schema:
    """A preset: turns samples into features, and says what it writes. Immutable; safe in any thread."""

    label_base: int = 0  # number of the first class: 0 or 1
    stores: ClassVar[ImageEncoding] = "file"  # how images must be stored in its records
    values: ClassVar[Mapping[str, _Value]]  # the features of its records, by key
    layout: ClassVar[SchemaInfo]  # what `info` returns for label base 0 and no extra fields

    def __post_init__(self) -> None:
        check_range(option("label_base"), self.label_base, 0, 1)

    def info(self, classes: int) -> SchemaInfo:  # noqa: ARG002 - most layouts do not depend on it
        """Return the layout, which readers need, for a dataset with this number of classes."""
        return replace(self.layout, label_base=self.label_base)

    def to_features(self, sample: StoredSample) -> Features:
        """Return the features of one record, those of its extra fields last."""
        base = self.label_base
        features: Features = {key: (spec.kind, value(sample, base)) for key, (spec, value) in self.values.items()}
        features.update(sample.fields)
        return features

    def with_fields(self, fields: Mapping[str, Field]) -> Schema:
        """Return the schema with the extra fields of a source."""
        if not fields:
            return self
        names = ", ".join(fields)
        message = f"preset {self.layout.preset} has no place for the fields of the source: {names}"
        raise ConfigError(f"{message}; omit {option('preset')}, or use {option('preset')} imagenet")


@dataclass(frozen=True, slots=True)
class ImagenetSchema(Schema):
    """Preset ``imagenet``: the 15 keys of Google's script, read by most TensorFlow training code.

    Height and width are those of the stored image. ``image/channels`` is 3 and ``image/colorspace`` is RGB for every
    record: this is what a reader gets when it asks its decoder for RGB, even if the image is grey or has alpha. A box
    carries the label of its image, unless it has one of its own. ``image/class/text`` is empty when the class has no
    known text. Extra fields stand beside the 15 keys.

    Attributes:
        label_base: Number of the first class: 0, or 1 as Google writes it (0 is the background).
        fields: The extra fields, by name.

    Raises:
        ConfigError: Two fields have the same key, or a field has a key of the image.
    """

    values: ClassVar[Mapping[str, _Value]] = _SHARED_VALUES | {
        f"image/{value}": _VALUES[value] for value in ("class/synset", *_BOXES)
    }
    layout: ClassVar[SchemaInfo] = _image_class_layout("imagenet", values, BOX_PREFIX)

    fields: Mapping[str, Field] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Schema.__post_init__(self)
        check_extra(self.fields)

    def info(self, classes: int) -> SchemaInfo:
        """Return the layout, with the 15 keys and those of the fields."""
        features = dict(self.layout.features)
        for name, kind in self.fields.items():
            features |= kind.features(name)
        return replace(Schema.info(self, classes), features=dict(sorted(features.items())), fields=self.fields)

    def with_fields(self, fields: Mapping[str, Field]) -> Schema:
        """Return the schema with the extra fields of a source, which stand beside the 15 keys."""
        return replace(self, fields=fields) if fields else self


@dataclass(frozen=True, slots=True)
class NvidiaSchema(Schema):
    """Preset ``imagenet-nvidia``: no boxes and no synset; ``image/class/text`` holds the synset.

    Attributes:
        label_base: Number of the first class: 0, or 1 as the original writes it.
    """

    values: ClassVar[Mapping[str, _Value]] = _SHARED_VALUES | {"image/class/text": _VALUES["class/synset"]}
    layout: ClassVar[SchemaInfo] = _image_class_layout("imagenet-nvidia", values)


@dataclass(frozen=True, slots=True)
class DogsSchema(Schema):
    """Preset ``dogs-onehot``: ``image`` is a JPEG, ``label`` is one-hot: a 0 or 1 for each class, int64."""

    values: ClassVar[Mapping[str, _Value]] = {"image": _VALUES["encoded"], "label": _VALUES["one-hot"]}
    layout: ClassVar[SchemaInfo] = _layout("dogs-onehot", values, "image", "label", label_encoding="one-hot")

    def __post_init__(self) -> None:
        if self.label_base != 0:
            raise ConfigError(
                f"{option('label_base')} 1 does not apply to one-hot labels; omit it, or use {option('preset')} tfds"
            )

    def info(self, classes: int) -> SchemaInfo:
        """Return the layout, with the two keys."""
        return replace(self.layout, features={**self.layout.features, "label": FeatureSpec("int64", classes)})


@dataclass(frozen=True, slots=True)
class TfdsSchema(Schema):
    """Preset ``tfds``: ``image``, ``label`` and ``file_name``, as TensorFlow Datasets names them.

    Attributes:
        label_base: Number of the first class: 0, as in the ``ClassLabel`` of TFDS, or 1.
    """

    values: ClassVar[Mapping[str, _Value]] = {
        "file_name": _VALUES["filename"],
        "image": _VALUES["encoded"],
        "label": _VALUES["class/label"],
    }
    layout: ClassVar[SchemaInfo] = _layout("tfds", values, "image", "label", filename_key="file_name")


@dataclass(frozen=True, slots=True)
class DlbsSchema(Schema):
    """Preset ``dlbs``: the ten keys of the original and ``image/order``, which its documentation promises.

    Attributes:
        label_base: Number of the first class: 0 as in ``imagenet_labels.json``, or 1.
    """

    stores: ClassVar[ImageEncoding] = "raw"
    values: ClassVar[Mapping[str, _Value]] = _SHARED_VALUES | {
        f"image/{value}": _VALUES[value] for value in ("class/synset", "order")
    }
    layout: ClassVar[SchemaInfo] = _image_class_layout("dlbs", values)


@dataclass(frozen=True, slots=True)
class TinySchema(Schema):
    """Preset ``tiny-imagenet``: the six keys of the Hops notebook, pixels in HWC order.

    ``label_one_hot`` is one byte for each class, 0 or 1; all are 0 for an image without a class, whose ``label`` is -1.

    Attributes:
        label_base: Number of the first class: 0 as the original writes it, or 1.
    """

    stores: ClassVar[ImageEncoding] = "raw"
    values: ClassVar[Mapping[str, _Value]] = {
        "channel": _VALUES["channels"],
        "height": _VALUES["height"],
        "image_raw": _VALUES["encoded"],
        "label": _VALUES["class/label"],
        "label_one_hot": _VALUES["one-hot bytes"],
        "width": _VALUES["width"],
    }
    layout: ClassVar[SchemaInfo] = _layout(
        "tiny-imagenet", values, "image_raw", "label", image_encoding="raw", height_key="height", width_key="width"
    )


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """Keys of records that Stoker did not write; a key that is None is found from the first record.

    Attributes:
        image: Key of the encoded image. If it is given without ``label``, images have no class.
        label: Key of the class: one int64, or a one-hot list of int64 or bytes.
        label_base: Number of the first class, 0 or 1. Default: 0. Labels are read as they are stored in either case;
            with 1, a stored 0 is not a class, and `stoker verify` and `stoker repack` report it.

    Raises:
        ConfigError: ``label_base`` is neither 0 nor 1.
    """

    image: str | None = None
    label: str | None = None
    label_base: int | None = None

    def __post_init__(self) -> None:
        if self.label_base is not None:
            check_range("label_base", self.label_base, 0, 1)


def recognise(features: Features) -> SchemaInfo | None:
    """Return the layout of a record, or None if it is unknown.

    The known layouts are those of all presets, ``image/...`` records with more or fewer keys than Google's, the
    ``label_one_hot`` and ``image_raw`` pairs of the Hops notebook's second step, and pairs of an encoded image and a
    label under the keys of TFDS. ``image/...`` records without ``image/class/label`` are images without a class, if no
    key beside those of boxes could hold a class, as in the records of TensorFlow's object detection. Keys do not tell
    whether classes count from 0 or from 1: the label base is 0, and labels are taken as they are stored.
    """
    if "image/encoded" in features:
        others = {key for key in features if BOX_PREFIX + "xmin" not in features or not key.startswith(_OBJECT_PREFIX)}
        return _image_class(features) if _LABEL_KEY in features or others <= _CLASSLESS_KEYS else None
    if "image_raw" in features and features.keys() & {"label", "label_one_hot"}:
        return _tiny(features)
    if {"image", "label"} <= features.keys() and features["image"][0] == "bytes" and len(features["image"][1]) == 1:
        return _pair(features)
    return None


def find_layout(features: Features, keys: RecordKeys | None, where: str) -> SchemaInfo:
    """Return the layout of a record that Stoker did not write; ``keys`` are those that the user names.

    Raises:
        ConfigError: The layout is unknown, or a key does not hold what the user says; the message names what the
            record holds, and what to give.
    """
    keys = keys or RecordKeys()
    if keys.image is None and keys.label is None:
        layout = recognise(features) or _unknown(features)
    else:
        layout = _from_keys(features, keys)
    if isinstance(layout, str):
        remedy = _REMEDY if keys.image is None or keys.label is None else f"{_REMEDY}; {_IF_IT_DIFFERS}"
        raise ConfigError(f"{where}: {layout}. The first record holds {_held(features)}; {remedy}")
    return replace(layout, label_base=keys.label_base or 0)


_REMEDY = (
    "name the keys of the image and the class with --image-key KEY and --label-key KEY, or give --image-key alone for "
    "images without a class (in Python: keys=stoker.RecordKeys(image=..., label=...))"
)


_IF_IT_DIFFERS = "if only this record lacks them, remove it: the layout of all is found from the first"


def _held(features: Features) -> str:
    """Return the keys of a record, truncated: hostile records have many keys, and long ones."""
    keys = sorted(features)
    described = format_some(keys, _SHOWN_KEYS, lambda key: f"{key[:60]} ({features[key][0]} x {len(features[key][1])})")
    return described or "nothing"


def _unknown(features: Features) -> str:
    if "image/encoded" not in features:
        return "the layout of these records is unknown"
    if _OBJECT_LABEL_KEY in features:
        return f"there is no class of the image under {_LABEL_KEY}, only those of its objects under {_OBJECT_LABEL_KEY}"
    return f"there is no class under {_LABEL_KEY}"


def _from_keys(features: Features, keys: RecordKeys) -> SchemaInfo | str:
    """Return the layout of a record whose keys the user has named, or what is wrong with them."""
    image = keys.image
    if image is None:
        image = next((key for key in ("image/encoded", "image_raw", "image") if key in features), None)
    if image is None:
        return "no key is that of an image"
    if features.get(image, ("", []))[0] != "bytes":
        return f"no bytes under {image!r}"
    if keys.label is not None and keys.label not in features:
        return f"no {keys.label!r}"
    kind, values = ("int64", [0]) if keys.label is None else features[keys.label]
    if kind == "float":
        return f"{keys.label!r} is of kind float, so it is not a class"
    one_hot = kind == "bytes" or len(values) > 1
    if one_hot and not _is_one_hot(kind, values):
        return f"{keys.label!r} is neither one number nor one-hot"
    return replace(
        _tensors(features, image) or _with_filename_key(SchemaInfo("custom", {}, image, "", None, 0), features),
        label_key=keys.label or "",
        label_encoding="one-hot" if one_hot else "id",
        box_prefix=BOX_PREFIX if BOX_PREFIX + "xmin" in features else _tfds_boxes(features),
    )


def _tfds_boxes(features: Features) -> str | None:
    kind, _ = features.get(_TFDS_BOXES, ("none", []))
    return _TFDS_BOXES if kind == "float" else None


def _tensors(features: Features, image_key: str) -> SchemaInfo | None:
    """Return the layout of a record with raw pixels, by the keys beside them; None for other records."""
    if image_key == "image_raw":
        return _tiny(features)
    known = _image_class(features) if image_key == "image/encoded" else None
    return known if known is not None and known.image_encoding == "raw" else None


def _image_class(features: Features) -> SchemaInfo:
    if "image/order" in features or first_bytes(features, "image/format") == b"tensor":
        info = DlbsSchema.layout
    elif "image/class/synset" not in features and _SYNSET.fullmatch(first_bytes(features, "image/class/text")):
        info = NvidiaSchema.layout
    else:
        info = ImagenetSchema.layout
    label_key = _LABEL_KEY if _LABEL_KEY in features else ""
    return _with_filename_key(replace(info, features={}, label_key=label_key), features)


def _tiny(features: Features) -> SchemaInfo:
    info = replace(TinySchema.layout, features={})
    if "label" not in features:
        info = replace(info, label_key="label_one_hot", label_encoding="one-hot")
    if not {"height", "width"} <= features.keys():
        info = replace(info, height_key=None, width_key=None)
    return info


def _pair(features: Features) -> SchemaInfo | None:
    info = _from_keys(features, RecordKeys("image", "label")) if features["label"][1] else ""
    if isinstance(info, str):
        return None
    return replace(info, preset="dogs-onehot" if info.label_encoding == "one-hot" else "tfds")


def _is_one_hot(kind: str, values: list[bytes] | list[int] | list[float]) -> bool:
    digits = list(values[0]) if kind == "bytes" and isinstance(values[0], bytes) else values
    return set(digits) <= {0, 1} and sum(map(int, digits)) <= 1


def _with_filename_key(info: SchemaInfo, features: Features) -> SchemaInfo:
    """Return the layout with the key under which this record holds its file name, if any."""
    if info.filename_key in features:
        return info
    name = next((key for key in _NAME_KEYS if features.get(key, ("", []))[0] == "bytes"), None)
    return replace(info, filename_key=name)


def first_bytes(features: Features, key: str) -> bytes:
    """Return the first value of a feature of bytes; empty without one."""
    kind, values = features.get(key, ("", []))
    return values[0] if kind == "bytes" and values and isinstance(values[0], bytes) else b""
