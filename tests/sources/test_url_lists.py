"""Lists of URLs as img2dataset takes them, written by pandas: what is listed, downloaded, left out and resumed."""

from __future__ import annotations

import json
import random
import resource
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import stoker
from builder.trees import contents
from programs import run_python
from reference import pictures
from sources.making import check_refused, listing, read_back, write, write_table
from sources.photo_server import REASONS, serving
from stoker import fields
from stoker.builder import convert
from stoker.builder.estimate import SURVEY_LIMIT_BY_URL
from stoker.errors import ConfigError, SourceError, TooManyRejectsError
from stoker.sources import SourceOptions, list_records, list_source
from stoker.storage import web

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sources.photo_server import PhotoServer
    from stoker.sources import Source

IMAGES = 60
CLASSES = ("cat", "dog", "owl")


def jpeg(seed: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), np.uint8)
    return pictures.encode(Image.fromarray(pixels).resize((48, 36)))


PHOTOS = {f"{number}.jpg": jpeg(number) for number in range(IMAGES)}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(web, "_FIRST_WAIT", 0.01)


@pytest.fixture
def server() -> Iterator[PhotoServer]:
    with serving(PHOTOS) as photo_server:
        yield photo_server


def rows_of(server: PhotoServer) -> list[dict[str, Any]]:
    """A row for each image, most of which are there."""
    kinds = [*REASONS, "moved"]
    rows = []
    for number in range(IMAGES):
        kind = kinds[number // 7 % len(kinds)] if number % 7 == 0 else "photos"
        url = server.url(f"{kind}/{number}.jpg", number)
        rows.append({"url": url, "caption": f'a "{number}", ü', "label": CLASSES[number % 3], "width": number})
    return rows


def write_list(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write a list as pandas does, or of URLs alone."""
    if path.suffix == ".txt":
        pd.DataFrame(rows)["url"].to_csv(path, index=False, header=False)
        return path
    return write_table(path, rows)


def loop(rows: Sequence[dict[str, Any]]) -> dict[str, bytes]:
    """What a plain loop of urllib gets, by URL: images only."""
    images = {}
    for row in rows:
        try:
            with urllib.request.urlopen(row["url"], timeout=10) as answer:
                data = answer.read()
                pictures.opened(data).load()
        except (OSError, urllib.error.HTTPError, urllib.request.http.client.HTTPException):  # type: ignore[attr-defined]
            continue
        if "noai" not in answer.headers.get("X-Robots-Tag", ""):
            images[row["url"]] = data
    return images


def stored(out: Path) -> dict[str, bytes]:
    return {sample.source: bytes(sample.encoded) for sample in stoker.open(out)}


def items(tree: Source) -> dict[str, int]:
    return {tree.table[row].key: tree.table[row].label for row in range(len(tree.table))}


# What is listed; nothing is asked for.


@pytest.mark.parametrize("name", ["list.csv", "list.tsv", "list.jsonl", "list.parquet"])
def test_columns_become_labels_and_fields(tmp_path: Path, server: PhotoServer, name: str) -> None:
    rows = rows_of(server)
    tree = listing(write_list(tmp_path / name, rows))
    assert tree.classes == tuple(name.encode() for name in CLASSES)
    assert items(tree) == {row["url"]: CLASSES.index(row["label"]) for row in rows}
    assert tree.fields == {"caption": fields.Text(), "width": fields.Int()}
    values = {tree.table[row].key: tree.stored.values(tree.table[row]) for row in range(IMAGES)}
    assert values == {row["url"]: {"caption": row["caption"], "width": row["width"]} for row in rows}
    assert tree.latency == "web"
    assert not server.seen


def test_a_text_has_a_url_a_line(tmp_path: Path, server: PhotoServer) -> None:
    rows = rows_of(server)
    path = write_list(tmp_path / "list.txt", rows)
    path.write_text(f"\ufeff{path.read_text()}\r\n  {rows[0]['url']}  \r\n", encoding="utf-8")
    tree = listing(path)
    assert items(tree) == dict.fromkeys((row["url"] for row in rows), -1)
    assert len(tree.table) == IMAGES + 1
    assert tree.ignored == {"blank line": 1}
    assert tree.warnings == ("repeated URLs: 1; each is an item of its own",)
    assert (tree.classes, dict(tree.fields)) == ((), {})


def test_the_order_of_the_rows_does_not_matter(tmp_path: Path, server: PhotoServer) -> None:
    rows = rows_of(server)
    first = listing(write_list(tmp_path / "a.csv", rows))
    random.Random(1).shuffle(rows)
    assert listing(write_list(tmp_path / "b.csv", rows)).fingerprint() == first.fingerprint()


def test_the_whole_url_counts(tmp_path: Path) -> None:
    urls = ["http://a.example/x/1.jpg", "http://b.example/x/1.jpg", "http://a.example/y/1.jpg"]
    trees = [listing(write_list(tmp_path / f"{at}.txt", [{"url": url}])) for at, url in enumerate(urls)]
    assert len({tree.fingerprint() for tree in trees}) == 3


def test_classes_in_a_column_of_another_name(tmp_path: Path) -> None:
    laion = {"caption": "x", "NSFW": "UNLIKELY", "similarity": 0.3, "hash": 77, "status": "success", "LICENSE": "?"}
    rows = [{"url": f"https://a.example/{at}.jpg", **laion} for at in range(2)]
    tree = listing(write_list(tmp_path / "laion.csv", rows))
    assert (tree.classes, [*tree.fields], tree.warnings) == ((), [*laion], ())
    path = write_list(tmp_path / "other.csv", [{**row, "category": "ab"[at]} for at, row in enumerate(rows)])
    tree = listing(path)
    assert (tree.classes, [*tree.fields]) == ((b"a", b"b"), [*laion])
    assert tree.warnings == (f"{path}: nothing is called 'label'; the classes are 'category'",)
    path = write_list(tmp_path / "two.csv", [{**row, "category": 1, "class": 2} for row in rows])
    check_refused(path, match="the classes may be 'category' or 'class'; give label_column='category'")
    assert listing(path, label_column="category").classes == (b"0", b"1")
    marks = [{"url": f"https://a.example/{at}.jpg", "x": at < 1001, "y": 0} for at in range(1002)]
    check_refused(
        write_list(tmp_path / "marks.csv", marks),
        match=r"line 1003 of .*none has a 1, and in the first rows one has",
        label_column="x,y",
    )


@pytest.mark.parametrize("labels", [[2, 0, -1], ["2", "0", "-1"], [2.0, 0.0, None]])
def test_labels_that_are_numbers_are_ids(tmp_path: Path, labels: list[Any]) -> None:
    rows = [{"URL": f"https://a.example/{at}.jpg", "label": label} for at, label in enumerate(labels)]
    tree = listing(write_list(tmp_path / "list.csv", rows))
    assert tree.classes == (b"0", b"1", b"2")
    assert list(items(tree).values()) == [-1, 0, 2]


@pytest.mark.parametrize("name", ["list.csv", "list.tsv", "list.jsonl", "list.parquet"])
def test_a_row_may_lack_any_value_but_its_url(tmp_path: Path, server: PhotoServer, name: str) -> None:
    """LAION's tables have such rows, and img2dataset stores them."""
    long = 2**60 + 1
    columns = {
        "url": [server.url(f"photos/{number}.jpg") for number in range(4)],
        "caption": ["a", None, "b", "c"],
        "width": pd.array([1, None, 3, 4], dtype="Int64"),
        "score": [None, 0.5, None, 0.25],
        "hash": pd.array([long, None, 0, -long], dtype="Int64"),
        "ok": pd.array([True, None, False, True], dtype="boolean"),
        "all": pd.array([long] * 4, dtype="Int64"),
    }
    path = write_table(tmp_path / name, columns)
    with pytest.warns(stoker.errors.SourceWarning, match="has no value in . rows?: (nan|empty) there"):
        report = stoker.build(path, tmp_path / "out", progress=False)
    assert (report.manifest.records, report.manifest.rejects) == (4, 0)
    dataset = stoker.open(tmp_path / "out")
    kinds = "text", "float", "float", "text", "float", "int"
    assert tuple(kind.kind for kind in dataset.fields.values()) == kinds
    values_by_url = {dataset[index].source: dataset[index].fields for index in range(4)}
    rows = [values_by_url[url] for url in columns["url"]]
    assert [row["caption"] for row in rows] == ["a", "", "b", "c"]
    assert [row["hash"] for row in rows] == [f"{long}", "", "0", f"-{long}"]
    assert [row["all"] for row in rows] == [long] * 4
    for column, values in {
        "width": [1, np.nan, 3, 4],
        "score": [np.nan, 0.5, np.nan, 0.25],
        "ok": [1, np.nan, 0, 1],
    }.items():
        np.testing.assert_array_equal([row[column] for row in rows], values)
    tree = listing(path)
    again = read_back(tree, tmp_path)
    assert (again.latency, again.classes) == ("web", tree.classes)
    assert again.fingerprint() == tree.fingerprint()
    texts = [again.stored.values(item)["caption"] for item in again.table]
    assert sorted(texts) == ["", "a", "b", "c"]


def test_what_only_looks_like_a_list_of_urls_is_none(tmp_path: Path) -> None:
    write(tmp_path, {"a/1.jpg": PHOTOS["1.jpg"], "list.csv": "url,label\na/1.jpg,http://a.example\n"})
    tree = listing(tmp_path / "list.csv")
    assert (tree.latency, tree.classes) == ("disk", (b"http://a.example",))
    (tmp_path / "list.txt").write_text("a/1.jpg\n")
    assert listing(tmp_path / "list.txt").latency == "disk"


def test_parquet_with_images_is_no_list(tmp_path: Path) -> None:
    path = tmp_path / "images.parquet"
    image = {"bytes": PHOTOS["1.jpg"], "path": "1.jpg"}
    pd.DataFrame({"url": ["http://a.example/1.jpg"], "image": [image]}).to_parquet(path)
    assert listing(path).latency == "disk"
    pd.DataFrame({"url": ["http://a.example/1.jpg"], "more": [[{"a": b"x"}]]}).to_parquet(path)
    check_refused(path, match=r"row 0 of .*: its column 'more' has bytes")
    path.write_bytes(path.read_bytes()[:-30])
    check_refused(path, match=r"images.parquet does not end as Parquet does")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("l.csv", "url,URL\nhttp://a/1,http://a/2\n", "l.csv has the columns URL and url; keep one of them"),
        ("l.csv", "url,label\nhttp://a/1\n", "line 2 of .*l.csv: it has 1 cell, but there are 2 columns"),
        ("l.csv", 'url\nhttp://a/1\n"http://a/2\n', "line 3 of .*l.csv: .*; is a quote not closed, or not doubled"),
        ("l.csv", "url,image/size\nhttp://a/1,2\n", "'image/size'"),
        ("l.jsonl", '{"url": "http://a/1"}\n{"url": 7}\n', "line 2 of .*l.jsonl: its url is not text"),
        ("l.jsonl", '{"url": "http://a/1"}\n{"url": \n', "line 2 of .*l.jsonl: it is not JSON"),
        ("l.jsonl", '{"url": "http://a/1", "label": {}}\n', "line 1 of .*l.jsonl: the label is neither"),
        ("l.txt", "http://a/1\n" + "x" * 70_000, "line 2 is longer than 65536 bytes"),
    ],
)
def test_damaged_lists_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    check_refused(tmp_path / name, match=message)


