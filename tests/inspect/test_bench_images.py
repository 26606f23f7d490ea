"""What every case reads: the same images, each of which can be decoded in every case."""

from __future__ import annotations

import shutil
from collections import namedtuple
from typing import TYPE_CHECKING

import pytest
from bench_prepared import made, task_for

import stoker
from loader.shards import write_wrong_boxes
from stoker.cli.main import main
from stoker.errors import ConfigError, DestinationError
from stoker.inspect.bench.cases import find_case
from stoker.inspect.bench.images import ImageList, samples_read_by

if TYPE_CHECKING:
    from pathlib import Path


def names_in(dataset: stoker.Dataset) -> list[str]:
    return sorted(dataset[number].source.rpartition("/")[2] for number in range(len(dataset)))


def test_every_form_holds_the_same_images(photos: Path, tmp_path: Path) -> None:
    prepared = made(photos, tmp_path / "data", most=11)
    task = task_for(photos, tmp_path / "data")
    names = sorted(path.rpartition("/")[2] for path in ImageList.read(task).files(task))
    assert prepared.images == len(names) == 11
    for form in ("plain", "gzip", "restart"):
        assert names_in(stoker.open(task.place(form))) == names
    assert len(stoker.open(task.place("raw"))) == 11
    assert len(ImageList.read(task).open_own()) == 11


def test_the_part_of_the_users_own_data_is_the_same_images(photos: Path, tmp_path: Path) -> None:
    made(photos, tmp_path / "data", most=7)
    task = task_for(photos, tmp_path / "data")
    own = ImageList.read(task).open_own()
    pixels = {own[number].decode().tobytes() for number in range(len(own))}
    plain = stoker.open(task.place("plain"))
    assert pixels == {plain[number].decode().tobytes() for number in range(len(plain))}
    assert len(ImageList.read(task).own_files()) == 7


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
    assert len(ImageList.read(task_for(source, tmp_path / "data")).open_own()) == prepared.images


def test_without_any_readable_image_there_is_nothing_to_measure(tmp_path: Path) -> None:
    place = tmp_path / "photos" / "cat"
    place.mkdir(parents=True)
    (place / "a.jpg").write_bytes(b"no image at all")
    with pytest.raises(ConfigError, match=r"no image can be read.*not an image"):
        made(tmp_path / "photos", tmp_path / "data")


def test_boxes_of_the_wrong_kind_make_an_image_unreadable(tmp_path: Path) -> None:
    write_wrong_boxes(tmp_path / "shard.tfrecord")
    with pytest.raises(ConfigError, match=r"no image can be read.*holds bytes values"):
        made(tmp_path / "shard.tfrecord", tmp_path / "data", forms=frozenset())


def test_a_pass_over_whole_shards_is_more_than_what_was_picked(dataset: Path, photos: Path, tmp_path: Path) -> None:
    made(dataset, tmp_path / "shards", most=7, forms=frozenset())
    made(photos, tmp_path / "files", most=7, forms=frozenset())
    own, prepared = find_case("stoker-own"), find_case("python-serial")
    assert len(stoker.open(dataset, split="train")) == 40  # in two shards
    assert samples_read_by(own, task_for(dataset, tmp_path / "shards")) == 20
    assert samples_read_by(prepared, task_for(dataset, tmp_path / "shards")) == 7
    assert samples_read_by(own, task_for(photos, tmp_path / "files")) == 7
    objects = task_for(dataset, tmp_path / "shards", "objects")
    counts = ImageList.read(objects).open_own().object_counts
    assert samples_read_by(own, objects) == sum(max(1, int(count)) for count in counts) > 20


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
    assert prepared.samples == ImageList.read(task).objects == expected
    for form in ("plain", "restart"):
        counts = stoker.open(task.place(form)).object_counts
        assert int(sum(max(1, count) for count in counts)) == expected
