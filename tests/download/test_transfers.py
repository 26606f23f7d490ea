"""Fetching one file from servers that drop, stall, lie, and change their minds."""

from __future__ import annotations

import base64
import errno
import hashlib
import resource
import time
from typing import TYPE_CHECKING

import pytest

from download import faulty_server as does
from download.faulty_server import Recorder, Transfer, get, remote
from stoker.download import DownloadError
from stoker.errors import DestinationError

if TYPE_CHECKING:
    from pathlib import Path


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_file_comes_whole_under_its_name_and_nothing_else_is_left(transfer: Transfer) -> None:
    wanted = remote("a.tar", transfer.body, saved_as="deep/b.tar")
    report = get(transfer.watcher, transfer.folder / "new", transfer.server.url, wanted)
    assert (transfer.folder / "new/deep/b.tar").read_bytes() == transfer.body
    assert names(transfer.folder / "new/deep") == {"b.tar"}
    assert [(file.outcome, file.fetched_bytes) for file in report.files] == [("fetched", len(transfer.body))]
    assert transfer.watcher.steps[0] == ("a.tar", "downloading", 0, len(transfer.body))
    assert transfer.watcher.steps[-1] == ("a.tar", "downloading", len(transfer.body), len(transfer.body))
    assert transfer.watcher.notes == []
    assert transfer.server.seen[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("with_size", [True, False])
def test_dropped_connections_are_taken_up_where_they_ended(transfer: Transfer, with_size: bool) -> None:
    transfer.server.always = does.drop_after(30_000)
    report = transfer.fetch(with_size=with_size)
    # The system may throw away bytes that were sent just before a drop, so there may be more requests than 20.
    assert len(transfer.server.seen) >= 20 > 2 * does.TRIES  # progress starts the count again
    assert transfer.server.seen[1].headers["Range"].startswith("bytes=")
    assert transfer.server.sent < 2 * len(transfer.body)
    assert report.files[0].outcome == "fetched"


def test_a_server_that_brings_nothing_new_is_given_up_and_what_came_is_kept(transfer: Transfer) -> None:
    transfer.server.script.append(does.drop_after(100_000))
    transfer.server.always = does.drop_after(0)
    error = transfer.fail(r"100000 of 600000.*given up.*100.0 KB of it are kept")
    assert error.path == str(transfer.folder / "a.tar")
    assert len(transfer.server.seen) == 1 + does.TRIES - 1
    assert (transfer.folder / "a.tar.part").read_bytes() == transfer.body[:100_000]
    transfer.server.always = does.serve
    report = transfer.fetch()
    assert (report.files[0].outcome, report.files[0].fetched_bytes) == ("resumed", 500_000)
    assert ("a.tar", "checking", 100_000, 100_000) in transfer.watcher.steps
    assert names(transfer.folder) == {"a.tar"}


def test_a_server_that_ignores_ranges_is_read_from_the_start_and_never_appended(transfer: Transfer) -> None:
    transfer.server.script.extend([does.drop_after(100_000), does.ignore_ranges])
    transfer.fetch()
    assert transfer.server.ranges() == [None, "bytes=100000-"]
    assert any("starts from the beginning" in note for note in transfer.watcher.notes)


@pytest.mark.parametrize("left", [0, 300_000])
def test_bytes_that_come_again_are_not_progress(transfer: Transfer, left: int) -> None:
    if left:
        (transfer.folder / "a.tar.part").write_bytes(transfer.body[:left])
        transfer.server.script.append(does.answer(503))
    transfer.server.always = does.ignore_ranges_and_drop_after(200_000)
    transfer.fail("given up")
    assert len(transfer.server.seen) == does.TRIES


def test_parts_of_two_files_are_noticed_by_the_checksum(transfer: Transfer) -> None:
    def change(to: does.Handler) -> None:
        transfer.server.files["a.tar"] = transfer.body
        does.serve(to)

    transfer.server.files["a.tar"] = bytes(len(transfer.body))
    transfer.server.script.extend([does.drop_after(100_000), change])
    transfer.fetch()
    assert transfer.server.ranges() == [None, "bytes=100000-", None]
    assert any("fetched again from the start" in note for note in transfer.watcher.notes)


@pytest.mark.parametrize(
    "content_range",
    [
        "bytes 99999-599999/600000", "bytes 0-599999/600000", "bytes 100000-599998/599999", "bytes */600000",
        "elephants 100000-599999/600000", "",
    ],
)  # fmt: skip
def test_a_piece_that_was_not_asked_for_is_not_appended(transfer: Transfer, content_range: str) -> None:
    transfer.server.script.extend([does.drop_after(100_000), does.piece(content_range, bytes(500_000))])
    transfer.fetch()
    assert transfer.server.ranges() == [None, "bytes=100000-", None]
    assert any("starting again from its beginning" in note for note in transfer.watcher.notes)


def test_a_piece_of_a_piece_is_welcome(transfer: Transfer) -> None:
    part = does.piece("bytes 100000-149999/*", transfer.body[100_000:150_000])
    transfer.server.script.extend([does.drop_after(100_000), part])
    transfer.fetch()
    assert transfer.server.ranges() == [None, "bytes=100000-", "bytes=150000-"]


def test_a_part_that_is_whole_already_needs_no_request(transfer: Transfer) -> None:
    (transfer.folder / "a.tar.part").write_bytes(transfer.body)
    report = transfer.fetch()
    assert (report.files[0].outcome, report.files[0].fetched_bytes, transfer.server.seen) == ("resumed", 0, [])
    assert names(transfer.folder) == {"a.tar"}


@pytest.mark.parametrize("with_size", [True, False])
def test_a_part_that_is_too_long_is_started_again(transfer: Transfer, with_size: bool) -> None:
    (transfer.folder / "a.tar.part").write_bytes(transfer.body + b"more")
    transfer.fetch(with_size=with_size)
    assert transfer.server.ranges() == ([None] if with_size else [f"bytes={len(transfer.body) + 4}-", None])


def test_416_to_everything_ends(transfer: Transfer) -> None:
    transfer.server.always = does.answer(416, Content_Range="bytes */0")
    transfer.fail("sends nothing instead of the bytes from 0 on")
    assert names(transfer.folder) == set()


def test_wrong_bytes_are_fetched_once_more_from_the_start(transfer: Transfer) -> None:
    (transfer.folder / "a.tar.part").write_bytes(bytes(100_000))
    transfer.fetch()
    assert transfer.server.ranges() == ["bytes=100000-", None]
    assert any("fetched again from the start" in note for note in transfer.watcher.notes)


def test_wrong_bytes_twice_are_an_error_that_names_both_sums(transfer: Transfer) -> None:
    transfer.server.always = does.wrong_bytes
    body = transfer.body
    right, wrong = (hashlib.md5(data).hexdigest() for data in (body, bytes(byte ^ 0x20 for byte in body)))
    transfer.fail(f"MD5 is {wrong} and then {wrong}, and should be {right}")
    assert len(transfer.server.seen) == 2
    assert names(transfer.folder) == set()


@pytest.mark.parametrize(
    ("wait", "at_least"), [(1, 1), (31_536_000, does.LONGEST_RETRY_AFTER), ("9" * 5000, 0), ("soon", 0)]
)
@pytest.mark.slow
def test_a_busy_server_is_obeyed_within_reason(transfer: Transfer, wait: int | str, at_least: float) -> None:
    busy = [does.answer(503, Retry_After=wait), does.answer(429), does.answer(503)]
    transfer.server.script.extend([*busy, does.drop_after(10)])
    started = time.monotonic()
    transfer.fetch()
    assert at_least <= time.monotonic() - started < 20


def test_a_storm_of_503_ends(transfer: Transfer) -> None:
    transfer.server.always = does.answer(503)
    transfer.fail(r"busy.*503.*given up")
    assert len(transfer.server.seen) == does.TRIES


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "give the right user name"), (403, "whether your account may download it"), (404, "--url"), (410, "--url")],
)
def test_a_refusal_is_not_repeated(transfer: Transfer, status: int, remedy: str) -> None:
    transfer.server.always = does.answer(status)
    transfer.fail(f"HTTP {status}: .*{remedy}")
    assert len(transfer.server.seen) == 1
    assert names(transfer.folder) == set()


