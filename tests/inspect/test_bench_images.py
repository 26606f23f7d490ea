"""What every case reads: the same images, each of which can be decoded in every case."""

from __future__ import annotations

import shutil
from collections import namedtuple
from typing import TYPE_CHECKING

import pytest

import stoker
from bench_prepared import case_of, prepared_images
from stoker.cli.main import main
from stoker.errors import ConfigError, DestinationError
from stoker.inspect.bench import BenchImages
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path


def names_in(dataset: stoker.Dataset) -> list[str]:
    return sorted(dataset[number].source.rpartition("/")[2] for number in range(len(dataset)))


def test_every_form_holds_the_same_images(photos: Path, tmp_path: Path) -> None:
    images = prepared_images(photos, tmp_path / "data", most=11)
    assert images == BenchImages.read(str(tmp_path / "data"))
    names = [path.rpartition("/")[2] for path in images.files()]
    assert len(names) == 11
    for form in ("plain", "restart"):
        assert names_in(stoker.open(images.path_of(form))) == names
    assert len(stoker.open(images.path_of("raw"))) == 11
    assert len(images.open_own()) == 11


@pytest.mark.parametrize("is_listed", [False, True])
def test_the_part_of_the_users_own_data_is_the_same_images(photos: Path, tmp_path: Path, is_listed: bool) -> None:
    source = photos
    if is_listed:  # in an order of its own
        source = tmp_path / "list.txt"
        source.write_text("\n".join(map(str, sorted((photos / "train").rglob("*.JPEG"), reverse=True))))
    images = prepared_images(source, tmp_path / "data", most=7)
    own = images.open_own()
    pixels = {own[number].decode().tobytes() for number in range(len(own))}
    plain = stoker.open(images.path_of("plain"))
    assert pixels == {plain[number].decode().tobytes() for number in range(len(plain))}
    assert len(images.files_read_by(case_of("stoker-own"))) == 7


@pytest.mark.parametrize("words", [["--compression", "gzip"], ["--preset", "dlbs", "--img-size", "32"]])
def test_compressed_and_raw_datasets_are_prepared_too(photos: Path, tmp_path: Path, words: list[str]) -> None:
    source = tmp_path / "source"
    assert main(["build", str(photos), str(source), *words]) == 0
    images = prepared_images(source, tmp_path / "data", most=5, forms=frozenset({"plain"}))
    assert len(images.numbers) == 5
    assert len(stoker.open(tmp_path / "data" / "plain")) == 5


@pytest.mark.slow
def test_unreadable_images_are_counted_and_in_no_form(photos: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(photos / "train", source)
    shutil.copy(photos / "synsets.txt", source)
    victims = sorted(source.rglob("*.JPEG"))[:2]
    victims[0].write_bytes(b"no image at all")
    victims[1].write_bytes(victims[1].read_bytes()[:-300])
    images = prepared_images(source, tmp_path / "data")
    assert len(images.unreadable) == 2
    assert len(images.numbers) == len(stoker.open(source)) - 2
    assert any(victims[0].name in reason and "not an image" in reason for reason in images.unreadable)
    assert len(stoker.open(images.path_of("plain"))) == len(images.open_own()) == len(images.numbers)


def test_without_any_readable_image_there_is_nothing_to_measure(tmp_path: Path) -> None:
    write_files(tmp_path / "photos", {"cat/a.jpg": b"no image at all"})
    with pytest.raises(ConfigError, match=r"no image can be read.*not an image"):
        prepared_images(tmp_path / "photos", tmp_path / "data")


def test_a_pass_over_whole_shards_is_more_than_what_was_picked(dataset: Path, photos: Path, tmp_path: Path) -> None:
    shards = prepared_images(dataset, tmp_path / "shards", most=7, forms=frozenset())
    files = prepared_images(photos, tmp_path / "files", most=7, forms=frozenset())
    own, prepared = case_of("stoker-own"), case_of("python-serial")
    assert len(stoker.open(dataset, split="train")) == 40  # in two shards
    assert shards.read_by(own) == 20
    assert shards.read_by(prepared) == 7
    assert files.read_by(own) == 7


def test_too_little_space_is_told_before_a_build(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 1000))
    with pytest.raises(DestinationError, match=r"needs .* more in .* 1\.0 KB are free; take fewer --images"):
        prepared_images(photos, tmp_path / "data", most=5)
    assert not (tmp_path / "data" / "plain").exists()
