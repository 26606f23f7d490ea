"""The servers are real ones: clients that people use read and write through them."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
import pytest
from obstore.store import GCSStore, S3Store

from servers import gcs
from servers.plain_http import ask
from servers.processes import Process, ServerError
from servers.s3 import sign

if TYPE_CHECKING:
    from servers.faults import FaultProxy
    from servers.gcs import GcsServer
    from servers.s3 import S3Server

pytestmark = pytest.mark.servers

BODY = random.Random(6).randbytes(6_000_000)


def s3_store(server: S3Server, bucket: str, endpoint: str = "") -> S3Store:
    environment = server.environment(endpoint)
    config = {name.lower(): environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")}
    return S3Store(bucket, config=config, endpoint=environment["AWS_ENDPOINT_URL"], client_options={"allow_http": True})


def gcs_store(endpoint: str, bucket: str) -> GCSStore:
    empty = {"client_email": "", "private_key": "", "private_key_id": ""}
    key = json.dumps({"gcs_base_url": endpoint, "disable_oauth": True, **empty})
    return GCSStore(bucket, config={"service_account_key": key}, client_options={"allow_http": True})


def test_s3_through_the_proxy_keeps_what_is_signed(s3_server: S3Server, faulty_s3: FaultProxy) -> None:
    bucket = s3_server.make_bucket()
    store = s3_store(s3_server, bucket, faulty_s3.url)
    obstore.put(store, "some/key with+odd=é.bin", BODY, use_multipart=False)
    with obstore.open_writer(store, "in parts", buffer_size=5 << 20) as writer:
        writer.write(BODY)
    for key in ("some/key with+odd=é.bin", "in parts"):
        assert obstore.get(store, key).bytes() == BODY
        assert obstore.get_range(store, key, start=5_000_000, end=5_000_100) == BODY[5_000_000:5_000_100]
    assert {meta["path"] for meta in obstore.list(store).collect()} == {"some/key with+odd=é.bin", "in parts"}


def test_encodings_of_bodies_pass_the_proxy_as_they_are(s3_server: S3Server, faulty_s3: FaultProxy) -> None:
    path = f"/{s3_server.make_bucket()}/zipped"
    url = faulty_s3.url + path
    packed = gzip.compress(BODY[:10_000])
    encoded = {"Content-Encoding": "gzip", "Expect": "100-continue", **sign(s3_server, "PUT", url, packed)}
    assert ask("PUT", url, packed, encoded).status == 200
    reply = s3_server.ask("GET", path, endpoint=faulty_s3.url)
    assert (reply.headers["content-encoding"], reply.body) == ("gzip", packed)
    assert faulty_s3.traffic.seen[0].sent == len(packed)


def test_s3_refuses_requests_without_a_right_signature(s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket()
    url = f"{s3_server.endpoint}/{bucket}/x"
    assert s3_server.ask("PUT", f"/{bucket}/x", b"x").status == 200
    assert ask("GET", url).status == 403
    wrong = sign(s3_server, "GET", url)
    wrong["authorization"] = wrong["authorization"][:-1] + ("0" if wrong["authorization"][-1] != "0" else "1")
    assert ask("GET", url, headers=wrong).status == 403


def test_s3_has_the_same_objects_at_the_same_address_after_a_restart(s3_server: S3Server) -> None:
    bucket = s3_server.make_bucket()
    assert s3_server.ask("PUT", f"/{bucket}/kept", BODY).status == 200
    s3_server.kill()
    with pytest.raises(ConnectionRefusedError):
        s3_server.ask("GET", f"/{bucket}/kept")
    s3_server.start()
    assert s3_server.ask("GET", f"/{bucket}/kept").body == BODY


def test_gcs_takes_from_gcsfs_and_serves_obstore(gcs_server: GcsServer, faulty_gcs: FaultProxy, tmp_path: Path) -> None:
    bucket = gcs_server.make_bucket()
    (tmp_path / "body").write_bytes(BODY)
    # As users have it: a process that finds the server by its environment.
    program = """if True:
        import sys, gcsfs
        files = gcsfs.GCSFileSystem(token="anon", project="tests")
        bucket, body = sys.argv[1], open(sys.argv[2], "rb").read()
        files.pipe_file(f"{bucket}/some/object", body)
        with files.open(f"{bucket}/in parts", "wb", block_size=1 << 20) as out:
            for at in range(0, len(body), 1 << 20):
                out.write(body[at : at + (1 << 20)])
        assert files.cat_file(f"{bucket}/in parts") == body
    """
    environment = {**os.environ, **gcs_server.environment(faulty_gcs.url)}
    subprocess.run(
        [sys.executable, "-c", program, bucket, str(tmp_path / "body")], check=True, timeout=60, env=environment
    )
    assert any("upload_id=" in seen.path for seen in faulty_gcs.traffic.seen)
    sent = sum(seen.sent for seen in faulty_gcs.traffic.seen)
    assert sent >= 2 * len(BODY), "a resumable upload goes on through the proxy"
    store = gcs_store(faulty_gcs.url, bucket)
    for key in ("some/object", "in parts"):
        assert obstore.get(store, key).bytes() == BODY


def test_gcs_keeps_objects_over_a_restart_if_asked_to() -> None:
    with gcs.running(keeps=True) as server:
        bucket = server.make_bucket()
        url = f"{server.endpoint}/upload/storage/v1/b/{bucket}/o?uploadType=media&name=kept"
        assert ask("POST", url, b"kept").status == 200
        server.kill()
        server.start()
        assert ask("GET", f"{server.endpoint}/{bucket}/kept").body == b"kept"


def test_a_server_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    ends = Process("some server", ["/bin/sh", "-c", "echo no such setting; exit 3"], tmp_path)
    ends.start()
    with pytest.raises(ServerError, match=r"(?s)some server ended with status 3 before.*no such setting"):
        ends.wait_until(lambda: False, 10)
    waits = Process("slow server", ["/bin/sh", "-c", "echo still busy; sleep 60"], tmp_path)
    waits.start()
    with pytest.raises(ServerError, match=r"(?s)slow server was not ready within 0.3 s.*still busy"):
        waits.wait_until(lambda: False, 0.3)
    assert not waits.alive


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the process in /proc")
def test_no_server_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import os, sys, pathlib; from servers.processes import Process; "
        "p = Process('s', ['/bin/sleep', '60'], pathlib.Path(sys.argv[1])); p.start(); "
        "print(p.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    dying = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, env=environment)
    pid = int(dying.communicate(timeout=30)[0])
    deadline = time.monotonic() + 5
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
