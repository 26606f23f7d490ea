"""What tests of loaders share: the dataset that most of them read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import stoker
from loader.shards import write_shards

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def train(request: pytest.FixtureRequest, tmp_path: Path) -> stoker.Dataset:
    """Two shards of as many records as the module says in RECORDS, or of 18."""
    write_shards(tmp_path, getattr(request.module, "RECORDS", 18), 2)
    return stoker.open(tmp_path)
