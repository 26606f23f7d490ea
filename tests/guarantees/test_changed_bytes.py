"""Any changed byte of a dataset is found, or has no effect; `changed_bytes.py` tries all of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from guarantees import changed_bytes

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 101


@pytest.mark.parametrize("kind", changed_bytes.KINDS)
def test_a_changed_byte_is_found_or_has_no_effect(kind: str, tmp_path: Path) -> None:
    counted: Counter[str] = Counter()
    directory = changed_bytes.build(kind, tmp_path)
    assert changed_bytes.missed(directory, every=EVERY, seed=EVERY, counted=counted) == []
    assert counted["manifest.json: refused"] > 30
    assert counted["manifest.json: read as before"] == 0
