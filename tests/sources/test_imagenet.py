"""ImageNet as it is distributed: tars of training and validation images, development kit, boxes; its 1,000 classes."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sources.making import check_refused, fill, listed, listing, tar_bytes, tar_of, train_tar, write, xml
from stoker.sources import SourceOptions, list_source, read_label_map
from stoker.sources.labels import imagenet_classes
from stoker.types import Box

GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
DEVKIT = "ILSVRC2012_devkit_t12.tar.gz"
FIRST_NUMBERS = [490, 361, 171, 822, 297, 482, 13, 704, 599, 164, 649]
"""How the real list begins."""

FIRST_CLASSES = [
    "n01751748", "n09193705", "n02105855", "n04263257", "n03125729", "n01735189", "n02346627", "n02776631",
    "n03794056", "n02328150", "n01917289",
]  # fmt: skip
"""The classes of the first validation images, as Google's list of them says."""

VALIDATION = {f"ILSVRC2012_val_{number:08d}.JPEG": FIRST_CLASSES[number - 1] for number in (11, 2, 5, 1)}
TRAIN = {
    name: [f"{name}_7.JPEG", f"{name}_10026.JPEG"] for name in ("n09193705", "n01440764", "n01751748", "n01917289")
}
CLASSES = (b"n01440764", b"n01751748", b"n01917289", b"n03125729", b"n09193705")


def ground_truth(*numbers: int) -> bytes:
    return b"".join(b"%d\n" % number for number in numbers or FIRST_NUMBERS)


def devkit(data: bytes | None = None) -> bytes:
    """The development kit: among others, the numbers of the validation images."""
    members = {"readme.txt": b"x" * 5000, "data/meta.mat": b"MATLAB 5.0 MAT-file", f"data/{GROUND_TRUTH}": data}
    files = {f"ILSVRC2012_devkit_t12/{name}": held for name, held in members.items() if held is not None}
    return gzip.compress(tar_bytes(files))


@pytest.fixture
def downloaded(tmp_path: Path) -> Path:
    """The files of ``stoker download imagenet``, with few images."""
    root = tmp_path / "imagenet"
    box = xml(("n01440764", "20", "10", "100", "50"), ("n09193705", "0", "0", "9", "9")).encode()
    boxes = gzip.compress(tar_bytes({"n01440764/n01440764_7.xml": box}))
    tars = {"ILSVRC2012_img_train.tar": train_tar(TRAIN), "ILSVRC2012_img_val.tar": tar_of(*VALIDATION)}
    return write(root, {**tars, DEVKIT: devkit(ground_truth()), "bounding_boxes/annotations.tar.gz": boxes})


def test_the_bundled_list_is_that_of_ilsvrc_2012() -> None:
    names, devkit_names = tuple(imagenet_classes().texts), imagenet_classes().devkit
    assert len(names) == len(set(names)) == 1000
    assert names == tuple(sorted(names)) == tuple(sorted(devkit_names))
    assert [devkit_names[number - 1].decode() for number in FIRST_NUMBERS] == FIRST_CLASSES
    known = {0: (b"n01440764", b"tench, Tinca tinca"), 1: (b"n01443537", b"goldfish, Carassius auratus"),
             134: (b"n02012849", b"crane"), 517: (b"n03126707", b"crane"), 207: (b"n02099601", b"golden retriever"),
             999: (b"n15075141", b"toilet tissue, toilet paper, bathroom tissue")}  # fmt: skip
    assert {label: (names[label], imagenet_classes().texts[names[label]]) for label in known} == known
    assert all(imagenet_classes().texts.values())