def test_the_next_url_is_asked_and_goes_on_with_what_came(transfer: Transfer) -> None:
    transfer.server.script.extend([does.drop_after(100_000), does.answer(404)])
    transfer.fetch(transfer.server.url + "first/", transfer.server.url + "second/")
    assert [seen.path for seen in transfer.server.seen] == ["/first/a.tar", "/first/a.tar", "/second/a.tar"]
    assert transfer.server.sent == len(transfer.body)


def test_a_server_that_is_down_is_an_error_after_a_few_tries(tmp_path: Path, body: bytes, watcher: Recorder) -> None:
    with does.running({}) as gone:
        pass
    with pytest.raises(DownloadError, match=f"{gone.url}a.tar: Connection refused; given up"):
        get(watcher, tmp_path, gone.url, remote("a.tar", body))
    assert len(watcher.notes) == does.CONNECTING_TRIES - 1


def test_a_stall_is_noticed(transfer: Transfer) -> None:
    transfer.server.script.append(does.fall_silent_after(100_000))
    started = time.monotonic()
    transfer.fetch()
    assert does.TIMEOUT <= time.monotonic() - started < 10
    assert any("silent" in note for note in transfer.watcher.notes)


@pytest.mark.parametrize("length", [599_999, 600_001])
def test_another_length_than_the_known_one_is_another_file(transfer: Transfer, length: int) -> None:
    transfer.server.always = does.announce(length)
    transfer.fail(f"of {length} bytes instead of the file of 600000 bytes")


