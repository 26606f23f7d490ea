"""DALI reads shards through the indexes that Stoker writes, and decodes them, without a GPU.

Run in the client's environment: `python clients/read_dali.py DIRECTORY`, with what `datasets.py` made.
"""

from __future__ import annotations

import io
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import nvidia.dali.tfrecord as tfrec
from documented import check_program
from nvidia.dali import fn, pipeline_def
from PIL import Image, ImageOps
from source_trees import annotated_boxes, must_be_converted, photographs, report

BATCH = 16
TOLERANCE = 1.0
"""How far DALI's pixels may be from Pillow's, of 255 on average: its decoder is another build of the same library."""

FEATURES = {
    "image/encoded": tfrec.FixedLenFeature((), tfrec.string, ""),
    "image/filename": tfrec.FixedLenFeature((), tfrec.string, ""),
    "image/class/label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
    "image/object/bbox/xmin": tfrec.VarLenFeature(tfrec.float32, 0.0),
}


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
def records_of(paths: list[str], indexes: list[str]) -> tuple[Any, ...]:
    """Read TFRecords by their indexes and decode them on the CPU."""
    record = fn.readers.tfrecord(path=paths, index_path=indexes, features=FEATURES, name="reader", pad_last_batch=False)
    pixels = fn.decoders.image(record["image/encoded"], device="cpu")
    return (pixels, *(record[key] for key in FEATURES))


def read_split(data: Path, split: str) -> int:
    """Compare every record of a split with the photographs; return how many there are."""
    shards = sorted((data / "imagenet").glob(f"{split}-*-of-*"))
    indexes = [data / "imagenet" / "idx" / f"{shard.name}.idx" for shard in shards]
    truth, converted = photographs(data / "photos" / split), must_be_converted(data)
    pipeline = records_of([str(path) for path in shards], [str(path) for path in indexes])
    pipeline.build()
    assert pipeline.epoch_size("reader") == len(truth)
    seen: list[str] = []
    while len(seen) < len(truth):
        outputs = pipeline.run()
        for row in range(min(BATCH, len(truth) - len(seen))):
            pixels, encoded, name, label, xmin = (np.asarray(output[row]) for output in outputs)
            photo = truth[name.tobytes().decode()]
            assert label.tolist() == [photo.imagenet + 1]
            assert encoded.tobytes() == photo.path.read_bytes() or photo.path.name in converted
            np.testing.assert_allclose(xmin, [box[0] for box in annotated_boxes(data, photo)], atol=1e-6)
            check_pixels(pixels, encoded.tobytes(), photo.path.name)
            seen.append(photo.path.name)
    assert sorted(seen) == sorted(truth)
    return len(seen)


def check_pixels(got: np.ndarray, encoded: bytes, name: str) -> None:
    """Compare DALI's pixels with Pillow's; DALI turns a photograph as its EXIF says unless asked not to."""
    with Image.open(io.BytesIO(encoded)) as image:
        wanted = np.asarray(ImageOps.exif_transpose(image).convert("RGB"), np.float32)
    assert got.shape == wanted.shape, name
    difference = np.abs(got - wanted).mean()
    assert difference < TOLERANCE, f"{name}: the pixels differ by {difference:.2f} of 255 on average"


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    check_program("DALI", directory, lambda photo: photo.imagenet + 1)
    records = sum(read_split(directory, split) for split in ("train", "validation"))
    report("DALI", version("nvidia-dali-cuda120"), records)
