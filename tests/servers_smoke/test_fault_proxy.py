"""Each fault of the proxy is what it says, as a client without opinions sees it."""

from __future__ import annotations

import http.client
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from servers.faults import Answer, CutUpload, Fault, FaultProxy, Flip, FlipUpload, Reset, Stall, Truncate
from servers.plain_http import ask
from servers.rules import Request

if TYPE_CHECKING:
    from servers.gcs import GcsServer

pytestmark = pytest.mark.servers

BODY = random.Random(5).randbytes(100_000)


@pytest.fixture(scope="module")
def path(gcs_server: GcsServer) -> str:
    """Of an object with `BODY`."""
    bucket = gcs_server.make_bucket()
    assert upload(gcs_server.endpoint, f"/{bucket}/some/object", BODY) == 200
    return f"/{bucket}/some/object"


def upload(endpoint: str, path: str, body: bytes) -> int:
    _, bucket, name = path.split("/", 2)
    query = f"uploadType=media&name={name}"
    return ask("POST", f"{endpoint}/upload/storage/v1/b/{bucket}/o?{query}", body).status


def get(proxy: FaultProxy, path: str, wanted: str = "") -> bytes:
    return ask("GET", proxy.url + path, headers={"Range": f"bytes={wanted}"} if wanted else {}).body


def test_without_faults_everything_passes_and_is_counted(faulty_gcs: FaultProxy, path: str) -> None:
    assert get(faulty_gcs, path) == BODY
    assert get(faulty_gcs, path, "10-19") == BODY[10:20]
    assert upload(faulty_gcs.url, f"{path}-2", b"x" * 5000) == 200
    assert ask("HEAD", faulty_gcs.url + path).headers["content-length"] == "100000"
    traffic = faulty_gcs.traffic
    assert traffic.requests == {"GET": 2, "POST": 1, "HEAD": 1}
    assert (traffic.most_at_once, traffic.faults) == (1, {})
    assert traffic.seen[1] == Request("GET", path, 10, 19)
    assert traffic.seen[2].sent == 5000


@pytest.mark.parametrize("status", [503, 429, 500])
def test_an_answer_is_made_up(faulty_gcs: FaultProxy, path: str, status: int) -> None:
    faulty_gcs.faults = [Fault(Answer(status), count=1)]
    assert ask("POST", faulty_gcs.url + path, BODY).status == status
    assert get(faulty_gcs, path) == BODY
    assert faulty_gcs.traffic.faults == {"Answer": 1}


