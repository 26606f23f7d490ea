"""What datasets of other libraries say of their records beside the values; and which are ours.

A ``datasets.Dataset`` has ``features``, and its images are read as files; a dataset of torchvision has ``classes`` and
``targets``, and pairs of image and label. A `stoker.Dataset` has ``source_of``.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stoker import fields
from stoker.errors import ConfigError
from stoker.sources.tables import find_label

if TYPE_CHECKING:
    from stoker.types import Field

_TEXTS = {
    "string": fields.Text(),
    "large_string": fields.Text(),
    "binary": fields.Bytes(),
    "large_binary": fields.Bytes(),
}


def is_sequence(records: object) -> bool:
    """Return whether records are read by their positions: whether they have a length, and items.

    An ``IterableDataset`` of PyTorch may have a length, and inherits a method for items that raises.
    """
    if any(cls.__name__ == "IterableDataset" for cls in type(records).__mro__):
        return False
    return hasattr(records, "__len__") and hasattr(records, "__getitem__")


def undecoded(records: Any) -> Any:
    """Return a dataset of the library ``datasets`` with images as files instead of pixels; anything else as it is.

    Its values are those of Python, whatever format it is set to: in others structs hold arrays or tensors, and rows of
    tables are no records. A function that it was given for its records stays, with pixels if it fails on files.
    """
    given = records
    features = getattr(records, "features", None)
    form = getattr(records, "format", None) if isinstance(features, Mapping) else None
    if isinstance(form, Mapping) and form.get("type") not in (None, "custom"):
        records = records.with_format(None, columns=form.get("columns"))
    for name, feature in features.items() if isinstance(features, Mapping) else ():
        if type(feature).__name__ == "Image" and hasattr(records, "cast_column"):
            records = records.cast_column(name, type(feature)(decode=False))
    if isinstance(form, Mapping) and form.get("type") == "custom" and len(given):
        try:
            records[0]
        except Exception:  # noqa: BLE001 - of any function
            return given
    return records


def version_of(records: Any) -> str:
    """Return what stands for all values of a dataset of the library ``datasets``; empty of anything else."""
    fingerprint = getattr(records, "_fingerprint", None)
    return fingerprint if isinstance(fingerprint, str) and hasattr(records, "features") else ""


def open_datasets(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `stoker.Dataset` of each split; none where all are records of a program. Refuse a mixture."""
    ours = {split: records for split, records in given.items() if hasattr(records, "source_of")}
    if ours and len(ours) < len(given):
        other = next(split for split in given if split not in ours)
        message = f"{next(iter(ours))} is a stoker.Dataset, and {other} is not"
        raise ConfigError(f"{message}; open what it is of, too: stoker.open(records)")
    return ours


def find_fields(records: Any, first: Mapping[str, Any]) -> dict[str, Field]:
    """Return what the fields of records are: as their library says, otherwise as the first record tells."""
    declared = getattr(records, "features", None)
    features = declared if isinstance(declared, Mapping) else {}
    known = {name: _of_feature(feature) for name, feature in features.items()}
    stated = {name: _named(name, field, features[name]) for name, field in known.items() if field is not None}
    record_fields = stated | fields.infer({name: value for name, value in first.items() if name not in stated})
    if isinstance(record_fields.get("label"), fields.Label) and (names := _names_of_classes(records)):
        record_fields["label"] = fields.Label(names)
    if "label" not in record_fields and not any(isinstance(field, fields.Label) for field in record_fields.values()):

        def advice(name: str) -> str:
            return fields.as_typed({**record_fields, name: fields.Label()})

        values = {
            name: [value] for name, value in first.items() if record_fields[name] in (fields.Int(), fields.Text())
        }
        if (name := find_label("the source", values, [], advice)) is not None:
            record_fields[name] = fields.Label()
    return {name: record_fields[name] for name in first} if first else record_fields


