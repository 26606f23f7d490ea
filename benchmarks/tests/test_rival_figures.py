"""Requirements are pinned; ratios are paired; tables and pictures say what was measured and what was not."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from benchmarks.rivals import environments, install
from benchmarks.rivals.aims import best_rival, reached
from benchmarks.rivals.catalogue import LINES, RIVALS, Entry, lines_named, rivals_named
from benchmarks.rivals.contest import Row
from benchmarks.rivals.environments import OURS
from benchmarks.rivals.figures import by_speed, ratio, steadied
from benchmarks.rivals.plot import picture
from benchmarks.rivals.table import REFERENCES, tables
from small_cases import each


def row(key: str, rates: list[float], stores: str = "", failed: str = "") -> Row:
    rival, form = key.split(":")
    turns = [
        {"images": rate * 2, "seconds": 2.0, "cpu_seconds": 4.0, "other_cores": 0.0, "calibration": 500.0}
        for rate in rates
    ]
    return Row(Entry(rival, form, f"title of {key}", ("train",), stores=stores), turns, failed=failed)


@each("rival", environments.rivals())
def test_requirements_are_pinned(rival: str) -> None:
    lines = [line for line in environments.requirements(rival).splitlines() if line and not line.startswith("#")]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w-]+==[\w.]+", line)] == []


def test_every_entry_has_a_program_and_every_folder_an_entry() -> None:
    for entry in RIVALS:
        assert (environments.HERE / entry.rival / f"{entry.program}.py").exists(), entry
    assert {entry.rival for entry in RIVALS} == set(environments.rivals())


def test_entries_of_a_line_have_different_names() -> None:
    for line in LINES:
        keys = [entry.key for entry in RIVALS if line in entry.lines]
        assert len(keys) == len(set(keys))


def test_rows_of_every_line_are_compared_with_one_of_stoker() -> None:
    assert set(REFERENCES) == set(LINES)


def test_pytorch_is_installed_first_and_what_is_built_last() -> None:
    words = install.steps(["# a comment", "numpy==2.0", "torch==2.13.0", "ffcv==1.0.2"])
    assert words[0] == ["torch==2.13.0"]
    assert words[1] == ["torch==2.13.0", "numpy==2.0"]
    assert words[2][-1] == "ffcv==1.0.2"
    assert "--no-build-isolation" in words[2]
    assert install.steps(["numpy==2.0"]) == [["numpy==2.0"]]


def test_an_environment_of_other_requirements_is_not_installed(tmp_path_factory: pytest.TempPathFactory) -> None:
    known = environments.Environments(tmp_path_factory.mktemp("build"))
    assert known.is_installed(OURS)
    assert not known.is_installed("ffcv")
    known.stamp("ffcv").parent.mkdir()
    known.stamp("ffcv").write_text(environments.requirements("ffcv"))
    assert known.is_installed("ffcv")
    known.stamp("ffcv").write_text("ffcv==0.0.1\n")
    assert not known.is_installed("ffcv")


def test_lines_and_rivals_are_known() -> None:
    assert lines_named("build,train") == ["train", "keep", "small"]
    assert rivals_named("ffcv,stoker") == {"ffcv", "stoker"}
    with pytest.raises(ValueError, match="no line is called trian"):
        lines_named("trian")
    with pytest.raises(ValueError, match="no rival is called pill"):
        rivals_named("pill")


def test_ratios_are_of_the_same_round() -> None:
    spread = ratio(row("stoker:a", [100, 400, 200]), row("ffcv:b", [50, 100, 200]))
    assert spread is not None
    assert (spread.median, spread.low, spread.high) == (2.0, 1.0, 4.0)
    assert ratio(row("stoker:a", [100]), row("ffcv:b", [], failed="broken")) is None


def test_drift_is_divided_out() -> None:
    steady, slowed = row("stoker:a", [100, 100, 100]), row("ffcv:b", [100, 50, 100])
    slowed.turns[1]["calibration"] = 250.0
    assert steadied(slowed, [steady, slowed]) == 100


def test_the_best_rival_stores_the_same_bytes_and_is_not_ours() -> None:
    rows = [row("stoker:original", [900]), row("ffcv:jpg", [800], "JPEG 90 anew"), row("tf_data:tuned", [700])]
    best = best_rival([row("grain:threads", [600]), *rows])
    assert best is not None
    assert best.entry.key == "tf_data:tuned"
    (aim,) = reached({"train": rows})
    assert (aim.against, aim.aim, aim.is_met) == ("title of tf_data:tuned", 1.25, True)
    assert not reached({"train": [row("stoker:original", [800]), rows[2]]})[0].is_met


def test_an_aim_of_a_format_is_a_ratio_per_cpu_second() -> None:
    ours, pillow, idle = row("stoker:files", [500]), row("pytorch:pillow", [200]), row("dali:files", [100])
    idle.turns[0]["cpu_seconds"] = 1.0  # few images a second, and the most per second of CPU time
    to_pillow, to_best = reached({"png": [ours, pillow, idle]})
    assert (to_pillow.against, to_pillow.cpu.median, to_pillow.is_met) == ("title of pytorch:pillow", 2.5, True)
    assert (to_best.against, to_best.wall.median, to_best.cpu.median) == ("title of dali:files", 5.0, 1.25)
    pillow.turns[0]["cpu_seconds"] = 3.0
    assert not reached({"png": [ours, pillow, idle]})[0].is_met
    assert "2.00 x per CPU second" in tables({"png": [ours, pillow]}, [])


def test_a_failure_is_in_the_table_and_not_in_the_picture() -> None:
    lines = {"train": [row("grain:threads", [], failed="it broke"), row("stoker:original", [90, 100, 110])]}
    assert [ranked.entry.rival for ranked in by_speed(lines["train"])] == ["stoker", "grain"]
    text = tables(lines, ["Not installed, so not measured: ffcv."])
    assert "| title of grain:threads | FAILED: it broke |" in text
    assert "| **title of stoker:original** | 100 (90 to 110) | 100 | 50 |" in text
    assert "Not installed, so not measured: ffcv." in text
    drawn = picture(lines)
    ET.fromstring(drawn)
    assert "title of stoker:original" in drawn
    assert "grain" not in drawn


def test_the_picture_has_at_most_ten_bars_a_line_and_one_of_each_rival() -> None:
    rows = [row(f"stoker:{number}", [900 + number]) for number in range(12)]
    rows += [row(f"{rival}:{form}", [100]) for rival in "abcdefgh" for form in ("x", "y")]
    drawn = picture({"train": rows})
    assert drawn.count(' fill="#c2410c"') == 4
    assert drawn.count(' fill="#94a3b8"') == 6
    assert "title of stoker:11" in drawn
    assert ("title of a:x" in drawn) != ("title of a:y" in drawn)
