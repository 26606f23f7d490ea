"""Listing a tree: layouts, order, odd entries."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sources.layouts import roboflow_voc
from sources.making import check_refused, content, fill, listing, tar_of, write, xml
from stoker.errors import SourceError
from stoker.sources import Item, ItemTableBuilder
from stoker.sources.files import folders_in, some_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534


def keys(root: Path, split: str = "train") -> list[str]:
    tree = listing(root)
    return [item.key for item in tree.table.take(tree.splits[split])]


@contextmanager
def without_root_rights() -> Iterator[None]:
    """Permissions mean nothing to root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_flat_tree_is_the_split_train(tmp_path: Path) -> None:
    fill(tmp_path, "dog/b.jpg", "cat/x/y/deep.jpg", "cat/a.jpg")
    tree = listing(tmp_path)
    assert tree.classes == (b"cat", b"dog")
    assert list(tree.splits) == ["train"]
    names = ("cat/a.jpg", "cat/x/y/deep.jpg", "dog/b.jpg")
    expected = [(name, int(name.startswith("dog")), len(content(name))) for name in names]
    assert [(item.key, item.label, item.size_bytes) for item in tree.table] == expected


@pytest.mark.parametrize("name", ["validation", "val"])
def test_split_folders(tmp_path: Path, name: str) -> None:
    fill(tmp_path, "train/b/1.jpg", f"{name}/a/2.jpg", "test/b/3.jpg")
    tree = listing(tmp_path)
    assert tree.classes == (b"a", b"b")
    assert {split: rows.tolist() for split, rows in tree.splits.items()} == {
        "train": [0],
        "validation": [1],
        "test": [2],
    }
    assert [item.label for item in tree.table] == [1, 0, 1]
    assert tree.warnings == ("classes that are not in train get labels all the same: a",)


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    fill(tmp_path, "car/1.jpg", "train/2.jpg")
    assert listing(tmp_path).classes == (b"car", b"train")
    fill(tmp_path, "test/deep/3.jpg")
    assert listing(tmp_path).classes == (b"car", b"test", b"train")


def test_order_is_that_of_the_bytes_of_the_path(tmp_path: Path) -> None:
    fill(tmp_path, "c/b.jpg", "c/B.jpg", "c/a-/z.jpg", "c/a/z.jpg", "c/é.jpg", "c/10.jpg", "c/9.jpg")
    assert keys(tmp_path) == [f"c/{name}.jpg" for name in ("10", "9", "B", "a-/z", "a/z", "b", "é")]


