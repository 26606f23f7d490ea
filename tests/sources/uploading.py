"""Copies of trees in stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.store_folders import copy

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.storage import StoreLocation


def copied(source: Path, top: Path, there: StoreLocation) -> str:
    """Everything below ``top`` is in the store, too; returns the URL of what is ``source`` here."""
    copy(top, there)
    return str(there / str(source.relative_to(top)) if source != top else there)
