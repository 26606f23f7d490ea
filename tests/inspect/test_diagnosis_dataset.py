"""``stoker doctor DATASET``: the stages, a verdict, and remedies that were really tried."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from benchmarks.planted import SHIM, SLOW_READS
from stoker import progress
from stoker.inspect import diagnosis_dataset as examined
from stoker.inspect.diagnosis_decision import Evidence, Files, Setup
from written_files import flip_bit, write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from stoker.inspect.diagnosis_decision import Verdict

DIAGNOSIS = """
import json, sys, stoker
from stoker.inspect.measuring import drop_from_page_cache
train = stoker.open(sys.argv[1], split="train")
if sys.argv[2] == "cold":
    drop_from_page_cache([shard.local_path for shard in train.shards])
loader = stoker.Loader(train, batch_size=2, transform=stoker.Resize(8), decode="fast", threads=2)
with loader, stoker.doctor(loader, quiet=True) as doctor:
    for _ in loader:
        pass
print(json.dumps(doctor.report.document()))
"""


def asked(cli: Cli, *words: str, verdict: str | None = None, tried: str = "") -> dict[str, Any]:
    """The first of five documents with a verdict and a trial: on a busy machine one may be wrong, but not always.

    ``tried`` is in the name of the trial. Rebuilds are not tried where a stage alone seemed slower than the pipeline.
    """
    for _ in range(5):
        cli("doctor", *words, "--seconds", "0.3", "--json")
        document: dict[str, Any] = cli.json
        names = [trial["name"] for trial in document["trials"]]
        if verdict in (None, document["verdict"]) and (not tried or any(tried in name for name in names)):
            return document
    pytest.fail(f"never {verdict} with a trial of {tried!r}: {document}")


@pytest.mark.slow
def test_a_dataset_has_stages_a_verdict_and_measured_remedies(dataset: Path, cli: Cli) -> None:
    document = asked(cli, str(dataset), verdict="decode-bound", tried="restart")
    assert [stage["name"] for stage in document["stages"]] == [
        "read and check",
        "decode and resize",
        "all, in the pipeline",
    ]
    for stage in document["stages"]:
        assert 0 < stage["spread"][0] <= stage["alone"] <= stage["spread"][1]
    names = [trial["name"] for trial in document["trials"]]
    assert names[:3] == ["as it is", 'decode="fast"', "--recipe restart"]
    best = max(document["trials"][1:], key=lambda trial: trial["speedup"])
    assert all(trial["spread"][0] <= trial["images_per_second"] <= trial["spread"][1] for trial in document["trials"])
    assert f"{best['speedup']:.1f}x" in document["remedy"] or "none of" in document["remedy"]
    assert document["spec"]["dataset"] == str(dataset)


@pytest.mark.slow
def test_one_thread_is_tried_against_all(dataset: Path, cli: Cli) -> None:
    words = ["--threads", "1", "--transform", "eval", "--batch-size", "2"]
    document = asked(cli, str(dataset), *words, verdict="thread-bound")
    assert [trial["name"][:8] for trial in document["trials"]] == ["as it is", "threads="]
    assert (document["threads"], document["batch_size"]) == (1, 2)


@pytest.mark.slow
def test_the_remedy_for_a_folder_of_images_is_a_build(photos: Path, cli: Cli) -> None:
    document = asked(cli, str(photos), verdict="decode-bound", tried="restart")
    assert "--recipe restart" in [trial["name"] for trial in document["trials"]]  # although some are not plain JPEGs
    remedies = [trial["remedy"] for trial in document["trials"]]
    assert any(f"stoker build {photos} NEW" in remedy for remedy in remedies)
    assert not any("repack" in remedy for remedy in remedies)


@pytest.mark.slow
def test_images_that_cannot_be_decoded_are_named_and_left_out(photos: Path, tmp_path: Path, cli: Cli) -> None:
    folder = shutil.copytree(photos / "train", tmp_path / "photos")
    files = sorted(path for path in folder.rglob("*.JPEG") if path.read_bytes()[:3] == b"\xff\xd8\xff")
    damaged = [files[4], files[16], files[30]]
    for path, end in zip(damaged, (b"", b"\xff\xd9", b"\xff\xd9"), strict=True):  # with an end only pixels are lost
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] + end)
    document = asked(cli, str(folder), "--transform", "eval", verdict="decode-bound", tried="short:256")
    assert len(document["unreadable"]) == 3
    for path, reason in zip(damaged, document["unreadable"], strict=True):
        assert reason.startswith(f"{path}: ")
    assert all(stage["alone"] > 0 for stage in document["stages"])
    assert all(trial["images_per_second"] > 0 for trial in document["trials"])
    [smaller] = [trial["remedy"] for trial in document["trials"] if "short:256" in trial["name"]]
    command, words = smaller.split(": ")
    assert words == "a lossy rebuild that keeps fewer pixels, measured on 37 of 40 images"
    cli(*shlex.split(command.replace(" NEW ", f" {tmp_path}/new "))[1:])  # as typed, with its rejects
    cli("doctor", folder, "--transform", "eval", "--seconds", "0.3")
    assert "\ncould not be loaded: 3 images; others took their place\n" in cli.out
    assert cli.out.count(f"\nunreadable: {folder}/") == 3
    assert "bad samples were replaced" not in cli.err


@pytest.mark.slow
def test_a_damaged_record_is_named_and_left_out(dataset: Path, tmp_path: Path, cli: Cli) -> None:
    damaged = shutil.copytree(dataset, tmp_path / "dataset")
    shard = next(damaged.glob("train-00000-*"))
    flip_bit(shard, 0.5)
    [reason] = asked(cli, str(damaged), "--split", "train", "--transform", "eval")["unreadable"]
    assert shard.name in reason


def test_a_folder_without_an_image_that_can_be_decoded_is_refused(tmp_path: Path, cli: Cli) -> None:
    write_files(tmp_path, dict.fromkeys((f"cat/{number}.jpg" for number in range(8)), b"\xff\xd8\xff" + bytes(100)))
    assert f"{tmp_path}/cat/" in cli("doctor", tmp_path, "--seconds", "0.3", code=1)


@pytest.mark.slow
def test_a_report_for_people_says_what_is_going_on(dataset: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("_LINE_SECONDS", "_BAR_SECONDS"):
        monkeypatch.setattr(progress, pause, 0)
    cli("doctor", dataset, "--seconds", "0.3")
    assert "measuring: part 1 of 2, the pipeline (0 %)\n" in cli.err
    assert "-bound: " in cli.out
    assert "\nremedy: " in cli.out


def test_cold_figures_are_of_one_pass(dataset: Path, disk_path: Path, cli: Cli) -> None:
    shutil.copytree(dataset, disk_path / "dataset")
    document = asked(cli, str(disk_path / "dataset"), "--cold", "--batch-size", "1")
    assert document["evidence"]["files"]["cached_before"] < 0.2
    assert document["evidence"]["samples"] <= 40
    assert document["trials"] == []
    assert "nothing was tried" in document["remedy"]


def test_a_path_without_a_dataset_is_refused(tmp_path: Path, cli: Cli) -> None:
    cli("doctor", tmp_path / "nix", "--json", code=2)
    assert cli.json["error"]["type"] == "DatasetNotFoundError"
    cli("doctor", tmp_path, "--seconds", "0", code=2)


@pytest.fixture(scope="module")
def slow_reads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes reads of shards slow."""
    folder = tmp_path_factory.mktemp("slow")
    (folder / "slow.c").write_text(SHIM)
    command = [
        "cc", "-O1", "-shared", "-fPIC", "-DNANOSECONDS=60000000", "-o", folder / "slow.so", folder / "slow.c",
        "-ldl",
    ]  # fmt: skip
    subprocess.run(command, check=True)
    return folder / "slow.so"


