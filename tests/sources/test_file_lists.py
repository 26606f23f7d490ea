"""Lists of files, the configuration that names two of them, and the command that makes them."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from sources.making import check_refused, content, fill, listed, listing, write, xml
from stoker.errors import ConfigError
from stoker.sources import read_config
from stoker.storage import location
from stoker.types import Box

if TYPE_CHECKING:
    from pathlib import Path

FILES = ("Data/train/n02/b.JPEG", "Data/train/n01/c.JPEG", "Data/train/n01/a.JPEG")


def write_list(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_bytes("".join(line + end for line in lines).encode("utf-8", "surrogateescape"))
    return path


def test_paths_are_absolute_or_relative_to_the_list(tmp_path: Path) -> None:
    fill(tmp_path, *FILES)
    path = write_list(tmp_path / "list.txt", str(tmp_path / FILES[0]), FILES[1], f"./{FILES[2]}", end="\r\n")
    tree = listing(path)
    assert listed(tree) == [("a.JPEG", "n01"), ("c.JPEG", "n01"), ("b.JPEG", "n02")]
    assert tree.table[2].path == bytes(tmp_path / FILES[0])
    assert tree.fingerprint() == listing(tmp_path / "Data/train").fingerprint()


@pytest.mark.parametrize(
    ("lines", "expected", "ignored"),
    [
        (["m/n01/3.jpg", "z/n01/1.jpg", "a/n01/2.jpg"], [(f"{number}.jpg", "n01") for number in (1, 2, 3)], {}),
        (["", "a/#1.jpg", "  ", "#a/2.jpg", "\t"], [("2.jpg", "#a"), ("#1.jpg", "a")], {"blank line": 3}),
        (["train/n01/images/1.jpg"], [("1.jpg", "n01")], {}),
        (["x/1.jpg 10", "x/2.jpg cat"], [("1.jpg", "10"), ("2.jpg", "cat")], {}),
    ],
    ids=["in the order of names", "a hash is a name", "a folder in the class", "numbers among names are names"],
)
def test_lines_are_items(
    tmp_path: Path, lines: list[str], expected: list[tuple[str, str]], ignored: dict[str, int]
) -> None:
    fill(tmp_path, *(line.partition(" ")[0] for line in lines if line.strip()))
    tree = listing(write_list(tmp_path / "list.txt", *lines))
    assert (listed(tree), tree.ignored) == (expected, ignored)


def test_blanks_around_a_path_belong_to_it_unless_it_is_there_only_without_them(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg", "a/2.jpg ", "a/2.jpg")
    tree = listing(write_list(tmp_path / "list.txt", " a/1.jpg\t", "a/2.jpg ", "a/3.jpg "))
    assert [item.path for item in tree.table] == [b"a/1.jpg", b"a/2.jpg ", b"a/3.jpg "]


def test_a_file_that_is_missing_is_an_item_that_cannot_be_loaded(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg")
    os.mkfifo(tmp_path / "a/2.jpg")
    tree = listing(write_list(tmp_path / "list.txt", "a/1.jpg", "a/2.jpg", "a/none.jpg"))
    assert [item.size_bytes for item in tree.table] == [len(content("1.jpg")), 0, 0]
    with pytest.raises(FileNotFoundError):
        tree.load(tree.table[2], "train")


def test_a_name_that_is_too_long_for_the_system_is_that_of_a_missing_file(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg")
    long = "x" * 256
    tree = listing(write_list(tmp_path / "list.txt", "a/1.jpg", f"a/{long}", f"{long}/b/1.jpg"))
    assert [item.size_bytes for item in tree.table] == [len(content("1.jpg")), 0, 0]
    assert tree.classes == (b"a", b"b")


def test_repeated_lines_are_kept_and_reported(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg")
    tree = listing(write_list(tmp_path / "list.txt", *["a/1.jpg"] * 3))
    assert len(tree.table) == 3
    assert tree.warnings == ("repeated lines: 2; each is an item of its own",)


def test_flat_lists_need_labels(tmp_path: Path) -> None:
    fill(tmp_path, "val/ILSVRC2012_val_00000002.JPEG", "val/ILSVRC2012_val_00000001.JPEG")
    path = write_list(tmp_path / "list.txt", "val/ILSVRC2012_val_00000002.JPEG", "val/ILSVRC2012_val_00000001.JPEG")
    check_refused(path, match=r"lie in a folder called val, not .*validation_labels")
    labels = write_list(tmp_path / "labels.txt", "n02", "n01")
    tree = listing(path, validation_labels=str(labels))
    assert listed(tree) == [("ILSVRC2012_val_00000002.JPEG", "n01"), ("ILSVRC2012_val_00000001.JPEG", "n02")]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"1.jpg\n", "line 1 of .* lies in no class folder"),
        (b"a/1.jpg\na/\0.jpg\n", "line 2 of .* NUL"),
        (b"a/1.jpg\n" + b"x" * 2**17, "line 2 is longer than"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "is an image, not a list of images; give its folder"),
        (b"PK\x03\x04rest", "is a zip archive, which is not read; unpack it"),
    ],
)
def test_files_that_are_not_lists_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(data)
    check_refused(path, match=message)


@pytest.mark.parametrize(
    ("lines", "classes"),
    [
        (["a/1.jpg;cat"], (b"cat",)),
        (['"a/1.jpg","cat"'], (b"cat",)),
        (["path,label,box", "a/1.jpg,5,0"], (b"0", b"1", b"2", b"3", b"4", b"5")),
    ],
)
def test_a_list_with_other_columns_is_a_table(tmp_path: Path, lines: list[str], classes: tuple[bytes, ...]) -> None:
    fill(tmp_path, "a/1.jpg", "b/2.jpg")
    tree = listing(write_list(tmp_path / "list.txt", *lines))
    assert (tree.classes, [item.path for item in tree.table]) == (classes, [b"a/1.jpg"])


@pytest.mark.parametrize(
    ("lines", "bad", "what"),
    [
        (["b/2.jpg", "a/1.jpg\t5\tcat"], 2, "this list has one path a line"),
        (["with blanks, and commas/1.jpg", "a/1.jpg 5"], 2, "this list has one path a line"),
        (["b/2.jpg", "a/1.jpg 5"], 2, "this list has one path a line"),
        (["c/is not here.jpg", "a/1.jpg,5"], 1, "without a label, but the list has labels after a comma"),
        (["a/1.jpg 5", "b/2.jpg"], 2, "without a label, but the list has labels after a blank"),
        (["a/1.jpg 5", "with blanks, and commas/1.jpg"], 2, "without a label, but the list has labels after a blank"),
        (["a/1.jpg\t5", "b/2.jpg 5"], 2, "without a label, but the list has labels after a tab"),
    ],
)
def test_a_list_with_labels_in_some_lines_is_refused(tmp_path: Path, lines: list[str], bad: int, what: str) -> None:
    """A label was taken for a part of the file name, and all images for missing."""
    fill(tmp_path, "a/1.jpg", "b/2.jpg", "with blanks, and commas/1.jpg")
    shown = re.escape(repr(lines[bad - 1]))
    check_refused(write_list(tmp_path / "list.txt", *lines), match=rf"line {bad} of .*list.txt is {shown}.*{what}")


@pytest.mark.parametrize(
    "lines",
    [
        ["a/1.jpg\tcat", "my b/2.jpg\tdog", "3.jpg\tcat"],
        ["a/1.jpg,cat", "my b/2.jpg,dog", "3.jpg,cat"],
        ["a/1.jpg cat", "my b/2.jpg dog", "3.jpg  cat "],
        ["path,label", "a/1.jpg, cat", "my b/2.jpg,dog", "", "3.jpg,cat"],
    ],
)
def test_labels_stand_after_a_tab_a_comma_or_a_blank(tmp_path: Path, lines: list[str]) -> None:
    fill(tmp_path, "a/1.jpg", "my b/2.jpg", "3.jpg")
    tree = listing(write_list(tmp_path / "list.txt", *lines))
    assert tree.classes == (b"cat", b"dog")
    assert listed(tree) == [("1.jpg", "cat"), ("3.jpg", "cat"), ("2.jpg", "dog")]
    assert tree.warnings == ()


@pytest.mark.parametrize(
    ("lines", "labels"),
    [
        (["image,label", "im/0.png,0.0", "im/1.png,1.0", "im/2.png,10.0", "im/3.png,2.0"], [0, 1, 10, 2]),
        (["im/0.png,0.0", "im/1.png,1.0", "im/2.png,10.0", "im/3.png,2.0"], [0, 1, 10, 2]),
        (["im/0.png 0.0", "im/1.png 1.0", "im/2.png 10.0", "im/3.png 2.0"], [0, 1, 10, 2]),
        (["im/0.png\t0.0", "im/1.png\t1.0", "im/2.png\t10.0", "im/3.png\t2.0"], [0, 1, 10, 2]),
        (["image_path class_id", "im/0.png 0", "im/1.png 1", "im/2.png 10", "im/3.png 2"], [0, 1, 10, 2]),
        (["# made by x", "im/0.png 0", "im/1.png 1", "im/2.png 10", "im/3.png 2"], [0, 1, 10, 2]),
        (["4", "im/0.png 0", "im/1.png 1", "im/2.png 10", "im/3.png 2"], [0, 1, 10, 2]),
        (["name,class", "im/0.png,0", "im/1.png,1", "im/2.png,10", "im/3.png,2"], [0, 1, 10, 2]),
        (["image,label", "im/0,0", "im/1,1", "im/2,10", "im/3,2"], [0, 1, 10, 2]),
        (["image,label", "im/0.png,", "im/1.png,1", "im/2.png,10", "im/3.png,2"], [-1, 1, 10, 2]),
        (["im/0.png,-1", "im/1.png,1", "im/2.png,-1", "im/3.png,1"], [0, 1, 0, 1]),
        (["image,label", "im/0.png,0", "im/1.png,1", "im/2.png,10", "im/3.png,NA"], [0, 1, 2, 3]),
        (["image,label", "im/0.png,a|b", "im/1.png,a", "im/2.png,b", "im/3.png,b"], [-1] * 4),
        (["image,split", "im/0.png,train", "im/1.png,train", "im/2.png,train", "im/3.png,val"], [-1] * 4),
        (["image,mask", *(f"im/{at % 4}.png,masks/{at}.png" for at in range(24))], [-1] * 24),
        (["filename,url", *(f"im/{at % 4}.png,http://x.y/{at}" for at in range(24))], [-1] * 24),
    ],
)
def test_a_table_has_the_same_labels_alone_and_in_its_folder(
    tmp_path: Path, lines: list[str], labels: list[int]
) -> None:
    fill(tmp_path / "own", *(f"im/{number}.png" for number in range(4)))
    path = write_list(tmp_path / "own" / ("list.csv" if "," in lines[-1] else "list.txt"), *lines)
    alone, inside = (listing(each) for each in (path, path.parent))
    assert [item.label for item in sorted(alone.table, key=lambda item: item.path)] == labels
    assert list(alone.table) == list(inside.table)
    assert (alone.classes, alone.fields, [*alone.splits]) == (inside.classes, inside.fields, [*inside.splits])


def test_images_of_a_table_may_lie_elsewhere(tmp_path: Path) -> None:
    fill(tmp_path, "im/0.png", "im/1.png")
    lines = ["image,split", f"{tmp_path}/im/0.png,train", f"{tmp_path}/im/1.png,val"]
    (tmp_path / "lists").mkdir()
    tree = listing(write_list(tmp_path / "lists" / "all.csv", *lines))
    assert {split: len(rows) for split, rows in tree.splits.items()} == {"train": 1, "validation": 1}


def test_labels_that_are_all_numbers_are_class_ids(tmp_path: Path) -> None:
    fill(tmp_path, "x/1.jpg", "x/2.jpg", "x/3.jpg", "x/4.jpg")
    path = write_list(tmp_path / "list.txt", "x/1.jpg 10", "x/2.jpg 2", "x/3.jpg 02", "x/4.jpg -1")
    tree = listing(path)
    assert tree.classes == tuple(b"%d" % label for label in range(11))
    assert listed(tree) == [("4.jpg", None), ("2.jpg", "2"), ("3.jpg", "2"), ("1.jpg", "10")]
    assert tree.warnings == (
        "labels that are the same number are one class: 02, 2",
        "class ids run from 0 to 10, and these have no images: 0, 1, 3, 4, 5 and 4 more",
    )
    names = write_list(tmp_path / "names.txt", *(f"class {chr(97 + at)}\t" for at in range(11)))
    assert listing(path, labels=str(names)).classes[10] == b"class k"
    few = write_list(tmp_path / "few.txt", "one", "two")
    check_refused(path, match=r"has the class id 10, but the label map .*few.txt has 2 classes", labels=str(few))


def test_numbers_that_a_label_map_has_as_names_are_names(tmp_path: Path) -> None:
    fill(tmp_path, "x/1.jpg", "x/2.jpg")
    path = write_list(tmp_path / "list.txt", "x/1.jpg 10", "x/2.jpg 20")
    names = write_list(tmp_path / "names.txt", "20", "10")
    assert listed(listing(path, labels=str(names))) == [("2.jpg", "20"), ("1.jpg", "10")]


def test_labels_that_are_numbers_and_no_class_ids_are_a_field(tmp_path: Path) -> None:
    fill(tmp_path, "x/1.jpg", "x/2.jpg")
    for label in ("0.5", "-4"):
        path = write_list(tmp_path / "scores.csv", "image,score", f"x/1.jpg,{label}", "x/2.jpg,3")
        tree = listing(path)
        assert (tree.classes, tree.fields) == ((), {"score": stoker.fields.Float()})
        assert [tree.load(tree.table[row], "train").fields["score"] for row in range(2)] == [float(label), 3]
        told = f"{path}: 'score' has numbers that are no class ids, so it is a field, and there are no classes"
        assert told in tree.warnings


def test_a_number_far_below_that_is_no_class_id_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, "x/1.jpg")
    path = write_list(tmp_path / "list.txt", *(f"x/1.jpg {at}" for at in range(300)), "x/1.jpg 0.5")
    check_refused(path, match=r"'0.5' is no class id, and all are numbers; give label_column='none'")


def test_an_id_above_the_largest_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, "x/1.jpg")
    path = write_list(tmp_path / "list.txt", "x/1.jpg 4194304")
    check_refused(path, match="has the class id 4194304; the largest is 4194303")


@pytest.mark.parametrize("folder", ["Annotations/train", "mine"])
def test_annotations_lie_beside_data_or_where_they_are_said_to(folder: str, tmp_path: Path) -> None:
    fill(tmp_path, *FILES)
    write(tmp_path / folder, {"n01/a.xml": xml(("n01", "0", "0", "100", "50"), ("n01", "100", "50", "200", "100"))})
    path = write_list(tmp_path / "list.txt", *FILES)
    tree = listing(path, **{"boxes": str(tmp_path / folder)} if folder == "mine" else {})
    boxes = [tree.load(item, "train").boxes for item in tree.table]
    assert boxes == [[Box(0.0, 0.0, 0.5, 0.5), Box(0.5, 0.5, 1.0, 1.0)], [], []]


CONFIG = {
    "handler": "ilsvrc_dataset",
    "batch_size": 128,
    "train_filelist": "lists/train.txt",
    "test_filelist": "lists/test.txt",
    "shuffle_buffer": 200000,
    "reshuffle_each_iteration": True,
    "num_parallel_readers": 8,
    "prefectch_buffer_size": 2,
    "crop_image_size": [256, 192],
    "num_classes": 2,
    "num_channels": 3,
}


def write_config(path: Path, **changes: Any) -> str:
    path.write_text(json.dumps({"data": CONFIG | changes, "model": {"depth": 50}}))
    return str(path)


def test_a_configuration_is_a_source_of_two_splits(tmp_path: Path) -> None:
    fill(tmp_path, "d/n01/1.jpg", "d/n02/2.jpg", "e/n02/3.jpg")
    (tmp_path / "lists").mkdir()
    write_list(tmp_path / "lists/train.txt", "../d/n02/2.jpg", "../d/n01/1.jpg")
    write_list(tmp_path / "lists/test.txt", "../e/n02/3.jpg")
    tree = listing(write_config(tmp_path / "ilsvrc.json"))
    assert listed(tree) == [("1.jpg", "n01"), ("2.jpg", "n02")]
    assert listed(tree, "test") == [("3.jpg", "n02")]
    assert tree.warnings == ()
    tree = listing(write_config(tmp_path / "ilsvrc.json", num_classes=1000))
    assert any("num_classes 1000" in warning for warning in tree.warnings)


def test_every_key_of_a_configuration_is_read(tmp_path: Path) -> None:
    config = read_config(location(tmp_path / write_config(tmp_path / "c.json")))
    assert (config.handler, config.batch_size, config.shuffle_buffer) == ("ilsvrc_dataset", 128, 200000)
    assert (config.reshuffle_each_iteration, config.num_parallel_readers) == (True, 8)
    assert (config.prefetch_buffer_size, config.crop_image_size) == (2, (256, 192))
    assert (config.num_classes, config.num_channels) == (2, 3)
    assert config.train_filelist == tmp_path / "lists/train.txt"
    absolute = read_config(location(tmp_path / write_config(tmp_path / "c.json", test_filelist="/lists/b.txt")))
    assert str(absolute.test_filelist) == "/lists/b.txt"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("batch_size", "128"), ("batch_size", 0), ("batch_size", True), ("reshuffle_each_iteration", 1),
        ("crop_image_size", 256), ("crop_image_size", [256]), ("crop_image_size", [256, 0]), ("train_filelist", 7),
        ("train_filelist", ""), ("train_filelist", "a\ud800.txt"),
        ("prefectch_buffer_size", -1), ("handler", None), ("num_channels", 1),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(tmp_path: Path, key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"data\.{key} is "):
        read_config(location(tmp_path / write_config(tmp_path / "c.json", **{key: value})))


def test_keys_without_effect_are_an_error_that_names_them(tmp_path: Path) -> None:
    path = write_config(tmp_path / "c.json", learning_rate=0.1, batchsize=7)
    with pytest.raises(ConfigError, match=r"c\.json: data\.batchsize and data\.learning_rate have no effect"):
        listing(path)
    with pytest.raises(ConfigError, match=r"data\.reshuffle_each_iteration is false.*stoker list --shuffle"):
        stoker.loader_settings(write_config(tmp_path / "c.json", reshuffle_each_iteration=False))
    path = write_config(tmp_path / "c.json", reshuffle_each_iteration=False, shuffle_buffer=0)
    settings = stoker.loader_settings(path)
    assert not settings["shuffle"]


def test_a_configuration_says_how_a_loader_reads(tmp_path: Path) -> None:
    settings = stoker.loader_settings(write_config(tmp_path / "c.json", prefectch_buffer_size=0))
    assert settings == {
        "batch_size": 128,
        "transform": stoker.ObjectCrops((256, 192)),
        "shuffle": True,
        "threads": 8,
        "prefetch": 0,
    }


@pytest.mark.parametrize("text", ["", "{", "[]", '{"data": []}', "{}", "[" * 10**5])
def test_files_that_are_not_configurations_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    check_refused(tmp_path / "c.json", match=r"c\.json")


@pytest.mark.parametrize("text", ['[{"url": "http://a.example/1.jpg"}]', "[" + " " * 2**21 + "]"])
def test_other_json_is_told_what_it_may_be(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text)
    check_refused(tmp_path / "c.json", match=r'a COCO file has a list "images", and a table .* is called \*\.jsonl')


def test_a_configuration_without_lists_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"data": {}}')
    with pytest.raises(ConfigError, match="neither train_filelist nor test_filelist"):
        listing(tmp_path / "c.json")
    check_refused(write_config(tmp_path / "c.json"), match=r"the list .*train\.txt does not exist")
    with pytest.raises(ConfigError, match="as train_filelist and as test_filelist"):
        listing(write_config(tmp_path / "c.json", test_filelist=CONFIG["train_filelist"]))