@pytest.mark.parametrize("length", [599_999, 600_001])
def test_a_lie_about_a_length_that_is_not_known_ends(transfer: Transfer, length: int) -> None:
    transfer.server.always = does.announce(length)
    transfer.fail(with_size=False)
    assert not (transfer.folder / "a.tar").exists()


def test_more_than_the_file_has_is_cut_off(transfer: Transfer) -> None:
    transfer.server.always = does.chunked
    transfer.fetch()


def test_a_page_to_log_in_is_not_taken_for_the_file(transfer: Transfer) -> None:
    transfer.server.always = does.answer(200, Content_Type="text/html; charset=utf-8", Content_Length=5)
    transfer.fail(r"text/html of 5 bytes.*log in", with_size=False)


def test_a_disk_that_is_full_names_the_file_and_keeps_what_came(transfer: Transfer) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)  # no test can fill a disk; this fails at the same call
    resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as caught:
            transfer.fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(transfer.folder / "a.tar.part")
    assert caught.value.__notes__ == ["run the same command to resume"]
    assert (transfer.folder / "a.tar.part").read_bytes() == transfer.body[:250_000]
    transfer.fetch()
    assert transfer.server.ranges()[-1] == "bytes=250000-"


def test_too_little_space_is_noticed_before_anything_is_asked(transfer: Transfer) -> None:
    huge = does.RemoteFile("a.tar", "a.tar", remote("a.tar", transfer.body).checksum, 2**60)
    with pytest.raises(OSError, match="are needed") as caught:
        get(transfer.watcher, transfer.folder, transfer.server.url, huge)
    assert (caught.value.errno, transfer.server.seen) == (errno.ENOSPC, [])


def test_two_processes_do_not_write_one_file(transfer: Transfer) -> None:
    def second(to: does.Handler) -> None:
        with pytest.raises(DestinationError, match=r"a\.tar\.part is being written by another process"):
            get(Recorder(), transfer.folder, transfer.server.url, remote("a.tar", transfer.body))
        does.serve(to)

    transfer.server.script.append(second)
    transfer.fetch()


def test_the_proxy_of_the_environment_is_used(transfer: Transfer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy")
    monkeypatch.setenv("http_proxy", transfer.server.url.replace("//", "//ada:k%40y@"))
    transfer.fetch("http://nowhere.example/files/")
    assert transfer.server.seen[0].path == "http://nowhere.example/files/a.tar"
    assert transfer.server.seen[0].headers["Proxy-Authorization"] == "Basic " + base64.b64encode(b"ada:k@y").decode()
