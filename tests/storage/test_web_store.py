"""Tars, TFRecords and datasets on a web server that sends parts of files, and on one that does that badly."""

from __future__ import annotations

import pickle
import re
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from builder.trees import contents
from reference import pictures
from servers.web import WebHandler, web_server
from sources.making import tar_bytes
from stoker.cli.main import main
from stoker.errors import ConfigError, DatasetNotFoundError, SourceError, StokerError, StorageError
from stoker.forks import PerProcess
from stoker.sources import list_source
from stoker.storage import location, retrying, stores, web
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


SIGNATURE = "X-Amz-Signature=5ec2e7"


@dataclass
class FileServer:
    """What it serves.

    Attributes:
        root: The folder.
        faults: What it does with the next requests, one each, by way of the whole file; then it is a good server.
        always: What it does instead with all of them.
        missing: Its answer where there is no file; buckets that are not public do not say that there is none.
    """

    root: Path
    url: str = ""
    faults: list[Callable[[Handler, bytes], None]] = field(default_factory=list)
    always: Callable[[Handler, bytes], None] | None = None
    missing: int = 404
    requests: list[str] = field(default_factory=list)


class Handler(WebHandler):
    state: FileServer

    def do_GET(self) -> None:
        self.state.requests.append(f"{self.path} {self.headers.get('Range')}")
        path = self.state.root / self.path.partition("?")[0].lstrip("/")
        if not path.is_file():
            self.answer(self.state.missing, b"")
            return
        behaviour = self.state.faults.pop(0) if self.state.faults else self.state.always or serve
        behaviour(self, path.read_bytes())


serve = Handler.answer_span


def ignore_ranges(to: Handler, data: bytes) -> None:
    to.answer(200, data)


def send_another_part(to: Handler, data: bytes) -> None:
    to.answer(206, data[1:3], Content_Range=f"bytes 1-2/{len(data)}")


def demand_a_signature(to: Handler, data: bytes) -> None:
    """As a bucket that is not public."""
    if SIGNATURE in to.path:
        serve(to, data)
    else:
        to.answer(403, b"<Error><Code>AccessDenied</Code></Error>")


def say_busy(to: Handler, _: bytes) -> None:
    to.answer(503, b"")


def break_off(to: Handler, data: bytes) -> None:
    to.answer(206, Content_Length=10, Content_Range=f"bytes {to.span[0] if to.span else 0}-9/{len(data)}")
    to.close_connection = True


@contextmanager
def serving(root: Path) -> Iterator[FileServer]:
    files = FileServer(root)
    with web_server(Handler, files) as port:
        files.url = f"http://127.0.0.1:{port}"
        yield files


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(retrying, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(retrying, "_LONGEST_WAIT", 0.05)
    monkeypatch.setattr(retrying, "_SECONDS", 1.0)
    monkeypatch.setattr(web, "_client", PerProcess(web._Client))
    monkeypatch.setattr(stores._stores.get(), "opened", {})
    monkeypatch.setattr(stores.given, "queries", {})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FileServer]:
    """A server of a tar of folders, two WebDataset tars, and a dataset."""
    root = tmp_path / "web"
    photos = {f"{name}/{number}.jpg": pictures.jpeg(40, 30, number) for number, name in enumerate(["cat", "dog"] * 6)}
    samples = {
        f"{number:03d}.{kind}": data
        for number in range(8)
        for kind, data in (
            ("jpg", pictures.jpeg(40, 30, number)),
            ("cls", b"%d" % (number % 2)),
            ("txt", b"number %d" % number),
        )
    }
    first, second = (dict([*samples.items()][part]) for part in (slice(12), slice(12, None)))
    tars = {"pets.tar": photos, "shard-000000.tar": first, "shard-000001.tar": second}
    write_files(root, {name: tar_bytes(members) for name, members in tars.items()} | {"empty": b""})
    stoker.build(root / "pets.tar", root / "dataset", shards=2, progress=False)
    with serving(root) as file_server:
        yield file_server


def batches(dataset: stoker.Dataset) -> list[tuple[np.ndarray, list[int]]]:
    with stoker.Loader(dataset, 4, transform=stoker.Resize(16), shuffle=True, seed=3) as loader:
        return [(batch.images.copy(), batch.labels.tolist()) for batch in loader]


@pytest.mark.parametrize("name", ["pets.tar", "shard-{000000..000001}.tar"])
@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_a_build_of_tars_is_that_of_their_copies(tmp_path: Path, server: FileServer, name: str) -> None:
    stoker.build(f"{server.url}/{name}", tmp_path / "there", progress=False)
    stoker.build(server.root / name, tmp_path / "here", progress=False)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.parametrize("name", ["pets.tar", "dataset", "dataset/train-00001-of-00002.tfrecord"])
