"""Telling the layout of records from what the records themselves hold."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from stoker.schema.imagenet import BOX_PREFIX, ImagenetSchema, NvidiaSchema
from stoker.schema.pairs import TfdsSchema
from stoker.schema.tensors import DlbsSchema, TinySchema
from stoker.types import SchemaInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.types import Features

_SYNSET = re.compile(rb"n[0-9]{8}")
_NAME_KEYS = ("file_name", "filename", "image/filename", "image/file_name", "path", "name")


def recognise(features: Features) -> SchemaInfo | None:
    """Return the layout of a record, or None if it is none of those that are known.

    Known are the layouts of all presets, ``image/...`` records with more or fewer keys than Google's, the
    ``label_one_hot`` and ``image_raw`` pairs of the Hops notebook's second step, and pairs of an encoded image and a
    label under TFDS's keys.

    Args:
        features: Everything that one record holds.
    """
    if "image/encoded" in features:
        return _image_class(features)
    if "image_raw" in features and features.keys() & {"label", "label_one_hot"}:
        return _tiny(features)
    if {"image", "label"} <= features.keys() and features["image"][0] == "bytes" and len(features["image"][1]) == 1:
        return _pair(features)
    return None


def from_keys(features: Features, image_key: str, label_key: str | None, label_base: int) -> SchemaInfo | str:
    """Return the layout of a record whose keys a person has named, or what is wrong with them.

    Args:
        features: Everything that one record holds.
        image_key: Key of the encoded image.
        label_key: Key of the class: one int64, or a one-hot list of int64 or bytes; None for images without a class.
        label_base: Number of the first class.
    """
    if features.get(image_key, ("", []))[0] != "bytes":
        return f"no bytes under {image_key!r}"
    if label_key is not None and label_key not in features:
        return f"no {label_key!r}"
    kind, values = features[label_key] if label_key is not None else ("int64", [0])
    name = next((key for key in _NAME_KEYS if features.get(key, ("", []))[0] == "bytes"), None)
    return SchemaInfo(
        preset="custom",
        features={},
        image_key=image_key,
        label_key=label_key or "",
        filename_key=name,
        label_base=label_base,
        label_encoding="one-hot" if kind == "bytes" or len(values) > 1 else "id",
        box_prefix=BOX_PREFIX if BOX_PREFIX + "xmin" in features else None,
    )


def _image_class(features: Features) -> SchemaInfo:
    if "image/order" in features or _text(features, "image/format") == b"tensor":
        info = DlbsSchema().info(0)
    elif "image/class/synset" not in features and _SYNSET.fullmatch(_text(features, "image/class/text")):
        info = NvidiaSchema().info(0)
    else:
        info = ImagenetSchema().info(0)
    return _named(replace(info, features={}), features)


def _tiny(features: Features) -> SchemaInfo:
    info = replace(TinySchema().info(0), features={})
    if "label" not in features:
        info = replace(info, label_key="label_one_hot", label_encoding="one-hot")
    if not {"height", "width"} <= features.keys():
        info = replace(info, height_key=None, width_key=None)
    return info


def _pair(features: Features) -> SchemaInfo | None:
    kind, values = features["label"]
    if kind == "float" or not values:
        return None
    one_hot = kind == "bytes" or len(values) > 1
    if one_hot and not _is_one_hot(kind, values):
        return None
    info = replace(TfdsSchema().info(0), features={}, preset="dogs-onehot" if one_hot else "tfds")
    return _named(replace(info, label_encoding="one-hot" if one_hot else "id"), features)


def _is_one_hot(kind: str, values: list[bytes] | list[int] | list[float]) -> bool:
    digits = list(values[0]) if kind == "bytes" and isinstance(values[0], bytes) else values
    return set(digits) <= {0, 1} and sum(map(int, digits)) <= 1


def _named(info: SchemaInfo, features: Features) -> SchemaInfo:
    """Return the layout with the key under which this record really has its name, if any."""
    if info.filename_key in features:
        return info
    name = next((key for key in _NAME_KEYS if features.get(key, ("", []))[0] == "bytes"), None)
    return replace(info, filename_key=name)


def _text(features: Mapping[str, tuple[str, list[bytes] | list[int] | list[float]]], key: str) -> bytes:
    kind, values = features.get(key, ("", []))
    return values[0] if kind == "bytes" and values and isinstance(values[0], bytes) else b""