def test_a_connection_is_reset_before_the_server_sees_anything(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.faults = [Fault(Reset(), method="POST")]
    with pytest.raises(ConnectionResetError):
        upload(faulty_gcs.url, f"{path}-never", b"x")
    assert ask("GET", f"{faulty_gcs.url}{path}-never").status == 404


def test_an_answer_is_lost_after_the_server_has_done_its_work(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.faults = [Fault(Reset(served=True), method="POST")]
    with pytest.raises(ConnectionResetError):
        upload(faulty_gcs.url, f"{path}-there", b"x")
    assert get(faulty_gcs, f"{path}-there") == b"x"
    assert faulty_gcs.traffic.faults == {"Reset": 1}


def test_an_upload_is_cut(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.faults = [Fault(CutUpload(at=70_000), method="POST", count=1)]
    assert upload(faulty_gcs.url, f"{path}-short", BODY[:70_000]) == 200
    with pytest.raises(OSError):  # noqa: PT011 - reset or broken pipe, as it happens
        upload(faulty_gcs.url, f"{path}-half", BODY)
    assert faulty_gcs.traffic.faults == {"CutUpload": 1}
    assert ask("GET", f"{faulty_gcs.url}{path}-half").status == 404


def test_a_body_is_cut_under_the_length_of_the_whole(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.faults = [Fault(Truncate(at=70_001))]
    with pytest.raises(http.client.IncompleteRead) as caught:
        get(faulty_gcs, path)
    assert caught.value.partial == BODY[:70_001]


def test_a_body_is_cut_under_its_own_length(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.faults = [Fault(Truncate(at=300, honest=True))]
    reply = ask("GET", faulty_gcs.url + path)
    assert (reply.body, reply.headers["content-length"]) == (BODY[:300], "300")


@pytest.mark.parametrize("at", [0, 50_000, 99_999, None])
def test_one_bit_is_wrong(faulty_gcs: FaultProxy, path: str, at: int | None) -> None:
    faulty_gcs.faults = [Fault(Flip(at))]
    assert wrong_bits(get(faulty_gcs, path)) == [(50_000 if at is None else at, 1)]


def wrong_bits(body: bytes) -> list[tuple[int, int]]:
    return [(i, a ^ b) for i, (a, b) in enumerate(zip(body, BODY, strict=True)) if a != b]


def test_one_bit_of_an_upload_is_wrong(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.faults = [Fault(FlipUpload(at=70_000), method="POST")]
    assert upload(faulty_gcs.url, f"{path}-flipped", BODY) == 200
    assert wrong_bits(get(faulty_gcs, f"{path}-flipped")) == [(70_000, 1)]


def test_a_body_stalls_in_its_midst(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.faults = [Fault(Stall(0.3, at=40_000), count=1)]
    start = time.monotonic()
    assert get(faulty_gcs, path) == BODY
    assert time.monotonic() - start >= 0.3
    faulty_gcs.faults = [Fault(Stall(30, at=40_000))]
    with pytest.raises(TimeoutError):
        ask("GET", faulty_gcs.url + path, seconds=0.3)


def test_faults_strike_the_requests_they_name(faulty_gcs: FaultProxy, path: str) -> None:
    def statuses(*ranges: str) -> list[int]:
        return [ask("GET", faulty_gcs.url + path, headers={"Range": f"bytes={r}"}).status for r in ranges]

    faulty_gcs.faults = [Fault(Answer(503), nth=2)]
    assert statuses("0-9", "0-9", "0-9") == [206, 503, 206]
    faulty_gcs.faults = [Fault(Answer(503), holds=20)]
    assert statuses("0-19", "10-20", "20-29", "21-30") == [206, 503, 503, 206]
    faulty_gcs.faults = [Fault(Answer(503), at_least=100)]
    assert statuses("0-98", "0-99") == [206, 503]
    faulty_gcs.faults = [Fault(Answer(503), method="PUT"), Fault(Answer(500), path="no such")]
    assert statuses("0-9") == [206]
    faulty_gcs.faults = [Fault(Answer(503), probability=0.5, seed=1, count=3)]
    first = statuses(*["0-9"] * 20)
    assert first.count(503) == 3
    assert first[:3] != [503] * 3
    faulty_gcs.faults = [Fault(Answer(503), probability=0.5, seed=1, count=3)]
    assert statuses(*["0-9"] * 20) == first


def test_a_fault_of_a_body_that_has_not_so_many_bytes_is_not_served(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.faults = [Fault(Flip(at=10), count=1)]
    assert get(faulty_gcs, path, "0-9") == BODY[:10]
    assert faulty_gcs.traffic.faults == {}
    assert get(faulty_gcs, path, "0-10") != BODY[:11]
    assert faulty_gcs.traffic.faults == {"Flip": 1}


def test_latency_is_added_to_each_request_and_not_to_their_sum(faulty_gcs: FaultProxy, path: str) -> None:
    faulty_gcs.latency = 0.2
    start = time.monotonic()
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(lambda _: get(faulty_gcs, path, "0-9"), range(16))) == [BODY[:10]] * 16
    assert time.monotonic() - start >= 0.2
    assert faulty_gcs.traffic.most_at_once > 1  # 1 if one request waited for the end of another


def test_a_server_that_is_not_there_looks_like_one_that_is_not_there(path: str) -> None:
    with FaultProxy("http://127.0.0.1:9") as proxy, pytest.raises(ConnectionResetError):
        get(proxy, path)
