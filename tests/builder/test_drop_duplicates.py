"""Equal files are left out once, whatever makes the build; which ones is told by comparing all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import stoker
from builder.trees import contents
from reference import pictures
from stoker.errors import ConfigError
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

CONTENTS = {  # split -> class -> which picture each file has
    "test": {"a": [1, 9]},
    "train": {"a": [1, 2, 3, 2], "b": [4, 4, 5, 3]},
    "val": {"a": [3, 6], "b": [6, 1]},
}
PRECEDENCE = ("test", "val", "train")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    images = {
        f"{split}/{name}/{position}.jpg": pictures.jpeg(24, 16, number)
        for split, classes in CONTENTS.items()
        for name, numbers in classes.items()
        for position, number in enumerate(numbers)
    }
    return write_files(tmp_path / "photos", images)


def expected(how: str) -> set[str]:
    """Return what is left out."""
    stays: set[int] = set()
    dropped = set()
    for split in PRECEDENCE:
        if how == "within":
            stays = set()
        for name, numbers in CONTENTS[split].items():
            for position, number in enumerate(numbers):
                if number in stays:
                    dropped.add(f"{split}/{name}/{position}.jpg")
                stays.add(number)
    return dropped


@pytest.mark.parametrize("how", ["within", "across-splits"])
def test_what_is_left_out_is_listed_for_any_threads_and_parts(photos: Path, tmp_path: Path, how: str, cli: Cli) -> None:
    single, three, parts = (tmp_path / name for name in ("one", "three", "parts"))
    report = stoker.build(photos, single, shards=2, drop_duplicates=how, threads=1)  # type: ignore[arg-type]
    rejects = [json.loads(line) for line in (single / "rejects.jsonl").read_text().splitlines()]
    assert {reject["key"] for reject in rejects} == expected(how)
    assert all("its file is equal to" in reject["reason"] for reject in rejects)
    assert len(report.rejects) == len(expected(how))
    stoker.build(photos, three, shards=2, drop_duplicates=how, threads=3)  # type: ignore[arg-type]
    for part in ("1/2", "0/2"):
        stoker.build(photos, parts, shards=2, drop_duplicates=how, part=part)  # type: ignore[arg-type]
    assert contents(single) == contents(three) == contents(parts)
    cli("verify", single)
    plan = json.loads(cli("plan", photos, "--drop-duplicates", how, "--json"))
    assert plan["duplicates"] == len(expected(how))
    assert sum(storing["images"] for storing in plan["stored"]) == plan["items"] - len(expected(how))


def test_what_cannot_be_is_refused(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it must be 'within' or 'across-splits'"):
        stoker.build(photos, tmp_path / "built", drop_duplicates="all")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="drop_duplicates and num_images contradict each other"):
        stoker.build(photos, tmp_path / "built", drop_duplicates="within", num_images=3)
    records = ({"image": pictures.jpeg(8, 8, number)} for number in (1, 1))
    with pytest.raises(ConfigError, match="drop_duplicates needs records that can be read twice"):
        stoker.build(records, tmp_path / "built", drop_duplicates="within")
    report = stoker.build([{"image": pictures.jpeg(8, 8, 1)}] * 2, tmp_path / "built", drop_duplicates="within")
    assert len(report.rejects) == 1