def test_what_has_no_effect_is_refused(tmp_path: Path) -> None:
    path = str(write_list(tmp_path / "list.txt", [{"url": "http://a.example/1"}]))
    for options in (SourceOptions(boxes=str(tmp_path)), SourceOptions(validation_labels=path)):
        with pytest.raises(ConfigError, match=r"has no effect on .*, which is read as list of http"):
            list_source(path, options)


def test_lists_in_a_folder_are_one(tmp_path: Path, server: PhotoServer) -> None:
    rows = rows_of(server)
    whole = listing(write_list(tmp_path / "whole.csv", rows))
    for name in ("part.csv", "part.txt", "part.parquet"):
        folder = tmp_path / name
        folder.mkdir()
        for at in range(3):
            write_list(folder / f"{at}-{name}", rows[at::3])
        (folder / "README.md").write_text("http://a.example")
        tree = listing(folder)
        assert items(tree).keys() == items(whole).keys()
        assert name != "part.csv" or tree.fingerprint() == whole.fingerprint()
    (tmp_path / "part.csv/9.txt").write_text("http://a.example/1.jpg")
    check_refused(tmp_path / "part.csv", match="holds no class folder")


def test_lists_of_a_folder_that_differ_are_refused(tmp_path: Path) -> None:
    write_list(tmp_path / "1.csv", [{"url": "http://a.example/1.jpg"}])
    write_list(tmp_path / "2.csv", [{"URL": "http://a.example/2.jpg"}])
    check_refused(tmp_path, match=r"2.csv does not call the column of its URLs as .*1.csv does")