@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.slow
def test_what_is_opened_gives_the_batches_of_its_copy(server: FileServer, name: str) -> None:
    server.faults = [say_busy, break_off]
    there = batches(stoker.open(f"{server.url}/{name}"))
    here = batches(stoker.open(server.root / name))
    assert len(there) == len(here) > 0
    for (images, labels), (others, other_labels) in zip(there, here, strict=True):
        assert labels == other_labels
        np.testing.assert_array_equal(images, others)


def test_what_is_asked_of_files(server: FileServer) -> None:
    tar = location(f"{server.url}/pets.tar")
    size = (server.root / "pets.tar").stat().st_size
    assert (tar.size(), tar.is_file(), tar.is_dir(), tar.is_local) == (size, True, False, False)
    assert tar.read_range(size - 5, 10) == (server.root / "pets.tar").read_bytes()[-5:]
    assert location(f"{server.url}/empty").read_bytes() == b""
    assert location(f"{server.url}/empty").size() == 0
    assert not location(f"{server.url}/nothing").exists()
    with pytest.raises(OSError, match="is larger than 10 bytes"):
        tar.read_at_most(10)


def test_what_is_not_there_is_told(server: FileServer) -> None:
    with pytest.raises(DatasetNotFoundError, match="there is no such file"):
        stoker.open(f"{server.url}/nothing.tar")
    with pytest.raises(SourceError, match="does not exist"):
        list_source(f"{server.url}/nothing.tar")


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (ignore_ranges, "does not send parts of files, and lists no folders; download it, and give the copy"),
        (send_another_part, "the server sends 'bytes 1-2/"),
        (say_busy, "HTTP 503 Service Unavailable; tried"),
        (break_off, "the connection ended before all of it was there; tried"),
    ],
)
@pytest.mark.slow
def test_a_server_that_does_it_badly_ends_the_build(
    tmp_path: Path, server: FileServer, behaviour: Callable[[Handler, bytes], None], message: str
) -> None:
    server.always = behaviour
    with pytest.raises(StorageError, match=re.escape(message)):
        stoker.build(f"{server.url}/pets.tar", tmp_path / "out", progress=False)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http:///a.tar", "names no server; write http://HOST/PATH"),
        ("https://a.example/a.tar?token=1#part", "^https://a.example/a.tar has a fragment"),
        ("https://user:key@a.example/a.tar", "has credentials in it"),
        ("https:/a.example/a.tar", "looks like a URL that has lost a slash"),
    ],
)
def test_urls_that_are_not_read(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        stoker.open(url)


def test_nothing_is_written_to_a_web_server(tmp_path: Path, server: FileServer) -> None:
    with pytest.raises(StorageError, match="web servers are only read from; give a folder or a bucket"):
        stoker.build(server.root / "pets.tar", f"{server.url}/out", progress=False)


def test_images_by_url_stand_in_lists_of_their_own(tmp_path: Path, server: FileServer) -> None:
    write_files(tmp_path, {"cat/1.jpg": pictures.jpeg(40, 30, 1)})
    for lines in (f"cat/1.jpg\n{server.url}/cat/2.jpg\n", f"cat/gone.jpg,1\n{server.url}/cat/2.jpg,1\n"):
        (tmp_path / "list.txt").write_text(lines)
        with pytest.raises(SourceError, match=r"line 2 of .*list.txt is the URL of a web server, but the list does"):
            list_source(str(tmp_path / "list.txt"))
    (tmp_path / "metadata.csv").write_text(f"file_name\n{server.url}/cat/2.jpg\n")
    with pytest.raises(SourceError, match=r"line 2 of .*metadata.csv: .* give such images a list of their own"):
        list_source(str(tmp_path))
    assert server.requests == []


def signed(url: str, ends: datetime | None = None) -> str:
    """A URL as S3's clients sign it."""
    began = (ends or datetime.now(UTC) + timedelta(hours=1)) - timedelta(hours=1)
    return f"{url}?X-Amz-Date={began:%Y%m%dT%H%M%SZ}&X-Amz-Expires=3600&{SIGNATURE}"


@pytest.mark.parametrize("name", ["pets.tar", "shard-{000000..000001}.tar"])
@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_a_build_by_signed_urls_is_that_of_the_copies(
    tmp_path: Path, server: FileServer, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level("DEBUG")
    server.always, server.missing = demand_a_signature, 404 if "{" in name else 403
    report = stoker.build(signed(f"{server.url}/{name}"), tmp_path / "there", progress=False)
    stoker.build(server.root / name, tmp_path / "here", progress=False)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert "X-Amz" not in f"{caplog.text}{report}"


@pytest.mark.parametrize("name", ["dataset", "dataset/train-00001-of-00002.tfrecord", "shard-000000.tar"])
@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning", "ignore:.*the classes have no names")
def test_what_is_opened_by_a_signed_url(server: FileServer, name: str) -> None:
    server.always, server.missing = demand_a_signature, 404 if name == "dataset" else 403
    there = stoker.open(signed(f"{server.url}/{name}"))
    assert len(there) == len(stoker.open(server.root / name))
    assert "X-Amz" not in f"{there!r}{there.path}"
    assert pickle.loads(pickle.dumps(there))[0].encoded == there[0].encoded


def test_a_signature_that_has_ended_is_told_and_a_new_one_taken(server: FileServer) -> None:
    server.always = lambda to, _: to.answer(403, b"")
    with pytest.raises(StorageError) as caught:
        stoker.open(signed(f"{server.url}/pets.tar", datetime(2026, 1, 2, 3, 4, tzinfo=UTC)))
    text = "".join(traceback.format_exception(caught.value))
    assert "HTTP 403 Forbidden: the signature of its URL has expired (2026-01-02 03:04 UTC); sign it again" in text
    assert "X-Amz" not in text
    server.always, server.missing = demand_a_signature, 403
    assert len(stoker.open(signed(f"{server.url}/pets.tar"), "train")) == 12


def test_a_list_of_signed_images_keeps_no_signature(tmp_path: Path, server: FileServer) -> None:
    (server.root / "a.jpg").write_bytes(pictures.jpeg(40, 30, 1))
    for folder, secret in (("first", "1"), ("again", "2")):
        urls = [f"{server.url}/{name}?sig={secret}&se=2026-01-01" for name in ("a.jpg", "gone.jpg")]
        write_files(tmp_path / folder, {"list.txt": "\n".join([*urls, f"{server.url}/a.jpg?width=3"])})
        report = stoker.build(tmp_path / folder / "list.txt", tmp_path / f"{folder}.out", max_rejects=1, progress=False)
        assert [reject.key for reject in report.rejects] == [f"{server.url}/gone.jpg"]
    built = contents(tmp_path / "first.out")
    assert built == contents(tmp_path / "again.out")
    assert b"sig=" not in b"".join(built.values())
    assert b"a.jpg?width=3" in b"".join(built.values())
    assert any("sig=2" in request for request in server.requests)


@pytest.mark.parametrize(
    "call",
    [
        lambda url, _: stoker.open(url("dataset"), "nothing"),
        lambda url, out: stoker.export(url("dataset"), out, "webdataset", split="nothing"),
        lambda url, out: stoker.build(url("pets.tar"), out, labels=url("labels.txt"), progress=False),
        lambda url, _: stoker.open(url("pets.tar"), boxes=url("boxes.csv")),
        lambda url, _: main(["info", url("nothing")]),
    ],
)
def test_no_message_has_a_signature(
    tmp_path: Path, server: FileServer, capsys: pytest.CaptureFixture[str], call: Callable[..., object]
) -> None:
    text = ""
    try:
        assert call(lambda name: signed(f"{server.url}/{name}"), tmp_path / "out")
    except StokerError as error:
        text = str(error)
    text += capsys.readouterr().err
    assert server.url in text
    assert "X-Amz" not in text


def test_queries_that_may_be_two_files(server: FileServer) -> None:
    location(f"{server.url}/get?file=a.tar")
    with pytest.raises(ConfigError, match=r"/get differ in their queries alone") as caught:
        location(f"{server.url}/get?file=b.tar")
    assert "b.tar" not in str(caught.value)


def test_a_part_that_is_answered_by_the_whole_file_after_a_retry(server: FileServer) -> None:
    tar = location(f"{server.url}/pets.tar")
    whole = (server.root / "pets.tar").read_bytes()
    for start, length in ((0, 1), (0, 700), (512, 700)):
        server.faults = [say_busy, ignore_ranges]
        if length == 1:  # which is looked for in any answer
            assert tar.read_range(start, length, len(whole)) == whole[:1]
        else:
            with pytest.raises(StorageError, match="does not send parts of files"):
                tar.read_range(start, length, len(whole))
        server.faults = [say_busy, send_another_part]
        assert tar.read_range(start, length, len(whole)) == whole[start : start + length]
