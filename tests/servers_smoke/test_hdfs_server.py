"""The HDFS server is a real one: hdfs-native reads and writes, data pass by a proxy."""

from __future__ import annotations

import random
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hdfs_native import Client

if TYPE_CHECKING:
    from servers.hdfs import HdfsServer

pytestmark = pytest.mark.servers

BODY = random.Random(7).randbytes(3_000_000)


def write(client: Client, path: str, body: bytes) -> None:
    with client.create(path) as out:
        out.write(body)


def test_it_gives_back_what_it_took_and_renames_over_nothing(hdfs_server: HdfsServer) -> None:
    client = Client(hdfs_server.url)
    client.mkdirs("/smoke/round", create_parent=True)
    write(client, "/smoke/round/one", BODY)
    write(client, "/smoke/round/two", b"")
    assert client.read("/smoke/round/one").read() == BODY
    assert sorted(status.path for status in client.list_status("/smoke/round")) == [
        "/smoke/round/one",
        "/smoke/round/two",
    ]
    with pytest.raises(FileExistsError):
        client.rename("/smoke/round/one", "/smoke/round/two")


def test_it_has_the_same_files_at_the_same_address_after_a_restart(hdfs_server: HdfsServer) -> None:
    write(Client(hdfs_server.url), "/kept", BODY)
    hdfs_server.restart()
    assert Client(hdfs_server.url).read("/kept").read() == BODY


@pytest.mark.skipif(sys.platform != "linux", reason="the proxy is at 127.0.0.2, which only Linux has by itself")
def test_data_pass_by_a_proxy_that_delays_and_breaks(hdfs_server: HdfsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in hdfs_server.environment(by_proxy=True).items():
        monkeypatch.setenv(name, value)
    client = Client(hdfs_server.url)
    with hdfs_server.data_proxy(latency=0.1) as proxy:
        write(client, "/by-proxy", BODY)
        assert proxy.sent > len(BODY)
        start = time.monotonic()
        assert client.read("/by-proxy").read() == BODY
        assert 0.2 <= time.monotonic() - start < 10  # a round trip for the connection and one for the request
        assert proxy.received > len(BODY)
        proxy.refusing = True
        proxy.reset()
        with pytest.raises(RuntimeError, match="All DataNodes failed"):
            client.read("/by-proxy").read()
        proxy.refusing = False
        proxy.latency = 0
        assert client.read("/by-proxy").read() == BODY
