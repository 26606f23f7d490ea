"""FFCV's DatasetWriter; it decodes and encodes again whatever it stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ffcv.fields import IntField, RGBImageField
from ffcv.writer import DatasetWriter

from benchmarks.rivals.pictures import decode, make_smaller
from benchmarks.rivals.serving import serve_builds
from benchmarks.rivals.work import SMALL_QUALITY, Work


class Photos:
    """The pixels that are stored."""

    def __init__(self, work: Work) -> None:
        self._paths = work.build_photos()
        self._pixels = make_smaller if work.line == "small" else decode

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return self._pixels(Path(self._paths[number]).read_bytes()), int(number)


def build(work: Work, out: Path) -> None:
    """Write one file."""
    fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=SMALL_QUALITY), "label": IntField()}
    DatasetWriter(str(out / "all.beton"), fields, num_workers=work.threads).from_indexed_dataset(Photos(work))


if __name__ == "__main__":
    serve_builds(build)