def test_a_download_has_labels_texts_and_boxes_without_any_option(downloaded: Path) -> None:
    tree = listing(downloaded)
    assert tree.classes == CLASSES
    assert tree.texts[0] == b"tench, Tinca tinca"
    assert tree.texts[4] == b"alp"
    assert dict(listed(tree, "validation")) == VALIDATION
    assert sorted(listed(tree)) == sorted((file, name) for name, files in TRAIN.items() for file in files)
    boxes = {item.name: tree.load(item, "train").boxes for item in tree.table.take(tree.splits["train"])}
    assert [name for name, image_boxes in boxes.items() if image_boxes] == [b"n01440764_7.JPEG"]
    assert Box(0.1, 0.1, 0.5, 0.5) in boxes[b"n01440764_7.JPEG"]


def test_a_validation_tar_alone_has_the_labels_of_the_devkit(downloaded: Path) -> None:
    tree = listing(downloaded / "ILSVRC2012_img_val.tar")
    assert dict(listed(tree, "validation")) == VALIDATION
    assert tree.classes == tuple(sorted(name.encode() for name in FIRST_CLASSES))


@pytest.mark.parametrize("where", ["beside", "unpacked", "alone", "above", "given", "given folder"])
def test_the_devkit_is_found_in_any_form(downloaded: Path, where: str) -> None:
    kit = downloaded / DEVKIT
    given = None
    if where in ("unpacked", "given folder"):
        kit.unlink()
        folder = downloaded if where == "unpacked" else downloaded.parent / "elsewhere"
        write(folder, {f"ILSVRC2012_devkit_t12/data/{GROUND_TRUTH}": ground_truth()})
        given = None if where == "unpacked" else str(folder / "ILSVRC2012_devkit_t12")
    elif where == "alone":
        kit.unlink()
        (downloaded / GROUND_TRUTH).write_bytes(ground_truth())
    elif where == "above":
        kit.rename(downloaded.parent / DEVKIT)
    elif where == "given":
        given = str(kit.rename(downloaded.parent / "renamed.tgz"))
    tree = listing(downloaded, validation_labels=given)
    assert dict(listed(tree, "validation")) == VALIDATION
    assert tree.classes == CLASSES


def test_a_flat_folder_takes_the_labels_of_the_devkit(tmp_path: Path) -> None:
    root = fill(tmp_path / "root", "train/n01440764/n01440764_7.JPEG", *(f"val/{name}" for name in VALIDATION))
    (root / DEVKIT).write_bytes(devkit(ground_truth()))
    assert dict(listed(listing(root), "validation")) == VALIDATION


@pytest.mark.parametrize("kind", ["tars", "one tar", "folders"])
def test_without_the_devkit_the_error_says_which_file_where_and_how_to_get_it(downloaded: Path, kind: str) -> None:
    (downloaded / DEVKIT).unlink()
    root = downloaded
    if kind == "one tar":
        source = downloaded / "ILSVRC2012_img_val.tar"
    else:
        source = root = downloaded if kind == "tars" else fill(downloaded.parent / "tree", "train/a/1.jpg")
        if kind == "folders":
            fill(root, *(f"val/{name}" for name in VALIDATION))
    message = check_refused(source)
    assert f"{DEVKIT}, which was looked for in {root} and {root.parent}; " in message
    assert f"'stoker download imagenet {root} --devkit'" in message
    assert "validation_labels" in message


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1", "1001"], "line 2 of .* not a number from 1 to 1000 of the development kit"),
        (["1", "0"], "line 2 of .* not a number"),
        (["1", "", "2"], "line 2 of .* is blank"),
        (["val/ILSVRC2012_val_00000001.JPEG 65"], "line 1 of .* not a number"),
        (["1"] * 50_000, "the 50,000 numbers in .* are not those of the development kit"),
    ],
)
def test_numbers_that_are_not_the_devkits_are_refused(downloaded: Path, lines: list[str], message: str) -> None:
    (downloaded / DEVKIT).write_bytes(devkit("\n".join(lines).encode()))
    check_refused(downloaded, match=message)


def test_numbers_without_a_known_name_are_refused(downloaded: Path) -> None:
    (downloaded / "mine.txt").write_bytes(ground_truth())
    check_refused(
        downloaded,
        match=r"are not those of the development kit .* give a list of WordNet ids",
        validation_labels=str(downloaded / "mine.txt"),
    )


