"""``stoker.build`` of records that a program has: sequences of dicts, of pairs, and of other libraries."""

from __future__ import annotations

import io
import json
import threading
import time
import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from builder.killing import interrupt
from builder.trees import contents, picture, pixels, write_tree
from loader.remote_datasets import folder_in
from reference import pictures
from stoker import _native, fields
from stoker.errors import ConfigError, DestinationError, SourceError, SourceWarning, TooManyRejectsError
from stoker.sources import list_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import datasets

CLASSES = ["cat", "dog", "eel"]


def build(source: Any, destination: Path, **settings: Any) -> stoker.BuildReport:
    return stoker.build(source, destination, progress=False, **settings)


def rejects(source: Any, destination: Path, **settings: Any) -> dict[str, str]:
    """Why a build that accepts no rejects rejects records."""
    with pytest.raises(TooManyRejectsError) as caught:
        build(source, destination, **settings)
    return {reject.key: reject.reason for reject in caught.value.report.rejects}


def names(dataset: stoker.Dataset) -> list[str]:
    return [known.name for known in dataset.classes]


def samples(folder: Path, split: str = "train") -> dict[str, stoker.Sample]:
    """The samples of a dataset by the names of their files."""
    dataset = stoker.open(folder, split)
    return {sample.source: sample for sample in (dataset[index] for index in range(len(dataset)))}


def labelled(*labels: Any) -> list[dict[str, Any]]:
    """A record with each of these labels."""
    return [{"image": picture(number), "label": label} for number, label in enumerate(labels)]


def records(count: int) -> list[dict[str, Any]]:
    return labelled(*(number % 3 for number in range(count)))


class Sequenced:
    """Records that are made when they are asked for; knows how often, and in how many threads at once."""

    def __init__(self, records: Sequence[Any]) -> None:
        self.records = records
        self.asked: list[int] = []
        self.threads: set[int] = set()

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, position: int) -> Any:
        self.asked.append(position)
        self.threads.add(threading.get_ident())
        if isinstance(self.records[position], Exception):
            raise self.records[position]
        return self.records[position]


# Classes in a field of another name


@pytest.mark.parametrize("labels", [["dog", "cat"], [1, 0], [np.int64(1), np.int64(0)]])
def test_the_only_field_of_classes_is_taken_and_reported(tmp_path: Path, labels: list[Any]) -> None:
    others = {"caption": "x", "target": 0.5, "has_label": True}
    source = [{"image": picture(number), "class": label, **others} for number, label in enumerate(labels)]
    with pytest.warns(SourceWarning, match="the source: nothing is called 'label'; the classes are 'class'"):
        build(source, tmp_path / "out")
    assert {name: sample.label for name, sample in samples(tmp_path / "out").items()} == {"0": 1, "1": 0}
    assert [*stoker.open(tmp_path / "out").fields] == [*others]


def test_several_fields_of_classes_are_refused_with_the_fields_to_give(tmp_path: Path) -> None:
    source = [{"image": picture(number), "class": "cat", "class_id": 7, "emb": np.zeros(3)} for number in range(2)]
    with pytest.raises(SourceError, match=r"the classes may be 'class' or 'class_id'; give fields=\{") as caught:
        build(source, tmp_path / "out")
    chosen = eval(str(caught.value).partition("give fields=")[2], {"stoker": stoker})
    build(source, tmp_path / "out", fields=chosen)
    dataset = stoker.open(tmp_path / "out")
    assert (names(dataset), [*dataset.fields]) == (["cat"], ["class_id", "emb"])


# Images


