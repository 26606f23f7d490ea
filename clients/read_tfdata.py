"""tf.data reads the records of four of the original systems with the feature maps of their own readers.

Run in the client's environment: `python clients/read_tfdata.py DIRECTORY`, with what `datasets.py` made.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dlbs_snippet
import numpy as np
import tensorflow as tf
from documented import check_program
from source_trees import annotated_boxes, class_texts, flat_photographs, must_be_converted, photographs, report
from tf_reading import (
    CORNERS,
    DOGS_MAP,
    GOOGLE_MAP,
    GOOGLE_REST,
    HOPS_MAP,
    NVIDIA_MAP,
    decode,
    in_eager_mode,
    in_graph_mode,
    matching_shards,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from source_trees import Photo

tf1 = tf.compat.v1
SPLITS = {"train": 4, "validation": 2}  # and their shards

RESIZED, RECODED = 0.5, 6.0
"""How far pixels may be off, of 255 on average: another resampler; JPEG with halved colour, which hurts noise most."""


def read_imagenet(data: Path) -> int:
    """Compare Google's 15 keys, read in both modes, with the photographs and their annotations."""
    records, converted, texts = 0, must_be_converted(data), class_texts(data)
    for split, shards in SPLITS.items():
        paths = matching_shards(data / "imagenet" / f"{split}-*-of-*", shards)
        eager = list(in_eager_mode(paths, GOOGLE_MAP | GOOGLE_REST))
        graph = list(in_graph_mode(paths, GOOGLE_MAP))
        assert graph == [{key: record[key] for key in GOOGLE_MAP} for record in eager]
        truth = photographs(data / "photos" / split)
        check_names([record["image/filename"] for record in eager], truth)
        for record in eager:
            photo = truth[record["image/filename"].decode()]
            check_image_class(record, photo, kept=photo.path.name not in converted)
            assert record["image/class/synset"].decode() == photo.folder
            assert record["image/class/text"].decode() == texts[photo.folder]
            boxes = annotated_boxes(data, photo)
            for column, corner in enumerate(CORNERS):
                wanted = [box[column] for box in boxes]
                np.testing.assert_allclose(record[f"image/object/bbox/{corner}"], wanted, atol=1e-6)
            assert record["image/object/bbox/label"] == [photo.imagenet + 1] * len(boxes)
        assert any(record["image/object/bbox/xmin"] for record in eager)
        records += len(eager)
    return records


def read_nvidia(data: Path) -> int:
    """Compare NVIDIA's 9 keys: every image is of 352 x 352 pixels, and the text is the synset."""
    records = 0
    for split, shards in SPLITS.items():
        paths = matching_shards(data / "imagenet-nvidia" / f"{split}-*-of-*", shards)
        eager = list(in_eager_mode(paths, NVIDIA_MAP))
        assert list(in_graph_mode(paths, NVIDIA_MAP)) == eager
        truth = photographs(data / "photos" / split)
        check_names([record["image/filename"] for record in eager], truth)
        for record in eager:
            photo = truth[record["image/filename"].decode()]
            check_image_class(record, photo, kept=False)
            assert (record["image/height"], record["image/width"]) == (352, 352)
            assert record["image/class/text"].decode() == photo.folder
        records += len(eager)
    return records


def check_names(names: list[bytes], truth: Mapping[str, object]) -> None:
    """Every photograph is there once."""
    assert sorted(name.decode() for name in names) == sorted(truth)


def check_image_class(record: Mapping[str, Any], photo: Photo, *, kept: bool) -> None:
    """Compare the keys that Google's and NVIDIA's records share."""
    assert record["image/class/label"] == [photo.imagenet + 1]
    constants = [record[f"image/{key}"] for key in ("channels", "colorspace", "format")]
    assert constants == [3, b"RGB", b"JPEG"]
    pixels = decode(record["image/encoded"]).numpy()
    assert pixels.shape == (record["image/height"], record["image/width"], 3)
    if kept:
        assert record["image/encoded"] == photo.path.read_bytes()
    else:
        source = decode(photo.path.read_bytes())
        check_close(pixels, tf.image.resize(source, pixels.shape[:2], antialias=True).numpy(), RECODED)


def check_close(got: np.ndarray, wanted: np.ndarray, most: float) -> None:
    """Compare pixels that went through another decoder, resampler or encoder, by their mean difference."""
    difference = np.abs(got.astype(np.float32) - wanted.astype(np.float32)).mean()
    assert difference < most, f"the pixels differ by {difference:.1f} of 255 on average, not by less than {most}"


