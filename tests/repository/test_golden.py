"""Fingerprints, orders, datasets and batches are those of the golden file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from repository.golden import FILE, LAYOUTS, layout, ways_to_write

if TYPE_CHECKING:
    from pathlib import Path

GOLDEN = json.loads(FILE.read_text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_source_gives_what_it_gave(name: str, tmp_path: Path) -> None:
    assert layout(name, tmp_path) == GOLDEN[name]


@pytest.mark.filterwarnings("ignore")
def test_every_way_to_write_gives_what_it_gave(tmp_path: Path) -> None:
    assert ways_to_write(tmp_path) == GOLDEN["ways to write"]


def test_the_file_has_no_other_entries() -> None:
    assert GOLDEN.keys() == {*LAYOUTS, "ways to write"}