def test_an_image_may_be_a_path_bytes_an_array_or_a_pil_image(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(picture(1))
    data = picture(2)
    colours, grey = pixels(3), pixels(4)[:, :, 0]
    opened = Image.open(io.BytesIO(picture(5)))
    given = [
        path, str(path), data, bytearray(data), memoryview(data), {"bytes": data, "path": "deep/b.jpg"},
        {"bytes": None, "path": str(path)}, colours, grey, Image.fromarray(grey), opened,
    ]  # fmt: skip
    report = build([{"image": image} for image in given], tmp_path / "out")
    assert report.manifest.formats == {"jpeg": {"kept": 7}, "png": {"encoded": 4}}
    by_name = samples(tmp_path / "out")
    assert by_name["a.jpg"].encoded == path.read_bytes()
    assert [by_name[name].encoded for name in ("2", "3", "4", "b.jpg")] == [data] * 4
    assert (by_name["7"].decode() == colours).all()
    for name in ("8", "9"):
        with Image.open(io.BytesIO(by_name[name].encoded)) as stored:
            assert stored.mode == "L"
            assert (np.asarray(stored) == grey).all()
    assert (by_name["10"].decode() == np.asarray(opened)).all()


def modes() -> dict[str, np.ndarray]:
    colours = pixels(7, 31, 17)
    alpha = np.random.default_rng(1).integers(0, 256, (17, 31, 1), np.uint8)
    return {
        "grey": colours[:, :, :1],
        "grey and alpha": np.concatenate([colours[:, :, :1], alpha], axis=2),
        "colours": colours,
        "colours and alpha": np.concatenate([colours, alpha], axis=2),
        "16 bits": np.random.default_rng(2).integers(0, 65536, (17, 31), np.uint16),
    }


@pytest.mark.parametrize("settings", [{}, {"encode": "jpeg:90"}, {"resize": "short:9"}, {"encode": "webp:lossless"}])
@pytest.mark.parametrize("name", modes())
def test_an_array_is_stored_as_a_png_of_it_would_be(name: str, settings: dict[str, str], tmp_path: Path) -> None:
    array = modes()[name]
    out = pictures.encode(Image.fromarray(array[:, :, 0] if array.shape[2:] == (1,) else array), format="PNG")
    build([{"image": array}], tmp_path / "array", **settings)
    build([{"image": out}], tmp_path / "file", **settings)
    array_sample, file_sample = samples(tmp_path / "array")["0"], samples(tmp_path / "file")["0"]
    assert array_sample.format == file_sample.format
    stored = [Image.open(io.BytesIO(sample.encoded)) for sample in (array_sample, file_sample)]
    assert stored[0].mode == stored[1].mode
    assert (np.asarray(stored[0]) == np.asarray(stored[1])).all()


@pytest.mark.parametrize(
    ("mode", "stored"), [("1", "L"), ("P", "RGB"), ("CMYK", "RGB"), ("YCbCr", "RGB"), ("La", "LA")]
)
def test_a_pil_image_of_a_mode_without_png_is_converted_as_pillow_does(mode: str, stored: str, tmp_path: Path) -> None:
    image = Image.fromarray(pixels(1)).convert("LA" if mode == "La" else mode).convert(mode)
    build([{"image": image}], tmp_path / "out")
    with Image.open(io.BytesIO(samples(tmp_path / "out")["0"].encoded)) as opened:
        assert opened.mode == stored
        assert (np.asarray(opened) == np.asarray(image.convert(stored))).all()


# Classes


def test_numbers_are_class_ids(tmp_path: Path) -> None:
    train = build(labelled(4, 0, 0, -1), tmp_path / "out").manifest.splits["train"]
    assert (train.class_counts, train.unlabelled) == ((2, 0, 0, 0, 1), 1)
    assert names(stoker.open(tmp_path / "out", "train")) == ["0", "1", "2", "3", "4"]
    labels = {name: sample.label for name, sample in samples(tmp_path / "out").items()}
    assert labels == {"0": 4, "1": 0, "2": 0, "3": -1}


def test_texts_are_classes_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    report = build(labelled("b", "é", "a", "Z", "b"), tmp_path / "out")
    assert names(stoker.open(tmp_path / "out", "train")) == ["Z", "a", "b", "é"]
    assert report.manifest.splits["train"].class_counts == (1, 1, 2, 1)


@pytest.mark.parametrize("as_float", [float, np.float32])
def test_whole_floats_are_class_ids_and_nan_is_none(tmp_path: Path, as_float: Any) -> None:
    records = labelled(*map(as_float, (0.0, 2.0, float("nan"), 1.0)))
    for given in (records, records[::-1]):
        opened = stoker.open(given)
        build(given, tmp_path / "out", overwrite=True)
        stored = stoker.open(tmp_path / "out")
        expected = [-1 if record["label"] != record["label"] else int(record["label"]) for record in given]
        assert opened.labels.tolist() == expected
        assert {sample.source: sample.label for sample in stored} == dict(zip("0123", expected, strict=True))
        assert names(opened) == names(stored) == ["0", "1", "2"]
        assert (*opened.fields, *stored.fields) == ()


def test_names_after_nan_are_classes() -> None:
    opened = stoker.open(labelled(np.nan, "b", "a"))
    assert (opened.labels.tolist(), names(opened)) == ([-1, 1, 0], ["a", "b"])


@pytest.mark.filterwarnings("ignore:the source. 'label' is a field")
def test_labels_some_of_which_are_fractions_are_a_field(tmp_path: Path) -> None:
    given = labelled(1.0, 0.5, 2.0)
    build(given, tmp_path / "out")
    assert [sample.field("label") for sample in stoker.open(given)] == [1.0, 0.5, 2.0]
    assert stoker.open(tmp_path / "out").schema.fields == {"label": fields.Float()}


@pytest.mark.filterwarnings("ignore:the source. 'label' is a field")
def test_floats_of_records_without_a_length_are_asked_for(tmp_path: Path) -> None:
    given, message = labelled(0.0, 1.0, 2.0), r"'label' of the first record is 0\.0, which may be the id of a class"
    with pytest.raises(ConfigError, match=message) as caught:
        build(iter(given), tmp_path / "out")
    typed = str(caught.value).partition("give fields=")[2].partition(", or Float()")[0]
    build(iter(given), tmp_path / "out", fields=eval(typed, {"stoker": stoker}))
    assert [sample.label for sample in stoker.open(tmp_path / "out")] == [0, 1, 2]
    build(iter(labelled(0.5, 1.5, 2.5)), tmp_path / "fractions")
    assert [*stoker.open(tmp_path / "fractions").fields] == ["label"]


@pytest.mark.filterwarnings("ignore:class ids run from 0")
def test_ids_without_names_are_the_classes_of_the_build(tmp_path: Path) -> None:
    given = {"train": records(2), "val": labelled(0, 4)}
    build(given, tmp_path / "out")
    for split in given:
        opened, stored = stoker.open(given, split), stoker.open(tmp_path / "out", split)
        assert names(opened) == names(stored) == ["0", "1", "2", "3", "4"]
    assert stoker.open(labelled(2**31 - 1)).classes == ()


def test_an_image_of_another_name_is_refused_with_all_fields_to_give(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(picture(1))
    given = [{"id": "x", "path": str(tmp_path / "a.jpg"), "label": "b"}]
    with pytest.raises(ConfigError, match="no field is an image: id, path, label; give one") as caught:
        stoker.open(given)
    opened = stoker.open(given, fields=eval(str(caught.value).partition("fields=")[2], {"stoker": stoker}))
    assert (names(opened), opened.labels.tolist(), [*opened.fields]) == (["b"], [0], ["id"])


@pytest.mark.parametrize(
    ("name", "image"),
    [("jpg", np.zeros((4, 5, 3), np.uint8)), ("img", {"bytes": picture(1), "path": None})],
)
def test_pixels_and_files_of_another_name_are_named_as_the_image(name: str, image: Any) -> None:
    given = [{"caption": "x", name: image, "label": 1}]
    with pytest.raises(ConfigError, match=f"no field is an image: caption, {name}, label; give one") as caught:
        stoker.open(given)
    opened = stoker.open(given, fields=eval(str(caught.value).partition("fields=")[2], {"stoker": stoker}))
    assert (opened.labels.tolist(), [*opened.fields]) == ([1], ["caption"])


def test_an_empty_label_is_a_reject(tmp_path: Path) -> None:
    must = "but must be the id of a class, 0 to 1, or the name of one"
    assert rejects(labelled("", "eel", "a\n", "cat"), tmp_path / "out") == {
        "record 0": f"field 'label' is '', {must}",
        "record 2": f"field 'label' is 'a\\n', {must}",
    }


def test_named_classes_are_given_by_name_or_number_and_no_record_is_read_for_them(tmp_path: Path) -> None:
    source = Sequenced([{"image": picture(n), "label": CLASSES[n % 3] if n % 2 else n % 3} for n in range(200)])
    chosen = {"image": fields.Image(), "label": fields.Label(CLASSES)}
    report = build(source, tmp_path / "out", fields=chosen, threads=2)
    assert report.manifest.splits["train"].class_counts == (67, 67, 66)
    assert len(source.asked) < 300  # 16 and 64 of them are a sample
    assert sorted(set(source.asked)) == list(range(200))
    assert len(source.threads) > 1
    assert all(sample.label == int(name) % 3 for name, sample in samples(tmp_path / "out").items())


class Counted:
    """Records of images in a store; knows how many are read at the same time."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, position: int) -> dict[str, Any]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.002)
        with self.lock:
            self.now -= 1
        return {"image": self.paths[position], "label": 0}


@pytest.mark.servers
@pytest.mark.parametrize(("settings", "most"), [({}, 1), ({"threads": 1}, 1), ({"threads": 3}, 3)])
def test_no_more_threads_than_asked_for_read_a_record(
    settings: dict[str, int], most: int, tmp_path: Path, request: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = folder_in("s3", request, monkeypatch)
    files = [bucket / f"{number}.jpg" for number in range(100)]
    for file in files:
        file.write_atomically(picture(1))
    for source in (Counted([*map(str, files)]), Counted([str(tmp_path / "1.jpg")] * 100)):
        (tmp_path / "1.jpg").write_bytes(picture(1))
        assert build(source, tmp_path / f"out-{id(source)}", **settings).manifest.records == 100
        assert 1 <= source.most <= most


def test_records_that_were_opened_are_read_by_as_many_threads_as_those_that_were_not(tmp_path: Path) -> None:
    (tmp_path / "1.jpg").write_bytes(picture(1))
    given = Counted([str(tmp_path / "1.jpg")] * 100)
    opened = stoker.open(given)
    build(opened, tmp_path / "in-turn")
    assert given.most == 1
    build(opened[:90], tmp_path / "together", threads=3)
    assert 1 < given.most <= 3


def test_fields_that_are_not_given_are_not_stored(tmp_path: Path) -> None:
    given = [{"image": picture(n), "label": n % 2, "boxes": [(0, 0, 1, 0.5)]} for n in range(4)]
    build(given, tmp_path / "all")
    build(given, tmp_path / "some", fields={"image": fields.Image()})
    assert [len(sample.boxes) for sample in samples(tmp_path / "all").values()] == [1] * 4
    stored = samples(tmp_path / "some").values()
    assert [(sample.label, len(sample.boxes)) for sample in stored] == [(-1, 0)] * 4


@pytest.mark.parametrize("as_given", [list, iter])
def test_values_that_the_first_record_lacks_are_named_once(as_given: Any, tmp_path: Path) -> None:
    given = [record | ({"caption": "x", "year": 1} if number > 1 else {}) for number, record in enumerate(records(90))]
    with pytest.warns(SourceWarning) as caught:
        report = build(as_given(given), tmp_path / "out")
    (message,) = [str(warning.message) for warning in caught]
    told = "records have values that the first record lacks, and that are not stored: 'caption', 'year'; give fields={"
    assert message.startswith(told)
    assert caught[0].filename == __file__
    assert report.warnings == (message,)
    chosen = {"image": fields.Image(), "label": fields.Label()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(as_given(given), tmp_path / "chosen", fields=chosen)
        build(as_given(records(9)), tmp_path / "same")


def test_extra_fields_are_stored_and_checked(tmp_path: Path) -> None:
    mask = np.zeros((30, 40), np.uint8)
    given = [{"image": picture(n), "caption": f"number {n}", "mask": mask + n, "size": n / 2} for n in range(3)]
    given.append(given[0] | {"caption": 7})
    given.append(given[0] | {"mask": mask[:9]})
    assert rejects(given, tmp_path / "out") == {
        "record 3": "field 'caption' is 7 (int), but must be text (str)",
        "record 4": "field 'mask': the mask has 40x9 pixels, but the image of the record 40x30; they must be equally "
        "large",
    }
    report = build(given, tmp_path / "out", max_rejects=2)
    kinds = {"caption": fields.Text(), "mask": fields.Mask(), "size": fields.Float()}
    assert dict(report.manifest.schema.fields) == kinds
    by_name = samples(tmp_path / "out")
    assert [by_name[str(n)].fields["caption"] for n in range(3)] == ["number 0", "number 1", "number 2"]
    assert all((by_name[str(n)].fields["mask"] == n).all() for n in range(3))


def test_boxes_follow_the_image(tmp_path: Path) -> None:
    box = {"xmin": 0.25, "ymin": 0.0, "xmax": 0.75, "ymax": 1.0, "label": 1}
    build([{"image": pixels(1, 40, 30), "label": 0, "boxes": [box]}], tmp_path / "out", resize="square:20")
    (resized,) = samples(tmp_path / "out")["0"].boxes
    assert (round(resized.xmin * 30), round(resized.xmax * 30), resized.label) == (5, 25, 1)


# Splits, order, settings


def test_a_mapping_has_splits(tmp_path: Path) -> None:
    report = build({"val": records(4), "train": records(9)}, tmp_path / "out")
    assert {name: split.records for name, split in report.manifest.splits.items()} == {"train": 9, "validation": 4}
    assert [*build(records(3), tmp_path / "other", split="test").manifest.splits] == ["test"]


def test_the_order_is_a_seeded_permutation_for_any_number_of_threads(tmp_path: Path) -> None:
    given = records(60)
    for name, settings in {"one": {"threads": 1}, "four": {"threads": 4}, "seed": {"seed": 1}}.items():
        build(given, tmp_path / name, shards=4, **settings)
    assert contents(tmp_path / "one") == contents(tmp_path / "four")
    order = {
        name: [dataset[index].source for index in range(60)]
        for name in ("one", "seed")
        for dataset in [stoker.open(tmp_path / name, "train")]
    }
    assert sorted(order["one"]) == sorted(order["seed"])
    assert len({tuple(order["one"]), tuple(order["seed"]), tuple(map(str, range(60)))}) == 3
    write_tree(tmp_path / "tree", {"a": 60})
    build(tmp_path / "tree", tmp_path / "files", shards=4)
    files = stoker.open(tmp_path / "files", "train")
    names = sorted(f"a_{number}.JPEG" for number in range(60))  # positions in the order of a folder
    assert [names.index(files[index].source) for index in range(60)] == [int(name) for name in order["one"]]


def test_settings_apply_as_to_files(tmp_path: Path) -> None:
    report = build(records(40), tmp_path / "out", num_images=30, split_fraction="val=0.2", shard_size="10KB")
    counts = {name: split.records for name, split in report.manifest.splits.items()}
    assert counts == {"train": 24, "validation": 6}
    assert len(report.manifest.splits["train"].shards) > 1
    report = build(records(4), tmp_path / "my set.v1", preset="tfds")
    assert report.manifest.splits["train"].shards[0].name == "my_set-train.tfrecord-00000-of-00001"


def counts(report: stoker.BuildReport) -> dict[str, tuple[int, ...]]:
    return {name: split.class_counts for name, split in report.manifest.splits.items()}


def test_a_part_of_every_class_is_moved_to_another_split(tmp_path: Path) -> None:
    numbers = labelled(*(int(n % 10 == 0) for n in range(100)))
    texts = [record | {"label": CLASSES[record["label"]]} for record in numbers]
    wanted = {"train": (81, 9), "validation": (9, 1)}
    files = write_tree(tmp_path / "tree", {"a": 90, "b": 10})
    for name, given in (("numbers", Sequenced(numbers)), ("texts", Sequenced(texts)), ("files", files)):
        assert counts(build(given, tmp_path / name, split_fraction="val=0.1")) == wanted
    assert [sorted(names(stoker.open(tmp_path / "texts", split))) for split in wanted] == [["cat", "dog"]] * 2
    some = counts(build(numbers, tmp_path / "some", num_images=50, split_fraction="val=0.2"))
    assert some["validation"][0] in (9, 10)


def test_labels_that_cannot_be_read_belong_to_no_class(tmp_path: Path) -> None:
    given: list[Any] = labelled(*[1] * 20)
    given[3:6] = [ValueError("no"), given[3] | {"label": "x"}, given[4] | {"label": -1}]
    report = build(Sequenced(given), tmp_path / "out", split_fraction="val=0.5", max_rejects=2)
    counted = {name: (split.records, split.unlabelled) for name, split in report.manifest.splits.items()}
    assert sum(records for records, _ in counted.values()) == 18
    assert sum(unlabelled for _, unlabelled in counted.values()) == 1
    assert sum(class_counts[1] for class_counts in counts(report).values()) == 17


def test_a_label_that_changes_is_a_reject(tmp_path: Path) -> None:
    class Changing(Sequenced):
        def __getitem__(self, position: int) -> Any:
            record = super().__getitem__(position)
            return record | {"label": 2} if position == 7 and self.asked.count(7) > 2 else record

    message = "its label is the class id 2, but was 1 when the labels were read; give records that do not change"
    settings = {"split_fraction": "val=0.1", "num_images": 100}
    assert rejects(Changing(labelled(*[0, 1] * 50)), tmp_path / "out", **settings) == {"record 7": message}


@pytest.mark.parametrize(
    ("source", "settings", "message"),
    [
        ([], {}, "the source holds no records"),
        ({"a": records(1)}, {}, "there are train, validation, test: a mapping gives the records of each; give a list"),
        ({"val": records(1), "validation": records(1)}, {}, "two of the splits val, validation are the same"),
        ({"train": records(1)}, {"split": "val"}, "split is 'val', but the source says itself"),
        (7, {}, "the source is of type int; give a path, a sequence or an iterable of records"),
        ("photos", {"split": "train"}, "split has no effect where the source is a path or a URL"),
        (records(1), {"labels": "imagenet"}, "labels has no effect where the source is records"),
        (records(1), {"engine": build}, "engine has no effect where the source is records; omit it, or give a path"),
        (records(1), {"crop_objects": True}, "crop_objects=True has no effect"),
        (records(1), {"shard_names": "per-class"}, "shard_names per-class is for files in folders of classes"),
        (records(1), {"preset": "dogs-onehot"}, r"the preset stores .*; give fields={'label': stoker.fields.Label"),
        (records(2), {"shards": 3}, "shards is 3, but split 'train' has 2 items"),
        (["a.jpg"], {}, "the fields of the records are unknown: of record 0, it is of type str; a record is a dict"),
        ([{"picture": 1}], {}, "no field is an image: picture; give one stoker.fields.Image"),
        (records(1), {"fields": ["image"]}, "fields is of type list; give a dict of names and fields"),
        (records(1), {"fields": {"image": fields.Image}}, "must be a field, such as stoker.fields.Text"),
    ],
)
def test_what_cannot_be_built_is_refused(source: Any, settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, SourceError), match=f"{message}") as caught:
        build(source, tmp_path / "out", **settings)
    assert " 0x" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_data_frame_is_refused(tmp_path: Path) -> None:
    import pandas as pd  # noqa: PLC0415

    with pytest.raises(ConfigError, match=r"the source is a DataFrame, whose items are columns; give df.to_dict\("):
        build(pd.DataFrame(records(1)), tmp_path / "out")


# What is None, and rejects


@pytest.mark.parametrize("as_given", [list, Sequenced, iter])
def test_none_is_an_empty_text_no_number_or_no_class_and_told_once(as_given: Any, tmp_path: Path) -> None:
    given = [{"image": picture(n), "label": n % 2, "caption": f"{n} cats", "score": 0.5} for n in range(20)]
    for number in (7, 9):
        given[number] |= {"label": None, "caption": None, "score": None}
    told = [
        "the source: 'caption' is None in some records: empty there",
        "the source: 'label' is None in some records: no class there",
        "the source: 'score' is None in some records: nan there",
    ]
    with pytest.warns(SourceWarning) as caught:
        build(as_given(given), tmp_path / "out")
    assert [str(each.message) for each in caught] == told
    by_name = samples(tmp_path / "out")
    assert {name for name, sample in by_name.items() if sample.label < 0} == {"7", "9"}
    assert [by_name["7"].fields["caption"], str(by_name["7"].fields["score"])] == ["", "nan"]
    if as_given is not iter:
        with pytest.warns(SourceWarning) as caught:
            opened = stoker.open(as_given(given))
        assert [str(each.message) for each in caught] == told
        assert [opened[7].label, opened[7].fields["caption"]] == [-1, ""]


def test_a_record_that_raises_or_is_wrong_is_a_reject_that_names_position_and_field(tmp_path: Path) -> None:
    good = {"image": picture(0), "label": "cat", "boxes": []}
    source = Sequenced(
        [
            good,
            ValueError("the disk says no"),
            good | {"image": tmp_path / "gone.jpg"},
            good | {"label": "horse"},
            good | {"boxes": None},
            {"image": picture(1), "boxes": []},
            good | {"image": 7},
            good | {"image": picture(2)[:300]},
            good | {"image": np.zeros((4, 4, 5), np.uint8)},
            good | {"image": Image.fromarray(np.zeros((4, 4), np.float32))},
            "not a record",
        ]
    )
    chosen = {"image": fields.Image(), "label": fields.Label(CLASSES), "boxes": fields.Boxes()}
    reasons = rejects(source, tmp_path / "out", fields=chosen)
    assert reasons == {
        "record 1": "reading it raised ValueError: the disk says no",
        "record 2": f"field 'image': {tmp_path}/gone.jpg: No such file or directory",
        "record 3": "field 'label' is 'horse', but must be the id of a class, 0 to 2, or the name of one",
        "record 4": "field 'boxes' is None; every record needs it",
        "record 5": "field 'label' is missing; every record needs it",
        "record 6": "field 'image' is of type int, but must be an image: a path, a URL, bytes of a file, an array or "
        "a PIL image",
        "record 7": reasons["record 7"],
        "record 8": "an array of uint8 of shape (4, 4, 5) is not an image; pixels are uint8 (height, width) or "
        "(height, width, 1 to 4 channels), or uint16 (height, width)",
        "record 9": "field 'image' is a PIL image of mode 'F', whose range of values is unknown; give an array of "
        "uint8 or uint16",
        "record 10": (
            "it is of type str; a record is a dict, or a pair of image and label; "
            "of paths make [{'image': path} for path in paths]"
        ),
    }
    assert "cut short" in reasons["record 7"]
    accepted = build(source, tmp_path / "out", fields=chosen, max_rejects=10)
    assert accepted.manifest.splits["train"].class_counts == (1, 0, 0)


def test_a_label_that_cannot_be_a_class_takes_no_memory(tmp_path: Path) -> None:
    told = {"record 1": "its label is 2147483647; the largest class id is 4194303"}
    assert rejects(labelled(0, 2**31 - 1), tmp_path / "out") == told


# Resuming


def test_other_records_are_not_taken_for_those_of_an_earlier_run(tmp_path: Path) -> None:
    build(records(40), tmp_path / "out")
    assert build(records(40), tmp_path / "out").outcome == "complete"
    changed = records(40)
    changed[int(stoker.open(tmp_path / "out", "train")[0].source)]["label"] = 1
    for other in ([{**record, "label": 0} for record in records(40)], records(41)):
        with pytest.raises(DestinationError, match="with other settings"):
            build(other, tmp_path / "out")


def interrupted(source: Any, out: Path) -> int:
    return interrupt(lambda stop: stoker.build(source, out, shards=20, threads=1, progress=stop), out, 8)


def captioned(count: int) -> list[dict[str, Any]]:
    return [record | {"caption": f"old {number}"} for number, record in enumerate(records(count))]


def test_a_call_that_resumes_compares_every_record_of_the_shards_that_are_there(tmp_path: Path) -> None:
    old = captioned(200)
    complete = interrupted(old, tmp_path / "out")
    done = json.loads(min((tmp_path / "out").glob("build.journal")).read_text().splitlines()[1])
    assert len(done["digest"]) == 64
    order = _native.permute(0, 200, 200, 0, 0).tolist()  # of the dataset; ten go into each shard, the first are sampled
    first, last = order[25], order[195]
    for key, value in (("caption", "new"), ("label", 1 - old[first]["label"] % 2), ("image", picture(999))):
        changed = [*old]
        changed[first] = old[first] | {key: value}
        with pytest.raises(DestinationError, match=r"^train-00002-of-00020\.tfrecord .* the records are others now; "):
            build(changed, tmp_path / "out", shards=20)
    shown: list[int] = []

    def progress(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
        shown.append(done)

    source = Sequenced([*old[:last], old[last] | {"caption": "x"}, *old[last + 1 :]])
    report = stoker.build(source, tmp_path / "out", shards=20, progress=progress)  # not built yet, so not refused
    assert report.resumed_shards == complete
    assert shown == sorted(shown)
    assert shown[:3] == [10, 20, 30]
    assert len(source.asked) < 300  # each once, and a sample
    build(list(source.records), tmp_path / "whole", shards=20)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_records_that_raise_are_the_same_while_they_raise(tmp_path: Path) -> None:
    given: list[Any] = [*records(200)]
    broken = int(_native.permute(25, 1, 200, 0, 0)[0])
    given[broken] = ValueError("no")
    assert interrupted(Sequenced(given), tmp_path / "out")
    with pytest.raises(DestinationError, match="the records are others now"):
        build(records(200), tmp_path / "out", shards=20)
    report = build(Sequenced(given), tmp_path / "out", shards=20, max_rejects=1)
    assert [reject.key for reject in report.rejects] == [f"record {broken}"]


# Other libraries


def huggingface(count: int, **columns: Any) -> datasets.Dataset:
    import datasets  # noqa: PLC0415

    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)}
    values = {
        "image": [{"bytes": picture(number), "path": f"{number}.jpg"} for number in range(count)],
        "label": [number % 3 for number in range(count)],
    }
    extra = {name: column for name, (column, _) in columns.items()}
    kinds |= {name: kind for name, (_, kind) in columns.items()}
    return datasets.Dataset.from_dict(values | extra, features=datasets.Features(kinds))


def test_a_dataset_of_hugging_face(tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    hub = huggingface(20)
    report = build(hub, tmp_path / "out", shards=2)
    assert report.manifest.formats == {"jpeg": {"kept": 20}}  # the very bytes, not pixels
    assert names(stoker.open(tmp_path / "out", "train")) == CLASSES
    by_name = samples(tmp_path / "out")
    assert all(by_name[f"{n}.jpg"].encoded == picture(n) and by_name[f"{n}.jpg"].label == n % 3 for n in range(20))
    report = build(datasets.DatasetDict({"train": hub, "test": hub.select(range(5))}), tmp_path / "splits")
    assert {name: split.records for name, split in report.manifest.splits.items()} == {"train": 20, "test": 5}


def test_shards_of_hugging_face_are_compared_by_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets  # noqa: PLC0415

    hub = huggingface(200)
    assert interrupted(hub, tmp_path / "out")
    with pytest.raises(DestinationError, match="the records are others now"):
        build(hub.map(lambda record: record), tmp_path / "out", shards=20)
    asked: list[int] = []
    read = datasets.Dataset.__getitem__
    monkeypatch.setattr(datasets.Dataset, "__getitem__", lambda *given: (asked.append(given[1]), read(*given))[1])
    report = build(huggingface(200), tmp_path / "out", shards=20)
    assert report.resumed_shards >= 8
    order = _native.permute(0, 200, 200, 0, 0).tolist()  # of the dataset; ten go into each shard
    sample = {0, *order[:64]}
    assert set(asked) == sample | {*order[report.resumed_shards * 10 :]}
    build(hub, tmp_path / "whole", shards=20)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_columns_of_hugging_face_are_fields_as_its_features_say(tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    kinds = {
        "caption": (["a", "b"], datasets.Value("string")),
        "year": ([2001, None], datasets.Value("int16")),
        "score": ([0.5, 1.0], datasets.Value("float64")),
        "emb": ([[1.0, 2.0], [3.0, 4.0]], datasets.List(datasets.Value("float32"), length=2)),
        "words": ([[1], [2, 3]], datasets.List(datasets.Value("int64"))),
        "tags": ([[0], [1, 0]], datasets.List(datasets.ClassLabel(names=["x", "y"]))),
        "keys": ([[[1, 2, 3]] * 2] * 2, datasets.Array2D((2, 3), "float32")),
        "boxes": ([[[0, 0, 0.5, 1]]] * 2, datasets.Array2D((1, 4), "float32")),
    }
    told = {"record 1": "field 'year' is None; every record needs it"}
    assert rejects(huggingface(2, **kinds), tmp_path / "out") == told
    report = build(huggingface(2, **kinds), tmp_path / "out", max_rejects=1)
    assert dict(report.manifest.schema.fields) == {
        "caption": fields.Text(),
        "year": fields.Int("int16"),
        "score": fields.Float(),
        "emb": fields.Array("float32", (2,)),
        "words": fields.Array("int64", (None,)),
        "tags": fields.Labels(["x", "y"]),
        "keys": fields.Array("float32", (2, 3)),
    }
    (sample,) = samples(tmp_path / "out").values()
    assert [box.xmax for box in sample.boxes] == [0.5]
    assert (sample.fields["caption"], sample.fields["year"], sample.fields["tags"].tolist()) == ("a", 2001, [0])


def test_values_of_hugging_face_that_are_read_as_other_objects_are_what_these_are(tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    values, form = [{"a": 1}, [1, 2]], datasets.Json()
    build(huggingface(2, js=(values, form), several=([[each] for each in values], datasets.List(form))), tmp_path)
    read = samples(tmp_path).values()
    assert sorted(json.dumps(sample.fields["js"]) for sample in read) == ["[1, 2]", '{"a": 1}']
    assert sorted(json.dumps(sample.fields["several"]) for sample in read) == ["[[1, 2]]", '[{"a": 1}]']


@pytest.mark.parametrize("form", ["numpy", "torch", "pandas", "arrow"])
def test_a_format_of_hugging_face_changes_no_value(form: str, tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    info = {"a": datasets.Value("int64"), "b": datasets.List(datasets.Value("string"))}
    hub = huggingface(3, info=([{"a": 1, "b": ["x"]}] * 3, info))
    build(hub, tmp_path / "plain")
    build(hub.with_format(form), tmp_path / form)
    assert contents(tmp_path / form) == contents(tmp_path / "plain")
    report = build(hub.with_format(form, columns=["image", "label"]), tmp_path / "two")
    assert (report.manifest.records, dict(report.manifest.schema.fields)) == (3, {})
    report = build(hub.with_transform(lambda rows: {**rows, "label": [2] * len(rows["label"])}), tmp_path / "changed")
    assert report.manifest.splits["train"].class_counts == (0, 0, 3)


@pytest.mark.parametrize("as_given", [list, iter])
def test_times_and_decimal_numbers_are_text(as_given: Any, tmp_path: Path) -> None:
    import pandas as pd  # noqa: PLC0415

    values = {
        "time": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
        "day": date(2024, 1, 2),
        "stamp": pd.Timestamp("2024-01-02 03:04:05"),
        "numpy": np.datetime64("2024-01-02T03:04:05"),
        "length": timedelta(minutes=1),
        "price": Decimal("1.10"),
    }
    report = build(as_given([{"image": picture(1), **values}]), tmp_path / "out")
    assert dict(report.manifest.schema.fields) == dict.fromkeys(values, fields.Text())
    (sample,) = samples(tmp_path / "out").values()
    assert dict(sample.fields) == {
        "time": "2024-01-02 03:04:05+00:00",
        "day": "2024-01-02",
        **dict.fromkeys(("stamp", "numpy"), "2024-01-02 03:04:05"),
        "length": "0:01:00",
        "price": "1.10",
    }
    with pytest.raises(ConfigError, match="is a value of type set, which does not tell what it is; give text, a"):
        build(as_given([{"image": picture(1), "set": {1, 2}}]), tmp_path / "set")


def test_names_of_columns_of_hugging_face_say_more_than_how_they_are_held(tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    ids = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    ids = ids.repeat(2, axis=0).repeat(2, axis=1)
    kinds = {"id": ([7, 8], datasets.Value("int64")), "tree_mask": ([Image.fromarray(ids)] * 2, datasets.Image())}
    paths = [str(tmp_path / "0.png"), str(tmp_path / "1.png")]
    for path in paths:
        Image.fromarray(pixels(1, 8, 6)).save(path)
    for values, kind, classes in (([2, 0], "int64", ["0", "1", "2"]), (["eel", "cat"], "string", ["cat", "eel"])):
        columns = {"image": (paths, datasets.Value("string")), "label": (values, datasets.Value(kind)), **kinds}
        hub = datasets.Dataset.from_dict(
            {name: values for name, (values, _) in columns.items()},
            features=datasets.Features({name: kind for name, (_, kind) in columns.items()}),
        )
        report = build(hub, tmp_path / kind, resize="exact:7x5")
        assert dict(report.manifest.schema.fields) == {"id": fields.Int(), "tree_mask": fields.Mask()}
        assert names(stoker.open(tmp_path / kind, "train")) == classes
        sample = samples(tmp_path / kind)["0.png"]
        assert (sample.label, sample.fields["id"]) == (len(classes) - 1, 7)
        assert set(sample.fields["tree_mask"].flat) <= set(ids.flat)


def test_a_dataset_of_torchvision(tmp_path: Path, torchvision: object) -> None:
    from torchvision.datasets import ImageFolder  # noqa: PLC0415 - as the fixture lets it be imported

    images = ImageFolder(write_tree(tmp_path / "tree", {"cat": 5, "dog": 4}))
    assert build(images, tmp_path / "out").manifest.splits["train"].class_counts == (5, 4)
    assert names(stoker.open(tmp_path / "out", "train")) == ["cat", "dog"]
    by_name = samples(tmp_path / "out")
    assert all((by_name[str(number)].decode() == np.asarray(images[number][0])).all() for number in range(9))


@pytest.mark.parametrize("same", [True, False])
def test_parts_of_datasets_of_torchvision_keep_their_classes(tmp_path: Path, torchvision: object, same: bool) -> None:
    from torch.utils.data import ConcatDataset, Subset, random_split  # noqa: PLC0415 - as torchvision, see above
    from torchvision.datasets import ImageFolder  # noqa: PLC0415

    first = ImageFolder(write_tree(tmp_path / "tree", {"cat": 5, "dog": 4}))
    other = ImageFolder(write_tree(tmp_path / "more", {"cat": 1, "dog" if same else "eel": 2}))
    whole = ConcatDataset([Subset(random_split(first, [6, 3])[0], range(6)), other])
    assert build(whole, tmp_path / "out").manifest.records == 9
    assert names(stoker.open(tmp_path / "out", "train")) == (["cat", "dog"] if same else ["0", "1"])


def test_labels_of_other_libraries_are_read_without_images(tmp_path: Path) -> None:
    class Targets(Sequenced):
        targets = [int(n >= 90) for n in range(100)]  # noqa: RUF012 - as a dataset of torchvision has them

    source = Targets([(picture(n), int(n >= 90)) for n in range(100)])
    report = build(source, tmp_path / "targets", split_fraction="val=0.1")
    assert counts(report) == {"train": (81, 9), "validation": (9, 1)}
    assert len(source.asked) < 200  # each once, and samples
    other = Targets([(picture(n), int(n < 10)) for n in range(100)])  # as with a target_transform
    assert counts(build(other, tmp_path / "other", split_fraction="val=0.1"))["validation"] == (9, 1)
    assert len(other.asked) >= 200
    hub = huggingface(90).map(lambda record: {"label": 0 if record["label"] else 1})
    assert counts(build(hub, tmp_path / "hub", split_fraction="val=0.1"))["validation"] == (6, 3, 0)


@pytest.mark.parametrize(
    ("classes", "ids", "expected"),
    [
        ([("tench", "Tinca tinca"), ("crane",)], None, ["tench, Tinca tinca", "crane"]),
        ([("crane",), ("crane",)], ["n02012849", "n03126707"], ["n02012849", "n03126707"]),
        (["crane", "crane"], None, ["0", "1"]),
    ],
)
def test_names_of_classes_may_be_several_or_repeat(
    classes: list[Any], ids: list[str] | None, expected: list[str], tmp_path: Path
) -> None:
    class Pairs(list[Any]):
        pass

    pairs = Pairs((picture(number), number % 2) for number in range(4))
    pairs.classes, pairs.wnids = classes, ids
    build(pairs, tmp_path / "out")
    assert names(stoker.open(tmp_path / "out", "train")) == expected


@pytest.mark.parametrize("as_given", [list, iter])
def test_tensors_are_arrays_and_arrays_without_sides_are_numbers(as_given: Any, tmp_path: Path) -> None:
    import torch  # noqa: PLC0415 - it takes seconds to import

    given = [
        {"image": torch.from_numpy(pixels(number)), "label": label, "emb": torch.ones(2)}
        for number, label in enumerate((torch.tensor(1), np.array(0), 1))
    ]
    report = build(as_given(given), tmp_path / "out")
    assert dict(report.manifest.schema.fields) == {"emb": fields.Array("float32", (2,))}
    by_name = samples(tmp_path / "out")
    assert {name: sample.label for name, sample in by_name.items()} == {"0": 1, "1": 0, "2": 1}
    assert all((by_name[str(number)].decode() == pixels(number)).all() for number in range(3))


def test_reading_labels_of_all_records_is_reported() -> None:
    records = [{"image": b"", "label": f"class {number % 3}"} for number in range(200)]
    seen: list[dict[str, int]] = []
    source = list_records({"train": records}, None, lambda **news: seen.append(news))
    assert len(source.classes) == 3
    assert [(news["done"], news["total"]) for news in seen] == [(0, 200), (64, 200), (128, 200), (192, 200)]