def _names_of_classes(records: Any) -> list[str]:
    """Return what a dataset of torchvision calls its classes; nothing where two have the same name.

    Those of ImageNet have several names each, which two may share, but an id of WordNet each. A ``Subset`` of PyTorch
    has those of its dataset, a ``ConcatDataset`` those of its datasets if they are the same in all.
    """
    kinds = {cls.__name__ for cls in type(records).__mro__}
    if "Subset" in kinds and hasattr(records, "dataset"):
        return _names_of_classes(records.dataset)
    if "ConcatDataset" in kinds and getattr(records, "datasets", None):
        first, *others = map(_names_of_classes, records.datasets)
        return first if all(other == first for other in others) else []
    for classes in (getattr(records, "classes", None), getattr(records, "wnids", None)):
        if isinstance(classes, Sequence) and not isinstance(classes, str):
            names = [", ".join(map(str, name)) if isinstance(name, (list, tuple)) else str(name) for name in classes]
            if len(set(names)) == len(names):
                return names
    return []


def _named(name: str, field: Field, feature: Any) -> Field:
    """Return the field that a name says, as `stoker.fields.infer` has it, where a feature says how values are held."""
    if name == "label" and isinstance(field, (fields.Int, fields.Text)) and feature.dtype != "bool":
        return fields.Label()
    image = fields.field_of_image(name) if field == fields.Image() else fields.named_image(name)
    if image is not None and field in (fields.Image(), fields.Text(), fields.Bytes()):
        return image
    return fields.Boxes() if name == "boxes" and isinstance(field, fields.Array) else field


def _of_feature(feature: Any) -> Field | None:
    """Return the field that a feature of ``datasets`` stands for; None where the first record tells it."""
    kind = type(feature).__name__
    if kind == "ClassLabel":
        return fields.Label(list(feature.names))
    if kind == "Image":
        return fields.Image()
    if kind == "Value":
        dtype = str(feature.dtype)
        if dtype.startswith(("int", "uint", "bool")):
            return fields.Int(dtype)
        return _TEXTS.get(dtype) or (fields.Float() if dtype.startswith("float") else None)
    if kind in ("Array2D", "Array3D", "Array4D", "Array5D"):
        return fields.Array(str(feature.dtype), tuple(feature.shape))
    return _of_list(feature)


def _of_list(feature: Any) -> Field | None:
    inner: Any = getattr(feature, "feature", None)
    if type(inner).__name__ == "ClassLabel":
        return fields.Labels(list(inner.names))
    if type(inner).__name__ == "Value" and str(inner.dtype) in ("string", "large_string"):
        return fields.Json("list[str]")
    if type(inner).__name__ == "Value" and str(inner.dtype).startswith(("int", "uint", "float", "bool")):
        length = getattr(feature, "length", -1)
        return fields.Array(str(inner.dtype), (length if length > 0 else None,))
    return None


def stated_images(records: Any, name: str) -> list[tuple[bytes, int | None]] | None:
    """Return the path and the number of bytes of each image, as `path_and_size` does; None if nothing says them."""
    features = getattr(records, "features", None)
    kind = features.get(name) if isinstance(features, Mapping) else None
    if getattr(records, "format", {}).get("type", "") is not None:
        return None
    if type(kind).__name__ == "Value" and str(getattr(kind, "dtype", "")) == "string":
        return [(os.fsencode(path or ""), None) for path in records[name]]
    if type(kind).__name__ != "Image":
        return None
    compute = importlib.import_module("pyarrow.compute")  # which `datasets` has imported
    column = records.data.column(name)
    paths, sizes = compute.struct_field(column, "path"), compute.binary_length(compute.struct_field(column, "bytes"))
    if (chosen := records._indices) is not None:
        paths, sizes = paths.take(chosen.column(0)), sizes.take(chosen.column(0))
    return [(os.fsencode(path or ""), size) for path, size in zip(paths.to_pylist(), sizes.to_pylist(), strict=True)]


def stated_labels(records: Any, name: str) -> Sequence[Any] | None:
    """Return the labels of all records, which no image is read for; None where nothing states them.

    Those of torchvision may be others than its records have: a ``target_transform`` changes these.
    """
    labels: Any = None
    features = getattr(records, "features", None)
    if isinstance(features, Mapping) and name in features:
        labels = records[name] if getattr(records, "format", {}).get("type", "") is None else None
    elif name == "label":
        labels = getattr(records, "targets", None)
        labels = labels.tolist() if hasattr(labels, "tolist") else labels
    return labels if hasattr(labels, "__len__") and len(labels) == len(records) else None
