"""Every preset from images to records, and what its readers find on the disk."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from builder.trees import build, picture, settings_for, write_tree
from reference.tf1_resize import resize_tf1
from stoker import _native
from stoker.builder import PRESETS, BuildOptions, BuildReport
from stoker.builder.estimate import LARGE_BYTES, ExpectedSize
from stoker.builder.plan import shard_rule
from stoker.cli.main import main
from stoker.errors import ConfigError, SourceWarning
from stoker.format import DlbsSchema, ImagenetSchema, TfdsSchema, TinySchema
from stoker.format.shard_names import ShardNaming
from stoker.recipe import JpegEncode, RawEncode, Recipe, parse_encode, parse_resize
from stoker.sources import list_source
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.types import Features


def run_preset(source: Path, out: Path, name: str, **changes: Any) -> BuildReport:
    preset = PRESETS[name]
    recipe = Recipe(
        parse_resize(changes.pop("resize", preset.resize)),
        parse_encode(changes.pop("encode", preset.encode) or "jpeg:90"),
        changes.pop("filter", preset.filter) or "bicubic",
    )
    names = "tfds:things" if preset.shard_names == "tfds" else preset.shard_names
    naming, schema = ShardNaming(names), preset.schema(preset.label_base)
    changes |= {"preferred_shards": preset.shards, "compression": preset.compression, "max_rejects": 9}
    return build(settings_for(source, recipe=recipe, schema=schema, naming=naming, **changes), out)


def records(path: Path) -> list[Features]:
    rows = _native.scan_shard(str(path)).tolist()
    return [_native.parse_example(_native.read_record(str(path), *row)) for row in rows]


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "src", {"train/n01": 6, "train/n02": 4, "validation/n02": 3})


COMMON = ["labels.txt", "manifest.json", "rejects.jsonl"]


def test_dlbs(source: Path, tmp_path: Path) -> None:
    report = run_preset(source, tmp_path / "out", "dlbs", resize="square:20")
    names = ["train-00000-of-00001", "validation-00000-of-00001"]
    assert files(tmp_path / "out") == sorted([*COMMON, *names, *(f"idx/{name}.idx" for name in names)])
    assert sorted(path.name for path in (tmp_path / "out").glob("train-*-of-*")) == names[:1]
    stored = records(tmp_path / "out" / names[0])
    assert report.manifest.splits["train"].class_counts == (6, 4)
    assert {features["image/class/label"][1][0] for features in stored} == {0, 1}
    for features in stored:
        name = features["image/filename"][1][0].decode()
        image = np.asarray(Image.open(source / "train" / name[:3] / name).convert("RGB").crop((5, 0, 35, 30)))
        expected = np.asarray(Image.fromarray(image).resize((20, 20), Image.Resampling.BILINEAR))
        assert features["image/encoded"][1] == [expected.tobytes()]
        assert (features["image/order"][1], features["image/format"][1]) == ([b"HWC"], [b"tensor"])


@pytest.mark.parametrize("order", ["HWC", "CHW"])
def test_dlbs_as_the_original_sampled(source: Path, tmp_path: Path, order: str) -> None:
    run_preset(source, tmp_path / "out", "dlbs", resize="square:20", filter="tf1-align-corners", encode=f"raw:{order}")
    for features in records(tmp_path / "out/train-00000-of-00001"):
        name = features["image/filename"][1][0].decode()
        image = np.asarray(Image.open(source / "train" / name[:3] / name).convert("RGB").crop((5, 0, 35, 30)))
        expected = resize_tf1(image, 20, 20, align_corners=True)
        axes = expected if order == "HWC" else expected.transpose(2, 0, 1)
        assert features["image/encoded"][1] == [axes.tobytes()]
        assert features["image/order"][1] == [order.encode()]


def test_a_seeded_part_of_train(source: Path, tmp_path: Path) -> None:
    first = run_preset(source, tmp_path / "a", "dlbs", num_images=5, seed=3)
    again = run_preset(source, tmp_path / "b", "dlbs", num_images=5, seed=3)
    other = run_preset(source, tmp_path / "c", "dlbs", num_images=5, seed=4)
    assert first.manifest.splits["train"].records == 5
    assert first.manifest.splits["validation"].records == 3
    assert first.manifest.dataset_id == again.manifest.dataset_id != other.manifest.dataset_id
    assert run_preset(source, tmp_path / "a", "dlbs", num_images=5, seed=3).outcome == "complete"
    names = {features["image/filename"][1][0] for features in records(tmp_path / "a/train-00000-of-00001")}
    assert len(names) == 5


def test_imagenet_nvidia(source: Path, tmp_path: Path) -> None:
    run_preset(source, tmp_path / "out", "imagenet-nvidia", resize="exact:24x16")
    stored = records(tmp_path / "out/train-00000-of-00001")
    assert len(stored) == 10
    for features in stored:
        assert (features["image/height"][1], features["image/width"][1]) == ([16], [24])
        assert features["image/class/text"][1][0] in (b"n01", b"n02")
        assert _native.decode_image(features["image/encoded"][1][0]).shape == (16, 24, 3)


def test_dogs(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"n02085620-Chihuahua": 3, "n02085782-Japanese_spaniel": 2})
    run_preset(source, tmp_path / "out", "dogs-onehot")
    assert files(tmp_path / "out") == [*COMMON[:2], "output_file-part-0.tfrecord", COMMON[2]]
    plain = tmp_path / "plain"
    plain.write_bytes(gzip.decompress((tmp_path / "out/output_file-part-0.tfrecord").read_bytes()))
    labels = sorted(tuple(features["label"][1]) for features in records(plain))
    assert labels == [(0, 1)] * 2 + [(1, 0)] * 3
    assert _native.decode_image(records(plain)[0]["image"][1][0]).shape == (224, 224, 3)


def test_one_name_for_the_shards_of_two_splits_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"same names; add \{split\}"):
        run_preset(source, tmp_path / "out", "dogs-onehot")


def test_tfds(source: Path, tmp_path: Path) -> None:
    run_preset(source, tmp_path / "out", "tfds")
    names = files(tmp_path / "out")
    assert "things-train.tfrecord-00000-of-00001" in names
    assert "idx/things-train.tfrecord-00000-of-00001.idx" in names
    assert json.loads((tmp_path / "out/dataset_info.json").read_text())["name"] == "things"


def test_what_readers_of_tfds_take_is_kept_and_the_rest_is_named_before(tmp_path: Path) -> None:
    kinds = {"a.jpg": "JPEG", "b.png": "PNG", "c.webp": "WEBP", "d.gif": "GIF"}
    (tmp_path / "src/one").mkdir(parents=True)
    for name, kind in kinds.items():
        Image.new("RGB", (9, 7), (200, 10, 90)).save(tmp_path / "src/one" / name, kind)
    with pytest.warns(SourceWarning, match="readers of preset tfds take jpeg and png, .*: 1 webp, 1 gif of 4 looked"):
        stoker.build(tmp_path / "src", tmp_path / "out", preset="tfds", progress=False)
    stored = {sample.source: sample for sample in stoker.open(tmp_path / "out")}
    assert {name: sample.format for name, sample in stored.items()} == {
        "a.jpg": "jpeg", "b.png": "png", "c.webp": "png", "d.gif": "png",
    }  # fmt: skip
    for name in ("a.jpg", "b.png"):
        assert stored[name].encoded == (tmp_path / "src/one" / name).read_bytes()
    assert '"encodingFormat": ""' in (tmp_path / "out/features.json").read_text()  # TFDS looks at the bytes


def test_tfds_names_of_labels_that_start_at_1(source: Path, tmp_path: Path) -> None:
    build(settings_for(source, schema=TfdsSchema(1), naming=ShardNaming("tfds:x")), tmp_path / "out")
    assert (tmp_path / "out/label.labels.txt").read_text().split() == ["background", "n01", "n02"]
    with pytest.raises(ConfigError, match="no compressed shards"):
        settings_for("x", schema=TfdsSchema(), compression="gzip")


def tiny_source(root: Path) -> Path:
    for name in ("n02", "n01"):
        images = [picture(number, mode="RGB" if number else "L", size=(64, 64)) for number in range(3)]
        write_files(root, {f"train/{name}/images/{name}_{number}.JPEG": data for number, data in enumerate(images)})
    for split in ("val", "test"):
        images = [picture(number + 9, size=(64, 64)) for number in range(2)]
        write_files(root, {f"{split}/images/{split}_{number}.JPEG": data for number, data in enumerate(images)})
    boxes = "val_0.JPEG\tn02\t0\t0\t9\t9\nval_1.JPEG\tn01\t1\t1\t9\t9\n\nbad\n"
    texts = {"val/val_annotations.txt": boxes, "wnids.txt": "n02\nn01\n", "words.txt": "n01\tfish\nn02\tbird\n\n"}
    return write_files(root, texts)


def test_tiny_imagenet_where_the_notebook_puts_it(tmp_path: Path) -> None:
    """The records below the images, ``sizes.txt`` beside them; an odd image has the size that the notebook reads."""
    source = tiny_source(tmp_path / "src")
    (source / "train/n01/images/n01_9.JPEG").write_bytes(picture(9, size=(80, 60)))
    expected = run_preset(source, tmp_path / "apart", "tiny-imagenet")
    out = source / "tfrecords_raw"
    for outcome in ("built", "complete"):
        report = run_preset(source, out, "tiny-imagenet")
        assert (report.outcome, report.manifest.dataset_id) == (outcome, expected.manifest.dataset_id)
        assert report.warnings == expected.warnings
    assert (source / "sizes.txt").read_text() == "train,7\nval,2\ntest,2"
    assert not (out / "sizes.txt").exists()
    tree = list_source(str(source))  # without knowing of the destination
    assert (tree.fingerprint(), tree.ignored["dataset"]) == (expected.manifest.source.fingerprint, 1)
    for features in records(out / "train/0.tfrecords"):
        assert (features["width"][1], features["height"][1], features["channel"][1]) == ([64], [64], [3])
        assert len(features["image_raw"][1][0]) == 12_288


def test_tiny_imagenet(tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = run_preset(tiny_source(tmp_path / "src"), out, "tiny-imagenet")
    shards = ["train/0.tfrecords", "train/1.tfrecords", "val/val.tfrecords", "test/test.tfrecords"]
    assert files(out) == sorted([*COMMON, "sizes.txt", *shards, *(f"idx/{name}.idx" for name in shards)])
    assert (out / "sizes.txt").read_text() == "train,6\nval,2\ntest,2"
    for label in (0, 1):
        for features in records(out / f"train/{label}.tfrecords"):
            assert features["label"][1] == [label]
            assert features["label_one_hot"][1] == [bytes([label == 0, label == 1])]
            assert len(features["image_raw"][1][0]) == 12_288
    val = {features["label"][1][0]: features["image_raw"][1][0] for features in records(out / "val/val.tfrecords")}
    first = np.asarray(Image.open(tmp_path / "src/val/images/val_0.JPEG").convert("RGB"))
    assert val[1] == first.tobytes()
    for features in records(out / "test/test.tfrecords"):
        assert (features["label"][1], features["label_one_hot"][1]) == ([-1], [bytes(2)])
    test = report.manifest.splits["test"]
    assert (test.records, test.unlabelled, test.class_counts) == (2, 2, (0, 0))
    assert run_preset(tmp_path / "src", out, "tiny-imagenet").outcome == "complete"


def test_one_truncated_jpeg_loses_one_record(source: Path, tmp_path: Path) -> None:
    damaged = source / "train/n01/n01_3.JPEG"
    damaged.write_bytes(damaged.read_bytes()[:-40])
    for name in PRESETS:
        if name in (None, "dogs-onehot"):
            continue
        report = run_preset(source, tmp_path / name, name)
        assert [reject.key for reject in report.rejects] == ["train/n01/n01_3.JPEG"], name
        assert report.manifest.records == 12


def test_a_dataset_that_is_huge_needs_consent(tmp_path: Path) -> None:
    imagenet = ExpectedSize(1_281_167, 1_281_167 * (300 * 300 * 3 + 306), 10**13)
    with pytest.raises(ConfigError, match=r"about 346\.3 GB, more than 200\.0 GB; .* add allow_huge=True"):
        imagenet.refuse_huge()
    with pytest.raises(ConfigError, match=r"only 1\.0 MB are free"):
        ExpectedSize(10, 2_000_000, 1_000_000).refuse_huge()
    ExpectedSize(10, 2_000_000, 2_000_001).refuse_huge()
    assert ExpectedSize(1, LARGE_BYTES, 10**13).refuse_huge() is None


def test_the_size_is_reported_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    told: list[ExpectedSize] = []

    def announce(expected: ExpectedSize) -> None:
        assert not (tmp_path / "out").exists()
        told.append(expected)

    recipe = Recipe(parse_resize("square:20"), RawEncode())
    settings = settings_for(source, recipe=recipe, schema=DlbsSchema(), shards=2)
    report = build(settings, tmp_path / "out", announce=announce)
    written = sum(split.size_bytes for split in report.manifest.splits.values())
    assert told[0].records == 13
    assert told[0].size_bytes == pytest.approx(written, rel=0.01)


@pytest.mark.parametrize(
    ("schema", "encode", "message"),
    [
        (DlbsSchema(), JpegEncode(), "the layout dlbs stores pixels"),
        (ImagenetSchema(), RawEncode(), "the layout imagenet stores JPEG files"),
        (TinySchema(), RawEncode("CHW"), "cannot say that its pixels are CHW"),
    ],
)
def test_layouts_and_encodings_that_do_not_fit(schema: Any, encode: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_for("x", recipe=Recipe(encode=encode), schema=schema)


def test_preferred_numbers_of_shards_need_enough_records(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"train/a": 25})
    few = settings_for(source, preferred_shards=(4, 1))
    report = build(few, tmp_path / "few")
    assert len(report.manifest.splits["train"].shards) == 1
    for number in range(25, 400):
        (source / f"train/a/{number}.JPEG").symlink_to(source / "train/a/a_0.JPEG")
    report = build(few, tmp_path / "many")
    assert len(report.manifest.splits["train"].shards) == 4


@pytest.mark.parametrize("preset", ["imagenet", "imagenet-nvidia", "dlbs"])
def test_some_of_imagenets_classes_have_their_numbers_and_texts(tmp_path: Path, preset: str) -> None:
    known = {
        "n01440764": (0, "tench, Tinca tinca"), "n01443537": (1, "goldfish, Carassius auratus"),
        "n01484850": (2, "great white shark, white shark, man-eater, man-eating shark, Carcharodon carcharias"),
        "n07583066": (924, "guacamole"), "n13133613": (998, "ear, spike, capitulum"),
        "n15075141": (999, "toilet tissue, toilet paper, bathroom tissue"),
    }  # fmt: skip
    source = write_tree(tmp_path / "src", dict.fromkeys(known, 2))
    assert main(["build", str(source), str(tmp_path / "out"), "--preset", preset]) == 0
    dataset = stoker.open(tmp_path / "out")
    base = PRESETS[preset].label_base
    stored = {}
    for index in range(len(dataset)):
        features = dataset[index].features
        name = features["image/filename"][1][0].decode()[:9]
        stored[name] = (features["image/class/label"][1][0] - base, features["image/class/text"][1][0].decode())
    names = {name: (label, name) for name, (label, _) in known.items()}  # the original has the synset for a text
    assert stored == (names if preset == "imagenet-nvidia" else known)
    assert len(dataset.classes) == 1000 + base
    texts = [(dataset.classes[label + base].name, dataset.classes[label + base].text) for label, _ in known.values()]
    assert texts == [(name, text) for name, (_, text) in known.items()]


def test_the_number_of_shards_is_explained() -> None:
    preset = settings_for("x", preferred_shards=(4, 1))
    assert shard_rule({"train": 400}, preset) == "4 of train, as the preset has from 400 images of train, 100 for each"
    assert "4 from 400 images of test" in shard_rule({"test": 399}, preset)


@pytest.mark.parametrize("setting", ["shards", "validation_shards", "shard_size"])
def test_a_shard_for_every_class_leaves_no_choice_of_shards(setting: str) -> None:
    with pytest.raises(ConfigError, match=f"^{setting} has no effect with shard_names per-class"):
        BuildOptions(shard_names="per-class", **{setting: 3}).settings("photos")


def test_objects_become_records(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"train/dog": 3})
    (source / "bounding_boxes/dog").mkdir(parents=True)
    box = (
        "<object><name>dog</name><bndbox><xmin>{}</xmin><ymin>3</ymin><xmax>20</xmax><ymax>18</ymax></bndbox></object>"
    )
    xml = "<annotation><size><width>40</width><height>30</height></size>{}</annotation>"
    (source / "bounding_boxes/dog/dog_1.xml").write_text(xml.format(box.format(4) + box.format(10)))
    report = build(settings_for(source, crop_objects=True, shards=1), tmp_path / "out")
    stored = records(tmp_path / "out/train-00000-of-00001.tfrecord")
    sizes = sorted((features["image/width"][1][0], features["image/height"][1][0]) for features in stored)
    assert sizes == [(10, 15), (16, 15), (40, 30), (40, 30)]
    assert report.manifest.recipe["crop_objects"] is True
    assert report.manifest.splits["train"].class_counts == (4,)
