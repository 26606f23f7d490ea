"""What every rung reads: the same images, each readable by all, in a folder that was empty or its own."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections import namedtuple
from typing import TYPE_CHECKING

import pytest

import stoker
from feed.shards import write_wrong_boxes
from measure.prepared import made, task_for
from stoker.cli.main import main
from stoker.errors import ConfigError, DestinationError
from stoker.measure import preparing
from stoker.measure.rungs import find_rung
from stoker.measure.selection import Selection, samples_read_by

if TYPE_CHECKING:
    from pathlib import Path


def names_in(dataset: stoker.Dataset) -> list[str]:
    return sorted(dataset[number].source.rpartition("/")[2] for number in range(len(dataset)))


def test_every_form_holds_the_same_images(photos: Path, tmp_path: Path) -> None:
    prepared = made(photos, tmp_path / "data", most=11)
    task = task_for(photos, tmp_path / "data")
    names = sorted(path.rpartition("/")[2] for path in task.files().paths)
    assert prepared.images == len(names) == 11
    for form in ("plain", "gzip", "restart"):
        assert names_in(stoker.open(task.place(form))) == names
    assert len(stoker.open(task.place("raw"))) == 11
    assert len(Selection.read(task.place("")).open()) == 11


def test_the_part_of_the_users_own_data_is_the_same_images(photos: Path, tmp_path: Path) -> None:
    made(photos, tmp_path / "data", most=7)
    own = Selection.read(tmp_path / "data").open()
    task = task_for(photos, tmp_path / "data")
    pixels = {own[number].decode().tobytes() for number in range(len(own))}
    plain = stoker.open(task.place("plain"))
    assert pixels == {plain[number].decode().tobytes() for number in range(len(plain))}
    assert len(Selection.read(tmp_path / "data").local_files()) == 7


@pytest.mark.parametrize("words", [["--compression", "gzip"], ["--preset", "dlbs", "--img-size", "32"]])
def test_compressed_and_raw_datasets_are_prepared_too(photos: Path, tmp_path: Path, words: list[str]) -> None:
    source = tmp_path / "source"
    assert main(["build", str(photos), str(source), *words]) == 0
    prepared = made(source, tmp_path / "data", most=5, forms=frozenset({"plain"}))
    assert prepared.images == 5
    assert prepared.converted == ({"raw tensor": 5} if "dlbs" in words else {})
    assert len(stoker.open(tmp_path / "data" / "plain")) == 5


def test_unreadable_images_are_counted_and_in_no_form(photos: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(photos / "train", source)
    victims = sorted(source.rglob("*.JPEG"))[:2]
    victims[0].write_bytes(b"no image at all")
    victims[1].write_bytes(victims[1].read_bytes()[:-300])
    prepared = made(source, tmp_path / "data")
    assert len(prepared.unreadable) == 2
    assert prepared.images == len(stoker.open(source)) - 2
    assert any(victims[0].name in reason and "not an image" in reason for reason in prepared.unreadable)
    assert len(stoker.open(tmp_path / "data" / "plain")) == prepared.images
    assert len(Selection.read(tmp_path / "data").open()) == prepared.images


def test_without_any_readable_image_there_is_nothing_to_measure(tmp_path: Path) -> None:
    place = tmp_path / "photos" / "cat"
    place.mkdir(parents=True)
    (place / "a.jpg").write_bytes(b"no image at all")
    with pytest.raises(ConfigError, match=r"no image can be read.*not an image"):
        made(tmp_path / "photos", tmp_path / "data")


def test_what_was_kept_is_used_again(photos: Path, tmp_path: Path) -> None:
    first = made(photos, tmp_path / "data", most=5, forms=frozenset({"plain"}))
    before = (tmp_path / "data" / "files.json").stat().st_mtime_ns
    again = made(photos, tmp_path / "data", most=5, forms=frozenset({"plain"}))
    assert first.written_bytes > 0
    assert again.written_bytes == 0
    assert again.images == 5
    assert (tmp_path / "data" / "files.json").stat().st_mtime_ns == before
    more = made(photos, tmp_path / "data", most=5, forms=frozenset({"plain", "raw"}))
    assert more.written_bytes > 5 * 256 * 256 * 3


def test_an_interrupted_preparation_begins_anew(photos: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    made(photos, data, most=5, forms=frozenset({"plain"}))
    note = json.loads((data / "stoker-bench.json").read_text())
    (data / "stoker-bench.json").write_text(json.dumps({**note, "prepared": None}))
    shutil.rmtree(data / "plain")
    assert made(photos, data, most=5, forms=frozenset({"plain"})).images == 5
    assert len(stoker.open(data / "plain")) == 5


@pytest.mark.parametrize(
    "text", ['{"made_of": {', "[]", "{}", "\xff", "[" * 200_000, '{"prepared": {"images": 3}, "made_of": {}}']
)
def test_half_a_note_is_said_with_advice(photos: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "stoker-bench.json").write_text(text, encoding="latin-1")
    with pytest.raises(DestinationError, match=r"stoker-bench.json is damaged \(.*; remove .* --keep"):
        made(photos, tmp_path, most=5, forms=frozenset())


def test_a_note_is_never_half_written(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(photos, tmp_path / "data", most=5, forms=frozenset())
    before = (tmp_path / "data" / "stoker-bench.json").read_bytes()

    def full(_: object) -> None:
        raise OSError(errno.EIO, "no more")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no more"):
        preparing._write_note(tmp_path / "data", {}, None)
    assert (tmp_path / "data" / "stoker-bench.json").read_bytes() == before


def test_boxes_of_the_wrong_kind_make_an_image_unreadable(tmp_path: Path) -> None:
    write_wrong_boxes(tmp_path / "shard.tfrecord")
    with pytest.raises(ConfigError, match=r"no image can be read.*holds bytes values"):
        made(tmp_path / "shard.tfrecord", tmp_path / "data", forms=frozenset())


def test_a_pass_over_whole_shards_is_more_than_what_was_picked(dataset: Path, photos: Path, tmp_path: Path) -> None:
    made(dataset, tmp_path / "shards", most=7, forms=frozenset())
    made(photos, tmp_path / "files", most=7, forms=frozenset())
    own, prepared = find_rung("stoker-own"), find_rung("python-serial")
    assert len(stoker.open(dataset, split="train")) == 40  # in two shards
    assert samples_read_by(own, task_for(dataset, tmp_path / "shards")) == 20
    assert samples_read_by(prepared, task_for(dataset, tmp_path / "shards")) == 7
    assert samples_read_by(own, task_for(photos, tmp_path / "files")) == 7
    objects = task_for(dataset, tmp_path / "shards", "objects")
    counts = Selection.read(tmp_path / "shards").open().object_counts
    assert samples_read_by(own, objects) == sum(max(1, int(count)) for count in counts) > 20


def test_other_peoples_folders_are_left_alone(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "thesis.txt").write_text("dear")
    with pytest.raises(DestinationError, match="'files', which stoker bench has not made"):
        made(photos, tmp_path, most=5)
    assert (tmp_path / "files" / "thesis.txt").read_text() == "dear"


def test_what_was_made_of_other_images_is_refused(photos: Path, dataset: Path, tmp_path: Path) -> None:
    made(photos, tmp_path / "data", most=5, forms=frozenset())
    with pytest.raises(DestinationError, match="remove it, or name another"):
        made(dataset, tmp_path / "data", most=5, forms=frozenset())


def test_too_little_room_is_said_before_shards_are_built(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 1000))
    with pytest.raises(DestinationError, match=r"needs .* more in .* 1\.0 KB are free; take fewer --images"):
        made(photos, tmp_path / "data", most=5)
    assert not (tmp_path / "data" / "plain").exists()


def test_boxes_are_in_the_files_list_and_in_the_records(photos: Path, tmp_path: Path) -> None:
    prepared = made(photos, tmp_path / "data", forms=frozenset({"plain", "restart"}))
    task = task_for(photos, tmp_path / "data", "objects")
    own = stoker.open(photos, split="train")
    expected = int(sum(max(1, count) for count in own.object_counts))
    assert expected > len(own)  # or nothing would be shown
    assert prepared.samples == task.files().samples == expected
    for form in ("plain", "restart"):
        counts = stoker.open(task.place(form)).object_counts
        assert int(sum(max(1, count) for count in counts)) == expected
