"""Fingerprints, orders, ids and files are what `golden.json` says: no change of them goes unseen."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING

from repository.golden import FILE, FOOTERS, golden

if TYPE_CHECKING:
    from pathlib import Path

HOW = """What sources and datasets are has changed (- before, + now):

{difference}

If that is wanted: states of loaders, caches, unfinished builds or datasets of older versions may no longer fit, so it
needs a line in CHANGELOG.md. Then

    make golden
"""


def test_nothing_has_changed(tmp_path: Path) -> None:
    before, now = json.loads(FILE.read_text(encoding="utf-8")), golden(tmp_path)
    before = {name: entry for name, entry in before.items() if name in now or not name.startswith(FOOTERS)}
    now = {name: entry for name, entry in now.items() if name in before or not name.startswith(FOOTERS)}
    difference = [
        f"{name}: {line}"
        for name in before | now
        for line in difflib.ndiff(_lines(before.get(name)), _lines(now.get(name)))
        if line[0] in "-+"
    ]
    assert not difference, HOW.format(difference="\n".join(difference))


def _lines(entry: object) -> list[str]:
    return json.dumps(entry, indent=1, ensure_ascii=False).splitlines()
