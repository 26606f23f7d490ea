"""Builds into real S3, Google Cloud Storage and HDFS servers: what they are on a disk."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from builder.remote_trees import STORES, build_and_die, run, stored
from builder.trees import build, contents, picture, settings_for, write_tree
from stoker.builder import PRESETS, build_source, open_source
from stoker.errors import DestinationError
from stoker.format import contents_of
from stoker.format.shard_names import ShardNaming
from stoker.recipe import Recipe, parse_encode, parse_resize
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers


@pytest.fixture(params=STORES)
def folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return store_folder(request.param, request, monkeypatch)


@pytest.fixture
def s3_folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return store_folder("s3", request, monkeypatch)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("remote") / "src", {"a": 10, "b": 6}, "b/text.JPEG")


@pytest.fixture(scope="module")
def whole(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("remote") / "out"
    run(source, out)
    return contents(out)


def interrupted(source: Path, destination: StoreLocation) -> None:
    """Build until a shard is noted."""

    class Stop(Exception):  # noqa: N818 - not an error
        pass

    def progress(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
        time.sleep(2 if destination.root.startswith("hdfs") else 0.05)
        if (destination / ".stoker-build/shards").is_dir():
            raise Stop

    with pytest.raises(Stop):
        build(settings_for(source, shards=4, threads=1), destination, progress)


def test_every_byte_is_that_of_a_build_on_a_disk(folder: StoreLocation, source: Path, whole: dict[str, bytes]) -> None:
    report = run(source, folder / "deep/set")
    assert (report.outcome, report.items, len(report.rejects)) == ("built", 17, 1)
    assert stored(folder) == {f"deep/set/{name}": data for name, data in whole.items()}
    again = run(source, folder / "deep/set", threads=1)
    assert (again.outcome, again.manifest, again.rejects) == ("complete", report.manifest, report.rejects)
    assert not (folder / "deep/set/.stoker-build").exists()


def test_another_dataset_is_overwritten(folder: StoreLocation, source: Path, whole: dict[str, bytes]) -> None:
    old = settings_for(source, shards=6, seed=9, max_rejects=1)
    wanted = settings_for(source, shards=4, max_rejects=1)
    tree, asked = open_source(wanted), list[str]()
    build_source(tree, old, folder / "set")
    (folder / "set/mine.txt").write_atomically(b"mine")
    build_source(tree, wanted, folder / "set", overwrite=asked.append)
    assert stored(folder) == {f"set/{name}": data for name, data in whole.items()} | {"set/mine.txt": b"mine"}
    interrupted(source, folder / "begun")
    build_source(tree, old, folder / "begun", overwrite=asked.append)
    assert [text.split()[0] for text in asked] == ["dataset", "unfinished"]
    shards = [name for name in stored(folder) if name.startswith("begun/") and name.endswith(".tfrecord")]
    assert len(shards) == 6


@pytest.mark.parametrize(
    ("preset", "compression"), [("tfds", "none"), ("tiny-imagenet", "none"), ("imagenet", "gzip"), ("imagenet", "zlib")]
)
def test_presets_and_compression(
    s3_folder: StoreLocation, source: Path, tmp_path: Path, preset: str, compression: Any
) -> None:
    chosen = PRESETS[preset]
    names = "tfds:photos" if preset == "tfds" else chosen.shard_names
    settings = settings_for(
        source,
        recipe=Recipe(parse_resize("square:16"), parse_encode("raw" if chosen.encode == "raw" else "jpeg:90")),
        schema=chosen.schema(chosen.label_base),
        naming=ShardNaming(names),
        compression=compression,
        max_rejects=1,
    )
    build(settings, s3_folder)
    build(settings, tmp_path / "out")
    assert stored(s3_folder) == contents(tmp_path / "out")


def test_a_second_run_builds_only_what_is_missing(folder: StoreLocation, source: Path, whole: dict[str, bytes]) -> None:
    interrupted(source, folder)
    there = stored(folder)
    entries = [name for name in there if name.startswith(".stoker-build/shards/")]
    assert 1 <= len(entries) < 4
    assert {name: data for name, data in there.items() if not name.startswith(".")}.items() <= whole.items()
    assert contents_of(folder).kind == "unfinished"  # type: ignore[arg-type]
    report = run(source, folder)
    assert (report.resumed_shards, report.outcome) == (len(entries), "built")
    assert report.items < 17
    assert stored(folder) == whole


def test_a_withheld_manifest_keeps_the_build(s3_folder: StoreLocation, source: Path, whole: dict[str, bytes]) -> None:
    assert run(source, s3_folder, max_rejects=0).outcome == "withheld"
    assert (s3_folder / ".stoker-build/settings.json").is_file()
    assert "manifest.json" not in stored(s3_folder)
    report = run(source, s3_folder)
    assert (report.resumed_shards, report.items) == (4, 0)
    assert stored(s3_folder) == whole


SHARD = "train-00001-of-00004.tfrecord"


@pytest.mark.parametrize("damage", ["no shard", "cut shard", "no index", "no entry", "cut entry", "other settings"])
def test_damage_is_built_again(s3_folder: StoreLocation, source: Path, whole: dict[str, bytes], damage: str) -> None:
    run(source, s3_folder, max_rejects=0)
    entry = s3_folder / f".stoker-build/shards/{SHARD}.json"
    if damage == "no shard":
        (s3_folder / SHARD).unlink()
    elif damage == "cut shard":
        (s3_folder / SHARD).write_atomically(whole[SHARD][:-1])
    elif damage == "no index":
        (s3_folder / f"{SHARD}.idx").unlink()
    elif damage == "no entry":
        entry.unlink()
    elif damage == "cut entry":
        entry.write_atomically(entry.read_bytes()[:-20])
    else:
        other = s3_folder.with_name("other")
        run(source, other, max_rejects=0, seed=1)
        entry.write_atomically((other / f".stoker-build/shards/{SHARD}.json").read_bytes())
    assert run(source, s3_folder).resumed_shards == 3
    assert stored(s3_folder) == whole


def test_any_changed_byte_of_the_settings_is_refused(s3_folder: StoreLocation, source: Path) -> None:
    run(source, s3_folder, max_rejects=0)
    begun = s3_folder / ".stoker-build/settings.json"
    text = begun.read_bytes()
    for at in range(3, len(text), 53):
        begun.write_atomically(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
        with pytest.raises(DestinationError, match=r"settings\.json .*; delete .* or build somewhere else"):
            run(source, s3_folder)


def test_any_changed_byte_of_an_entry_is_noticed(s3_folder: StoreLocation, source: Path) -> None:
    run(source, s3_folder, max_rejects=0)
    entry = s3_folder / f".stoker-build/shards/{SHARD}.json"
    text = entry.read_bytes()
    for at in range(0, len(text), 23):
        entry.write_atomically(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
        assert run(source, s3_folder, max_rejects=0).resumed_shards == 3, at


@pytest.mark.parametrize("finished", [True, False])
def test_other_settings_are_refused(s3_folder: StoreLocation, source: Path, finished: bool) -> None:
    run(source, s3_folder, max_rejects=int(finished))
    before = stored(s3_folder)
    with pytest.raises(DestinationError, match=r"with other settings \(seed is 0, not 1\)"):
        run(source, s3_folder, seed=1)
    assert stored(s3_folder) == before


def test_a_journal_of_something_else_is_refused(s3_folder: StoreLocation, source: Path) -> None:
    (s3_folder / ".stoker-build/settings.json").write_atomically(b"diary")
    with pytest.raises(DestinationError, match="is not a Stoker journal"):
        run(source, s3_folder)
    assert stored(s3_folder) == {".stoker-build/settings.json": b"diary"}


def test_a_folder_that_holds_something_else_is_refused(folder: StoreLocation, source: Path) -> None:
    (folder / "photos/1.jpg").write_atomically(b"precious")
    with pytest.raises(DestinationError, match=r"holds something else \(photos\)"):
        run(source, folder)
    with pytest.raises(DestinationError, match="is a file"):
        run(source, folder / "photos/1.jpg")
    assert stored(folder) == {"photos/1.jpg": b"precious"}


def test_a_destination_in_its_source_is_not_listed(s3_folder: StoreLocation, source: Path) -> None:
    for path in source.rglob("*.JPEG"):
        (s3_folder / str(path.relative_to(source))).write_atomically(path.read_bytes())
    settings = settings_for(str(s3_folder), max_rejects=1)
    with pytest.raises(DestinationError, match="is the source itself"):
        build(settings, s3_folder)
    expected = build(settings, s3_folder.with_name("apart"))
    for inner in (s3_folder / "a/below", s3_folder / "below"):  # the server keeps the folder of removed objects
        (inner / "left.tmp-1-ab").write_atomically(b"of a build that was killed")
        built = build(settings, inner)
        assert (built.outcome, built.manifest.dataset_id) == ("built", expected.manifest.dataset_id)
        assert build(settings, inner).outcome == "complete"
        inner.remove_folder()


def test_two_builds_at_once_do_each_other_no_harm(folder: StoreLocation, source: Path, whole: dict[str, bytes]) -> None:
    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(lambda threads: run(source, folder, threads=threads), (1, 2, 3)))
    assert len({report.manifest.dataset_id for report in reports}) == 1
    run(source, folder)
    assert stored(folder) == whole


def test_of_two_builds_with_other_settings_one_is_refused(s3_folder: StoreLocation, source: Path) -> None:
    outcomes: list[object] = []
    start = threading.Barrier(2)

    def attempt(seed: int) -> None:
        start.wait()
        try:
            outcomes.append(run(source, s3_folder, seed=seed).manifest.dataset_id)
        except DestinationError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=attempt, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    built = [outcome for outcome in outcomes if isinstance(outcome, str)]
    assert len(built) == 1, outcomes
    assert not any(name.startswith(".") for name in stored(s3_folder))


def test_what_dead_builds_left_in_hdfs_is_swept(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, source: Path, whole: dict[str, bytes]
) -> None:
    folder = store_folder("hdfs", request, monkeypatch)
    interrupted(source, folder)
    (folder / f"{SHARD}.tmp-1-aa").write_atomically(b"half")
    (folder / ".stoker-build/shards/x.json.tmp-1-aa").write_atomically(b"half")
    run(source, folder)
    assert stored(folder) == whole
    (folder / f"{SHARD}.tmp-1-bb").write_atomically(b"half")
    assert run(source, folder).outcome == "complete"
    assert stored(folder) == whole
    assert not folder.store._backend.children(folder.key).folders  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("folder", "heard"),
    [("s3", False), ("s3", True), ("gs", False), ("gs", True), ("hdfs", True)],
    indirect=["folder"],
)
def test_a_client_that_dies_with_any_request(
    folder: StoreLocation, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: bool
) -> None:
    run(source, tmp_path / "out", shards=2)
    whole = contents(tmp_path / "out")
    step, stride = (3, 7) if folder.root.startswith("hdfs") else (1, 1)  # a file takes HDFS 0.4 s
    while True:
        here = folder / f"killed{step}"
        died = build_and_die(source, here, monkeypatch, step, heard=heard)
        left = {name: data for name, data in stored(here).items() if not name.startswith(".stoker-build/")}
        assert left.items() <= whole.items(), step
        assert "manifest.json" not in left or left == whole, step
        run(source, here, shards=2)
        assert stored(here) == whole, step
        if not died:
            break
        step += stride
    assert step > 8


def test_records_whose_images_are_urls_are_built_into_a_store(s3_folder: StoreLocation, tmp_path: Path) -> None:
    for number in range(20):
        (s3_folder / f"images/{number}.jpg").write_atomically(picture(number))
    urls = [f"{s3_folder}/images/{number}.jpg" for number in range(20)]
    given = [{"image": url, "label": number % 2} for number, url in enumerate(urls)]
    given.append({"image": f"{s3_folder}/images/gone.jpg", "label": 0})
    for name, source in {"sequence": given, "stream": iter(given)}.items():
        report = stoker.build(source, f"{s3_folder}/{name}", shard_size="5KB", max_rejects=1, progress=False)
        assert [(reject.key, "gone.jpg" in reject.reason) for reject in report.rejects] == [("record 20", True)]
        assert len(report.manifest.splits["train"].shards) > 2
        dataset = stoker.open(f"{s3_folder}/{name}", "train")
        images = {sample.source: sample.encoded for sample in (dataset[index] for index in range(20))}
        assert images == {f"{number}.jpg": picture(number) for number in range(20)}
    again = stoker.build(iter(given), f"{s3_folder}/stream", shard_size="5KB", max_rejects=1, progress=False)
    assert again.outcome == "complete"
