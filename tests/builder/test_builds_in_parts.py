"""Builds in parts: the same dataset as of one machine, whichever part runs when, dies, or runs again."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from builder.remote_trees import stored
from builder.trees import build, contents, picture, settings_for, write_tree
from repository.checkout import ROOT
from small_cases import each
from sources.making import xml
from stoker.builder import NO_PART, Part, PartReport, check_part_destination, parse_part, parts, writing
from stoker.builder import build_part as build_listed_part
from stoker.errors import ConfigError, DestinationError
from stoker.format import contents_of, is_dataset
from stoker.storage import location
from storage.store_folders import store_folder
from written_files import flip_bit, write_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.builder import BuildSettings
    from stoker.format import Manifest
    from stoker.storage import Location, LocationLike

SHARDS = 10
OPTIONS = ["--shards", str(SHARDS - 1), "--max-rejects", "1", "--quiet"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    classes = {"train/a": 40, "train/b": 50, "val/a": 10}
    return write_tree(tmp_path_factory.mktemp("parts") / "src", classes, "train/b/text.JPEG")


@pytest.fixture(scope="module")
def whole(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("parts") / "out"
    build(settings(source), out)
    return contents(out)


def settings(source: Path, **changed: object) -> BuildSettings:
    return settings_for(source, **{"shards": SHARDS - 1, "max_rejects": 1, "threads": 1} | changed)


def build_part(settings: BuildSettings, destination: LocationLike, part: Part, *progress: Any) -> PartReport:
    """List the source, if no other part has, and build a part."""
    folder = location(destination)
    check_part_destination(folder, settings.root, part)
    return build_listed_part(parts.list_once(settings, folder), settings, folder, part, *progress)


def slurm(*, task: int, count: int, first: int, last: int) -> dict[str, str]:
    """What Slurm says to a task of an array."""
    names = ("ID", "COUNT", "MIN", "MAX")
    values = zip(names, (task, count, first, last), strict=True)
    return {f"SLURM_ARRAY_TASK_{name}": str(number) for name, number in values}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("0/1", {}, Part(0, 1)),
        ("63/64", {}, Part(63, 64)),
        ("auto", {"JOB_COMPLETION_INDEX": "3", "STOKER_PARTS": "8"}, Part(3, 8)),
        ("auto", slurm(task=3, count=8, first=0, last=7), Part(3, 8)),
        ("auto", slurm(task=8, count=8, first=1, last=8), Part(7, 8)),
        ("auto", slurm(task=5, count=1, first=5, last=5), Part(0, 1)),
    ],
)
def test_which_part_is_meant(text: str, environment: Mapping[str, str], expected: Part) -> None:
    assert parse_part(text, environment) == expected


@each(
    ("text", "environment", "message"),
    [
        ("64/64", {}, "no part 64; 64 parts are numbered 0 to 63"),
        ("0/0", {}, "0 parts; there may be 1 to 1,000,000"),
        ("3", {}, "part 3 is not understood; write 3/64"),
        ("-1/4", {}, "not understood"),
        ("1/2/3", {}, "not understood"),
        ("auto", {}, "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX"),
        ("auto", {"JOB_COMPLETION_INDEX": "3"}, "STOKER_PARTS is not set; set it to the number of completions"),
        ("auto", {"JOB_COMPLETION_INDEX": "3", "STOKER_PARTS": "x"}, "STOKER_PARTS is 'x'"),
        ("auto", {"JOB_COMPLETION_INDEX": "8", "STOKER_PARTS": "8"}, "no part 8; 8 parts are numbered 0 to 7"),
        ("auto", {"SLURM_ARRAY_TASK_ID": "3"}, "SLURM_ARRAY_TASK_COUNT is not set; give part 3/64 instead"),
        (
            "auto",
            slurm(task=7, count=2, first=3, last=7),
            "task 7 of a Slurm array of 2 tasks from 3 to 7 is not one in a row; use --array=0-1",
        ),
        (
            "auto",
            slurm(task=2, count=4, first=0, last=6),  # --array=0-6:2, of which 2 is the second
            "task 2 of a Slurm array of 4 tasks from 0 to 6 is not one in a row; use --array=0-3",
        ),
    ],
)
def test_which_parts_are_refused(text: str, environment: Mapping[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_part(text, environment)
    assert message in str(caught.value)


def test_every_shard_belongs_to_one_part() -> None:
    for count in (1, 3, 7):
        for shard in range(20):
            assert sum(Part(number, count).has(shard) for number in range(count)) == 1
    assert not any(NO_PART.has(shard) for shard in range(20))


def test_parts_make_what_one_machine_makes(source: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = build_part(settings(source), out, Part(2, 3))
    assert (first.shards, first.all_shards, first.missing_shards, first.dataset) == (3, SHARDS, 7, None)
    assert contents_of(location(out)).kind == "unfinished"
    assert is_dataset(location(out))  # so that a listing of a folder above leaves it out
    again = build_part(settings(source), out, Part(2, 3))
    assert (again.items, again.resumed_shards, again.missing_shards) == (0, 3, 7)
    # Another division goes on with what is there: of its five shards one is there.
    other = build_part(settings(source), out, Part(1, 2))
    assert (other.shards, other.resumed_shards, other.missing_shards) == (5, 1, 3)
    last = build_part(settings(source), out, Part(0, 2))
    assert last.missing_shards == 0
    assert last.dataset is not None
    assert last.dataset.outcome == "built"
    assert [reject.key for reject in last.dataset.rejects] == ["train/b/text.JPEG"]
    assert contents(out) == whole
    after = build_part(settings(source), out, Part(0, 3))
    assert after.dataset is not None
    assert after.dataset.outcome == "complete"
    assert contents(out) == whole


def test_the_rejects_of_a_part_are_its_own(source: Path, tmp_path: Path) -> None:
    reports = [build_part(settings(source, max_rejects=0), tmp_path, Part(number, 3)) for number in range(3)]
    assert sorted(len(report.rejects) for report in reports) == [0, 0, 1]
    assert reports[2].dataset is not None
    assert reports[2].dataset.outcome == "withheld"
    finished = build_part(settings(source), tmp_path, NO_PART)
    assert finished.dataset is not None
    assert finished.dataset.outcome == "built"


def test_the_source_is_listed_once(source: Path, tmp_path: Path) -> None:
    """A part that reads how another one has listed the source does not see what was added since."""
    changing = tmp_path / "src"
    write_tree(changing, {"a": 8, "b": 8})
    build(settings_for(changing, shards=4), tmp_path / "whole")
    build_part(settings_for(changing, shards=4), tmp_path / "out", Part(0, 2))
    (changing / "a/later.JPEG").write_bytes(picture(99))
    build_part(settings_for(changing, shards=4), tmp_path / "out", Part(1, 2))
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_part_lists_the_source_where_the_one_that_did_has_died(
    source: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "out/.stoker-build", {"lister.json": b'{"lister": "dead", "sign": 3}'})
    monkeypatch.setattr(parts, "_DEAD_SECONDS", 0.2)
    monkeypatch.setattr(parts, "_LOOK_SECONDS", 0.05)
    assert build_part(settings(source), tmp_path / "out", Part(0, 1)).dataset is not None
    assert contents(tmp_path / "out") == whole


def test_a_part_waits_while_another_lists(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks until the listing is there; this one's appears with the third look."""
    folder = tmp_path / "out/.stoker-build"
    folder.mkdir(parents=True)
    lister, looks = folder / "lister.json", []
    lister.write_bytes(b'{"lister": "alive", "sign": 0}')

    def look(_self: object) -> None:
        looks.append(len(looks))
        lister.write_bytes(b'{"lister": "alive", "sign": %d}' % len(looks))
        if len(looks) == 3:
            lister.unlink()
            parts.list_once(settings(source), location(tmp_path / "out"))

    monkeypatch.setattr(parts._Lister, "wait", look)
    assert build_part(settings(source), tmp_path / "out", Part(0, 2)).missing_shards == 5
    assert looks == [0, 1, 2]
    assert not lister.exists()