def test_a_devkit_without_the_list_is_refused(downloaded: Path) -> None:
    (downloaded / DEVKIT).write_bytes(devkit())
    check_refused(downloaded, match=f"holds no {GROUND_TRUTH}")


@pytest.mark.parametrize("at", [0, 5, 40])
def test_a_damaged_devkit_is_an_error_that_names_it(downloaded: Path, at: int) -> None:
    whole = devkit(ground_truth())
    (downloaded / DEVKIT).write_bytes(whole[:at] if at else whole[: len(whole) // 2])
    check_refused(downloaded, match=DEVKIT)


def test_a_validation_image_of_another_year_has_no_label(downloaded: Path) -> None:
    (downloaded / "ILSVRC2012_img_val.tar").write_bytes(tar_of("ILSVRC2010_val_00000001.JPEG"))
    check_refused(downloaded, match=r"no label for ILSVRC2010_val_00000001\.JPEG")


def test_the_bundled_list_gives_a_part_of_the_classes_their_labels_in_the_whole(downloaded: Path) -> None:
    whole = listing(downloaded, labels="imagenet")
    assert whole.classes == read_label_map("imagenet").names == tuple(imagenet_classes().texts)
    assert whole.texts == tuple(imagenet_classes().texts.values())
    labels = {item.name: item.label for item in whole.table}
    assert labels[b"n01440764_7.JPEG"] == 0
    assert labels[b"ILSVRC2012_val_00000001.JPEG"] == labels[b"n01751748_7.JPEG"] == 65
    assert not any("list of labels" in warning for warning in whole.warnings)


def test_a_file_called_like_the_bundled_list_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("imagenet").write_text("b\na\n")
    assert read_label_map("./imagenet").names == (b"b", b"a")
    assert len(read_label_map("imagenet").names) == 1000


def test_presets_for_imagenet_number_a_part_of_its_classes_as_in_the_whole(downloaded: Path) -> None:
    tree = listing(downloaded, imagenet_labels=True)
    assert tree.classes == tuple(imagenet_classes().texts)
    assert tree.warnings[0] == (
        "the source has 5 of ImageNet's 1,000 classes; they keep their labels in the full list, as the preset asks; "
        "give labels FILE for others"
    )
    assert not any("list of labels" in warning for warning in tree.warnings)
    fill(downloaded.parent / "tree", "n01440764/1.jpg", "n02119789/2.jpg", "other/3.jpg")
    other = listing(downloaded.parent / "tree", imagenet_labels=True)
    assert other.classes == (b"n01440764", b"n02119789", b"other")
    mine = downloaded / "mine"
    mine.write_text("n02119789\nn01440764\nother\n")
    given = SourceOptions(imagenet_labels=True, labels=str(mine))
    assert list_source(str(downloaded.parent / "tree"), given).classes == (b"n02119789", b"n01440764", b"other")


def test_texts_of_a_list_come_before_the_bundled_ones(tmp_path: Path) -> None:
    root = fill(tmp_path, "n01440764/1.jpg", "n02119789/2.jpg", "n99999999/3.jpg")
    (root / "imagenet_metadata.txt").write_text("n01440764\tof the list\n")
    assert listing(root).texts == (b"of the list", b"kit fox, Vulpes macrotis", b"")
    assert listing(root, imagenet_labels=True).texts[0] == b"of the list"


def test_options_for_another_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"boxes": "b", "class_names": "c", "labels": "l", "validation_labels": "v"}
    options = SourceOptions(**names, imagenet_labels=True)
    paths = {setting: str(tmp_path / name) for setting, name in names.items()}
    assert options.absolute() == SourceOptions(**paths, imagenet_labels=True)
    assert SourceOptions(labels="imagenet").absolute() == SourceOptions(labels="imagenet")