# What is built.


@pytest.mark.parametrize("name", ["list.csv", "list.txt"])
def test_a_build_stores_what_a_loop_gets_and_rejects_the_rest(tmp_path: Path, server: PhotoServer, name: str) -> None:
    rows = rows_of(server)
    path = write_list(tmp_path / name, rows)
    with pytest.raises(TooManyRejectsError, match="max_rejects=8 to accept") as caught:
        stoker.build(path, tmp_path / "out", progress=False)
    rejects = {reject.key: reject.reason for reject in caught.value.report.rejects}
    report = stoker.build(path, tmp_path / "out", max_rejects=8, progress=False)
    assert (report.items, report.resumed_shards) == (0, 1)
    expected = loop(rows)
    assert stored(tmp_path / "out") == expected
    bad = {row["url"]: row["url"].split("/")[3] for row in rows if row["url"] not in expected}
    assert rejects == {url: REASONS[kind] for url, kind in bad.items()}
    assert set(bad.values()) == REASONS.keys()
    lines = (tmp_path / "out/rejects.jsonl").read_text().splitlines()
    assert {json.loads(line)["key"] for line in lines} == bad.keys()
    if name == "list.csv":
        dataset = stoker.open(tmp_path / "out")
        of_url = {row["url"]: row for row in rows}
        for sample in dataset:
            row = of_url[sample.source]
            assert sample.fields == {"caption": row["caption"], "width": row["width"]}
            assert dataset.classes[sample.label].name == row["label"]