def read_dlbs(data: Path) -> int:
    """Run the lines of DLBS's documentation over its preset, and compare with what its writer would have stored."""
    records = 0
    for name, shards in (("dlbs", {"train": 3, "validation": 1}), ("dlbs-exact", {"train": 1, "validation": 1})):
        for split, count in shards.items():
            paths = matching_shards(data / name / f"{split}-*-of-*", count)
            names = [record["image/filename"] for record in in_eager_mode(paths, _FILENAME)]
            truth = photographs(data / "photos" / split)
            check_names(names, truth)
            pairs = tf.data.TFRecordDataset(paths).map(dlbs_snippet.parse)
            for filename, (image, label) in zip(names, pairs, strict=True):
                photo = truth[filename.decode()]
                assert int(label) == photo.imagenet
                assert image.shape == (96, 96, 3)
                if name == "dlbs":
                    check_close(
                        image.numpy(), tf.image.resize(_square(photo), (96, 96), antialias=True).numpy(), RESIZED
                    )
                elif photo.path.name not in must_be_converted(data):
                    wanted = tf1.image.resize_bilinear(_square(photo)[None], (96, 96), align_corners=True)[0]
                    assert np.array_equal(image.numpy(), tf.cast(wanted, tf.uint8).numpy()), photo.path.name
                records += 1
    return records


_FILENAME = {"image/filename": tf.io.FixedLenFeature([], tf.string)}


def _square(photo: Photo) -> tf.Tensor:
    """Return the largest centred square of a photograph."""
    pixels = decode(photo.path.read_bytes())
    height, width = pixels.shape[:2]
    side = min(height, width)
    return pixels[(height - side) // 2 :, (width - side) // 2 :][:side, :side]


def read_hops(data: Path) -> int:
    """Compare the raw and one-hot records of the Hops notebook, class by class."""
    tree, records = data / "tiny-imagenet-200", 0
    truth = photographs(tree / "train")
    wnids = sorted({photo.folder for photo in truth.values()})
    train = matching_shards(data / "tiny-imagenet" / "train" / "*", len(wnids))
    assert sorted(Path(path).name for path in train) == sorted(f"{label}.tfrecords" for label in range(len(wnids)))
    for path in train:
        label = int(Path(path).stem)
        sources = [photo.path for photo in truth.values() if photo.index == label]
        records += check_hops([path], sources, [label] * len(sources), len(wnids))
    lines = [line.split("\t") for line in (tree / "val" / "val_annotations.txt").read_text().splitlines()]
    sources = [tree / "val" / "images" / line[0] for line in lines]
    validation = matching_shards(data / "tiny-imagenet" / "val" / "*", 1)
    records += check_hops(validation, sources, [wnids.index(line[1]) for line in lines], len(wnids))
    sources = list(flat_photographs(tree / "test" / "images").values())
    records += check_hops(
        matching_shards(data / "tiny-imagenet" / "test" / "*", 1), sources, [-1] * len(sources), len(wnids)
    )
    return records


def check_hops(paths: list[str], sources: list[Path], labels: list[int], classes: int) -> int:
    """Compare records with photographs by their pixels, as the records hold no names; return how many there are."""
    wanted = [
        (decode(source.read_bytes()).numpy().tobytes(), label) for source, label in zip(sources, labels, strict=True)
    ]
    got = []
    for record in in_eager_mode(paths, HOPS_MAP):
        assert (record["height"], record["width"], record["channel"]) == (64, 64, 3)
        pixels = tf1.decode_raw(record["image_raw"], tf.uint8).numpy()
        hot = tf1.decode_raw(record["label_one_hot"], tf.uint8).numpy().tolist()
        assert hot == [int(class_id == record["label"]) for class_id in range(classes)]
        got.append((pixels.tobytes(), record["label"]))
    assert sorted(got) == sorted(wanted)
    return len(got)


def read_dogs(data: Path) -> int:
    """Compare GZIP shards of images and one-hot labels, by the brightness of the pixels, which hold no names."""
    paths = matching_shards(data / "dogs-onehot" / "output_file-part-*", 4)
    truth = photographs(data / "Images")
    classes = len({photo.index for photo in truth.values()})
    wanted = {}
    for photo in truth.values():
        source = decode(photo.path.read_bytes())
        wanted[photo.path.name] = tf.image.resize(source, (224, 224), method="nearest").numpy().astype(np.float32)
    seen = set()
    for record in in_eager_mode(paths, DOGS_MAP, "GZIP"):
        pixels = decode(record["image"]).numpy()
        assert pixels.shape == (224, 224, 3)
        nearest = min(wanted, key=lambda name: float(np.abs(wanted[name] - pixels).mean()))
        check_close(pixels, wanted[nearest], RECODED)
        assert record["label"] == [int(class_id == truth[nearest].index) for class_id in range(classes)]
        seen.add(nearest)
    assert seen == set(truth)
    return len(seen)


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    check_program("tf.data", directory, lambda photo: photo.imagenet + 1)
    report(
        "tf.data",
        tf.__version__,
        sum(read(directory) for read in (read_imagenet, read_nvidia, read_dlbs, read_hops, read_dogs)),
    )
    assert "stoker" not in sys.modules
