"""The tfrecord package reads shards through the indexes that Stoker writes.

Run in the client's environment: `python clients/read_tfrecord.py DIRECTORY`, with what `datasets.py` made.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from documented import check_program
from source_trees import annotated_boxes, must_be_converted, photographs, report
from tfrecord.reader import tfrecord_loader

if TYPE_CHECKING:
    from source_trees import Photo

DESCRIPTION = {
    "image/encoded": "byte",
    "image/filename": "byte",
    "image/class/label": "int",
    "image/object/bbox/xmin": "float",
}


def read_split(data: Path, split: str) -> int:
    """Compare every record of a split with the photographs; return how many there are."""
    truth, converted = photographs(data / "photos" / split), must_be_converted(data)
    seen = set()
    for shard in sorted((data / "imagenet").glob(f"{split}-*-of-*")):
        index = data / "imagenet" / "idx" / f"{shard.name}.idx"
        whole = list(tfrecord_loader(str(shard), str(index), DESCRIPTION))
        parts = [
            record for part in range(3) for record in tfrecord_loader(str(shard), str(index), DESCRIPTION, (part, 3))
        ]
        names = [bytes(record["image/filename"]).decode() for record in parts]
        assert sorted(names) == sorted(bytes(record["image/filename"]).decode() for record in whole)
        assert seen.isdisjoint(names)
        assert len(set(names)) == len(names)
        for name, record in zip(names, parts, strict=True):
            assert record["image/class/label"] == truth[name].imagenet + 1
            assert bytes(record["image/encoded"]) == truth[name].path.read_bytes() or name in converted
            check_boxes(record["image/object/bbox/xmin"], data, truth[name])
        seen.update(names)
    assert seen == set(truth)
    return len(seen)


def check_boxes(got: np.ndarray, data: Path, photo: Photo) -> None:
    """Compare the left edges; a list without values must be readable too."""
    np.testing.assert_allclose(got, [box[0] for box in annotated_boxes(data, photo)], atol=1e-6)


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    check_program("The tfrecord package", directory, lambda photo: photo.imagenet + 1)
    records = sum(read_split(directory, split) for split in ("train", "validation"))
    report("tfrecord", version("tfrecord"), records)
