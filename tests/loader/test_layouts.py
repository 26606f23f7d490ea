"""Records of every layout through the loader: pixels instead of JPEGs, one-hot labels, no labels."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from loader.shards import tensor
from reference import example, pictures, tfrecord, transform
from stoker import _native
from stoker.errors import ConfigError, CorruptRecordError, ExampleError, ImageError, ImageTooLargeError
from transforms.cases import EACH, of_image

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 18
SEED = 77
SIDE = 40
RESIZE = stoker.Resize(33)


def picture(i: int) -> np.ndarray:
    return pictures.pixels(SIDE, SIDE, i)


def bare(i: int) -> example.Features:
    """A square tensor and a one-hot label, and nothing else."""
    return {
        "image_raw": ("bytes", [picture(i).tobytes()]),
        "label_one_hot": ("int64", [int(n == i % 5) for n in range(5)]),
    }


def write(directory: Path, records: list[example.Features]) -> stoker.Dataset:
    path = directory / "train-00000-of-00001"
    path.write_bytes(b"".join(tfrecord.frame(example.write(record)) for record in records))
    return stoker.open(path)


def mixed(i: int) -> example.Features:
    return tensor(i, picture(i), "CHW" if i % 3 else "HWC")


@pytest.mark.parametrize("chosen", [of_image(case, SIDE, SIDE) for case in EACH], ids=str)
@pytest.mark.parametrize("layout", [mixed, bare])
@pytest.mark.slow
def test_tensors_give_the_pixels_of_pillow(tmp_path: Path, layout: object, chosen: stoker.transforms.Transform) -> None:
    train = write(tmp_path, [layout(i) for i in range(RECORDS)])
    if isinstance(chosen, stoker.ObjectCrops):
        train._object_counts = np.zeros(RECORDS, np.uint32)
    with stoker.Loader(train, batch_size=5, transform=chosen, shuffle=True, seed=SEED, threads=3) as loader:
        keys = []
        for batch in loader:
            for pixels, label, index in zip(batch.images, batch.labels, batch.indices.tolist(), strict=True):
                draws = transform.Draws(SEED, 0, index)
                assert (pixels == transform.show(Image.fromarray(picture(index)), chosen, draws)).all(), index
                assert label == (index if layout is mixed else index % 5)
                keys.append(index)
    assert sorted(keys) == list(range(RECORDS))
    assert train.labels.tolist() == [i if layout is mixed else i % 5 for i in range(RECORDS)]
    assert (train[4].decode() == picture(4)).all()


def load(train: stoker.Dataset, chosen: stoker.transforms.Transform = RESIZE, **settings: object) -> list[int]:
    with stoker.Loader(train, batch_size=4, transform=chosen, threads=3, **settings) as loader:
        return [label for batch in loader for label in batch.labels.tolist()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image/height": ("int64", [SIDE + 1])}, "4800 bytes of pixels are not 41 x 40 x 3"),
        ({"image/height": ("int64", [-SIDE]), "image/width": ("int64", [-SIDE])}, "not -40 x -40 x 3"),
        ({"image/height": ("int64", [2**62]), "image/width": ("int64", [2**62])}, "are not 4611686018427387904 x"),
        ({"image/width": ("bytes", [b"40"])}, "'image/width' is of kind bytes"),
        ({"image/order": ("bytes", [b"NCHW"])}, "'NCHW'; it must be HWC or CHW"),
        ({"image/encoded": ("bytes", [b""])}, "0 bytes of pixels"),
    ],
)
def test_a_tensor_of_a_wrong_shape_is_named(tmp_path: Path, changes: example.Features, message: str) -> None:
    train = write(tmp_path, [mixed(0), mixed(1), mixed(2) | changes, mixed(3)])
    for chosen in (RESIZE, stoker.RawTensor(SIDE)):
        with pytest.raises(ExampleError, match=message) as caught:
            load(train, chosen)
        assert (caught.value.record, caught.value.source) == (2, "2.JPEG")


@pytest.mark.parametrize("check", [True, False])
def test_pixels_that_are_copied_as_they_lie_are_those_stored(tmp_path: Path, check: bool) -> None:
    more = [{"image/class/label": ("int64", [i - 1]), "text": ("bytes", [b"text " * (i % 7)])} for i in range(RECORDS)]
    train = write(tmp_path, [tensor(i, picture(i)) | more[i] for i in range(RECORDS)])  # a label of -1 takes ten bytes
    with stoker.Loader(train, RECORDS, transform=stoker.RawTensor(SIDE), threads=3, check=check) as loader:
        (batch,) = loader
    assert batch.labels.tolist() == list(range(-1, RECORDS - 1))
    assert all((batch.images[i] == picture(i)).all() for i in range(RECORDS))


def test_any_changed_byte_of_pixels_that_are_copied_is_found(tmp_path: Path) -> None:
    frames = [tfrecord.frame(example.write(tensor(i, picture(i)))) for i in range(9)]
    train = write(tmp_path, [tensor(i, picture(i)) for i in range(9)])
    path, offset, bad = tmp_path / "train-00000-of-00001", sum(map(len, frames[:4])), frames[4]
    start, transform = bad.index(picture(4).tobytes()), stoker.RawTensor(SIDE)
    for at in (12, start - 1, start, start + SIDE * SIDE * 3 - 1, len(bad) - 10, len(bad) - 1, start + 900):
        changed = bad[:at] + bytes([bad[at] ^ 0x41]) + bad[at + 1 :]
        path.write_bytes(b"".join([*frames[:4], changed, *frames[5:]]))
        with stoker.Loader(train, 9, transform=transform) as loader, pytest.raises(CorruptRecordError) as caught:
            list(loader)
        assert (caught.value.record, caught.value.offset) == (4, offset)
        assert "checksum" in str(caught.value)
    with stoker.Loader(train, 9, transform=transform, check=False) as loader:
        (batch,) = loader  # unnoticed
    assert (batch.images[4] != picture(4)).sum() == 1


def test_a_tensor_above_the_limit_is_refused(tmp_path: Path) -> None:
    train = write(tmp_path, [mixed(i) for i in range(4)])
    assert len(load(train, max_pixels=SIDE * SIDE)) == 4
    with pytest.raises(ImageTooLargeError, match=f"40 x 40 pixels; the limit is {SIDE * SIDE - 1}"):
        load(train, max_pixels=SIDE * SIDE - 1)


def test_a_transform_of_another_size_names_both(tmp_path: Path) -> None:
    train = write(tmp_path, [mixed(i) for i in range(4)])
    for other, needed in (
        (stoker.RawTensor((40, 39)), "exactly 39 x 40"),
        (stoker.RawTensor((39, 40)), "exactly 40 x 39"),
        (stoker.TopLeft((40, 41)), "at least 41 x 40"),
    ):
        with pytest.raises(ImageError, match=f"the image is 40 x 40 .* needs {needed}"):
            load(train, other)


def test_labels_that_are_no_longer_one_hot_are_an_error_by_record(tmp_path: Path) -> None:
    records = [bare(i) for i in range(6)]
    records[3]["label_one_hot"] = ("int64", [0, 1, 0, 1, 0])
    train = write(tmp_path, records)
    with pytest.raises(ExampleError, match="'label_one_hot' is not one-hot: value 3 of 5 is 1, behind another 1"):
        load(train)
    with pytest.raises(ExampleError) as caught:
        _ = train.labels
    assert caught.value.record == 3
    records[3]["label_one_hot"] = ("int64", [0] * 5)
    assert load(write(tmp_path, records)) == [0, 1, 2, -1, 4, 0]


def test_records_without_a_label_are_of_no_class(tmp_path: Path) -> None:
    records = [{"image_raw": bare(i)["image_raw"], "label_one_hot": ("int64", [1])} for i in range(4)]
    train = write(tmp_path, records)
    train.reader.schema = replace(train.schema, label_key="")
    assert load(train) == [-1] * 4
    assert train.labels.tolist() == [-1] * 4


def test_a_layout_without_boxes_has_no_objects_to_crop(tmp_path: Path) -> None:
    train = write(tmp_path, [bare(i) for i in range(4)])
    with pytest.raises(ConfigError, match="has no boxes"):
        stoker.Loader(train, batch_size=4, transform=stoker.ObjectCrops(8))


def test_a_shard_whose_path_is_not_utf8_is_read_and_named(tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"caf\xe9")
    directory.mkdir()
    train = write(directory, [mixed(0), mixed(1) | {"image/encoded": ("bytes", [b""])}])
    with pytest.raises(ExampleError) as caught:
        load(train)
    assert caught.value.path == str(directory / "train-00000-of-00001")
    assert train.records.where(1)[:2] == (caught.value.path, 1)


def test_labels_and_counts_of_many_records_are_in_order(tmp_path: Path) -> None:
    path = tmp_path / "train-00000-of-00001"
    many = 4096 + 300  # more than are read between two looks for Ctrl-C
    path.write_bytes(b"".join(tfrecord.frame(example.write({"n": ("int64", [i] * (i % 3))})) for i in range(many)))
    records = _native.RecordSet()
    records.add(str(path), _native.scan_shard(str(path)))
    assert records.count_values("n", 3).tolist() == [i % 3 for i in range(many)]
    assert records.labels("n", False, 0, 3).tolist() == [i if i % 3 else -1 for i in range(many)]