def test_a_listing_that_fails_lets_the_next_part_list(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="does not exist"):
        build_part(settings(tmp_path / "nothing"), tmp_path / "out", Part(0, 2))
    assert not (tmp_path / "out/.stoker-build/lister.json").exists()


def test_a_damaged_listing_is_made_again(source: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    build_part(settings(source), tmp_path, Part(0, 2))
    flip_bit(tmp_path / ".stoker-build/listing", 0.5)
    assert build_part(settings(source), tmp_path, Part(1, 2)).dataset is not None
    assert contents(tmp_path) == whole


def test_a_listing_left_by_a_build_with_other_settings_is_not_used(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "src", {"train/a": 4})
    boxes = xml(("a", "0", "0", "40", "30"), ("a", "40", "30", "100", "50"))
    write_files(tree, {f"annotations/a/a_{number}.xml": boxes for number in range(4)})
    for name, option in {"held": {"split_fraction": "validation=0.5"}, "cut": {"crop_objects": True}}.items():
        other = settings_for(tree, shards=1, **option)
        build(other, tmp_path / f"{name}-whole")
        with pytest.raises(ConfigError, match="shards"):
            build_part(settings_for(tree, shards=100), tmp_path / name, Part(0, 1))
        build_part(other, tmp_path / name, Part(0, 1))
        assert contents(tmp_path / name) == contents(tmp_path / f"{name}-whole")


def test_what_finish_says_of_missing_shards(source: Path, tmp_path: Path) -> None:
    with pytest.raises(DestinationError, match=r"no build has begun in .*; begin with part 0/N"):
        build_part(settings(source), tmp_path, NO_PART)
    build_part(settings(source), tmp_path, Part(1, 3))
    build_part(settings(source), tmp_path, Part(0, 3))
    with pytest.raises(DestinationError) as caught:
        build_part(settings(source), tmp_path, NO_PART)
    lacking = "part 2 of 3 lacks train-00002-of-00009.tfrecord and 2 more"
    assert str(caught.value) == f"3 of 10 shards are missing in {tmp_path}: {lacking}; run those parts again"


def test_what_does_not_go_together(source: Path, tmp_path: Path) -> None:
    build_part(settings(source), tmp_path / "out", Part(1, 3))
    with pytest.raises(DestinationError, match="other settings"):
        build_part(settings(source, seed=1), tmp_path / "out", Part(0, 3))
    build(settings(source), tmp_path / "finished")
    before = contents(tmp_path / "finished")
    with pytest.raises(DestinationError, match="finished dataset with other settings"):
        build_part(settings(source, seed=1), tmp_path / "finished", Part(0, 3))
    assert contents(tmp_path / "finished") == before
    assert contents_of(location(tmp_path / "finished")).kind == "dataset"
    write_files(tmp_path, {"alone/build.journal": b""})
    with pytest.raises(DestinationError, match="begun without part"):
        build_part(settings(source), tmp_path / "alone", Part(0, 3))


def test_one_machine_finishes_what_parts_began(source: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    build_part(settings(source), tmp_path, Part(1, 3))
    report = build(settings(source), tmp_path)
    assert (report.outcome, report.resumed_shards) == ("built", 3)
    assert contents(tmp_path) == whole


def test_two_parts_may_finish_at_once(
    source: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins to finish when the first is about to write the manifest, and ends before it."""
    build_part(settings(source), tmp_path, Part(0, 2))
    write, outcomes = writing.write_manifest, []

    def finish_between(directory: Location, manifest: Manifest) -> None:
        monkeypatch.setattr(writing, "write_manifest", write)
        between = build_part(settings(source), tmp_path, NO_PART)
        outcomes.append(between.dataset and between.dataset.outcome)
        write(directory, manifest)

    monkeypatch.setattr(writing, "write_manifest", finish_between)
    last = build_part(settings(source), tmp_path, Part(1, 2))
    assert outcomes == ["built"]
    assert last.dataset is not None
    assert contents(tmp_path) == whole


def test_a_part_that_is_late_finds_the_dataset_finished(source: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    """A double of a part makes its shards once more while the others end; what it noted them in is gone by then."""
    finished = []

    def progress(**_counts: int) -> None:
        if not finished:
            finished.append(build(settings(source), tmp_path))

    late = build_part(settings(source), tmp_path, Part(0, 2), progress)
    assert late.dataset is not None
    assert late.dataset.outcome == "complete"
    assert contents(tmp_path) == whole


def run_killed(words: list[str], environments: list[dict[str, str]]) -> None:
    """Run parts as processes, kill three of them at random moments, and run those again."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def start(number: int) -> subprocess.Popen[str]:
        environment = {**os.environ, "PATH": tools, **environments[number]}
        return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    chosen = random.Random(7)
    killed = chosen.sample(range(len(environments)), 3)
    running = {number: start(number) for number in range(len(environments))}
    for number in killed:
        time.sleep(chosen.random())
        running[number].send_signal(signal.SIGKILL)
    for number in killed:
        running[number].communicate()
        running[number] = start(number)
    for number, process in running.items():
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, f"part {number}: {stderr}"


@pytest.mark.slow
def test_killed_tasks_of_a_slurm_array(source: Path, whole: dict[str, bytes], tmp_path: Path) -> None:
    script = ROOT / "examples/slurm/build.sh"
    (first, last) = re.findall(r"#SBATCH --array=([0-9]+)-([0-9]+)", script.read_text())[0]
    tasks = range(int(first), int(last) + 1)
    environments = [slurm(task=task, count=len(tasks), first=int(first), last=int(last)) for task in tasks]
    assert len(environments) == 8
    run_killed([str(script), str(source), str(tmp_path / "out"), *OPTIONS], environments)
    assert contents(tmp_path / "out") == whole


@pytest.mark.servers
def test_killed_pods_of_an_indexed_job(
    source: Path, whole: dict[str, bytes], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = store_folder("s3", request, monkeypatch)
    job = yaml.safe_load((ROOT / "examples/kubernetes/build.yaml").read_text())["spec"]
    (container,) = job["template"]["spec"]["containers"]
    folders = {"s3://bucket/photos": str(source), "s3://bucket/dataset": str(remote)}
    words = [folders.get(word, word) for word in container["command"]]
    assert words != container["command"]
    set_by_job = {variable["name"]: variable["value"] for variable in container["env"]}
    environments = [set_by_job | {"JOB_COMPLETION_INDEX": str(index)} for index in range(job["completions"])]
    assert len(environments) == 8
    run_killed([*words, *OPTIONS], environments)
    assert stored(remote) == whole


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["gs", "hdfs"])
def test_parts_in_other_stores(
    kind: str,
    source: Path,
    whole: dict[str, bytes],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remote = store_folder(kind, request, monkeypatch)
    for number in (1, 0):
        report = build_part(settings(source), remote, Part(number, 2))
    assert report.dataset is not None
    assert report.dataset.outcome == "built"
    assert stored(remote) == whole
