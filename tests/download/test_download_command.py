"""``stoker download``: words, environment, terminal, JSON, interrupts."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from download import faulty_server as does
from download.faulty_server import FaultyServer, remote
from stoker.cli import download as command
from stoker.cli.main import main
from stoker.download.catalogue import AccountNames, RemoteDataset
from terminals import at_terminal

if TYPE_CHECKING:
    from commands import Cli

KEY = "s3cret-of-ada"
SECRETS = (KEY, base64.b64encode(f"ada:{KEY}".encode()).decode())
NAMES = AccountNames("IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY", "IMAGENET_OUT_DIR", "https://image-net.example")

# A catalogue of one small file, for processes of their own. Arguments: size, MD5, and the words of the command.
PROGRAM = """
import sys
from stoker.cli import download
from stoker.cli.main import main
from stoker.download.catalogue import AccountNames, RemoteDataset, RemoteFile
names = AccountNames("IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY", "IMAGENET_OUT_DIR", "https://image-net.example")
file = RemoteFile("a.tar", "a.tar", sys.argv[2], int(sys.argv[1]))
download.DATASETS.clear()
download.DATASETS["imagenet"] = RemoteDataset("imagenet", ("https://unused.example/",), (file,), names)
sys.exit(main(sys.argv[3:]))
"""


def words(body: bytes, *rest: str) -> list[str]:
    checksum = remote("a.tar", body).checksum
    return [sys.executable, "-c", PROGRAM, str(len(body)), checksum, "download", "imagenet", *rest]


def wants_account(to: does.Handler) -> None:
    if to.headers.get("Authorization") == f"Basic {SECRETS[1]}":
        does.serve(to)
    else:
        does.answer(401, WWW_Authenticate="Basic")(to)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, server: FaultyServer, body: bytes) -> FaultyServer:
    """The catalogue has one dataset, of one small file, at the server."""
    dataset = RemoteDataset("imagenet", (server.url,), (remote("a.tar", body),), NAMES)
    monkeypatch.setattr(command, "DATASETS", {"imagenet": dataset})
    return server


def test_the_report_for_a_person(tmp_path: Path, small: FaultyServer, cli: Cli) -> None:
    shown = cli("download", "imagenet", tmp_path / "out")
    assert f"{tmp_path}/out/a.tar  fetched  600.0 KB  MD5 right" in shown
    assert f"next: stoker plan {tmp_path}/out" in shown
    assert "there already" in cli("download", "imagenet", tmp_path / "out")


def test_the_report_for_a_program(tmp_path: Path, small: FaultyServer, cli: Cli) -> None:
    small.script.append(does.drop_after(1000))
    (tmp_path / "a.tar").write_bytes(b"damaged")
    cli("download", "imagenet", tmp_path, "--json")
    document = json.loads(cli.out)
    assert document["files"] == [
        {
            "path": str(tmp_path / "a.tar"),
            "outcome": "fetched",
            "bytes": 600_000,
            "fetched_bytes": 600_000,
            "checksum": remote("a.tar", small.files["a.tar"]).checksum,
            "folder": None,
            "moved_aside": [str(tmp_path / "a.tar.damaged")],
        }
    ]
    assert (document["dataset"], document["source"]) == ("imagenet", str(tmp_path))
    assert len(document["notes"]) == 2
    assert all(note in cli.err for note in document["notes"])


def test_environment_variables(tmp_path: Path, small: FaultyServer, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    small.always = wants_account
    monkeypatch.setenv("IMAGENET_OUT_DIR", str(tmp_path / "out"))
    monkeypatch.setenv("IMAGENET_USERNAME", "ada")
    monkeypatch.setenv("IMAGENET_ACCESS_KEY", KEY)
    cli("download", "imagenet", "--json")
    assert not any(secret in cli.out + cli.err for secret in SECRETS)
    assert (tmp_path / "out/a.tar").read_bytes() == small.files["a.tar"]
    small.always = does.answer(401, WWW_Authenticate="Basic")
    (tmp_path / "out/a.tar").unlink()
    cli("download", "imagenet", "--json", code=1)
    assert not any(secret in cli.out + cli.err for secret in SECRETS)


def test_an_account_in_the_url_is_used_and_not_shown(tmp_path: Path, small: FaultyServer, cli: Cli) -> None:
    url = small.url.replace("//", f"//ada:{KEY}@")
    missing, refusing = does.answer(404), does.answer(401, WWW_Authenticate="Basic")
    for behave, code in ((wants_account, 0), (missing, 1), (refusing, 1)):
        small.always = behave
        (tmp_path / "a.tar").unlink(missing_ok=True)
        cli("download", "imagenet", tmp_path, "--url", url, "--json", code=code)
        assert ("HTTP 404" in cli.err) is (behave is missing)
        assert not any(secret in cli.out + cli.err for secret in SECRETS)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ([], "no directory to download to"),
        (["--url", f"https://ada:{KEY}@host/?x"], "--url is not a base URL"),
        (["--devkit"], "--devkit is for imagenet"),
        (["--nix"], "no option --nix"),
    ],
)
def test_wrong_words_are_refused(rest: list[str], message: str, cli: Cli) -> None:
    cli("download", "tiny-imagenet", *rest, code=2)
    assert message in cli.err
    assert KEY not in cli.err


def test_a_directory_that_is_a_file_is_refused(tmp_path: Path, small: FaultyServer) -> None:
    (tmp_path / "file").touch()
    assert main(["download", "imagenet", str(tmp_path / "file")]) == 2
    assert small.seen == []


def test_scripts_are_not_asked(tmp_path: Path, small: FaultyServer, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    small.always = wants_account
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert "set IMAGENET_USERNAME and IMAGENET_ACCESS_KEY" in cli("download", "imagenet", tmp_path, code=2)
        assert "set IMAGENET_OUT_DIR" in cli("download", "imagenet", code=2)


@pytest.mark.slow
def test_a_person_is_asked_and_what_is_typed_is_not_shown(tmp_path: Path, server: FaultyServer, body: bytes) -> None:
    server.always = wants_account
    program = words(body, "--url", server.url)[1:]
    answers = {
        b"directory to download to: ": bytes(tmp_path / "out") + b"\n",
        b"user name: ": b"ada\n",
        b"access key (not shown): ": KEY.encode() + b"\n",
    }
    code, shown = at_terminal(*program, answers=answers, no_proxy="*", NO_COLOR="1", TERM="dumb")
    assert code == 0, shown
    assert (tmp_path / "out/a.tar").read_bytes() == body
    assert b"ada" in shown
    assert all(secret.encode() not in shown for secret in SECRETS)


@pytest.mark.parametrize(("way", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
@pytest.mark.slow
def test_a_resumed_download(tmp_path: Path, server: FaultyServer, body: bytes, way: signal.Signals, code: int) -> None:
    server.pause = 0.2
    program = words(body, str(tmp_path), "--url", server.url, "--json")
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    part = tmp_path / "a.tar.part"
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 100_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(way)
    _, error = process.communicate(timeout=30)
    assert process.returncode == code, error
    if way == signal.SIGINT:
        assert "run the same command to resume" in error
    kept = part.stat().st_size
    assert 100_000 < kept < len(body)
    assert part.read_bytes() == body[:kept]
    server.pause = 0
    time.sleep(0.5)  # the handler of the first connection has noticed by now that the client has gone
    server.sent = 0
    done = subprocess.run(program, env=environment, check=True, capture_output=True, text=True, timeout=60)
    assert server.sent == len(body) - kept
    assert server.ranges() == [None, f"bytes={kept}-"]
    assert json.loads(done.stdout)["files"][0]["outcome"] == "resumed"
    assert (tmp_path / "a.tar").read_bytes() == body
