"""Which class has which label: every format, and what is refused."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from small_cases import each
from sources.making import check_refused, fill, listing, tar_bytes
from stoker.cli.main import main
from stoker.errors import ConfigError, SourceError
from stoker.sources import LabelMap, SourceOptions, list_source, read_label_map
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from pathlib import Path

NAMES = (b"n00000003", b"n00000001", b"n00000002")


def write(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def as_json(base: int) -> str:
    texts = {name.decode(): label for label, name in enumerate(NAMES, base)}
    entries = {name: {"label": label, "human_labels": f"text {label}"} for name, label in texts.items()}
    return json.dumps(dict(sorted(entries.items())))


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("n00000003\nn00000001\r\n\nn00000002\n", (b"", b"", b"")),
        (
            "n00000003\tcrane\nn00000001\tcrane\nn00000002\tmaillot, tank suit\n",
            (b"crane", b"crane", b"maillot, tank suit"),
        ),
        ("n00000003 crane, bird\nn00000001 crane\nn00000002 c d\n", (b"crane, bird", b"crane", b"c d")),
        ("\ufeffn00000003\nn00000001\nn00000002", (b"", b"", b"")),
    ],
    ids=["names", "tabs", "kaggle", "byte order mark"],
)
def test_lists_count_their_lines(tmp_path: Path, text: str, texts: tuple[bytes, ...]) -> None:
    where = write(tmp_path / "list", text)
    assert read_label_map(where) == LabelMap(where, NAMES, texts)


@each(
    ("text", "names"),
    [
        ("golden retriever\nblack cat\n", (b"golden retriever", b"black cat")),
        ("0:background\n1:n00000003\n2:n00000001\n3:n00000002\n", NAMES),  # as of TF-Slim
        ('id,name\n1,cat\n0,"dog, big"\n', (b"dog, big", b"cat")),
        ('["cat",\n "dog"]', (b"cat", b"dog")),
        ('{"dog": 1, "cat": 0}', (b"cat", b"dog")),
    ],
)
def test_names_may_have_blanks_or_numbers_in_front(tmp_path: Path, text: str, names: tuple[bytes, ...]) -> None:
    assert read_label_map(write(tmp_path / "list", text)).names == names


@pytest.mark.slow
def test_more_lines_than_there_may_be_classes_are_no_list(tmp_path: Path) -> None:
    where = write(tmp_path / "list", b"a\n" * (MAX_CLASSES + 1))
    with pytest.raises(SourceError, match=f"has more than {MAX_CLASSES} lines, so it is not a list of classes"):
        read_label_map(where)


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("compressed", [False, True])
def test_json_counts_from_zero_or_one(tmp_path: Path, base: int, compressed: bool) -> None:
    data = as_json(base).encode()
    where = write(tmp_path / "labels.json", gzip.compress(data) if compressed else data)
    texts = tuple(b"text %d" % label for label in range(base, base + 3))
    assert read_label_map(where) == LabelMap(where, NAMES, texts, counts_from_1=base == 1)


def test_the_devkits_text_file_is_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    where = write(tmp_path / "map_clsloc.txt", "n00000001 2 a_b\nn00000002 3 c\nn00000003 1 d\n")
    assert read_label_map(where) == LabelMap(where, NAMES, (b"d", b"a_b", b"c"), counts_from_1=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\nb\n\na\n", "names a twice: in line 1 and in line 4"),
        ("a\tx\nb\ty\na\tz\n", "names a twice: in line 1 and in line 3"),
        ("n00000001 1 a\nn00000001 2 b\n", "names n00000001 twice"),
        ("1:a\n3:b\n", "gives b the label 3 where 2 must follow"),
        ("n00000001 1 a\nn00000002 1 b\n", "gives n00000002 the label 1 where 2 must follow"),
        ("n00000001 1 a\nn00000002 3 b\n", "gives n00000002 the label 3 where 2"),
        ("n00000001 2 a\nn00000002 3 b\n", "gives n00000001 the label 2 where 0"),
        ('{"a": {"label": 0}, "b": {"label": 2}}', "gives b the label 2 where 1"),
        ('{"a": {"label": 0}, "b": {"label": 0}}', "gives b the label 0 where 1"),
        ('{"a": {"label": 0}, "a": {"label": 1}}', "names a twice"),
        ('{"a": {"label": -1}, "b": {"label": 0}}', "gives a the label -1 where 0"),
    ],
)
def test_maps_that_contradict_themselves_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_label_map(write(tmp_path / "list", text))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n\n", b"{", b'{"a": 1.5}', b'{"a": {"label": "0"}}', b'{"a": {"label": true}}', b'{"a": {}}', b"{}",
        b'{"a": {"label": 0, "human_labels": 3}}', b"\x1f\x8bxxxxxxxx", gzip.compress(b"{}" * 99)[:20], b"[1]" * 9**6,
        b"{" * 10**5,
    ],
    ids=range(13),
)  # fmt: skip
def test_files_that_are_not_label_maps_are_refused(tmp_path: Path, data: bytes) -> None:
    where = write(tmp_path / "list", data)
    with pytest.raises(SourceError) as caught:
        read_label_map(where)
    assert where in str(caught.value)


@pytest.mark.parametrize("name", ["meta.mat", "ILSVRC2012_devkit_t12.tar.gz", "kit.tgz"])
def test_the_devkit_is_no_label_map_and_the_error_says_what_is(tmp_path: Path, name: str) -> None:
    data = b"MATLAB 5.0 MAT-file" + b"x" * 200 if name == "meta.mat" else gzip.compress(tar_bytes({"a": b"x"}))
    with pytest.raises(SourceError, match=r"use labels imagenet .* and validation_labels for the development kit"):
        read_label_map(write(tmp_path / name, data))


@pytest.mark.parametrize(
    ("preset", "words"),
    [(None, ()), (None, ("--label-base", "1")), ("imagenet", ()), ("imagenet", ("--label-base", "0"))],
)
def test_the_list_of_a_dataset_labels_another(tmp_path: Path, preset: str | None, words: tuple[str, ...]) -> None:
    root = fill(tmp_path / "root", "background/1.jpg", "cat/1.jpg", "dog/1.jpg")
    part = fill(tmp_path / "part", "dog/1.jpg")
    settings = (*words, *(("--preset", preset) if preset else ()))
    for source, name, more in ((root, "all", ()), (part, "some", ("--labels", str(tmp_path / "all/labels.txt")))):
        assert main(["build", str(source), str(tmp_path / name), *settings, *more, "--max-rejects", "3"]) == 0
    first, other = ((tmp_path / name / "labels.txt").read_bytes() for name in ("all", "some"))
    assert first == other


def test_numbers_in_front_of_the_names_may_begin_with_1(tmp_path: Path) -> None:
    where = write(tmp_path / "labels.txt", "1:n00000003\n2:n00000001\n3:n00000002\n")
    assert read_label_map(where).names == NAMES
    root = fill(tmp_path / "root", "n00000001/1.jpg", "n00000002/1.jpg", "n00000003/1.jpg")
    warning = f"{where} counts its classes from 1; they have these numbers only with label_base 1"
    assert listing(root, labels=where).warnings == (warning,)


@pytest.mark.parametrize("text", ['{"1": "cat", "2": "dog", "3": "ant"}', "1:cat\n2:dog\n3:ant\n"])
def test_a_map_that_counts_from_1_names_the_ids_that_it_has(tmp_path: Path, text: str) -> None:
    where = write(tmp_path / "labels.json", text)
    root = fill(tmp_path / "root", "a.jpg", "b.jpg")
    (root / "metadata.csv").write_text("file_name,label\na.jpg,1\nb.jpg,2\n")
    source = list_source(str(root), SourceOptions(labels=where))
    assert source.classes == (b"cat", b"dog", b"ant")
    assert source.table.labels.tolist() == [0, 1]
    (root / "metadata.csv").write_text("file_name,label\na.jpg,1\nb.jpg,0\n")
    with pytest.raises(SourceError, match=r"has the class id 0, but .* has 3 classes, the first of which is 1"):
        list_source(str(root), SourceOptions(labels=where))


@pytest.mark.parametrize("text", ["0:\n", "0: \n1:cat\n", "1:cat\n2:\n"])
def test_a_number_without_a_name_is_refused(tmp_path: Path, text: str) -> None:
    where = write(tmp_path / "labels.txt", text)
    with pytest.raises(ConfigError, match="names the class ''"):
        read_label_map(where)


def test_a_map_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        read_label_map(str(tmp_path / "none"))


def test_labels_are_those_of_the_whole_map(tmp_path: Path) -> None:
    root = fill(tmp_path / "root", "train/n00000001/1.jpg", "train/n00000003/3.jpg")
    tree = listing(root, labels=write(tmp_path / "labels.json", as_json(0)))
    assert tree.classes == NAMES
    assert tree.texts == (b"text 0", b"text 1", b"text 2")
    assert [(item.key, item.label) for item in tree.table] == [
        ("train/n00000003/3.jpg", 0), ("train/n00000001/1.jpg", 1),
    ]  # fmt: skip
    assert tree.warnings == ("the list of labels has 1 class without images",)


def test_a_list_of_texts_that_is_given_comes_before_those_of_the_map(tmp_path: Path) -> None:
    root = fill(tmp_path / "root", "n00000001/1.jpg")
    (root / "words.txt").write_text("n00000001\tfrom the root\nn00000002\tfrom the root\n")
    labels = write(tmp_path / "labels", "n00000001\tfrom the map\nn00000002\n")
    assert listing(root, labels=labels).texts == (b"from the map", b"from the root")
    given = SourceOptions(labels=labels, class_names=write(tmp_path / "texts", "n00000001\tgiven\n"))
    assert list_source(str(root), given).texts == (b"given", b"")


def test_a_class_that_the_map_lacks_is_an_error(tmp_path: Path) -> None:
    root = fill(tmp_path / "root", "a/1.jpg", "b/2.jpg", "c/3.jpg")
    check_refused(root, match="does not name 2 of the classes: a, c", labels=write(tmp_path / "list", "b\nd\n"))


def test_no_entry_breaks_the_lines_of_labels_txt(tmp_path: Path) -> None:
    entries = {"n1": {"label": 0, "human_labels": "two\nlines\tand\x00more"}, "n2": {"label": 1}}
    assert read_label_map(write(tmp_path / "map.json", json.dumps(entries))).texts == (b"two lines and more", b"")
    for name in ("n\n1", "n\t1", ""):
        where = write(tmp_path / "map.json", json.dumps({name: {"label": 0}}))
        with pytest.raises(ConfigError, match="control character"):
            read_label_map(where)


def test_a_compressed_map_may_be_damaged_anywhere(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps({f"c{i}": {"label": i} for i in range(300)}).encode())
    for at in range(10, len(whole), 40):
        where = write(tmp_path / "map.json.gz", whole[:at] + bytes(255 - byte for byte in whole[at : at + 8]))
        with pytest.raises(SourceError, match="damaged"):
            read_label_map(where)
