"""Images are listed in 260 bytes each: a million in 300 MiB, of which Python and NumPy take 50."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from programs import output_of

if TYPE_CHECKING:
    from pathlib import Path

LIMIT_MIB = 115
IMAGES, CLASSES = 250_000, 1_000  # enough to tell; a million take half a minute

PROGRAM = r"""
import re, sys
from stoker.sources import list_source
tree = list_source(sys.argv[1])
assert len(tree.table) == int(sys.argv[2]) and len(tree.classes) == 1000
first, last = tree.table[0], tree.table[len(tree.table) - 1]
assert first.path < last.path and (first.label, last.label) == (0, 999)
tree.fingerprint()
# Not ru_maxrss, which also remembers the process that started this one.
print(re.search(r"VmHWM:\s+([0-9]+) kB", open("/proc/self/status").read())[1])
"""


@pytest.mark.slow
def test_files_are_listed_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    with path.open("w") as file:  # in an order that is far from that of the table
        for number in range(IMAGES):
            label = number * 7919 % CLASSES
            file.write(f"/data/train/n{label:08d}/n{label:08d}_{number * 31 % 99991}_{number}.JPEG\n")
    assert int(output_of(PROGRAM, path, IMAGES, seconds=240)) / 1024 < LIMIT_MIB
