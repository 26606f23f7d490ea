"""Classes that may be a part of a larger list have other labels there: a listing warns of it, and names the remedy."""

from __future__ import annotations

import json
import pickle
import warnings
from typing import TYPE_CHECKING

import pytest

import stoker
from sources.making import fill, listing, write_lines
from stoker.cli.main import main
from stoker.errors import DatasetNotFoundError, LabelWarning, SourceWarning

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

OF_IMAGENET = ["n01440764", "n01443537", "n02099601"]
"""Numbers 0, 1 and 207 of ImageNet's 1,000 classes."""

PART = (
    "{root} has 3 of ImageNet's 1,000 classes; they are numbered 0 to 2 by name, not as in the full list; "
    "for its numbers give labels='imagenet'"
)


def tree_of(root: Path, *folders: str) -> Path:
    return fill(root, *(f"{folder}/{number}.jpg" for folder in folders for number in range(2)))


def test_some_of_the_classes_of_imagenet(tmp_path: Path) -> None:
    root = tree_of(tmp_path / "photos", *OF_IMAGENET)
    tree = listing(root)
    assert tree.warnings == tree.label_warnings == (PART.format(root=root),)
    assert tree.table.labels.tolist() == [0, 0, 1, 1, 2, 2]
    whole = listing(root, labels="imagenet")
    assert whole.label_warnings == ()
    assert whole.table.labels.tolist() == [0, 0, 1, 1, 207, 207]


@pytest.mark.parametrize("keeps", [True, False])
def test_presets_say_what_such_classes_mean(tmp_path: Path, *, keeps: bool) -> None:
    assert listing(tree_of(tmp_path / "photos", *OF_IMAGENET), imagenet_labels=keeps).label_warnings == ()


def test_a_list_that_names_just_these_classes_answers_the_question(tmp_path: Path) -> None:
    for name in ("synsets.txt", "wnids.txt"):
        root = tree_of(tmp_path / name / "photos", *OF_IMAGENET)
        write_lines(root / name, reversed(OF_IMAGENET))
        assert listing(root).warnings == ()
        (root / name).rename(root.parent / name)
        assert listing(root).warnings == ()
        write_lines(root.parent / name, [*OF_IMAGENET, "n02510455"])
        assert listing(root).warnings == (PART.format(root=root),)


def test_such_a_list_beside_the_images_of_a_file_list(tmp_path: Path) -> None:
    tree_of(tmp_path / "photos/train", *OF_IMAGENET)
    images = (f"../photos/train/{name}/0.jpg" for name in OF_IMAGENET)
    (tmp_path / "lists").mkdir()
    path = write_lines(tmp_path / "lists/train.txt", images)
    assert listing(path).warnings == (PART.format(root=path),)
    write_lines(tmp_path / "photos/synsets.txt", OF_IMAGENET)
    assert listing(path).warnings == ()


def test_wordnet_ids_that_are_not_imagenets(tmp_path: Path) -> None:
    root = tree_of(tmp_path / "photos", "n00000001", "n01440764")
    (message,) = listing(root).warnings
    assert message.startswith(f"the 2 classes of {root} are called by WordNet ids; they are numbered 0 to 1 by name; ")
    assert "if they are a part of a larger data set, give labels='FILE'" in message


def test_other_names_are_not_suspected(tmp_path: Path) -> None:
    for number, names in enumerate((["cat", "n01440764"], ["n01440764-tench"], ["n0144076"])):
        assert listing(tree_of(tmp_path / str(number), *names)).warnings == ()


@pytest.mark.parametrize("preset", [True, None])
def test_folders_that_are_not_among_imagenets_classes_would_shift_them(tmp_path: Path, *, preset: bool | None) -> None:
    root = tree_of(tmp_path / "photos", *OF_IMAGENET, "leftover")
    tree = listing(root, imagenet_labels=preset)
    assert tree.classes[0] == b"leftover"
    (message,) = tree.label_warnings
    assert message == (
        f"1 of the 4 classes of {root} are not among ImageNet's 1,000: leftover; all are numbered 0 to 3 by name, "
        "not as in the full list; move those away, or give labels='FILE'"
    )
    assert listing(root, imagenet_labels=False).label_warnings == ()


