"""``stoker bench``: figures of what was asked for, and a reason for everything else."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from repository.checkout import ROOT
from stoker.cli.main import main
from stoker.errors import ConfigError
from stoker.measure import rungs
from stoker.measure.choosing import Situation
from stoker.measure.rungs import RUNGS, Rung, chosen_rungs, find_rung

if TYPE_CHECKING:
    from pathlib import Path

    from servers.s3 import S3Server

needs_tensorflow = pytest.mark.skipif(find_spec("tensorflow") is None, reason="without TensorFlow that is the reason")
QUICK = ["--seconds", "0.1", "--rounds", "2", "--batch-size", "4", "--images", "12"]


def document_of(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["bench", *words, *QUICK, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_keys_and_names_are_unique_and_notes_say_something() -> None:
    assert len({rung.key for rung in RUNGS}) == len({rung.name for rung in RUNGS}) == len(RUNGS)
    assert all(len(rung.note) > 15 for rung in RUNGS)


def test_the_page_lists_the_rungs_in_their_order_and_the_rivals() -> None:
    page = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    keys = [key for line in rows for key in re.findall(r"`([a-z-]+)`", line.split("|")[1])]
    expected = [rung.key for rung in RUNGS if rung.group != "rival"]
    assert keys[: len(expected)] == expected
    assert all(f"`{rung.key}`" in page for rung in RUNGS)


def test_without_a_choice_everything_but_rivals_is_measured() -> None:
    assert chosen_rungs((), ()) == tuple(rung for rung in RUNGS if rung.group != "rival")
    assert chosen_rungs((), ("all",)) == RUNGS
    assert [rung.key for rung in chosen_rungs(("stoker", "codec"), ("torch",))] == ["codec", "stoker", "torch"]


@pytest.mark.parametrize(
    ("only", "against", "message"),
    [
        (("stokr",), (), "--only knows no 'stokr'; it knows codec, .*stoker-raw"),
        ((), ("stoker",), "--against knows no 'stoker'; it knows all, tf-tuned, torch"),
        ((), ("dali",), "'dali'.* are measured by 'make bench-rivals'"),
    ],
)
def test_unknown_names_are_answered_with_those_there_are(
    only: tuple[str, ...], against: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen_rungs(only, against)


def test_every_setting_is_checked_before_anything_is_opened(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--rounds", "0"], ["--batch-size", "0"], ["--images", "0"], ["--seconds", "0"], ["--only", "x"]):
        assert main(["bench", "there-is-no-such-place", *words]) == 2
        assert "there-is-no-such-place" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--html", "--png"])
def test_a_picture_without_a_place_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    for place, reason in ((tmp_path / "no" / "a.x", "there is no folder"), (tmp_path, "is a folder")):
        assert main(["bench", "there-is-no-such-place", option, str(place)]) == 2
        said = capsys.readouterr().err
        assert option in said
        assert reason in said
        assert "there-is-no-such-place" not in said


def test_pictures_without_their_packages_are_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in ("stoker.report", "stoker.report.bench", "stoker.report.bench_chart", "stoker.inspect.page"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert main(["bench", "there-is-no-such-place", "--html", str(tmp_path / "a.html")]) == 2
    assert "stoker[report]" in capsys.readouterr().err


def test_a_package_that_is_missing_is_named_with_its_installation() -> None:
    rung = Rung("x", "X", "rival", "reads", "x", packages=(("json", "json"), ("no_such_package", "no-such")))
    assert rung.missing == "not installed: pip install no-such"


@pytest.mark.parametrize(
    ("key", "changes", "reason"),
    [
        ("bucket-serial", {}, "in a bucket"),
        ("stoker-files", {"own": "files"}, "the same as stoker-own"),
        ("stoker-raw", {"view": "objects"}, "annotated objects"),
        ("codec", {"view": "objects"}, "annotated objects"),
        ("stoker-own", {"view": "objects", "has_boxes": False}, "no annotated objects"),
        ("stoker-own", {"cold": True, "own": "compressed"}, "inflates"),
        pytest.param("cache-memory", {"cold": True}, "in memory", marks=needs_tensorflow),
        ("stoker-node-cache", {"cold": True, "is_remote": True}, "without a cache"),
        ("stoker-files", {"own": "files", "is_remote": True}, ""),
        ("bucket-serial", {"is_remote": True}, ""),
        pytest.param("cache-file", {"cold": True}, "", marks=needs_tensorflow),
        ("stoker", {}, ""),
    ],
)
def test_what_does_not_apply_is_left_out_with_a_reason(key: str, changes: dict[str, Any], reason: str) -> None:
    usual: dict[str, Any] = {"own": "plain", "is_remote": False, "has_boxes": True, "view": "train", "cold": False}
    found = Situation(**(usual | changes)).objection(find_rung(key))
    assert (reason in found) if reason else not found


def test_the_document_has_figures_for_each_round(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document_of(capsys, str(dataset), "--only", "codec,python-serial,stoker-own,bucket-serial")
    assert [row["key"] for row in found["rows"]] == ["codec", "python-serial", "stoker-own"]
    assert [row["group"] for row in found["rows"]] == ["limit", "ladder", "stoker"]
    for row in found["rows"]:
        assert len(row["images_per_second"]) == 2
        assert row["median_images_per_second"] > 0
    assert found["rows"][0]["of_limit"] == 1.0
    assert found["prepared"]["images"] == 12
    assert found["prepared"]["written_bytes"] > 0
    assert (found["images"], found["page_cache"], found["still_cached"]) == (40, "warm", None)
    assert [left["key"] for left in found["left_out"]] == ["bucket-serial"]


def test_loose_files_in_a_list_are_measured_and_figures_are_printed_even_if_a_picture_fails(
    photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"{path}\n" for path in sorted((photos / "train").rglob("*.JPEG"))))
    page, picture = tmp_path / "a.html", tmp_path / ("b" * 250 + ".png")  # a temporary name would be too long
    words = [str(listed), *QUICK, "--only", "stoker-own,stoker-files", "--keep", str(tmp_path / "k")]
    assert main(["bench", *words, "--html", str(page), "--png", str(picture)]) != 0
    shown = capsys.readouterr().out
    assert "Stoker: your data as they are" in shown
    assert "left out: stoker-files: the same as stoker-own" in shown
    assert "12 of 40 images" in shown
    assert "Stoker: your data as they are" in page.read_text(encoding="utf-8")
    assert not picture.exists()


def test_crops_are_counted_apart_from_files(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", str(photos), "--view", "objects", "--only", "stoker-own", "--seconds", "0.1", "--rounds", "1"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    prepared, row = found["prepared"], found["rows"][0]
    assert prepared["samples"] > prepared["images"] == 40
    expected = row["median_images_per_second"] * prepared["images"] / prepared["samples"]
    assert row["median_files_per_second"] == pytest.approx(expected)
    assert row["of_limit"] is None


def test_a_contender_that_fails_is_reported_the_others_measured_and_nothing_left_behind(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    broken = Rung("broken", "Broken", "ladder", "its process does not know it", "nothing")
    monkeypatch.setattr(rungs, "RUNGS", (broken, find_rung("stoker")))
    found = document_of(capsys, str(dataset), code=1)
    assert [row["key"] for row in found["rows"]] == ["stoker"]
    assert found["left_out"][0]["failed"]
    assert found["left_out"][0]["reason"].startswith("failed: StopIteration")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.servers
def test_a_bucket_is_read_where_it_is(
    dataset: Path, s3_server: S3Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_server.make_bucket()
    for path in dataset.iterdir():
        assert s3_server.ask("PUT", f"/{bucket}/ds/{path.name}", path.read_bytes()).status == 200
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    keys = "bucket-parallel,stoker-node-cache"  # which do what bucket-serial and stoker-own do, and more
    found = document_of(capsys, f"s3://{bucket}/ds", "--only", keys)
    assert [row["key"] for row in found["rows"]] == keys.split(",")
    assert found["left_out"] == []
