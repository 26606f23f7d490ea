"""``stoker info`` and ``stoker show``: what they print, their JSON and their exit codes."""

from __future__ import annotations

import io
import json
import re
import sys
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from reference import example, pictures, tfrecord
from small_datasets import manifest_text, write_dataset
from stoker.cli.main import main
from stoker.format.journal import ShardResult, format_result, format_settings
from stoker.format.manifest import Shard
from stoker.inspect import SheetSpec, write_sheet
from written_files import flip_bit, write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from stoker.format.manifest import Manifest


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return write_dataset(tmp_path / "birds", {"train": [4, 3], "validation": [2]})


def words_of(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_info_of_a_finished_dataset(manifest: Manifest, tmp_path: Path, cli: Cli) -> None:
    out = cli("info", tmp_path / "birds")
    for text in (
        f"finished dataset {manifest.dataset_id}",
        "source: 11 items, 12.3 KB",
        "ignored in the source: 2 .txt",
        "recipe: kind keep, encode jpeg:100:444",
        "checked: header and markers or chunks of every image kept, not its pixels; 'stoker verify' decodes them",
        "converted to JPEG: 1 png",
        "seed: 17",
        "schema: imagenet, 15 features\n",
        "classes: 3, labels start at 1 (preset imagenet)\n",
    ):
        assert text in out
    lines = words_of(out)
    train = manifest.splits["train"]
    assert next(line for line in lines if line[:1] == ["train"])[1:3] == ["2", "7"]
    assert ["image/encoded", "bytes", "1", "the", "image"] in lines
    assert ["image/object/bbox/xmin", "float", "any"] in lines
    assert f"{train.size_bytes / 7 / 1000:.1f} KB" in out
    assert ["1", "n01", "red", "kite,", "Milvus", "milvus", "3", "0", "█" * 30] in lines


@pytest.mark.parametrize(
    ("options", "wording"),
    [
        ("", "header and markers or chunks of every image kept, not its pixels"),
        ("--check entropy", "all data of every image (--check entropy)"),
        ("--check decode", "all data of every image (--check decode)"),
        ("--recipe restart", "all data of every image"),
        ("--resize short:8", "all data of every image"),
        ("--resize max:8", "header and markers or chunks of every image kept, not its pixels"),
    ],
)
def test_info_says_how_images_were_checked(options: str, wording: str, tmp_path: Path, cli: Cli) -> None:
    write_files(tmp_path / "photos", {"a/0.jpg": pictures.jpeg(30, 20)})
    cli("build", tmp_path / "photos", tmp_path / "out", *options.split())
    assert f"\nchecked: {wording}" in cli("info", tmp_path / "out")
    recipe = json.loads(cli("info", tmp_path / "out", "--json"))["recipe"]
    assert recipe["check"] == (options.split()[1] if options.startswith("--check") else "header")


def test_the_histogram_shows_both_ends_and_bars_in_proportion(tmp_path: Path, cli: Cli) -> None:
    write_dataset(tmp_path, {"train": [3]})
    path = tmp_path / "manifest.json"
    content = json.loads(path.read_text())
    counts = [0, *range(40)]  # the classes 1 to 40 have 0 to 39 records
    content["splits"]["train"]["class_counts"] = counts
    content["splits"]["train"]["records"] = content["splits"]["train"]["shards"][0]["records"] = sum(counts)
    path.write_bytes(manifest_text(content))
    error = cli("info", tmp_path, code=1)  # the identity no longer fits, and the message says what would
    content["dataset_id"] = error.split("listed, ")[1][:32]
    path.write_bytes(manifest_text(content))
    lines = words_of(cli("info", tmp_path))
    table = lines[lines.index(["id", "class", "text", "train", "share", "of", "the", "largest"]) + 1 :]
    assert [row[0] for row in table] == ["40", "39", "38", "37", "36", "...", "5", "4", "3", "2", "1"]
    assert table[5] == ["...", "30", "more"]
    assert [len(row[-1]) for row in table if "█" in row[-1]] == [30, 30, 29, 28, 27, 4, 3, 2, 1]
    assert "classes: 40, 1 of them without records, labels start at 1 (preset imagenet)" in map(" ".join, lines)


def test_info_as_json_is_the_manifest_and_the_classes(manifest: Manifest, tmp_path: Path, cli: Cli) -> None:
    document = json.loads(cli("info", tmp_path / "birds", "--json"))
    written = json.loads((tmp_path / "birds/manifest.json").read_text())
    for split in document["splits"].values():
        assert split.pop("mean_bytes") == round(split["bytes"] / split["records"], 1)
    assert {key: document[key] for key in written} == written
    assert (document["state"], document["records"], document["rejects"]) == ("finished", 9, 2)
    assert document["classes"][2] == {
        "label": 3, "name": "n03", "text": "café", "counts": {"train": 2, "validation": 1}, "total": 3,
    }  # fmt: skip


def test_info_on_terminals_without_unicode(manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii", errors="backslashreplace"))
    assert main(["info", str(tmp_path / "birds")]) == 0
    sys.stdout.flush()
    assert b"#" * 30 in written.getvalue()


def test_info_of_an_unfinished_build(tmp_path: Path, cli: Cli) -> None:
    settings = {"source": "ab", "shards": {"train": 3}, "recipe": {"kind": "keep"}}
    result = ShardResult(Shard("a", 5, 700, 0), "train", (), {}, ())
    (tmp_path / "build.journal").write_bytes(format_settings(settings) + format_result(result, settings))
    out = cli("info", tmp_path)
    assert "unfinished build, 1 of 3 shards are complete" in out
    assert ["recipe", "kind", "keep"] in words_of(out)
    assert "to do: run the same 'stoker build' again to finish it" in out
    document = json.loads(cli("info", tmp_path, "--json"))
    assert (document["state"], document["shards"], document["planned_shards"], document["bytes"]) == (
        "unfinished", 1, 3, 700,
    )  # fmt: skip


def test_info_of_other_tfrecords(tmp_path: Path, cli: Cli) -> None:
    records = [{"x": ("bytes", [b"12345"])}, {"x": ("bytes", [b"1", b"2"]), "y\x1b[31m": ("int64", [1])}]
    path = tmp_path / "train-00001-of-00002"
    path.write_bytes(b"".join(tfrecord.frame(example.write(record)) for record in records))
    out = cli("info", tmp_path)
    assert "TFRecords without a manifest" in out
    assert "keys of the first 2 records" in out
    assert ["train", "1", "?", f"{path.stat().st_size}", "B", "00000"] in words_of(out)
    assert ["x", "bytes", "1", "to", "2", "4", "B", "all"] in words_of(out)
    assert "y\\x1b[31m" in out
    document = json.loads(cli("info", path, "--json", "--records", 1))
    assert document["state"] == "foreign"
    assert document["keys"] == {"x": {"kinds": ["bytes"], "records": 1, "shortest": 1, "longest": 1, "bytes": 5}}


def test_show_writes_the_sheet_and_prints_its_path(manifest: Manifest, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "sheet.png"
    output = cli("show", tmp_path / "birds", "--out", out, "--count", 4, "--per-row", 2, "--no-boxes")
    with Image.open(out) as sheet:
        assert output == f"{out}: 4 samples of train (4 jpeg), {sheet.width} x {sheet.height} pixels\n"
    words = ("show", tmp_path / "birds", "--out", out, "--split", "validation", "--seed", 1, "--json")
    document = json.loads(cli(*words))
    assert (document["path"], document["split"], sorted(document["indices"])) == (str(out), "validation", [0, 1])


def test_the_options_of_show_reach_the_sheet(manifest: Manifest, tmp_path: Path, cli: Cli) -> None:
    spec = SheetSpec(split="train", count=5, seed=4, per_row=3, boxes=False)
    expected = write_sheet(tmp_path / "birds", tmp_path / "a.png", spec)
    words = ("--split", "train", "--count", 5, "--seed", 4, "--per-row", 3, "--no-boxes", "--json")
    document = json.loads(cli("show", tmp_path / "birds", "--out", tmp_path / "b.png", *words))
    assert document["indices"] == list(expected.indices)
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "a.png").read_bytes()


def test_both_say_which_class_has_which_label(tmp_path: Path, cli: Cli) -> None:
    files = {"src/cat/1.jpg": pictures.jpeg(8, 8), "src/dog/1.jpg": pictures.jpeg(8, 8), "classes.txt": b"dog\ncat\n"}
    write_files(tmp_path, files)
    document = json.loads(cli("info", tmp_path / "src", "--labels", tmp_path / "classes.txt", "--json"))
    assert [label["name"] for label in document["classes"]] == ["dog", "cat"]
    words = ("--labels", tmp_path / "gone.txt", "--out", tmp_path / "a.png")
    assert "gone.txt does not exist" in cli("show", tmp_path / "src", *words, code=2)


def test_show_names_damaged_samples_and_still_writes(manifest: Manifest, tmp_path: Path, cli: Cli) -> None:
    shard = tmp_path / "birds" / manifest.splits["validation"].shards[0].name
    flip_bit(shard, 300)
    out = cli("show", tmp_path / "birds", "--split", "validation", "--out", tmp_path / "a.png")
    assert f"damaged: sample 0: record 0 at byte 0 of {shard}" in out
    assert (tmp_path / "a.png").exists()


def test_info_of_a_folder_of_images(tmp_path: Path, cli: Cli) -> None:
    write_files(tmp_path / "photos", dict.fromkeys(("cat/1.jpg", "cat/2.jpg", "dog/1.jpg"), b"x" * 10))
    output = cli("info", tmp_path / "photos")
    assert f"{tmp_path}/photos: images, not built" in output
    assert re.search(r"^train +3 +30 B +10 B +0$", output, re.MULTILINE)
    assert re.search(r"^ 0 +cat +2 ", output, re.MULTILINE)
    assert "'stoker plan' checks every image" in output
    document = json.loads(cli("info", tmp_path / "photos", "--json"))
    assert (document["state"], document["splits"]["train"]) == ("images", {"images": 3, "bytes": 30, "unlabelled": 0})
    assert [(known["name"], known["total"]) for known in document["classes"]] == [("cat", 2), ("dog", 1)]
