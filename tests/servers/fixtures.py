"""The servers as fixtures: started once for all tests that ask for them, with a proxy for each test that wants faults.

A test that stops a server of the session starts it again before it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .azure import AzureServer
    from .faults import FaultProxy
    from .gcs import GcsServer
    from .hdfs import HdfsServer
    from .s3 import S3Server
    from .spark_cluster import SparkCluster

# Imported where they are needed: most tests need none of them, nor what they stand on.
# ruff: noqa: PLC0415


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3 server; make a bucket of your own."""
    from . import s3

    with s3.running() as server:
        yield server


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[GcsServer]:
    """A GCS server with its objects in memory; make a bucket of your own."""
    from . import gcs

    with gcs.running() as server:
        yield server


@pytest.fixture(scope="session")
def azure_server() -> Iterator[AzureServer]:
    """A stand-in for Azure Blob Storage; make a container of your own."""
    from . import azure

    with azure.running() as server:
        yield server


@pytest.fixture(scope="session")
def hdfs_server() -> Iterator[HdfsServer]:
    """A real HDFS; make a directory of your own."""
    from . import hdfs

    with hdfs.running() as server:
        yield server


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[SparkCluster]:
    """A real Spark cluster of two workers with one core each, at 127.0.0.2 and 127.0.0.3."""
    from . import spark_cluster

    with spark_cluster.running() as cluster:
        yield cluster


@pytest.fixture
def faulty_s3(s3_server: S3Server) -> Iterator[FaultProxy]:
    """A proxy before the S3 server; clients reach it by ``s3_server.environment(faulty_s3.url)``."""
    from .faults import FaultProxy

    with FaultProxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def faulty_gcs(gcs_server: GcsServer) -> Iterator[FaultProxy]:
    """A proxy before the GCS server; clients reach it by ``gcs_server.environment(faulty_gcs.url)``."""
    from .faults import FaultProxy

    with FaultProxy(gcs_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def faulty_azure(azure_server: AzureServer) -> Iterator[FaultProxy]:
    """A proxy before the stand-in for Azure; clients reach it by ``azure_server.environment(faulty_azure.url)``."""
    from .faults import FaultProxy

    with FaultProxy(azure_server.endpoint) as proxy:
        yield proxy
