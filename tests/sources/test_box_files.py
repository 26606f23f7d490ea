"""Annotations from one file: the same boxes as from a folder, to the last bit; noise; the CSV."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import stoker
from small_cases import each
from sources.making import fill, listing, tar_bytes, write, xml
from stoker.errors import DestinationError, SourceError
from stoker.sources import BoxFolder, Item, ItemTableBuilder
from stoker.sources.boxes import BoxTable, NamedBox, TableBoxes, read_box_csv, read_box_tar
from stoker.storage import location
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from stoker.builder import BuildReport

CLASSES = frozenset({b"n01", b"n02", b"n03"})
SOUND = xml(("n01", "0", "0", "100", "50"))

numbers = st.one_of(st.integers(-9, 999).map(str), st.floats(-9, 999, allow_nan=False).map(repr))
objects = st.tuples(st.sampled_from(["n01", "n02", "n09", "", "%s"]), numbers, numbers, numbers, numbers)
annotations = st.one_of(
    st.builds(
        lambda boxes, size: xml(*boxes, size=size, filename="%s"),
        st.lists(objects, max_size=4),
        st.tuples(st.integers(1, 500).map(str), st.integers(1, 500).map(str)),
    ),
    st.just("<annotation/>"),
    st.just("<annotation>"),
)


def boxes_in(table: BoxTable, path: bytes, class_name: bytes) -> list[Box]:
    """The boxes that an image has once they are columns of its table."""
    builder = ItemTableBuilder()
    builder.add(Item(path, 0, 0))
    classes = [class_name, *sorted(CLASSES - {class_name})]
    ((boxes, damaged),) = table.columns(builder.finish(), np.arange(1), classes)
    item = Item(path, 0, 0, columns={"boxes": boxes, "damaged": damaged})
    return TableBoxes(table.where).read(item, class_name, CLASSES)


def outcome(source: BoxFolder | BoxTable, name: str) -> list[Box] | str:
    path, class_name = f"any/where/{name}.JPEG".encode(), name.partition("_")[0].encode()
    try:
        if isinstance(source, BoxTable):
            return boxes_in(source, path, class_name)
        return source.read(Item(path, -1, 0), class_name, CLASSES)
    except SourceError:
        return "damaged"


@given(st.dictionaries(st.sampled_from(["n01_1", "n01_10", "n01_2", "n02_1", "n03_1"]), annotations))
@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.slow
def test_a_tar_is_its_files(tmp_path_factory: pytest.TempPathFactory, per_class: bool, texts: dict[str, str]) -> None:
    root = tmp_path_factory.mktemp("boxes")
    members = {f"{name[:3]}/{name}.xml" if per_class else f"val/{name}.xml": text for name, text in texts.items()}
    write(root, members)
    tar = root / "boxes.tar.gz"
    tar.write_bytes(gzip.compress(tar_bytes({path: text.encode() for path, text in members.items()}), 1))
    table = read_box_tar(location(tar), None)
    folder = BoxFolder(bytes(root if per_class else root / "val"), per_class=per_class)
    for name in ("n01_1", "n01_10", "n01_2", "n02_1", "n03_1", "n01_3", "n01_100000000000000000000"):
        assert outcome(table, name) == outcome(folder, name)


def test_equal_names_in_two_classes_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "boxes.tar"
    texts = {"n01": xml(("n01", "0", "0", "100", "50")), "n02": xml(("n02", "0", "0", "50", "50"))}
    path.write_bytes(tar_bytes({f"top/{name}/1.xml": text.encode() for name, text in texts.items()}))
    table = read_box_tar(location(path), None)
    assert boxes_in(table, b"1.jpg", b"n01") == [Box(0.0, 0.0, 0.5, 0.5)]
    assert boxes_in(table, b"1.jpg", b"n02") == [Box(0.0, 0.0, 0.25, 0.5)]
    assert boxes_in(table, b"1.jpg", b"n03") == []


def test_equal_names_in_folders_that_are_no_classes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "boxes.tar"
    path.write_bytes(tar_bytes({f"top/{name}/1.xml": SOUND.encode() for name in ("train", "val")}))
    with pytest.raises(SourceError, match=r"annotations of one name in several folders \(train, val\), none of which"):
        boxes_in(read_box_tar(location(path), None), b"1.jpg", b"n01")


@each(
    ("first", "last"),
    [
        (xml(("n01", "0", "0", "9", "9"), ("n01", "0", "0", "8", "8")), SOUND),
        (SOUND, xml()),
        ("<annotation>", SOUND),
        ("<annotation>", xml()),
    ],
)
def test_of_two_annotations_of_one_name_the_last_one_counts(tmp_path: Path, first: str, last: str) -> None:
    old, new = (tar_bytes({"n01/n01_1.xml": text.encode()}) for text in (first, last))
    (tmp_path / "boxes.tar").write_bytes(old[:1024] + new)  # without the end of the first
    table = read_box_tar(location(tmp_path / "boxes.tar"), None)
    assert boxes_in(table, b"n01_1.JPEG", b"n01") == [Box(0.0, 0.0, 0.5, 0.5)] * (last == SOUND)


def test_other_members_are_passed_over_and_huge_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "boxes.tar"
    path.write_bytes(tar_bytes({"readme.txt": b"x", "n01/._n01_1.xml": b"x", "n01": None, "n01/n01_1.xml": b"x"}))
    assert set(read_box_tar(location(path), None).damaged) == {b"n01/n01_1"}
    path.write_bytes(tar_bytes({"n01/n01_1.xml": b" " * (2**22 + 1)}))
    with pytest.raises(SourceError, match="more than 4194304"):
        read_box_tar(location(path), None)


CSV = """n01_1.JPEG,0.1000,0.2000,0.3000,0.4000
n01_1.JPEG,0.5,0.9,0.1,0.8