@pytest.mark.skipif(sys.platform != "linux", reason="needs LD_PRELOAD and the page cache")
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler for what slows the disk")
@pytest.mark.parametrize(
    ("kind", "state", "verdict"), [("always", "warm", "storage-bound"), ("misses", "cold", "cold-cache")]
)
@pytest.mark.slow
def test_a_slow_disk_is_named(dataset: Path, slow_reads: Path, kind: str, state: str, verdict: str) -> None:
    environment = os.environ | {"LD_PRELOAD": str(slow_reads), SLOW_READS: kind}
    command = [sys.executable, "-c", DIAGNOSIS, str(dataset), state]
    for _ in range(5):  # on a busy machine, waiting for a processor may take longer than the disk
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120)
        document = json.loads(done.stdout)
        if document["verdict"] == verdict and document["evidence"]["stages"]["read"] > 0.5:
            return
    pytest.fail(f"never {verdict}: {document}")


def names(dataset: Path, verdict: Verdict, setup: Setup, busy_share: float) -> list[str]:
    train = stoker.open(dataset, split="train")
    evidence = Evidence(Files(), setup, busy_share=busy_share)
    return [way.name for way in examined.ways_to_load(verdict, train, {"batch_size": 2, "threads": 1}, evidence)]


@pytest.mark.parametrize(
    ("verdict", "setup", "busy_share", "tried"),
    [
        ("thread-bound", Setup(threads=1, cpus=4), 0.99, ["threads=4"]),
        ("thread-bound", Setup(threads=1, cpus=4), 0.3, ["prefetch=8"]),
        ("thread-bound", Setup(threads=4, cpus=4), 0.3, ["prefetch=8"]),
        ("storage-bound", Setup(threads=2, cpus=2), 0.99, ["threads=8"]),
        ("storage-bound", Setup(threads=8, cpus=2), 0.99, []),
        ("storage-bound", Setup(threads=32, cpus=2), 0.99, []),
        ("cold-cache", Setup(threads=2, cpus=2), 0.99, []),
    ],
)
def test_what_is_tried(dataset: Path, verdict: Verdict, setup: Setup, busy_share: float, tried: list[str]) -> None:
    assert names(dataset, verdict, setup, busy_share) == (["as it is", *tried] if tried else [])


