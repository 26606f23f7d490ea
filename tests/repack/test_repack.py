"""Records of any layout to records of any other: nothing lost, nothing changed that need not be."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from reference import example, pictures, tfrecord
from stoker import _native
from stoker.format import read_rejects
from stoker.format.manifest import read_manifest
from stoker.loader import open_records
from written_files import flip_bit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commands import Cli


SIDES = ("xmin", "ymin", "xmax", "ymax")


def seen(path: Path, split: str = "train") -> Counter[tuple[int, bytes]]:
    """Every sample of a split by its class, counted from 0, and its pixels."""
    data = stoker.open(path, split)
    return Counter((s.label - data.schema.label_base if s.label >= 0 else -1, s.decode().tobytes()) for s in data)


def test_the_same_recipe_gives_the_dataset_of_the_images_themselves(photos: Path, tmp_path: Path, cli: Cli) -> None:
    cli("build", photos, tmp_path / "a", "--seed", 3, "--shards", 2)
    cli("repack", tmp_path / "a", tmp_path / "b", "--seed", 3, "--shards", 2)
    first, second = read_manifest(tmp_path / "a"), read_manifest(tmp_path / "b")
    assert first.dataset_id == second.dataset_id
    assert (tmp_path / "a/labels.txt").read_bytes() == (tmp_path / "b/labels.txt").read_bytes()
    small = ["--resize", "short:40", "--seed", 5, "--shards", 2]
    for source, out in (("a", "c"), ("b", "d")):
        cli("repack", tmp_path / source, tmp_path / out, *small)
    assert read_manifest(tmp_path / "c").dataset_id == read_manifest(tmp_path / "d").dataset_id


PRESETS = ["imagenet", "imagenet-nvidia", "dlbs", "tiny-imagenet", "dogs-onehot", "tfds"]


@pytest.mark.parametrize("source", PRESETS)
@pytest.mark.parametrize("target", ["imagenet", "dlbs", "tiny-imagenet", "dogs-onehot", "tfds"])
@pytest.mark.slow
def test_any_layout_to_any_other(photos: Path, tmp_path: Path, source: str, target: str, cli: Cli) -> None:
    names = ["--shard-names", "{split}-{shard}.tfrecord"]
    cli("build", photos, tmp_path / "a", "--preset", source, "--resize", "square:24", *names, "--num-images", 20)
    manifest = read_manifest(tmp_path / "a")
    lossless = ["--encode", "raw"] if target in ("dlbs", "tiny-imagenet") else ["--recipe", "keep"]
    options = ["--resize", "off"] if lossless[0] == "--encode" else []
    cli("repack", tmp_path / "a", tmp_path / "b", "--preset", target, *lossless, *options, *names)
    assert read_manifest(tmp_path / "b").records == manifest.records
    cli("verify", tmp_path / "b")
    raw_source, raw_target = (name in ("dlbs", "tiny-imagenet") for name in (source, target))
    for split in manifest.splits:
        before, after = seen(tmp_path / "a", split), seen(tmp_path / "b", split)
        assert Counter(label for label, _ in before.elements()) == Counter(label for label, _ in after.elements())
        if raw_target or not raw_source:  # pixels that become a JPEG change a little
            assert before == after


def shard(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(tfrecord.frame(example.write(record)) for record in records))
    return path


def test_records_of_an_unknown_layout(tmp_path: Path, cli: Cli) -> None:
    records = [{"jpg": ("bytes", [pictures.jpeg(40, 30, n)]), "cls": ("int64", [1 + n % 3])} for n in range(7)]
    shard(tmp_path / "old.tfrecord", records)
    cli("repack", tmp_path / "old.tfrecord", tmp_path / "new", code=2)
    assert "The first record holds cls (int64 x 1), jpg (bytes x 1); name the keys" in cli.err
    keys = ["--image-key", "jpg", "--label-key", "cls", "--from-label-base", 1]
    cli("repack", tmp_path / "old.tfrecord", tmp_path / "new", *keys, "--preset", "tfds")
    assert read_manifest(tmp_path / "new").splits["train"].class_counts == (3, 2, 2)
    assert {s.encoded for s in stoker.open(tmp_path / "new")} == {record["jpg"][1][0] for record in records}
    cli("repack", tmp_path / "old.tfrecord", tmp_path / "x", "--label-key", "cls", code=2)


def test_a_damaged_record_is_rejected_and_the_others_are_kept(photos: Path, tmp_path: Path, cli: Cli) -> None:
    cli("build", photos, tmp_path / "a", "--shards", 1)
    path = next((tmp_path / "a").glob("train-*.tfrecord"))
    rows = _native.scan_shard(str(path))
    flip_bit(path, int(rows[5][0]) + 40)
    cli("repack", tmp_path / "a", tmp_path / "b", code=3)
    rejects = read_rejects(tmp_path / "b")
    assert len(rejects) == 1
    assert rejects[0].key.startswith("train#5")
    assert "record 5" in rejects[0].reason


def test_objects_of_records(tmp_path: Path, cli: Cli) -> None:
    boxes = {f"image/object/bbox/{side}": ("float", [0.0, 0.5] if "min" in side else [0.5, 1.0]) for side in SIDES}
    whole = {"image/encoded": ("bytes", [pictures.jpeg(40, 30, 1)]), "image/class/label": ("int64", [1])}
    shard(tmp_path / "train-00000-of-00001", [whole | boxes, whole])
    cli("repack", tmp_path, tmp_path, "--crop-objects", code=2)
    cli("repack", tmp_path, tmp_path / "out", "--crop-objects")
    sizes = sorted(sample.decode().shape for sample in stoker.open(tmp_path / "out"))
    assert sizes == [(15, 20, 3), (15, 20, 3), (30, 40, 3)]


def test_boxes_count_from_the_same_number_in_another_process(tmp_path: Path) -> None:
    record = {"image/encoded": ("bytes", [pictures.jpeg(40, 30, 1)]), "image/class/label": ("int64", [1])}
    record |= {f"image/object/bbox/{side}": ("float", [size]) for side, size in zip(SIDES, (0, 0, 1, 1), strict=True)}
    shard(tmp_path / "train-00000-of-00001", [record | {"image/object/bbox/label": ("int64", [1])}])
    records = open_records(str(tmp_path), None, label_base=1)
    for source in (records, pickle.loads(pickle.dumps(records))):
        assert [box.label for box in source.load(records.table[0], "train").boxes] == [0]


def test_a_png_in_a_record_is_kept_unless_readers_want_jpeg(tmp_path: Path, cli: Cli) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (9, 7, 3), np.uint8)
    out = pictures.encode(Image.fromarray(pixels), format="PNG")
    record = {"image/encoded": ("bytes", [out]), "image/class/label": ("int64", [1])}
    shard(tmp_path / "train-00000-of-00001", [record])
    cli("repack", tmp_path / "train-*", tmp_path / "out")
    assert read_manifest(tmp_path / "out").converted == {}
    assert stoker.open(tmp_path / "out")[0].encoded == out
    cli("repack", tmp_path / "train-*", tmp_path / "jpeg", "--preset", "imagenet")
    assert read_manifest(tmp_path / "jpeg").converted == {"png": 1}
    assert stoker.open(tmp_path / "jpeg")[0].encoded.startswith(b"\xff\xd8")


def test_images_are_for_build(photos: Path, tmp_path: Path, cli: Cli) -> None:
    assert "checks images, and 'stoker build' makes a dataset of them" in cli("repack", photos, tmp_path / "b", code=2)


def test_names_that_would_break_the_list_of_classes(tmp_path: Path, cli: Cli) -> None:
    named = [(b"n1\nn2", b"one\ntwo"), (b"n3", b"three\tand\r\nmore")]
    records = [
        {
            "image/encoded": ("bytes", [pictures.jpeg(40, 30, label)]),
            "image/class/label": ("int64", [label]),
            "image/class/synset": ("bytes", [synset]),
            "image/class/text": ("bytes", [text]),
        }
        for label, (synset, text) in enumerate(named, 1)
    ]
    shard(tmp_path / "train-00000-of-00001", records)
    cli("repack", tmp_path / "train-*", tmp_path / "out")
    assert (tmp_path / "out/labels.txt").read_bytes() == b"0\n1\tone two\nn3\tthree and  more\n"
    cli("verify", tmp_path / "out")
