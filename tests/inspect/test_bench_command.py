"""``stoker bench``: figures of what was asked for, and a reason for everything else."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from bench_prepared import case_of
from reference import pictures
from repository.checkout import ROOT
from stoker.cli.main import main
from stoker.errors import ConfigError
from stoker.inspect import bench as cases
from stoker.inspect.bench import CASES, BenchSpec, Case, objection
from stoker.loader import open_main_split
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from servers.s3 import S3Server

QUICK = ["--seconds", "0.1", "--rounds", "2", "--batch-size", "4", "--images", "12"]


def document_of(cli: Cli, *words: str, code: int = 0) -> dict[str, Any]:
    cli("bench", *words, *QUICK, "--json", code=code)
    document: dict[str, Any] = cli.json
    return document


def test_keys_and_names_are_unique_and_notes_say_something() -> None:
    assert len({case.key for case in CASES}) == len({case.name for case in CASES}) == len(CASES)
    assert all(len(case.note) > 15 for case in CASES)


def test_the_page_lists_the_cases_in_their_order() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    section = page.split("\n## Cases of", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    keys = [key for line in rows for key in re.findall(r"`([a-z-]+)`", line.split("|")[1])]
    expected = [case.key for case in CASES]
    assert [key for key in keys if key != "--only"] == expected


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """What ALCF's example ships: a list, its batch and its size, one reader."""
    images = {f"n01/{number}.JPEG": pictures.jpeg(40, 30, number) for number in range(6)}
    write_files(tmp_path, images | {"train.txt": "\n".join(images)})
    path = tmp_path / "ilsvrc.json"
    data = {"batch_size": 4, "train_filelist": "train.txt", "shuffle_buffer": 9, "num_parallel_readers": 1}
    path.write_text(json.dumps({"data": data | {"prefectch_buffer_size": 0, "crop_image_size": [24, 32]}}))
    return path


def test_a_configuration_is_measured_as_it_says(config: Path, cli: Cli) -> None:
    short = ["--seconds", "0.1", "--rounds", "2"]
    cli("bench", config, *short)
    line = r"[\d,]+ images/s \([\d,]+ to [\d,]+\): train, batches of 4 x 24 x 32 x 3, 1 thread, prefetch 0\n"
    assert re.fullmatch(line, cli.out)
    report = json.loads(cli("bench", config, *short, "--threads", "2", "--batch-size", "3", "--json"))
    assert (report["threads"], report["batch_size"], report["shape"], report["prefetch"]) == (2, 3, [24, 32, 3], 0)
    assert report["lowest"] <= report["images_per_second"] <= report["highest"]
    assert "--only has no effect on" in cli("bench", config, "--only", "stoker", code=2)
    config.write_text(config.read_text().replace("batch_size", "batchsize"))
    assert "data.batchsize has no effect" in cli("bench", config, *short, code=2)


def test_without_a_choice_everything_is_measured() -> None:
    assert BenchSpec("").chosen == list(CASES)
    assert [case.key for case in BenchSpec("", only=("stoker", "codec")).chosen] == ["codec", "stoker"]


def test_unknown_names_are_answered_with_those_there_are() -> None:
    problem = r"--only names 'stokr', which is not a case; the cases are codec, .*stoker-raw"
    with pytest.raises(ConfigError, match=problem):
        BenchSpec("", only=("stokr",))


def test_every_setting_is_checked_before_anything_is_opened(cli: Cli) -> None:
    for words in (["--rounds", "0"], ["--batch-size", "0"], ["--images", "0"], ["--seconds", "0"], ["--only", "x"]):
        assert "there-is-no-such-folder" not in cli("bench", "there-is-no-such-folder", *words, code=2)


@pytest.mark.needs("jinja2")
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path / "no" / "a.x", "there is no folder"),
        (tmp_path / "file" / "a.x", "is a file, not a folder"),
        (tmp_path, "is a folder"),
    ):
        stderr = cli("bench", "there-is-no-such-folder", "--html", path, code=2)
        assert "--html" in stderr
        assert reason in stderr
        assert "there-is-no-such-folder" not in stderr


def test_pages_without_their_packages_are_refused_before_anything_is_measured(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "stoker.inspect.page", raising=False)
    assert "stoker[report]" in cli("bench", "there-is-no-such-folder", "--html", tmp_path / "a.html", code=2)


