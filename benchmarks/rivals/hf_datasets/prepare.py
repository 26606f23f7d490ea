"""Arrow files of the JPEG bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import datasets

from benchmarks.rivals.work import Work


def prepare(work: Work) -> None:
    """Write the photographs."""
    images = [{"bytes": Path(path).read_bytes(), "path": None} for path in work.photos()]
    features = datasets.Features({"image": datasets.Image(), "number": datasets.Value("int64")})
    dataset = datasets.Dataset.from_dict({"image": images, "number": list(range(len(images)))}, features=features)
    dataset.save_to_disk(work.path_of("photos"), num_shards=8)


if __name__ == "__main__":
    prepare(Work.from_json(sys.argv[1]))
