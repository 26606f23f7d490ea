"""What TensorFlow Datasets asks of a directory of shards before ``builder_from_directory`` opens it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stoker.format.directory import write_listed
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stoker.format.directory import ListedFile
    from stoker.format.manifest import Split
    from stoker.storage import LocationLike


FEATURES_NAME = "features.json"
INFO_NAME = "dataset_info.json"
LABEL_NAMES_NAME = "label.labels.txt"
TFDS_NAMES = (FEATURES_NAME, INFO_NAME, LABEL_NAMES_NAME)
"""TFDS looks for the names of a ``ClassLabel`` in a file called by its key."""

_VERSION = "1.0.0"
_CLASSES = "tensorflow_datasets.core.features."


def write_tfds_metadata(
    directory: LocationLike, *, name: str, splits: Mapping[str, Split], class_names: Sequence[str]
) -> dict[str, ListedFile]:
    r"""Write ``features.json``, ``dataset_info.json`` and the names of the labels, each atomically.

    The records have the keys of preset ``tfds`` and lie in shards called ``NAME-SPLIT.tfrecord-00000-of-00008``. The
    three files are the JSON form of TFDS's own protocol buffers and hold no dates: the same arguments give the same
    bytes. They are written for TFDS 4.0 or newer, which checks neither the name nor the version. What the manifest says
    about each is returned.

    TFDS reads the names as UTF-8 lines, strips them and passes over blank ones. Bytes of a name that are not UTF-8,
    surrogate escapes in ``class_names``, are written as an escape (``\udcff``); and where stripping would make two
    names one, or none, no names are written at all: the classes then have numbers only, which is better than wrong
    names.
    """
    place = location(directory)
    names = [text.encode("utf-8", "backslashreplace") for text in class_names]
    seen = {text.decode().strip() for text in names}
    contents = {FEATURES_NAME: _format(_features(len(names))), INFO_NAME: _format(_info(name, splits))}
    if names and "" not in seen and len(seen) == len(names):
        contents[LABEL_NAMES_NAME] = b"".join(text + b"\n" for text in names)
    else:
        (place / LABEL_NAMES_NAME).unlink(missing_ok=True)
    return {file: write_listed(place / file, content) for file, content in contents.items()}


def _features(classes: int) -> dict[str, Any]:
    """Return the three keys of preset ``tfds``; 64-bit integers are strings in the JSON of protocol buffers."""
    # Without the format TFDS looks at the bytes of each image, which are JPEG or PNG.
    image = {"dtype": "uint8", "encodingFormat": "", "shape": {"dimensions": ["-1", "-1", "3"]}}
    features = {
        "file_name": {"pythonClassName": _CLASSES + "text_feature.Text", "text": {}},
        "image": {"pythonClassName": _CLASSES + "image_feature.Image", "image": image},
        "label": {
            "pythonClassName": _CLASSES + "class_label_feature.ClassLabel",
            "classLabel": {"numClasses": str(classes)},
        },
    }
    return {"pythonClassName": _CLASSES + "features_dict.FeaturesDict", "featuresDict": {"features": features}}


def _info(name: str, splits: Mapping[str, Split]) -> dict[str, Any]:
    """Return the splits, and what ``as_supervised=True`` yields; ``numBytes`` is the size of the files."""
    return {
        "name": name,
        "version": _VERSION,
        "fileFormat": "tfrecord",
        "splits": [
            {
                "name": split,
                "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
                "numBytes": str(content.size_bytes),
                "shardLengths": [str(shard.records) for shard in content.shards],
            }
            for split, content in splits.items()
        ],
        "supervisedKeys": {"tuple": {"items": [{"featureKey": "image"}, {"featureKey": "label"}]}},
    }


def _format(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=2, sort_keys=True).encode() + b"\n"