def test_nothing_in_a_list_leads_to_files_of_this_machine(tmp_path: Path, server: PhotoServer) -> None:
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(PHOTOS["0.jpg"])
    (tmp_path / "out.txt").write_text("")
    urls = [server.url("1.jpg"), str(secret), "secret.jpg", secret.as_uri(), "s3://bucket/key", "a b", "http://"]
    rows = [{"url": url, "mask_file_name": str(secret)} for url in urls]
    rows.append({"url": "", "mask_file_name": str(secret)})
    for name in ("list.txt", "list.csv"):
        path = write_list(tmp_path / name, rows)
        out = tmp_path / f"{name}.out"
        report = stoker.build(path, out, max_rejects=9, progress=False)
        assert len(report.rejects) == 7
        assert stored(out) == {urls[0]: PHOTOS["1.jpg"]}
        assert {reject.reason for reject in report.rejects} == {
            "it is not a URL; only http:// and https:// are",
            "it is not a URL that can be asked for",
            "file:// is not read; only http:// and https:// are",
            "s3:// is not read; only http:// and https:// are",
        }
    assert [sample.fields for sample in stoker.open(tmp_path / "list.csv.out")] == [{"mask_file_name": str(secret)}]


def test_bombs_are_rejects(tmp_path: Path, server: PhotoServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MAX_WEB_BYTES", 5000)
    server.images = {"1.jpg": PHOTOS["1.jpg"], "2.jpg": PHOTOS["2.jpg"] + bytes(5000)}
    path = write_list(tmp_path / "l.txt", [{"url": server.url("1.jpg")}, {"url": server.url("2.jpg")}])
    report = stoker.build(path, tmp_path / "out", max_rejects=1, progress=False)
    assert [reject.reason for reject in report.rejects] == ["it has more than 5.0 KB"]


def test_a_shard_of_rejects_alone(tmp_path: Path, server: PhotoServer) -> None:
    path = write_list(tmp_path / "l.txt", [{"url": server.url(f"gone/{at}.jpg")} for at in range(4)])
    with pytest.warns(stoker.errors.SourceWarning, match="out is empty: no image could be stored"):
        report = stoker.build(path, tmp_path / "out", shards=2, max_rejects=4, progress=False)
    assert (report.manifest.records, len(report.rejects)) == (0, 4)


def test_the_number_of_shards_does_not_depend_on_answers(tmp_path: Path, server: PhotoServer) -> None:
    path = write_list(tmp_path / "list.txt", rows_of(server))
    settings: dict[str, Any] = {"shard_size": "1MB", "max_rejects": IMAGES, "progress": False}
    first = stoker.build(path, tmp_path / "a", **settings)
    server.images = {}
    with pytest.warns(stoker.errors.SourceWarning, match="b is empty"):
        second = stoker.build(path, tmp_path / "b", **settings)
    assert second.manifest.records == 0
    shards = [[shard.name for shard in report.manifest.splits["train"].shards] for report in (first, second)]
    assert len(shards[0]) == 6
    assert shards[0] == shards[1]
    assert stoker.build(path, tmp_path / "a", **settings).outcome == "complete"


def test_records_may_have_urls(tmp_path: Path, server: PhotoServer) -> None:
    records = [{"image": row["url"], "caption": row["caption"]} for row in rows_of(server)]
    report = stoker.build(records, tmp_path / "out", max_rejects=IMAGES, progress=False)
    assert {reject.reason for reject in report.rejects} == set(REASONS.values())
    assert sorted(stored(tmp_path / "out").values()) == sorted(loop(rows_of(server)).values())


def test_opening_a_list_says_to_build_it(tmp_path: Path, server: PhotoServer) -> None:
    path = write_list(tmp_path / "list.txt", rows_of(server))
    with pytest.raises(SourceError, match=r"is a list of URLs.*; run stoker build .*list.txt DATASET and open that"):
        stoker.open(path)
    assert not server.seen


# The command, kills and parts.


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "stoker.cli.main", *map(str, words)]