def test_all_classes_of_imagenet(tmp_path: Path) -> None:
    names = listing(tree_of(tmp_path / "one", OF_IMAGENET[0]), labels="imagenet").classes
    fill(tmp_path / "photos", *(f"{name.decode()}/1.jpg" for name in names))
    tree = listing(tmp_path / "photos")
    assert (tree.classes, tree.warnings) == (names, ())
    assert len(names) == 1000


def test_open_warns_once_and_where_it_was_called(tmp_path: Path) -> None:
    root = tree_of(tmp_path / "photos", *OF_IMAGENET)
    with pytest.warns(LabelWarning, match="has 3 of ImageNet's 1,000 classes") as seen:
        dataset = stoker.open(root)
    assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(dataset)).classes == dataset.classes
        stoker.open(root, labels="imagenet")


def test_open_warns_of_what_else_a_listing_has_to_say(tmp_path: Path) -> None:
    root = tree_of(tmp_path / "photos", "cat")
    fill(root, "loose.jpg")
    with pytest.warns(SourceWarning, match="1 file in the root outside any class folder") as seen:
        stoker.open(root)
    assert [issubclass(warning.category, LabelWarning) for warning in seen] == [False]


@pytest.mark.parametrize("command", ["plan SOURCE", "build SOURCE OUT", "show SOURCE --out SHEET"])
def test_commands_warn(tmp_path: Path, command: str, cli: Cli) -> None:
    root = tree_of(tmp_path / "photos", *OF_IMAGENET)
    paths = {"SOURCE": root, "OUT": tmp_path / "out", "SHEET": tmp_path / "sheet.png"}
    cli(*(paths.get(word, word) for word in command.split()))
    warning = PART.format(root=root).partition("labels=")[0] + "--labels imagenet\n"
    assert warning in cli.out + cli.err


def test_a_build_for_tiny_imagenet_does_not_warn(tmp_path: Path, cli: Cli) -> None:
    root = tree_of(tmp_path / "photos", *OF_IMAGENET)
    assert "warning" not in cli("build", root, tmp_path / "out", "--preset", "tiny-imagenet")
    assert "classes: 3\n" in cli("info", tmp_path / "out")


# Lists.


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_sources_without_an_image(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "photos/cat").mkdir(parents=True)
    empty = {tmp_path / "photos": "holds class folders but no image in them", tmp_path / "list.txt": "names no image"}
    write_lines(tmp_path / "list.txt", [""])
    for path, problem in empty.items():
        with pytest.raises(DatasetNotFoundError, match=f"is not a dataset: it {problem}"):
            stoker.open(path)
        assert f"{path} {problem}" in cli("build", path, tmp_path / "out", code=2)


def test_a_list_that_lacks_a_class_of_its_folders(tmp_path: Path) -> None:
    tree_of(tmp_path / "val", "cat", "dog", "owl")
    tree = listing(write_lines(tmp_path / "list.txt", ["val/cat/0.jpg", "val/owl/1.jpg"]))
    assert tree.table.labels.tolist() == [0, 1]
    assert tree.warnings == tree.label_warnings
    (message,) = tree.warnings
    assert message == (
        f"{tmp_path}/list.txt lacks classes whose folders lie beside those of its images: dog; it numbers its own "
        "0 to 1 without them; to number all classes alike in every source give labels='FILE'"
    )
    write_lines(tmp_path / "names.txt", ["cat", "dog", "owl"])
    with_all = listing(tmp_path / "list.txt", labels=str(tmp_path / "names.txt"))
    assert with_all.table.labels.tolist() == [0, 2]
    assert with_all.label_warnings == ()


