"""The tables of docs/how-to/my-csv.md: its lines, run on small copies of these data sets, give what pandas reads."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import stoker
from programs import run_python
from repository.checkout import ROOT
from sources.making import listing, split_sizes
from stoker.errors import SourceWarning
from stoker.sources import SourceOptions, list_source

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "how-to" / "my-csv.md").read_text(encoding="utf-8")
CODE = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


def images(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        Image.fromarray(np.full((6, 8, 3), 9 * number, np.uint8)).save(folder / name)


def dogs(root: Path) -> dict[str, Any]:
    ids = ["000bec18", "007", "00214f31", "0021f9ce"]
    images(root / "train", *(f"{name}.jpg" for name in ids))
    images(root / "test", "000621fb.jpg", "00102ee9.jpg")
    table = pd.DataFrame({"id": ids, "breed": ["boston_bull", "dingo", "pekinese", "dingo"]})
    table.to_csv(root / "labels.csv", index=False)
    pd.DataFrame({"id": ["00102ee9", "000621fb"], "dingo": 0.3}).to_csv(root / "sample_submission.csv", index=False)
    return dict(zip("train/" + table.id + ".jpg", table.breed, strict=True))


def cassava(root: Path) -> dict[str, Any]:
    table = pd.DataFrame({"image_id": ["10.jpg", "11.jpg", "12.jpg"], "label": [3, 0, 1]})
    images(root / "train_images", *table.image_id)
    images(root / "test_images", "2216849948.jpg")
    table.to_csv(root / "train.csv", index=False)
    pd.DataFrame({"image_id": ["2216849948.jpg"], "label": [4]}).to_csv(root / "sample_submission.csv", index=False)
    names = {"0": "Bacterial Blight (CBB)", "1": "Brown Streak", "2": "Green Mottle", "3": "Mosaic", "4": "Healthy"}
    (root / "label_num_to_disease_map.json").write_text(json.dumps(names))
    return dict(zip("train_images/" + table.image_id, table.label.astype(str).map(names), strict=True))


def plants(root: Path) -> dict[str, Any]:
    names = ["healthy", "multiple_diseases", "rust", "scab"]
    table = pd.DataFrame(np.eye(4, dtype=int)[[3, 1, 0, 2, 0]], columns=names)
    table.insert(0, "image_id", [f"Train_{number}" for number in range(5)])
    images(root / "images", *(f"{name}.jpg" for name in table.image_id), "Test_0.jpg", "Test_1.jpg")
    table.to_csv(root / "train.csv", index=False)
    pd.DataFrame({"image_id": ["Test_0", "Test_1"]}).to_csv(root / "test.csv", index=False)
    return dict(zip("images/" + table.image_id + ".jpg", table[names].idxmax(axis=1), strict=True))


def leaves(root: Path) -> dict[str, Any]:
    labels = [
        "healthy",
        "scab frog_eye_leaf_spot complex",
        "scab",
        "complex",
        "frog_eye_leaf_spot",
        "rust",
        "rust complex",
    ]
    table = pd.DataFrame({"image": [f"80{number}.jpg" for number in range(7)], "labels": labels})
    images(root / "train_images", *table.image)
    images(root / "test_images", "85f8cb619c66b863.jpg")
    table.to_csv(root / "train.csv", index=False)
    return dict(zip("train_images/" + table.image, table.labels.str.split(), strict=True))


def captions(root: Path) -> dict[str, Any]:
    table = pd.DataFrame({"file_name": ["a.png", "b.png"], "text": ["a dog", "a cat"]})
    for split in ("train", "test"):
        images(root / split, *table.file_name)
        table.to_csv(root / split / "metadata.csv", index=False)
    return dict(zip("train/" + table.file_name, table.text, strict=True))


def truth(dataset: stoker.Dataset, number: int) -> Any:
    """What a sample has of its row."""
    sample = dataset[number]
    if sample.label >= 0:
        return dataset.classes[sample.label].name
    (name,) = dataset.fields
    value, kind = sample.fields[name], dataset.fields[name]
    return [kind.class_names[label] for label in value] if kind.class_names else value


MAKERS = (dogs, cassava, plants, leaves, dogs, captions)


@pytest.mark.parametrize("at", range(len(MAKERS)), ids=[f"{at}-{make.__name__}" for at, make in enumerate(MAKERS)])
def test_the_lines_of_the_page(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = MAKERS[at]
    want = make(tmp_path / make.__name__)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"stoker": stoker}
    with pytest.warns(SourceWarning) if make is not captions else pytest.MonkeyPatch.context():
        exec(CODE[at], names)
    if "scores" in names:
        written, wanted = pd.read_csv("submission.csv"), pd.read_csv("dogs/sample_submission.csv")
        assert [*written] == [*wanted]
        assert written.id.tolist() == wanted.id.tolist() == ["00102ee9", "000621fb"]
        assert written.dingo.tolist() == pytest.approx([9, 0], abs=1)  # as `images` made them
        return
    train = names["train"]
    assert {train[number].source: truth(train, number) for number in range(len(train))} == want
    if make is dogs:
        assert [(sample.source, sample.label) for sample in names["test"]] == [
            ("test/000621fb.jpg", -1),
            ("test/00102ee9.jpg", -1),
        ]
    if make is leaves:
        assert next(iter(names["loader"])).fields["labels"].values.shape == (4, 4)


@pytest.mark.parametrize("name", ["test-jpg", "test_images", "testing", "test1", "Test Set"])
def test_a_folder_of_a_test_split_has_many_names(name: str, tmp_path: Path) -> None:
    dogs(tmp_path)
    (tmp_path / "train").rename(tmp_path / "train-jpg")
    (tmp_path / "test").rename(tmp_path / name)
    tree = listing(tmp_path)
    assert split_sizes(tree) == {"train": 4, "test": 2}
    assert f"images of {name} that no row names are the split test, without labels: 2" in tree.warnings


@pytest.mark.parametrize("root", [None, "test"])
def test_a_sample_of_a_submission_is_a_table_where_it_is_given(root: str | None, tmp_path: Path) -> None:
    dogs(tmp_path)
    options = SourceOptions(image_root=root and str(tmp_path / root), image_column="id", label_column=())
    tree = list_source(str(tmp_path / "sample_submission.csv"), options)
    (split,) = tree.splits
    names = [tree.table[row].name for row in tree.rows_as_listed(split)]
    assert names == [b"00102ee9.jpg", b"000621fb.jpg"]
    assert len(listing(tmp_path).splits["train"]) == 4  # that of the folder is `labels.csv`


def test_a_program_shows_each_warning_once(tmp_path: Path) -> None:
    dogs(tmp_path / "dogs")
    lines = ["import stoker", "stoker.open('dogs', 'train')", "stoker.open('dogs', 'test')"]
    done = run_python("-c", "\n".join(lines), cwd=tmp_path)
    done.check_returncode()
    warned = [line for line in done.stderr.splitlines() if "SourceWarning" in line]
    assert len(warned) == len({*warned}) == 2
    done = run_python("-W", "always", "-c", "\n".join(lines), cwd=tmp_path)
    done.check_returncode()
    assert done.stderr.count("SourceWarning") == 4


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("make", [dogs, cassava, plants, leaves, captions], ids=lambda make: make.__name__)
def test_a_build_stores_every_split(make: Any, tmp_path: Path) -> None:
    want = make(tmp_path / "src")
    report = stoker.build(tmp_path / "src", tmp_path / "out", progress=False)
    train, test = (stoker.open(tmp_path / "out", split) for split in ("train", "test"))
    expected = want.values() if make is not cassava else (3, 0, 1)
    assert sorted(str(truth(train, number)) for number in range(len(train))) == sorted(map(str, expected))
    assert len(test) > 0
    assert report.rejects == ()