def test_the_command_of_a_rebuild_can_be_typed(dataset: Path, tmp_path: Path) -> None:
    spaced = shutil.copytree(dataset, tmp_path / "my data")
    train = stoker.open(spaced, split="train")
    ways = examined.ways_to_decode(train, [train[0].encoded], stoker.CenterCrop(8, 8), 1)
    assert f"stoker repack '{spaced}' NEW" in ways[2].remedy
    few = examined.ways_to_decode(train, [train[0].encoded], stoker.CenterCrop(8, 8), 1, None)
    assert [way.name for way in few] == ["as it is", 'decode="fast"']  # no rebuild from too few images


def test_decoding_alone_keeps_to_its_time_and_memory(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = stoker.open(dataset, split="train")
    whole = examined._some_images(train, 60)[0]
    assert len(whole) == len(train)
    monkeypatch.setattr(examined, "_LEAST_IMAGES", 32)
    assert len(examined._some_images(train, 0)[0]) == 32 < len(train)
    monkeypatch.setattr(examined, "_MOST_IMAGE_BYTES", len(whole[0]) + 1)
    assert 1 <= len(examined._some_images(train, 60)[0]) <= 2
    small = stoker.CenterCrop(8, 8)
    assert (examined.decoding_speed(whole, small, 2, 0.05) or 0) > 0
    assert examined.decoding_speed([b"pixels"], small, 2, 0.05) is None


def test_raw_pixels_get_no_advice_for_jpegs(photos: Path, tmp_path: Path, cli: Cli) -> None:
    raw = tmp_path / "raw"
    cli("build", photos, raw, "--preset", "dlbs", "--img-size", "64", "--shards", "1")
    document = asked(cli, str(raw), "--split", "train", "--batch-size", "2")
    assert document["stages"][1]["alone"] is None
    assert "--recipe" not in document["remedy"]
    assert "decode=" not in document["remedy"]
