"""Any changed byte of a dataset is found, or has no effect; `changed_bytes.py` tries all of them."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from guarantees import changed_bytes
from stoker.errors import StokerError
from stoker.inspect import verify_dataset

if TYPE_CHECKING:
    from pathlib import Path

EVERY = 101


@pytest.mark.parametrize("kind", changed_bytes.KINDS)
@pytest.mark.slow
def test_a_changed_byte_is_found_or_has_no_effect(kind: str, tmp_path: Path) -> None:
    counted: Counter[str] = Counter()
    directory = changed_bytes.build(kind, tmp_path)
    assert changed_bytes.missed(directory, every=EVERY, seed=EVERY, counted=counted) == []
    assert counted["manifest.json: refused"] > 30
    assert counted["manifest.json: read as before"] == 0


def test_the_manifest_of_another_dataset_is_refused(tmp_path: Path) -> None:
    directory, another = changed_bytes.build("keep", tmp_path), changed_bytes.build("restart", tmp_path)
    shutil.copy(another / "manifest.json", directory)
    assert changed_bytes.found_by_verify(directory)
    with pytest.raises(StokerError, match=r"manifest\.json says"):
        changed_bytes.contents(directory)


def test_the_manifest_of_another_dataset_of_the_same_lengths_changes_no_record(tmp_path: Path) -> None:
    """Raw pixels may have them; what a record holds is still read as that. What belongs together, `verify` tells."""
    directory, another = changed_bytes.build("raw HWC", tmp_path), changed_bytes.build("raw CHW", tmp_path)
    before = changed_bytes.contents(directory)
    shutil.copy(another / "manifest.json", directory)
    assert changed_bytes.found_by_verify(directory)
    assert [part[-1] for part in changed_bytes.contents(directory)] == [part[-1] for part in before]


def test_the_sizes_that_hops_reads_beside_the_dataset_are_checked_there(tmp_path: Path) -> None:
    directory = changed_bytes.build("tiny-imagenet", tmp_path)
    (tmp_path / "sizes.txt").write_bytes((directory / "sizes.txt").read_bytes())
    (directory / "sizes.txt").unlink()
    missing = f"{directory / 'sizes.txt'} is missing; restore it, or build again"
    assert [str(problem) for problem in verify_dataset(directory).problems] == [missing]
    beside = directory.rename(tmp_path / "tfrecords_raw")
    assert verify_dataset(beside).problems == ()
    (tmp_path / "sizes.txt").write_text("train,5")
    (problem,) = verify_dataset(beside).problems
    assert "sizes.txt was changed or damaged after the build: it has 7 bytes" in str(problem)
    (tmp_path / "sizes.txt").unlink()  # it is no part of what is copied with the directory
    assert verify_dataset(beside).problems == ()
