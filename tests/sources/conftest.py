"""What tests of sources share: the cache that Parquet files are unpacked in is that of the test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of unpacked files."""
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache/unpacked"
