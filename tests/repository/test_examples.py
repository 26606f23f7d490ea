"""Every example runs, as it stands, on the sample, and says that it is done.

Those for buckets and clusters get the addresses of real ones, which run on this machine.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import preloaded
from programs import run_python
from repository.checkout import ROOT
from servers import google_names

if TYPE_CHECKING:
    from pathlib import Path

    from servers.gcs import GcsServer
    from servers.hdfs import HdfsServer
    from servers.spark_cluster import SparkCluster

FRAMEWORKS = re.compile(r"(?<![/\w])(torch|tensorflow|jax|pyspark)\b")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@dataclass(frozen=True)
class Surroundings:
    """What a person with a bucket or a cluster has: its addresses, and settings that clients find by themselves."""

    addresses: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)


def in_a_bucket(request: pytest.FixtureRequest, ends: ExitStack) -> Surroundings:
    server: GcsServer = request.getfixturevalue("gcs_server")
    # TensorFlow's gs:// knows no address but Google's.
    names = ends.enter_context(google_names.leading_to(server.endpoint))
    return Surroundings([f"gs://{server.make_bucket()}/dogs"], {**server.environment(), **names})


def on_a_cluster(request: pytest.FixtureRequest, ends: ExitStack) -> Surroundings:
    del ends
    hdfs: HdfsServer = request.getfixturevalue("hdfs_server")
    cluster: SparkCluster = request.getfixturevalue("spark_cluster")
    configuration: Path = request.getfixturevalue("tmp_path") / "spark-conf"
    configuration.mkdir()
    there = {f"spark.executorEnv.{name}": value for name, value in hdfs.environment().items()}
    settings = {**cluster.settings(), **there}
    text = "".join(f"{name} {value}\n" for name, value in settings.items())
    (configuration / "spark-defaults.conf").write_text(text)
    environment = {**hdfs.environment(), **cluster.environment(), "SPARK_CONF_DIR": str(configuration)}
    return Surroundings([f"{hdfs.url}/Projects/tiny", cluster.url], environment)


SURROUNDINGS = {"stanford_dogs_gcs": in_a_bucket, "tiny_imagenet_spark_hdfs": on_a_cluster}


def frameworks(example: Path) -> list[str]:
    """What an example imports that is slow to import."""
    imports = [
        line for line in example.read_text(encoding="utf-8").splitlines() if re.match(r"\s*(import|from) ", line)
    ]
    return sorted(set(FRAMEWORKS.findall("\n".join(imports))))


def marks(example: Path) -> list[pytest.MarkDecorator]:
    """What an example needs."""
    needs = pytest.mark.needs(*frameworks(example))
    return [needs, *([pytest.mark.servers] if example.stem in SURROUNDINGS else [])]


def test_there_are_examples() -> None:
    trained = {"torch_training", "tensorflow_fit", "train_resnet_torch_ddp", "train_resnet_keras"}
    assert {path.stem for path in EXAMPLES} >= {"train_transform", *trained, *SURROUNDINGS}


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=marks(path), id=path.stem) for path in EXAMPLES],
)
@pytest.mark.slow
def test_an_example_runs(example: Path, dataset: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with ExitStack() as ends:
        python, surroundings = sys.executable, Surroundings()
        if example.stem in SURROUNDINGS:
            surroundings = SURROUNDINGS[example.stem](request, ends)
        elif len(needed := frameworks(example)) == 1:  # which others need, too
            python = preloaded.python(*needed)
        environment = {**os.environ, "STOKER_CACHE_DIR": str(tmp_path / "cache"), **surroundings.environment}
        words = (example, dataset, *surroundings.addresses)
        result = run_python(*words, python=python, cwd=tmp_path, env=environment, seconds=180)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.strip()
