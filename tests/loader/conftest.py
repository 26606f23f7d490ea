"""What tests of loaders share: the datasets that most of them read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import stoker
from loader import field_records
from loader.shards import write_annotated, write_shards

if TYPE_CHECKING:
    from pathlib import Path


def records_of(request: pytest.FixtureRequest, default: int = 18) -> int:
    """As many as the module says in RECORDS."""
    return getattr(request.module, "RECORDS", default)


@pytest.fixture(scope="module")
def train(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> stoker.Dataset:
    """Two shards of images. For reading only."""
    folder = tmp_path_factory.mktemp("train")
    write_shards(folder, records_of(request), 2)
    return stoker.open(folder)


@pytest.fixture(scope="module")
def annotated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> stoker.Dataset:
    """A shard of images with objects. For reading only."""
    path = tmp_path_factory.mktemp("annotated") / "train-00000-of-00001"
    return stoker.open(write_annotated(path, records_of(request)))


@pytest.fixture(scope="module")
def rich(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> stoker.Dataset:
    """A shard of records with every field. For reading only."""
    folder, records = tmp_path_factory.mktemp("fields"), records_of(request, field_records.RECORDS)
    return stoker.open(field_records.write(folder, records=records))


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A folder of two shards of images and their indexes, so that what a test sees change is its own doing."""
    folder = tmp_path / "shards"
    folder.mkdir()
    write_shards(folder, 24, 2)
    stoker.open(folder)
    return folder
