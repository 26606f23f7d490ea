"""The engine on a real cluster: the bytes of the engine for one machine, whatever is killed."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
import stoker.spark
from builder.trees import build, contents
from spark.clusters import SHARDS, Trouble, same, settings_of
from stoker import spark as engine
from stoker.errors import ClusterError, ConfigError
from stoker.storage import StoreLocation, location
from storage.store_folders import copy

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from servers.s3 import S3Server
    from servers.spark_cluster import SparkCluster
    from stoker.builder import BuildReport, BuildSettings

pytestmark = pytest.mark.servers


def test_a_cluster_makes_the_same_dataset(
    session: SparkSession, settings: BuildSettings, local: tuple[BuildReport, Path], tmp_path: Path
) -> None:
    heard: list[dict[str, int]] = []
    report = build(settings, tmp_path / "out", lambda **news: heard.append(news), engine=stoker.spark.engine(session))
    same(report, tmp_path / "out", local)
    assert (report.items, report.size_bytes) == (local[0].items, local[0].size_bytes)
    assert heard[-1] == {"done": 181, "total": 181, "size_bytes": report.size_bytes, "rejects": 1}
    assert [news["done"] for news in heard] == sorted(news["done"] for news in heard)
    again = build(settings, tmp_path / "out", engine=stoker.spark.engine(session))
    assert (again.outcome, again.manifest, again.items) == ("complete", report.manifest, 0)


def test_fields_of_a_table_reach_the_executors(session: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "table"
    root.mkdir()
    rng = np.random.default_rng(1)
    rows = ["file_name,label,caption,score,plants_mask_file_name"]
    for number in range(60):
        Image.fromarray(rng.integers(0, 256, (30, 40, 3), np.uint8)).save(root / f"{number}.png")
        if number != 7:
            Image.fromarray(rng.integers(0, 4, (30, 40), np.uint8)).save(root / f"mask-{number}.png")
        rows.append(f"{number}.png,class {number % 3},number {number},{number / 4},mask-{number}.png")
    rows[8] = rows[8].replace("mask-7.png", "8.png")
    (root / "metadata.csv").write_text("\n".join(rows))
    settings: dict[str, Any] = {"shards": 5, "resize": "short:20", "max_rejects": 1, "progress": False}
    report = stoker.build(root, tmp_path / "out", engine=stoker.spark.engine(session), **settings)
    local = stoker.build(root, tmp_path / "local", **settings)
    assert [reject.key for reject in report.rejects] == ["7.png"]
    assert list(report.manifest.schema.fields) == ["caption", "score", "plants_mask"]
    same(report, tmp_path / "out", (local, tmp_path / "local"))


def test_many_waves(session: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_WAVE_JOBS", 3)
    many = settings_of(source, shards=20)
    report = build(many, tmp_path / "out", engine=stoker.spark.engine(session))
    assert report.manifest == build(many, tmp_path / "local").manifest
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


@pytest.mark.parametrize("victim", ["python worker", "executor", "worker"])
def test_what_is_killed_in_the_midst_of_a_shard_is_done_again(
    victim: str,
    cluster: SparkCluster,
    session: SparkSession,
    settings: BuildSettings,
    local: tuple[BuildReport, Path],
    tmp_path: Path,
) -> None:
    killed: list[int] = []

    def kill(pid: int) -> None:
        number = next(n for n in range(2) if pid in cluster.python_workers(n))
        if victim == "worker":
            cluster.kill_worker(number)
            os.kill(pid, signal.SIGCONT)  # its executor shall end by itself
            killed.append(number)
        else:
            cluster.kill_process(pid if victim == "python worker" else cluster.executors(number)[0])

    try:
        with Trouble(tmp_path / "out", kill):
            report = build(settings, tmp_path / "out", engine=stoker.spark.engine(session))
    finally:
        for number in killed:
            cluster.start_worker(number)
    same(report, tmp_path / "out", local)


def test_a_slow_attempt_is_overtaken_and_leaves_nothing(
    session: SparkSession, settings: BuildSettings, local: tuple[BuildReport, Path], tmp_path: Path
) -> None:
    with Trouble(tmp_path / "out", lambda _: None) as trouble:
        report = build(settings, tmp_path / "out", engine=stoker.spark.engine(session))
    same(report, tmp_path / "out", local)
    with pytest.raises(ProcessLookupError):  # the attempt has ended before the build did
        os.kill(trouble.pid, 0)


@pytest.fixture(scope="module")
def stored_source(session: SparkSession, source: Path, s3_server: S3Server) -> str:
    """The same tree in a bucket."""
    return str(copy(source, StoreLocation(f"s3://{s3_server.make_bucket()}", "photos")))


def test_from_bucket_to_bucket_it_is_the_same_dataset(
    session: SparkSession, stored_source: str, local: tuple[BuildReport, Path], s3_server: S3Server
) -> None:
    bucket = location(f"s3://{s3_server.make_bucket()}/sets/photos")
    report = build(settings_of(stored_source), str(bucket), engine=stoker.spark.engine(session))
    assert report.manifest == local[0].manifest
    keys = [entry.key for entry in bucket.store.entries(bucket.key)]
    assert {key.rpartition("/")[2]: bucket.store.read(key) for key in keys} == contents(local[1])


def test_a_disk_that_fails_is_our_error_and_can_be_resumed(
    session: SparkSession, settings: BuildSettings, local: tuple[BuildReport, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (out / ".hidden").mkdir(parents=True)
    obstacle = out / f"train-00004-of-{SHARDS:05}.tfrecord"

    def block(**news: int) -> None:
        if not news["size_bytes"]:  # the build has begun; anything else is refused before
            (obstacle / "in-the-way").mkdir(parents=True)

    with pytest.raises(ClusterError, match=rf"Is a directory.*\(shard {obstacle.name}, on ") as caught:
        build(settings, out, block, engine=stoker.spark.engine(session))
    notes = "; ".join(caught.value.__notes__)
    assert "run the same command again to resume" in notes
    assert "Traceback" not in f"{caught.value} {notes}"
    assert not list(out.glob("*.tmp-*"))
    (obstacle / "in-the-way").rmdir()
    obstacle.rmdir()
    (out / ".hidden").rmdir()
    report = build(settings, out, engine=stoker.spark.engine(session))
    assert report.resumed_shards >= 1
    same(report, out, local)


def test_a_directory_that_executors_do_not_share_is_refused(
    session: SparkSession, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    settings = settings_of(source, shards=2)

    def move(**news: int) -> None:
        if not news["size_bytes"]:
            (tmp_path / "out").rename(gone)

    with pytest.raises(ConfigError, match="is not the directory that the driver builds in"):
        build(settings, tmp_path / "out", move, engine=stoker.spark.engine(session))
    assert [path.name for path in gone.iterdir()] == ["build.journal"]
    assert not (tmp_path / "out").exists()
