"""Pixels that go into the batch as they are stored, and are checked while they are copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from reference import example, pictures, tfrecord
from stoker.errors import CorruptRecordError, ExampleError, ImageError

if TYPE_CHECKING:
    from pathlib import Path

SIDE, RECORDS = 24, 40


def pixels(i: int) -> np.ndarray:
    return pictures.pixels(SIDE, SIDE, i)


def record(i: int, stored: np.ndarray, **changes: tuple[str, list]) -> bytes:
    height, width, _ = stored.shape
    features = {
        "image/encoded": ("bytes", [stored.tobytes()]),
        "image/format": ("bytes", [b"tensor"]),
        "image/channels": ("int64", [3]),
        "image/colorspace": ("bytes", [b"RGB"]),
        "image/class/label": ("int64", [i - 1]),  # the first has none: -1 takes ten bytes
        "image/class/synset": ("bytes", [b"n%08d" % i]),
        "image/class/text": ("bytes", [b"class " * (i % 7)]),
        "image/filename": ("bytes", [b"picture-%d" % i]),
        "image/height": ("int64", [height]),
        "image/width": ("int64", [width]),
        "image/order": ("bytes", [b"HWC"]),
    }
    return tfrecord.frame(example.write(features | changes))


def write(folder: Path, frames: list[bytes]) -> Path:
    path = folder / "train-00000-of-00001.tfrecord"
    path.write_bytes(b"".join(frames))
    return path


def loaded(path: Path, **settings: object) -> list[stoker.Batch]:
    with stoker.Loader(
        stoker.open(path), batch_size=7, transform=stoker.RawTensor(SIDE), threads=3, **settings
    ) as loader:
        return list(loader)


@pytest.mark.parametrize("check", [True, False])
def test_pixels_and_labels_are_those_stored(tmp_path: Path, check: bool) -> None:
    path = write(tmp_path, [record(i, pixels(i)) for i in range(RECORDS)])
    batches = loaded(path, check=check)
    assert np.concatenate([batch.labels for batch in batches]).tolist() == list(range(-1, RECORDS - 1))
    images = np.concatenate([batch.images for batch in batches])
    assert all((images[i] == pixels(i)).all() for i in range(RECORDS))


def test_any_changed_byte_of_a_record_is_found(tmp_path: Path) -> None:
    frames = [record(i, pixels(i)) for i in range(9)]
    bad = bytearray(frames[4])
    start = bad.index(pixels(4).tobytes())
    stops = [12, start - 1, start, start + 900, start + SIDE * SIDE * 3 - 1, len(bad) - 10, len(bad) - 1]
    path = write(tmp_path, frames)
    whole = stoker.open(path)
    offset = sum(map(len, frames[:4]))
    for at in stops:
        changed = bytearray(bad)
        changed[at] ^= 0x41
        path.write_bytes(b"".join([*frames[:4], bytes(changed), *frames[5:]]))
        loader = stoker.Loader(whole, batch_size=9, transform=stoker.RawTensor(SIDE))
        with loader, pytest.raises(CorruptRecordError, match="checksum") as caught:
            next(iter(loader))
        assert (caught.value.record, caught.value.offset) == (4, offset)
    bad[start + 900] ^= 0x41
    path.write_bytes(b"".join([*frames[:4], bytes(bad), *frames[5:]]))
    (batch,) = (b for b in loaded(path, check=False) if 4 in b.indices)  # unnoticed
    assert (batch.images[4] != pixels(4)).sum() == 1


def test_records_that_do_not_fit_are_errors_and_others_are_not(tmp_path: Path) -> None:
    path = write(tmp_path, [record(0, pixels(0)), record(1, pictures.pixels(SIDE, SIDE - 1, 1))])
    with pytest.raises(ImageError, match="exactly 24 x 24"):
        loaded(path)
    path = write(tmp_path, [record(0, pixels(0)), record(1, pixels(1), **{"image/order": ("bytes", [b"WHC"])})])
    with pytest.raises(ExampleError, match="WHC"):
        loaded(path)
