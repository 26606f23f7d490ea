"""FFCV's files: photographs as JPEG, at most 500 pixels wide as raw or half raw half JPEG, and the small tensors."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.writer import DatasetWriter

from benchmarks.rivals.work import Work

FORMS: dict[str, dict[str, Any]] = {
    "jpg": {"write_mode": "jpg", "jpeg_quality": 90},
    "500_50_90": {"write_mode": "proportion", "max_resolution": 500, "compress_probability": 0.5, "jpeg_quality": 90},
    "500_raw": {"write_mode": "raw", "max_resolution": 500},
}


class Photos:
    """Decoded photographs: FFCV cannot store the original bytes."""

    def __init__(self, work: Work) -> None:
        self._paths = work.photos()

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return cv2.imread(self._paths[number], cv2.IMREAD_COLOR_RGB), int(number)


class Tensors:
    """The small tensors."""

    def __init__(self, work: Work) -> None:
        self._pixels = np.load(work.raw_file, mmap_mode="r")

    def __len__(self) -> int:
        return len(self._pixels)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return np.array(self._pixels[number]), int(number)


def write(path: Path, dataset: Any, settings: dict[str, Any]) -> None:
    """Write one file, and give it its name when it is whole."""
    if path.exists():
        return
    unfinished = path.with_suffix(".part")
    fields = {"image": RGBImageField(**settings), "label": IntField()}
    DatasetWriter(str(unfinished), fields, num_workers=os.cpu_count()).from_indexed_dataset(dataset, chunksize=100)
    unfinished.rename(path)


def prepare(work: Work) -> None:
    """Write every form."""
    Path(work.data).mkdir(parents=True, exist_ok=True)
    for name, settings in FORMS.items():
        write(Path(work.path_of(f"{name}.beton")), Photos(work), settings)
    write(Path(work.path_of("raw64.beton")), Tensors(work), {"write_mode": "raw"})


if __name__ == "__main__":
    prepare(Work.from_json(sys.argv[1]))