@pytest.mark.parametrize(
    ("key", "source", "cold", "reason"),
    [
        ("stoker-files", "photos", False, "the same as stoker-own"),
        ("stoker-files", "dataset", False, ""),
        ("stoker-own", "compressed", True, "inflates"),
        ("stoker-own", "compressed", False, ""),
        ("python-cache", "dataset", True, "in memory"),
        ("stoker", "photos", True, ""),
    ],
)
def test_what_does_not_apply_is_left_out_with_a_reason(
    photos: Path, dataset: Path, tmp_path: Path, key: str, source: str, cold: bool, reason: str
) -> None:
    if source == "compressed":
        assert main(["build", str(photos), str(tmp_path / "compressed"), "--compression", "gzip"]) == 0
    paths = {"photos": photos, "dataset": dataset, "compressed": tmp_path / "compressed"}
    why = objection(case_of(key), BenchSpec("", cold=cold), open_main_split(paths[source], None))
    assert (reason in why) if reason else not why


@pytest.mark.slow
def test_the_document_has_figures_for_each_round(dataset: Path, cli: Cli) -> None:
    document = document_of(cli, str(dataset), "--only", "codec,python-serial,stoker-own")
    assert [row["key"] for row in document["rows"]] == ["codec", "python-serial", "stoker-own"]
    assert [row["group"] for row in document["rows"]] == ["limit", "ladder", "stoker"]
    for row in document["rows"]:
        assert len(row["images_per_second"]) == len(row["images_per_cpu_second"]) == 2
        assert min(row["images_per_second"]) > 0
    assert document["rows"][0]["of_limit"] == 1.0
    assert (document["images"], document["images_read"], document["still_cached"]) == (40, 12, None)
    assert (document["spec"]["split"], document["left_out"], document["failed"]) == ("train", {}, {})


@pytest.mark.slow
def test_without_the_codec_nothing_is_known_of_the_limit(dataset: Path, cli: Cli) -> None:
    document = document_of(cli, str(dataset), "--only", "stoker")
    assert [row["of_limit"] for row in document["rows"]] == [None]


@pytest.mark.needs("jinja2")
@pytest.mark.slow
def test_files_in_a_list_are_measured_and_printed_even_if_the_page_fails(
    photos: Path, tmp_path: Path, cli: Cli
) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"{path}\n" for path in sorted((photos / "train").rglob("*.JPEG"))))
    page = tmp_path / ("b" * 250 + ".html")  # a temporary name would be too long
    cli("bench", listed, *QUICK, "--only", "stoker-own,stoker-files", "--html", page, code=1)
    shown = cli.out
    assert shown.index("stoker-own: ") < shown.index("train transform of")  # each turn is printed as it ends
    assert len(re.findall(r"^stoker-own: [\d,]+ images/s$", shown, re.MULTILINE)) == 2
    assert "Stoker: your data as they are" in shown
    assert "left out: stoker-files: the same as stoker-own" in shown
    assert "12 of 40 images" in shown
    assert not page.exists()


@pytest.mark.needs("jinja2")
@pytest.mark.slow
def test_the_page_is_written(dataset: Path, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    assert main(["bench", str(dataset), *QUICK, "--only", "stoker-own", "--html", str(page)]) == 0
    assert "Stoker: your data as they are" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_case_that_fails_is_reported_the_others_measured_and_nothing_left_behind(
    dataset: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    broken = Case("broken", "Broken", "its process does not know it", module="no_such_module")
    monkeypatch.setattr(cases, "CASES", (broken, case_of("stoker")))
    document = document_of(cli, str(dataset), code=1)
    assert [row["key"] for row in document["rows"]] == ["stoker"]
    assert document["failed"]["broken"].startswith("ModuleNotFoundError")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.servers
def test_a_bucket_is_read_there(dataset: Path, s3_server: S3Server, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3_server.make_bucket()
    for path in dataset.iterdir():
        assert s3_server.ask("PUT", f"/{bucket}/ds/{path.name}", path.read_bytes()).status == 200
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    keys = "python-serial,stoker-own"
    document = document_of(cli, f"s3://{bucket}/ds", "--only", keys)
    assert [row["key"] for row in document["rows"]] == keys.split(",")
    assert document["left_out"] == {}
