"""Settings that one source has of its own, instead of those of the environment, and that nothing shows."""

from __future__ import annotations

import pickle
import traceback
from typing import TYPE_CHECKING

import pytest

import stoker
from reference import pictures
from servers import azure
from servers.web import WebHandler, web_server
from stoker.errors import ConfigError
from stoker.storage import location, retrying, stores
from storage.store_folders import forget
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.s3 import S3Server

SECRETS = (azure.KEY, azure.SAS, "the-secret", "the-session")


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nothing was given, not even by its environment."""
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ENDPOINT", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(retrying, "_FIRST_WAIT", 0.01)
    forget(monkeypatch)


@pytest.fixture
def requests() -> Iterator[list[dict[str, str]]]:
    """What a server that has nothing is asked for, with its URL in front."""
    asked: list[dict[str, str]] = []

    class Handler(WebHandler):
        protocol_version = "HTTP/1.0"  # it reads no body, after which a connection could go on

        def do_GET(self) -> None:
            asked.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
            self.answer(404)

        do_HEAD = do_PUT = do_POST = do_GET  # noqa: N815 - as the library has it

    with web_server(Handler, None) as port:
        asked.append({"path": f"http://127.0.0.1:{port}"})
        yield asked


@pytest.mark.parametrize("kind", ["az", "abfs", "sas"])
def test_a_container_of_an_account_is_built_and_read(
    azure_server: azure.AzureServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "YW5vdGhlcg==")  # of another account
    monkeypatch.setenv("AZURE_SKIP_SIGNATURE", "true")
    container, settings = azure_server.make_bucket(), {"endpoint": f"{azure_server.endpoint}/{azure.ACCOUNT}"}
    url = f"az://{container}"
    if kind == "abfs":
        url = f"abfs://{container}@{azure.ACCOUNT}.dfs.core.windows.net"
    else:
        settings["account_name"] = azure.ACCOUNT
    settings |= {"sas_token": f"?{azure.SAS}"} if kind == "sas" else {"account_key": azure.KEY}
    images = {f"{('dog', 'cat')[number % 2]}/{number}.jpg": pictures.jpeg(40, 30, number) for number in range(6)}
    source = write_files(tmp_path / "photos", images)
    folder = location(f"{url}/built", **settings)
    report = stoker.build(source, folder, shards=2, progress=False)
    copy = stoker.build(source, tmp_path / "here", shards=2, progress=False)
    assert report.manifest.dataset_id == copy.manifest.dataset_id
    opened = stoker.open(f"{url}/built", "train")
    here = stoker.open(tmp_path / "here", "train")
    assert [sample.encoded for sample in opened] == [sample.encoded for sample in here]
    sent = pickle.dumps(opened)
    forget(monkeypatch)
    assert len(pickle.loads(sent)) == len(here)
    shown = f"{folder!r}{opened!r}{stores.given!r}{report!r}"
    assert not [secret for secret in SECRETS if secret in shown]
    stored = b"".join(data for data, _ in azure_server.blobs[container].values())
    assert not [secret for secret in SECRETS if secret.encode() in stored]


def test_a_slip_can_be_corrected_and_another_store_is_none(azure_server: azure.AzureServer) -> None:
    container, endpoint = azure_server.make_bucket(), f"{azure_server.endpoint}/{azure.ACCOUNT}"
    settings = {"endpoint": endpoint, "account_name": azure.ACCOUNT, "account_key": azure.KEY}
    wrong = location(f"az://{container}/x", **settings | {"account_key": "YW5vdGhlcg=="})
    with pytest.raises(PermissionError) as caught:
        wrong.read_bytes()
    assert "YW5vdGhlcg==" not in "".join(traceback.format_exception(caught.value))
    location(f"az://{container}/x", **settings).write_atomically(b"data")
    assert wrong.read_bytes() == b"data"
    with pytest.raises(ConfigError, match="cannot have two stores of one name"):
        location(f"az://{container}/x", **settings | {"endpoint": "http://127.0.0.1:9"})
    assert wrong.read_bytes() == b"data"


def test_who_pays_is_sent(requests: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    server = requests.pop()["path"]
    keys = {"access_key_id": "AKID", "secret_access_key": "the-secret", "session_token": "the-session"}
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the environment")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    file = location("s3://bucket/x", endpoint=server, region="eu-north-1", requester_pays=True, **keys)
    assert not file.exists()
    assert {request["x-amz-request-payer"] for request in requests} == {"requester"}
    assert {request["x-amz-security-token"] for request in requests} == {"the-session"}
    assert all("Credential=AKID/" in request["authorization"] for request in requests)
    assert all("/eu-north-1/s3/" in request["authorization"] for request in requests)
    requests.clear()
    with pytest.raises(ConfigError, match="must name the project that pays"):
        location("gs://bucket/x", endpoint=server, requester_pays=True).exists()
    payer = location("gs://bucket/x", endpoint=server, requester_pays="payer")
    assert not payer.exists()
    assert {request["x-goog-user-project"] for request in requests} == {"payer"}
    requests.clear()
    with pytest.raises(OSError, match="x"):
        payer.write_atomically(b"")
    assert all("userProject=payer" in request["path"] for request in requests)


def test_a_public_bucket_needs_no_credentials(requests: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    server = requests.pop()["path"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-secret")
    assert not location("s3://public/x", endpoint=server, anonymous=True).exists()
    assert requests
    assert not any("authorization" in request for request in requests)


@pytest.mark.parametrize(
    ("url", "settings", "problem"),
    [
        ("s3://bucket/x", {"endpoint_url": "http://127.0.0.1:9"}, "takes no setting 'endpoint_url'; .*endpoint"),
        ("https://a.example/x", {"anonymous": True}, "it takes none"),
        ("/data/x", {"region": "eu-north-1"}, "a path of this machine"),
        ("s3://bucket/x", {"profile": "nobody"}, "no profile 'nobody' in ~/.aws/config"),
        ("az://container/x", {"account_key": azure.KEY}, "give account_name to stoker.location"),
    ],
)
def test_settings_that_mean_nothing(url: str, settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        location(url, **settings).exists()
    assert azure.KEY not in str(caught.value)


@pytest.mark.servers
def test_a_bucket_with_keys_of_its_own(s3_server: S3Server) -> None:
    environment = s3_server.environment()
    file = location(
        f"s3://{s3_server.make_bucket()}/x",
        endpoint=environment["AWS_ENDPOINT_URL"],
        region=environment["AWS_REGION"],
        access_key_id=environment["AWS_ACCESS_KEY_ID"],
        secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
    )
    file.write_atomically(b"data")
    assert file.read_bytes() == b"data"