def run(*words: object) -> tuple[int, str]:
    done = run_python("-m", "stoker.cli.main", *words)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_the_command_counts_reasons(tmp_path: Path, server: PhotoServer) -> None:
    path = write_list(tmp_path / "list.csv", rows_of(server))
    code, printed = run("build", path, tmp_path / "out")
    assert code == 3
    assert "manifest withheld because of 8 rejects; run the same command with --max-rejects 8 to accept them" in printed
    assert [line.split(maxsplit=1) for line in printed.splitlines() if line.endswith("Not Found")][-1] == [
        "2",
        REASONS["gone"],
    ]
    asked = server.seen.total()
    code, printed = run("build", path, tmp_path / "out", "--max-rejects", 8)
    assert (code, server.seen.total()) == (0, asked)


@pytest.mark.slow
def test_a_plan_asks_for_a_few(tmp_path: Path, server: PhotoServer) -> None:
    rows = [{"url": server.url(f"{at % IMAGES}.jpg?{at}", at)} for at in range(3 * SURVEY_LIMIT_BY_URL)]
    code, printed = run("plan", write_list(tmp_path / "list.txt", rows))
    assert code == 0
    assert "768 items, downloaded by the build" in printed
    assert f"about 0 of 768 would be rejected (from a sample of {SURVEY_LIMIT_BY_URL}: 0)" in printed
    assert len(server.seen) == SURVEY_LIMIT_BY_URL