n01_2.JPEG,0.1,0.2,0.3
n01_2.JPEG,a,b,c,d
n01_2.JPEG,nan,0,1,1
n01_2.JPEG,-0.5,0.0,1.5,1e0
n01_3.JPEG,0.5,0.5,0.5,0.9
x,y,z
"""


def test_the_csv_of_the_build_scripts(tmp_path: Path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_bytes(CSV.replace("\n", "\r\n").encode())
    table, notes = read_box_csv(location(path))
    assert boxes_in(table, b"n01/n01_1.JPEG", b"n01") == [Box(0.1, 0.2, 0.3, 0.4), Box(0.1, 0.8, 0.5, 0.9)]
    assert boxes_in(table, b"n01_2.JPEG", b"n01") == [Box(0.0, 0.0, 1.0, 1.0)]
    assert boxes_in(table, b"n01_3.JPEG", b"n01") == boxes_in(table, b"n01_4.JPEG", b"n01") == []
    assert notes == [f"{path}: 4 lines are not NAME.JPEG,xmin,ymin,xmax,ymax and are not used: line 4, 5, 6, 9"]


def test_a_csv_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_text("a,b\nc,d\n")
    with pytest.raises(SourceError, match="no line of the form"):
        read_box_csv(location(tmp_path / "boxes.csv"))


FORMS = ["folder", "tar", "tar.gz", "csv"]


def write_boxes(given: Path, kind: str, right: int) -> Path:
    """Write the annotation of n01_1.JPEG, a box from 0 to ``right`` of 200 pixels."""
    text = xml(("n01", "0", "0", str(right), "50"))
    if kind == "folder":
        write(given, {"n01/n01_1.xml": text})
    elif kind == "csv":
        given.write_text(f"n01_1.JPEG,0,0,{right / 200},0.5\n")
    else:
        data = tar_bytes({"n01/n01_1.xml": text.encode()})
        given.write_bytes(gzip.compress(data) if kind == "tar.gz" else data)
    return given


@pytest.mark.parametrize("kind", FORMS)
def test_annotations_may_be_given_in_every_form(tmp_path: Path, kind: str) -> None:
    root = fill(tmp_path / "root", "n01/n01_1.JPEG", "n02/n02_1.JPEG")
    given = write_boxes(tmp_path / f"boxes.{kind}", kind, 100)
    tree = listing(root, boxes=str(given))
    assert [tree.load(item, "train").boxes for item in tree.table] == [[Box(0.0, 0.0, 0.5, 0.5)], []]
    assert tree.boxes["train"].where == str(given)


def test_the_validation_boxes_of_imagenet_have_a_tar_of_their_own(tmp_path: Path) -> None:
    root = fill(tmp_path, "train/n01/n01_1.JPEG", "val/n01/ILSVRC2012_val_00000001.JPEG")
    for name, member, right in (
        ("train_v2.tar.gz", "n01/n01_1.xml", "100"),
        ("val_v3.tgz", "val/ILSVRC2012_val_00000001.xml", "50"),
    ):
        data = tar_bytes({member: xml(("n01", "0", "0", right, "100")).encode()})
        (root / f"ILSVRC2012_bbox_{name}").write_bytes(gzip.compress(data))
    tree = listing(root)
    assert tree.load(tree.table[0], "train").boxes == [Box(0.0, 0.0, 0.5, 1.0)]
    assert tree.load(tree.table[1], "validation").boxes == [Box(0.0, 0.0, 0.25, 1.0)]


def test_half_a_million_annotations_take_little_memory() -> None:
    box = [NamedBox(b"n01440764", Box(0.1, 0.2, 0.3, 0.4))]
    tracemalloc.start()
    table = BoxTable("made", replacing=True)
    for number in range(20_000):
        table.add(b"n01440764", b"n01440764_%d" % number, box)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / 20_000 < 90
    # resizing places boxes before they become float32
    assert boxes_in(table, b"n01440764_7.JPEG", b"n01440764") == [Box(0.1, 0.2, 0.3, 0.4)]


def test_names_longer_than_any_file_name_are_refused() -> None:
    builder = BoxTable("made", replacing=False)
    with pytest.raises(SourceError, match="longer than any file name"):
        builder.add(b"", b"x" * 256, [])


def test_a_changed_box_changes_the_fingerprint_and_its_form_does_not(tmp_path: Path) -> None:
    root = fill(tmp_path / "root", "n01/n01_1.JPEG", "n02/n02_1.JPEG")
    fingerprints: dict[int, set[str]] = {}
    for kind in FORMS:
        for right in (100, 101):
            given = write_boxes(tmp_path / f"boxes.{kind}", kind, right)
            tree = listing(root, boxes=str(given))
            fingerprints.setdefault(right, set()).add(tree.fingerprint())
            assert tree.fingerprint() in fingerprints[right]
    assert [len(prints) for prints in fingerprints.values()] == [1, 1]
    assert fingerprints[100] != fingerprints[101]


@pytest.mark.parametrize("kind", ["folder", "csv"])
@pytest.mark.parametrize("finished", [False, True])
def test_a_build_is_not_resumed_with_other_boxes(tmp_path: Path, kind: str, finished: bool) -> None:
    for name in ("n01_1", "n01_2"):
        (tmp_path / "root/n01").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 10)).save(tmp_path / f"root/n01/{name}.JPEG")
    given = write_boxes(tmp_path / f"boxes.{kind}", kind, 100)

    def build(stops: bool = False) -> BuildReport:
        def stop(*, done: int, **_: int) -> None:
            if stops and done:
                raise KeyboardInterrupt

        return stoker.build(tmp_path / "root", tmp_path / "out", boxes=given, shards=2, threads=1, progress=stop)

    with contextlib.suppress(KeyboardInterrupt):
        build(stops=not finished)
    assert (tmp_path / "out/manifest.json").exists() == finished
    write_boxes(given, kind, 101)
    what = "a finished dataset" if finished else "an unfinished build"
    with pytest.raises(DestinationError, match=rf"holds {what} with other settings.*source is"):
        build()


@pytest.mark.slow
def test_of_many_images_some_annotations_decide_in_little_time(tmp_path: Path) -> None:
    names = [f"n01/{number:05d}.JPEG" for number in range(9000)]
    root = fill(tmp_path / "root", *names)
    given = tmp_path / "boxes.csv"

    def print_of(right: float) -> str:
        given.write_text("".join(f"{name[4:]},0,0,{right},0.5\n" for name in names))
        tree = listing(root, boxes=str(given))
        reads: list[bytes] = []
        read = tree.boxes["train"].read

        class Counted(TableBoxes):
            def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
                reads.append(item.path)
                return read(item, class_name, class_names)

        counted = dataclasses.replace(tree, boxes={"train": Counted(str(given))})
        assert counted.fingerprint() == counted.fingerprint() == tree.fingerprint()
        assert len(reads) == len(set(reads)) == 4096
        assert (reads[0], reads[-1]) == (b"n01/00000.JPEG", b"n01/08997.JPEG")
        return tree.fingerprint()

    assert print_of(0.5) != print_of(0.51)