def test_a_list_that_lacks_a_class_of_another_split(tmp_path: Path) -> None:
    tree_of(tmp_path, "val/cat", "train/cat", "train/dog", "train/emu/images")
    (tmp_path / "lists").mkdir()
    path = write_lines(tmp_path / "lists/val.txt", [str(tmp_path / "val/cat/0.jpg")])
    (message,) = listing(path).label_warnings
    assert "lie beside those of its images: dog, emu; it numbers its own 0 to 0" in message


def test_a_folder_of_one_split_that_lacks_a_class_of_another(tmp_path: Path) -> None:
    tree_of(tmp_path, "train/cat", "train/dog", "val/cat", "val/emu", "test/images")
    for split, missing in (("train", "emu"), ("val", "dog")):
        (message,) = listing(tmp_path / split).label_warnings
        assert f"{split} lacks classes whose folders lie beside those of its images: {missing}; it numbers" in message
    assert listing(tmp_path).label_warnings == ()


def test_a_list_of_the_layout_of_tiny_imagenet(tmp_path: Path) -> None:
    tree_of(tmp_path, "train/cat/images", "val/images", "test/images")
    assert listing(write_lines(tmp_path / "list.txt", ["train/cat/images/0.jpg"])).warnings == ()


def test_a_list_for_a_preset_that_numbers_as_imagenet(tmp_path: Path) -> None:
    tree_of(tmp_path, *OF_IMAGENET)
    path = write_lines(tmp_path / "list.txt", [f"{OF_IMAGENET[1]}/0.jpg"])
    assert len(listing(path).label_warnings) == 2
    assert listing(path, imagenet_labels=True).label_warnings == ()


def test_lists_that_are_known_together_make_one_numbering(tmp_path: Path) -> None:
    tree_of(tmp_path, "train/cat", "train/dog", "val/dog")
    write_lines(tmp_path / "train.txt", ["train/cat/0.jpg", "train/dog/0.jpg"])
    write_lines(tmp_path / "val.txt", ["val/dog/0.jpg"])
    lists = {"train_filelist": "train.txt", "test_filelist": "val.txt"}
    config = write_lines(tmp_path / "ilsvrc.json", [json.dumps({"data": lists})])
    tree = listing(config)
    assert (tree.classes, tree.warnings) == ((b"cat", b"dog"), ())
    assert tree.table.take(tree.splits["test"]).labels.tolist() == [1]
    write_lines(tmp_path / "ilsvrc.json", [json.dumps({"data": lists | {"num_classes": 3}})])
    assert listing(config).label_warnings == (f"{config} says num_classes 3, but its lists have 2 classes",)


def test_what_lies_beside_classes_and_is_none(tmp_path: Path) -> None:
    tree_of(tmp_path, "cat", ".hidden", "Annotation", "lists")
    fill(tmp_path, "notes/a.txt", "empty/.keep", "deep/er/1.jpg")
    tree_of(tmp_path / "source", "x")
    assert main(["build", str(tmp_path / "source"), str(tmp_path / "dataset")]) == 0
    assert listing(write_lines(tmp_path / "list.txt", ["cat/0.jpg"])).warnings == ()


def test_folders_that_cannot_be_listed_have_no_classes(tmp_path: Path) -> None:
    (warning,) = listing(write_lines(tmp_path / "list.txt", ["/none/cat/0.jpg"])).warnings
    assert warning.startswith("images that are missing")


def test_a_part_of_the_images_has_the_labels_of_the_whole_list_of_labels(tmp_path: Path) -> None:
    names = [f"ILSVRC2012_val_0000000{number}.JPEG" for number in (1, 2, 3)]
    fill(tmp_path, *(f"val/{name}" for name in names))
    labels = write_lines(tmp_path / "labels.txt", ["cat", "dog", "owl"])
    tree = listing(write_lines(tmp_path / "list.txt", [f"val/{names[2]}"]), validation_labels=str(labels))
    assert tree.classes == (b"cat", b"dog", b"owl")
    assert tree.table.labels.tolist() == [2]
