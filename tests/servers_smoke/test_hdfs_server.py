"""The HDFS server is a real one: hdfs-native reads and writes."""

from __future__ import annotations

import random
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
    hdfs_server.kill()
    hdfs_server.start()
    assert Client(hdfs_server.url).read("/kept").read() == BODY