def test_names_that_are_not_utf8_survive(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/c/caf\xe9 \xff.jpg"
    fill(tmp_path, "c/a.jpg")
    Path(os.fsdecode(name)).write_bytes(b"x")
    table = listing(tmp_path).table
    assert table.paths[1] == b"c/caf\xe9 \xff.jpg"
    assert table[1].key.encode("utf-8", "surrogateescape") == b"c/caf\xe9 \xff.jpg"


def test_sidecars_and_hidden_files_are_counted_and_metadata_is_not(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg", "a/1.XML", "a/2.txt", "a/Thumbs.db", "a/.hidden.jpg", "a/.cache/3.jpg", "words.txt")
    fill(tmp_path, "synsets.txt", "bounding_boxes/a/1.xml", "readme.md")
    (tmp_path / "imagenet_metadata.txt").write_text("a\tan a\n")
    tree = listing(tmp_path)
    assert keys(tmp_path) == ["a/1.jpg"]
    assert tree.classes == (b"a",)
    assert tree.ignored == {".xml": 1, ".txt": 1, ".db": 1, "hidden": 2, ".md": 1}
    assert tree.warnings == ()


def test_anything_else_is_an_item_whatever_its_name(tmp_path: Path) -> None:
    fill(tmp_path, "a/noext", "a/x.bin", "a/y.JPEG.png")
    assert keys(tmp_path) == ["a/noext", "a/x.bin", "a/y.JPEG.png"]


def test_files_outside_classes_and_folders_beside_splits_are_reported(tmp_path: Path) -> None:
    fill(tmp_path, "train/a/1.jpg", "train/loose.jpg", "validation/a/2.jpg", "validation/1.jpg", "notes/x.jpg")
    fill(tmp_path, "sample.json", "train/list.txt")
    tree = listing(tmp_path)
    assert tree.ignored == {"outside a class folder": 2, "outside the splits": 1, ".json": 1, ".txt": 1}
    assert len(tree.warnings) == 3
    assert len(tree.table) == 2


def test_a_class_without_images_is_refused_unless_a_label_map_names_it(tmp_path: Path) -> None:
    source = fill(tmp_path / "src", "train/a/1.jpg", "train/c/1.jpg", "train/b/notes.txt", "train/b/.1.jpg")
    (source / "val/b").mkdir(parents=True)
    check_refused(source, match=r"without images in any split: b; move .*labels='FILE'")
    (tmp_path / "classes").write_text("a\nb\nc\n")
    tree = listing(source, labels=str(tmp_path / "classes"))
    assert [item.label for item in tree.table] == [0, 2]
    assert tree.warnings == ("no images in class b; it keeps its label",)
    fill(source, "val/b/1.jpg")
    (source / "val/c").mkdir()  # one split has images of each
    assert listing(source).classes == (b"a", b"b", b"c")


def test_folders_that_programs_leave_are_no_classes(tmp_path: Path) -> None:
    junk = ("__MACOSX/cat/._1.jpg", "@eaDir/1.jpg", ".ipynb_checkpoints/1.jpg", "System Volume Information/x.jpg")
    images = ("cat/1.jpg", "cat/@eaDir/1.jpg/SYNOFILE_THUMB_M.jpg", "dog/Thumbs.db", "dog/2.jpg")
    flat = fill(tmp_path / "flat", *images, *junk)
    tree = listing(flat)
    assert (tree.classes, len(tree.table), tree.warnings) == ((b"cat", b"dog"), 2, ())
    assert tree.ignored == {"junk": 5, ".db": 1}
    both = fill(tmp_path / "both", *(f"{top}{name}" for top in ("", "train/") for name in junk))
    fill(both, "train/cat/1.jpg", "val/cat/2.jpg", "val/@eaDir/1.jpg")
    tree = listing(both)
    assert (tree.classes, [*tree.splits], tree.warnings) == ((b"cat",), ["train", "validation"], ())
    assert tree.ignored == {"junk": 9}


def test_a_folder_that_is_read_though_the_one_around_it_was_named_is_told(tmp_path: Path) -> None:
    fill(tmp_path, "dataset/train/cat/1.jpg", "dataset/val/cat/2.jpg", "readme.txt")
    (warning,) = listing(tmp_path).warnings
    assert warning == f"{tmp_path} holds one folder alone, which is read: dataset"
    assert listing(tmp_path / "dataset").warnings == ()


def test_classes_that_are_called_alike_are_named(tmp_path: Path) -> None:
    composed, divided = "caf\u00e9", "cafe\u0301"
    fill(
        tmp_path, "Class_01/1.jpg", "class_01/2.jpg", "dog/3.jpg", "dog /4.jpg", f"{composed}/5.jpg", f"{divided}/6.jpg"
    )
    fill(tmp_path, "dog - Copy/7.jpg", "dog_aug/8.jpg", "dogs/9.jpg")
    tree = listing(tmp_path)
    what = "case, blanks, Unicode form or an ending of copies"
    message = f"classes whose names differ in {what} alone have labels of their own"
    names = f"Class_01 and class_01, {divided} and {composed}, dog and dog  and dog - Copy and dog_aug"
    assert tree.warnings == (f"{message}: {names}",)
    roboflow_voc(tmp_path / "voc")
    write(tmp_path / "voc", {"train/1_jpg.rf.0a.xml": xml(("Head", "1", "1", "100", "50"))})
    assert f"{message}: Head and head" in listing(tmp_path / "voc").warnings


def test_links_to_files_are_followed_and_dangling_ones_stay_items(tmp_path: Path) -> None:
    elsewhere = fill(tmp_path / "elsewhere", "pic.jpg")
    root = fill(tmp_path / "root", "a/1.jpg")
    (root / "a/2.jpg").symlink_to(elsewhere / "pic.jpg")
    (root / "a/3.jpg").symlink_to(elsewhere / "gone.jpg")
    (root / "a/4.jpg").symlink_to("4.jpg")
    table = listing(root).table
    size = len(content("pic.jpg"))
    assert [(item.key, item.size_bytes) for item in table] == [
        ("a/1.jpg", size), ("a/2.jpg", size), ("a/3.jpg", 0), ("a/4.jpg", 0),
    ]  # fmt: skip


def test_loops_of_links_end_and_are_reported(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg", "a/sub/2.jpg", "b/3.jpg")
    (tmp_path / "a/sub/up").symlink_to(tmp_path / "a")
    (tmp_path / "a/other").symlink_to(tmp_path / "b")
    (tmp_path / "b/back").symlink_to(tmp_path / "a")
    (tmp_path / "all").symlink_to(".")
    (tmp_path / "a/all").symlink_to("..")
    tree = listing(tmp_path)
    assert {item.key for item in tree.table} == {
        "a/1.jpg", "a/sub/2.jpg", "a/other/3.jpg", "b/3.jpg", "b/back/1.jpg", "b/back/sub/2.jpg",
    }  # fmt: skip
    assert tree.classes == (b"a", b"b")
    reported = {warning.partition(" is a link to ")[0] for warning in tree.warnings}
    links = ["all", "a/all", "a/sub/up", "a/other/back", "b/back/all", "b/back/sub/up", "b/back/other"]
    assert reported == {f"{tmp_path}/{link}" for link in links}
    assert tree.ignored == {"loop of links": len(links)}
    told = f"{tmp_path}/a/sub/up is a link to {tmp_path}/a, a folder that it lies in: not followed again"
    assert told in tree.warnings


def test_links_that_lead_to_each_other_in_millions_of_ways_are_an_error(tmp_path: Path) -> None:
    fill(tmp_path, *(f"{level}/{level}.jpg" for level in range(20)))
    for level in range(19):
        for name in ("x", "y"):
            (tmp_path / f"{level}/{name}").symlink_to(f"../{level + 1}")
    check_refused(tmp_path, match=r"cannot list the folder .*: links lead to it in more than 1000 ways")


def test_links_to_folders_are_followed_wherever_they_lead(tmp_path: Path) -> None:
    outside = fill(tmp_path / "outside", "1.jpg")
    root = fill(tmp_path / "root", "a/1.jpg")
    (root / "a/link").symlink_to(outside)
    (root / "b").symlink_to(outside)
    tree = listing(root)
    assert [item.key for item in tree.table] == ["a/1.jpg", "a/link/1.jpg", "b/1.jpg"]
    assert (tree.classes, tree.ignored, tree.warnings) == ((b"a", b"b"), {}, ())


def test_a_tree_of_links_is_the_same_source(tmp_path: Path) -> None:
    """Nothing but links: the root, the splits, the class folders and the images."""
    real = fill(tmp_path / "real", "train/a/1.jpg", "train/a/x/2.jpg", "train/b/3.jpg", "val/b/4.jpg")
    (tmp_path / "splits/train").mkdir(parents=True)
    (tmp_path / "splits/val").symlink_to(real / "val")
    (tmp_path / "splits/train/b").symlink_to(real / "train/b")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/1.jpg").symlink_to(real / "train/a/1.jpg")
    (tmp_path / "a/x").symlink_to(real / "train/a/x")
    (tmp_path / "splits/train/a").symlink_to("../../a")
    (tmp_path / "top").symlink_to("splits")
    tree, expected = listing(tmp_path / "top"), listing(real)
    assert tree.fingerprint() == expected.fingerprint()
    assert [(item.key, item.label) for item in tree.table] == [(item.key, item.label) for item in expected.table]
    assert tree.warnings == ()


def test_a_class_folder_that_is_a_link_to_nowhere_is_a_class_with_an_item_that_is_missing(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg")
    (tmp_path / "b").symlink_to("gone")
    (tmp_path / "cover.jpg").symlink_to("gone.jpg")
    tree = listing(tmp_path)
    size = len(content("1.jpg"))
    assert [(item.key, item.label, item.size_bytes) for item in tree.table] == [("a/1.jpg", 0, size), ("b", 1, 0)]
    assert tree.classes == (b"a", b"b")
    assert tree.warnings == (
        "1 file in the root outside any class folder: not used",
        f"images that are missing or empty, or links that lead nowhere: 1 of 2, such as b in {tmp_path}",
    )


def test_special_files_are_not_items(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg")
    os.mkfifo(tmp_path / "a/pipe.jpg")
    tree = listing(tmp_path)
    assert (len(tree.table), tree.ignored) == (1, {"special file": 1})


@pytest.mark.parametrize("name", ["missing", "file.txt"])
def test_a_source_that_is_not_a_directory(tmp_path: Path, name: str) -> None:
    fill(tmp_path, "file.txt")
    check_refused(tmp_path / name, match="class folder")


def test_a_directory_that_cannot_be_listed() -> None:
    # Not tmp_path: its parents are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        root = fill(Path(name), "a/1.jpg", "b/2.jpg")
        root.chmod(0o755)
        (root / "b").chmod(0)
        with without_root_rights(), pytest.raises(SourceError, match=r"cannot list .*b: Permission denied"):
            listing(name)
        (root / "b").chmod(0o755)


def test_texts_come_from_the_root_or_from_a_file(tmp_path: Path) -> None:
    fill(tmp_path, "n01/1.jpg", "n02/2.jpg")
    (tmp_path / "words.txt").write_bytes(b"n02\tcat, house cat\nn99\tnot here\n\n")
    assert listing(tmp_path).texts == (b"", b"cat, house cat")
    other = tmp_path / "names.csv"
    other.write_bytes(b"n01 tench, Tinca tinca\nn02\tone\ttwo\n")
    assert listing(tmp_path, class_names=str(other)).texts == (
        b"tench, Tinca tinca",
        b"one two",
    )
    other.write_bytes(b"cat\tCat\n")
    check_refused(tmp_path, match="names none of the 2 classes", class_names=str(other))


def test_bad_lines_of_a_list_of_texts_are_reported(tmp_path: Path) -> None:
    fill(tmp_path, "n01/1.jpg", "n02/2.jpg")
    (tmp_path / "words.txt").write_bytes(b"n02\tcat\n\nn01\n")
    tree = listing(tmp_path)
    where = f"{tmp_path}/words.txt"
    assert tree.texts == (b"", b"cat")
    assert tree.warnings == (f"{where}: line 3 names no class or no text; each must be a class, a tab and its text",)
    (tmp_path / "words.txt").write_bytes(b"n02\tcat\n\tdog\nn01\t\nn99\n")
    (warning,) = listing(tmp_path).warnings
    assert warning.startswith(f"{where}: 3 lines, the first of them line 2, name no class or no text")


def test_fingerprint_changes_with_names_sizes_and_texts_but_not_with_path_or_date(tmp_path: Path) -> None:
    def print_of(name: str, *paths: str, words: str = "") -> str:
        root = fill(tmp_path / name, *paths)
        (root / "words.txt").write_text(words)
        return listing(root).fingerprint()

    same = print_of("one", "a/1.jpg", "b/2.jpg")
    os.utime(fill(tmp_path / "two", "a/1.jpg") / "a/1.jpg", (1, 1))
    assert print_of("two", "a/1.jpg", "b/2.jpg") == same
    others = [
        print_of("three", "a/1.jpg", "b/3.jpg"),
        print_of("four", "a/1.jpg", "c/2.jpg"),
        print_of("five", "a/1.jpg", "b/2.jpg", words="a\tx\n"),
        print_of("six", "train/a/1.jpg", "validation/b/2.jpg"),
    ]
    (tmp_path / "one/a/1.jpg").write_bytes(b"longer than before")
    others.append(listing(tmp_path / "one").fingerprint())
    assert len({same, *others}) == 6


def test_a_million_items_fit_into_a_few_bytes_each() -> None:
    names = [b"train/n01440764/n01440764_%d.JPEG" % number for number in range(1000)]
    builder = ItemTableBuilder()
    for name in names:
        builder.add(Item(name, label=0, size_bytes=0))
    table = builder.finish()
    held = len(table.paths.data) + table.paths.starts.nbytes + table.labels.nbytes + table.sizes.nbytes
    assert held / len(table) < 80
    taken = table.take(np.asarray([999, 0, 999]))
    assert [item.path for item in taken] == [names[999], names[0], names[999]]
    assert taken[1] == table[0]


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    for looked_at in (folders_in, lambda where: list(some_entries(where))):
        with pytest.raises(SourceError, match=r"cannot list the folder .*gone: No such file"):
            looked_at(bytes(tmp_path / "gone"))


def test_tars_with_names_of_their_own_are_no_source_together(tmp_path: Path) -> None:
    (tmp_path / "cat.tar").write_bytes(tar_of("1.jpg"))
    check_refused(tmp_path, match=r"no tar with a name of ImageNet's, .*; give one tar")


def test_the_name_of_the_folder_may_be_no_utf_8(tmp_path: Path) -> None:
    root = tmp_path / "a\udcff"
    fill(root, "cat/1.jpg", "dog/2.jpg")
    assert listing(root).classes == (b"cat", b"dog")
