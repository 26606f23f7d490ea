"""TinyImageNet on Spark and HDFS, as the Hops notebook has it: JPEGs in HDFS become a TFRecord file for each class.

    python examples/tiny_imagenet_spark_hdfs.py dataset/ hdfs://namenode:8020/Projects/tiny spark://master:7077

The images of a dataset, made small, stand for tiny-imagenet-200. See docs/how-to/migrate/tiny-imagenet.md.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import tensorflow as tf
from hdfs_native.fsspec import HdfsFileSystem
from tiny_imagenet import write_tree

import stoker
from stoker.cli.main import main as run


def upload(source: Path, hdfs: HdfsFileSystem, there: str) -> None:
    """What ``hdfs dfs -put`` does; many at a time, because HDFS takes a while to close a file."""
    files = [path for path in source.rglob("*") if path.is_file()]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda path: hdfs.put_file(str(path), f"{there}/{path.relative_to(source)}"), files))


def notebook_pipeline(pattern: str, classes: int) -> tf.data.Dataset:
    """How the later steps of the notebook read what the first wrote."""
    description = {name: tf.io.FixedLenFeature([], tf.string) for name in ("label_one_hot", "image_raw")}

    def parse(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        features = tf.io.parse_single_example(record, description)
        image = tf.reshape(tf.io.decode_raw(features["image_raw"], tf.uint8), (64, 64, 3))
        one_hot = tf.reshape(tf.io.decode_raw(features["label_one_hot"], tf.uint8), (classes,))
        return image, tf.cast(one_hot, tf.int32)

    files = tf.io.gfile.glob(pattern)
    return tf.data.TFRecordDataset(files, buffer_size=100240, num_parallel_reads=2).map(parse).batch(32)


def main(dataset: str, folder: str, master: str) -> None:
    """Upload, build on the cluster, and read."""
    address = urlsplit(folder)
    hdfs = HdfsFileSystem(host=address.hostname, port=address.port)
    source, records, shuffled = (f"{folder}/{name}" for name in ("tiny-imagenet-200", "tfrecords_raw", "shuffled"))
    preset = ["--preset", "tiny-imagenet"]
    with tempfile.TemporaryDirectory() as work:
        tree, local = Path(work, "tiny-imagenet-200"), Path(work, "local")
        write_tree(dataset, tree)
        upload(tree, hdfs, urlsplit(source).path)

        assert run(["build", source, records, *preset, "--engine", "spark", "--master", master]) == 0
        assert run(["build", source, shuffled, *preset, "--shards", "4"]) == 0  # small enough for this machine alone
        assert run(["build", str(tree), str(local), *preset]) == 0
        train, same = stoker.open(records, split="train"), stoker.open(local, split="train")
        assert train.identity == same.identity  # whatever built it, wherever it lies
        print(hdfs.cat(f"{address.path}/sizes.txt").decode().replace("\n", ", "))

        for built in (train, stoker.open(shuffled, split="train")):
            with stoker.Loader(built, batch_size=16, transform=stoker.RawTensor(64, hflip=0.5), shuffle=True) as loader:
                images, labels = next(iter(loader))
            print(f"{built!r}: {images.shape}, classes {labels[:8]}")

        hdfs.get(
            f"{address.path}/tfrecords_raw/train", f"{work}/copy", recursive=True
        )  # TensorFlow reads no hdfs:// now
        read = [len(labels) for _, labels in notebook_pipeline(f"{work}/copy/*.tfrecords", len(train.classes))]
        assert sum(read) == len(train)
        print(f"the notebook's tf.data pipeline reads {sum(read)} images from a copy")


if __name__ == "__main__":
    main(*sys.argv[1:])
