"""verify and info of datasets with fields: every changed field is found with its record, and info shows an example."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fields.record_source import SHARD, build_records, with_second_record
from reference import pictures
from reference.pictures import png
from stoker import fields
from stoker.inspect import dataset_info, verify_dataset
from stoker.storage import location
from written_files import flip_bit

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from stoker.types import Field

FIELDS: dict[str, Field] = {
    "caption": fields.Text(),
    "raw": fields.Bytes(),
    "meta": fields.Json(),
    "score": fields.Float(),
    "kind": fields.Label(["red", "blue"]),
    "tags": fields.Labels(["a", "b", "c"]),
    "emb": fields.Array("float32", (6,)),
    "points": fields.Array("int16", (None, 2)),
    "mask": fields.Mask(),
    "right": fields.Image(),
}
RECORD = {
    "image": pictures.jpeg(24, 17),
    "caption": "two\x1b[31m cats",
    "raw": b"12345",
    "meta": {"b": 1, "a": [None]},
    "score": 0.5,
    "kind": "blue",
    "tags": ["c", "a"],
    "emb": np.arange(6, dtype=np.float32) / 2,
    "points": np.array([[1, 2]], np.int16),
    "mask": np.ones((17, 24), np.uint8),
    "right": pictures.jpeg(24, 17, 1),
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checked") / "set"
    assert build_records(folder, [RECORD, RECORD | {"tags": []}], FIELDS).rejects == ()
    return folder


def test_a_dataset_with_fields_is_whole(dataset: Path) -> None:
    report = verify_dataset(dataset)
    assert (report.problems, report.records) == ((), 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"caption": None}, "feature caption is of kind none, not bytes"),
        ({"caption": ("int64", [1])}, "feature caption is of kind int64, not bytes"),
        ({"caption": ("bytes", [b"\xff"])}, "field caption: feature caption: 'utf-8' codec can't decode byte 0xff"),
        ({"caption": ("bytes", [b"a", b"b"])}, "feature caption has 2 values, not 1"),
        ({"meta": ("bytes", [b"{"])}, "field meta: feature meta: Expecting property name"),
        ({"meta": ("bytes", [b'{"' + b"k" * 10_000 + b'":1,"' + b"k" * 10_000 + b'":1}'])}, "it has the key 'kkk"),
        ({"meta": ("bytes", [b"[" * 100_000])}, "field meta: feature meta: it is nested more than 64 deep"),
        ({"kind": ("int64", [2])}, "field kind: feature kind: 2 is not the id of a class, 0 to 1"),
        ({"tags": ("int64", [0, -1])}, "field tags: feature tags: -1 is not the id of a class, 0 to 2"),
        ({"emb": ("float", [0.0] * 5)}, "feature emb has 5 values, not 6"),
        ({"points": ("bytes", [b"123"])}, "3 bytes are not a whole number of int16"),
        ({"points": ("bytes", [b"12"])}, "1 values do not fill the shape (None, 2)"),
        ({"mask/encoded": ("bytes", [b"no image"])}, "feature mask/format says png, but the file is text"),
        ({"mask/encoded": ("bytes", [png(np.ones((17, 24), np.uint8))[:-20]])}, "field mask: "),
        ({"mask/encoded": ("bytes", [png(np.ones((17, 24, 3), np.uint8))])}, "not a grey PNG of 8 bits"),
        ({"mask/encoded": ("bytes", [png(np.ones((17, 24), np.uint16))])}, "not a grey PNG of 8 bits"),
        ({"mask/encoded": ("bytes", [png(np.ones((17, 24), bool))])}, "not a grey PNG of 8 bits"),
        ({"mask/encoded": ("bytes", [png(np.ones((17, 23), np.uint8))])}, "mask/width says 24, but the file has 23"),
        (
            {"mask/encoded": ("bytes", [png(np.ones((18, 24), np.uint8))]), "mask/height": ("int64", [18])},
            "field mask has a height of 18, but image/height says 17",
        ),
        ({"mask/format": ("bytes", [b"TIFF"])}, "feature mask/format is b'TIFF', not one of JPEG, PNG and WEBP"),
        ({"right/encoded": ("bytes", [RECORD["right"][:-40]])}, "field right: "),
        ({"right/format": ("bytes", [b"PNG"])}, "feature right/format says png, but the file is jpeg"),
        ({"more": ("bytes", [b""])}, "feature more is not in the schema"),
    ],
)
def test_a_wrong_field_is_found_with_its_record(changes: Any, message: str, dataset: Path, tmp_path: Path) -> None:
    folder, offset = with_second_record(dataset, tmp_path / "set", changes)
    problems = verify_dataset(folder).problems
    assert problems
    where = {(problem.path, problem.record, problem.offset) for problem in problems}
    assert where == {(str(folder / SHARD), 1, offset)}
    assert any(message in problem.what for problem in problems), problems
    assert all(len(str(problem)) < 800 for problem in problems)


def test_info_shows_fields_and_an_example_of_each(dataset: Path, cli: Cli) -> None:
    info = dataset_info(dataset)
    assert not isinstance(info, tuple)
    examples = info.examples  # type: ignore[union-attr]
    assert examples["caption"] == '"two\\u001b[31m cats"'
    assert examples["raw"] == "5 B"
    assert examples["meta"] == '{"a": [null], "b": 1}'
    assert examples["score"] == "0.5"
    assert examples["kind"] == "1 (blue)"
    assert examples["tags"] in ("2 (c), 0 (a)", "")
    assert examples["emb"] == "(6,): 0, 0.5, 1, 1.5, ..."
    assert examples["points"] == "(1, 2): 1, 2"
    assert examples["mask"].startswith("png, 24 x 17, ")
    printed = cli("info", dataset)
    for line in (
        "emb      array of float32 (6)",
        "kind     label of 2 classes",
        "mask     mask of 8 bits",
        "caption  text",
    ):
        assert line in printed
    assert "\x1b" not in printed


def test_info_of_a_damaged_record_has_no_examples(dataset: Path, tmp_path: Path) -> None:
    shutil.copytree(dataset, tmp_path / "set")
    flip_bit(tmp_path / "set" / SHARD, 40)
    assert set(dataset_info(tmp_path / "set").examples.values()) == {""}  # type: ignore[union-attr]
    (tmp_path / "set" / SHARD).unlink()
    assert set(dataset_info(location(tmp_path / "set")).examples.values()) == {""}  # type: ignore[union-attr]
