"""Images without class folders: validation images with a list of labels, test images without any."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources.making import check_refused, fill, listed, listing, write_lines
from stoker.sources import SourceOptions, list_source

LABELS = "imagenet_2012_validation_synset_labels.txt"
NAMES = [f"ILSVRC2012_val_{number:08d}.JPEG" for number in (1, 2, 3, 10)]
WNIDS = [f"n{(number * 7) % 3 + 1:08d}" for number in range(1, 51)]
EXPECTED = sorted((WNIDS[number - 1], name) for number, name in zip((1, 2, 3, 10), NAMES, strict=True))


def tree_with(tmp_path: Path, folder: str = "val") -> Path:
    fill(tmp_path, *(f"train/n0000000{label}/{label}.JPEG" for label in (1, 2, 3)))
    return fill(tmp_path, *(f"{folder}/{name}" for name in NAMES))


def expected(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, wnid) for wnid, name in pairs]


@pytest.mark.parametrize("folder", ["val", "validation"])
@pytest.mark.parametrize("parent", [".", ".."])
def test_a_flat_folder_takes_labels_by_number_from_a_list(tmp_path: Path, folder: str, parent: str) -> None:
    root = tree_with(tmp_path / "root", folder)
    write_lines(root / parent / LABELS, WNIDS)
    tree = listing(root)
    assert listed(tree, "validation") == expected(EXPECTED)
    assert tree.classes == (b"n00000001", b"n00000002", b"n00000003")
    assert (tree.ignored, tree.warnings) == ({}, tree.label_warnings)


def test_flat_and_foldered_validation_images_have_one_order_and_one_fingerprint(tmp_path: Path) -> None:
    flat = tree_with(tmp_path / "flat")
    write_lines(flat / LABELS, WNIDS)
    foldered = tree_with(tmp_path / "foldered", "none")
    for wnid, name in EXPECTED:
        (foldered / "val" / wnid).mkdir(parents=True, exist_ok=True)
        (foldered / "none" / name).rename(foldered / "val" / wnid / name)
    (foldered / "none").rmdir()
    flat_tree, foldered_tree = listing(flat), listing(foldered)
    assert listed(flat_tree, "validation") == listed(foldered_tree, "validation")
    assert flat_tree.fingerprint() == foldered_tree.fingerprint()


def test_the_list_may_be_given_and_the_folder_may_be_the_source_itself(tmp_path: Path) -> None:
    root = tree_with(tmp_path / "root")
    options = SourceOptions(validation_labels=str(write_lines(tmp_path / "mine.txt", WNIDS)))
    assert listed(list_source(str(root), options), "validation") == expected(EXPECTED)
    assert listed(list_source(str(root / "val"), options), "validation") == expected(EXPECTED)
    check_refused(root, match=r"validation_labels .* does not exist", validation_labels=str(tmp_path / "none.txt"))


def test_without_train_the_labels_are_those_of_the_whole_list(tmp_path: Path) -> None:
    fill(tmp_path, "val/ILSVRC2012_val_00000002.JPEG")
    write_lines(tmp_path / LABELS, ["n03", "n02", "n01"])
    tree = listing(tmp_path)
    assert tree.classes == (b"n01", b"n02", b"n03")
    assert tree.table[0].label == 1


def test_kaggles_solution_goes_by_name(tmp_path: Path) -> None:
    root = tree_with(tmp_path)
    lines = [f"{Path(name).stem},{wnid} 85 1 499 272 n00000009 1 1 2 2 " for wnid, name in EXPECTED]
    write_lines(root / "LOC_val_solution.csv", ["ImageId,PredictionString", *reversed(lines)])
    assert listed(listing(root), "validation") == expected(EXPECTED)
    write_lines(root / "LOC_val_solution.csv", ["ImageId,PredictionString", *lines[1:]])
    check_refused(root, match=f"no label for {EXPECTED[0][1]}")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ILSVRC2012_val_00000051.JPEG", "no label for ILSVRC2012_val_00000051.JPEG: it has 50 lines"),
        ("ILSVRC2012_val_00000000.JPEG", "no label for"),
        ("dog.JPEG", "no label for dog.JPEG"),
    ],
)
def test_an_image_that_the_list_does_not_reach_is_named(tmp_path: Path, name: str, message: str) -> None:
    root = fill(tree_with(tmp_path), f"val/{name}")
    write_lines(root / LABELS, WNIDS)
    check_refused(root, match=message)


def test_a_blank_line_would_shift_all_labels_after_it_and_is_refused(tmp_path: Path) -> None:
    root = tree_with(tmp_path)
    write_lines(root / LABELS, [*WNIDS[:4], "", *WNIDS[4:]])
    check_refused(root, match=r"line 5 .* is blank")
    (root / LABELS).write_bytes(("\r\n".join(WNIDS) + "\r\n\r\n\n").encode())  # at the end they are harmless
    assert listed(listing(root), "validation") == expected(EXPECTED)


def test_validation_images_without_any_labels_are_refused_with_a_remedy(tmp_path: Path) -> None:
    root = fill(tmp_path, "train/a/1.jpg", "val/2.jpg")
    check_refused(root, match=r"without class folders; give their classes with validation_labels$")


def test_test_images_are_items_without_a_label(tmp_path: Path) -> None:
    tree = listing(fill(tmp_path, "train/a/1.jpg", "test/z.jpg", "test/b.jpg", "test/notes.txt"))
    assert listed(tree, "test") == [("b.jpg", None), ("z.jpg", None)]
    assert tree.classes == (b"a",)
    assert tree.ignored == {".txt": 1}


def test_a_list_that_is_not_needed_is_reported(tmp_path: Path) -> None:
    root = fill(tmp_path / "root", "train/a/1.jpg", "val/a/2.jpg")
    tree = listing(root, validation_labels=str(write_lines(tmp_path / "mine.txt", WNIDS)))
    assert any("validation_labels is not used" in warning for warning in tree.warnings)