@pytest.mark.slow
def test_killed_builds_go_on_and_ask_for_no_image_of_a_shard_again(tmp_path: Path, server: PhotoServer) -> None:
    path = write_list(tmp_path / "list.csv", rows_of(server))
    settings = ["--shards", 6, "--max-rejects", 8, "--quiet", "--threads", 1]
    assert run("build", path, tmp_path / "whole", *settings)[0] == 0
    whole = server.seen.copy()
    server.seen.clear()
    server.pause = 0.1
    out, kills = tmp_path / "out", 0
    journal = out / "build.journal"
    while True:
        process = subprocess.Popen(command("build", path, out, *settings), stderr=subprocess.PIPE)
        lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
        while kills < 2 and process.poll() is None:
            now = journal.read_bytes().count(b"\n") if journal.exists() else 0
            if now > max(1, lines):
                process.kill()
            time.sleep(0.001)
        _, stderr = process.communicate(timeout=120)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, stderr.decode()
            break
        kills += 1
    assert contents(out) == contents(tmp_path / "whole")
    first_shard = {json.loads(line)["key"] for line in (out / "rejects.jsonl").read_text().splitlines()}
    assert first_shard
    dataset = stoker.open(out)
    in_first = [dataset[index].source for index in range(dataset.shards[0].records)]
    for url in in_first:
        asked = "/" + url.split("/", 3)[3]
        assert server.seen[asked] == whole[asked]


def test_parts_and_one_machine_make_the_same(tmp_path: Path, server: PhotoServer) -> None:
    path = write_list(tmp_path / "list.csv", rows_of(server))
    settings: dict[str, Any] = {"shards": 5, "max_rejects": 8, "progress": False}
    stoker.build(path, tmp_path / "whole", **settings)
    whole = server.seen.copy()
    server.seen.clear()
    for part in (2, 0, 1):
        stoker.build(path, tmp_path / "out", part=f"{part}/3", **settings)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert server.seen == whole


def test_an_interrupt_ends_a_build_at_once(tmp_path: Path, server: PhotoServer) -> None:
    server.pause = 30.0
    path = write_list(tmp_path / "list.csv", rows_of(server))
    process = subprocess.Popen(command("build", path, tmp_path / "out", "--quiet"), stderr=subprocess.PIPE)
    while not server.seen and process.poll() is None:
        time.sleep(0.01)
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr.decode()
    assert time.monotonic() - started < 8  # a request alone could take a minute


@pytest.mark.slow
def test_images_that_wait_for_a_slow_one_are_bounded_by_their_bytes(
    tmp_path: Path, server: PhotoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"url": server.url(f"{number}.jpg?{again}")} for again in range(5) for number in range(IMAGES)]
    path = write_list(tmp_path / "list.txt", rows)
    settings: dict[str, Any] = {"shards": 3, "progress": False, "threads": 1}
    stoker.build(path, tmp_path / "whole", **settings)
    server.seen.clear()
    dataset = stoker.open(tmp_path / "whole")
    server.slow = "/" + dataset[0].source.split("/", 3)[3]
    monkeypatch.setattr(convert, "AT_ONCE_BY_URL", 4)
    monkeypatch.setattr(convert, "_AHEAD_BYTES", 40 * len(PHOTOS["0.jpg"]))
    with ThreadPoolExecutor(1) as pool:
        built = pool.submit(stoker.build, path, tmp_path / "out", **settings)
        before = -1
        while before != server.seen.total():  # until it asks for nothing more
            before = server.seen.total()
            time.sleep(1)
        server.held.set()
        built.result()
    assert 16 < before < 70
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_few_files_that_may_be_open_are_few_requests(monkeypatch: pytest.MonkeyPatch, server: PhotoServer) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    records = list_records({"train": [{"image": server.url("1.jpg")}]}, None)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (240, hard))
        assert convert.request_threads(records, 2) == 40
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert convert.request_threads(records, 2) == convert.AT_ONCE_BY_URL
