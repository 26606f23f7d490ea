"""The public interface is what `public_api.txt` says, down to the defaults: no change of it goes unseen."""

from __future__ import annotations

import difflib
from pathlib import Path

from scripts import public_api

FROZEN = Path(__file__).with_name("public_api.txt")
HOW = """The public interface has changed:

{difference}

If that is wanted: a line that goes or changes breaks somebody's program, so it needs a new major version (before 1.0 a
new minor one) and a line in CHANGELOG.md under "Changed" or "Removed"; a line that comes needs a minor version. Then

    make api
"""


def test_the_public_interface_is_the_frozen_one() -> None:
    frozen, found = FROZEN.read_text(encoding="utf-8"), public_api.api()
    difference = difflib.unified_diff(frozen.splitlines(), found.splitlines(), "frozen", "now", n=0, lineterm="")
    assert found == frozen, HOW.format(difference="\n".join(difference))


def test_nothing_depends_on_the_machine() -> None:
    text = FROZEN.read_text(encoding="utf-8")
    assert " at 0x" not in text
    assert str(Path.home()) not in text
