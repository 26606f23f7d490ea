"""The run from photographs to tables, with Stoker's own readers; and what becomes of readers that fail."""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

import stoker
from benchmarks.rivals import formats
from benchmarks.rivals.__main__ import Finished, main
from benchmarks.rivals.catalogue import Entry
from benchmarks.rivals.contest import Contest, Row, Settings
from benchmarks.rivals.environments import ROOT, Environments
from benchmarks.rivals.sources import Amounts, SourceError, make_sources
from benchmarks.rivals.turns import RivalProgram
from stoker.inspect.measuring import ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc")
AMOUNTS = Amounts(photos=24, build=30, raw=300)


def run(words: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.rivals", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=200)


@pytest.mark.slow
def test_photographs_to_tables_of_two_versions(photos: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"  # the same one, marked
    shutil.copytree(Path(stoker.__file__).parent, other / "stoker")
    with (other / "stoker" / "__init__.py").open("a") as module:
        module.write("\nprint('the other version', file=__import__('sys').stderr)\n")
    counts = ["--photos-count", "4", "--build-count", "30", "--raw-count", "300"]
    chosen = ["--before", other, "--only", "stoker", "--lines", "raw,keep", "--rounds", "2", "--seconds", "0.05"]
    done = run([photos, "--build", tmp_path, *chosen, *counts])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "### Build that keeps the bytes" in done.stdout
    assert "Batches of uint8 256x64x64x3" in done.stdout
    assert "Stoker before" in done.stdout
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["settings"]["rounds"] == 2
    rows = {row["key"]: row for row in results["lines"]["raw"]}
    assert set(rows) == {"stoker:raw64", "stoker:raw64-unchecked", "before:raw64"}
    for row in rows.values():
        assert len(row["turns"]) == 2
        assert row["check"]["distinct"] == 300
        assert all(turn["images"] > 0 and turn["cpu_seconds"] > 0 for turn in row["turns"])
        assert 10 < row["peak_mb"] < 2000
    assert rows["stoker:raw64"]["stored_mb"] > 300 * 64 * 64 * 3 / 1e6
    builds = {row["key"]: row["turns"] for row in results["lines"]["keep"]}
    assert {key: [turn["images"] for turn in turns] for key, turns in builds.items()} == {
        "stoker:exact": [30, 30],
        "before:exact": [30, 30],
    }
    assert (tmp_path / "results.svg").read_text().startswith("<svg")
    assert not list((tmp_path / "stoker" / "data").glob("out-*"))
    assert (tmp_path / "before" / "data" / "raw64" / "manifest.json").exists()
    marked = {log.name for log in (tmp_path / "logs").iterdir() if "the other version" in log.read_text()}
    assert marked == {"raw-before-raw64.txt", "keep-before-exact.txt"}


def test_lines_that_a_stopped_run_has_finished_are_taken(tmp_path: Path) -> None:
    entry = Entry("stoker", "raw64", "Stoker", ("raw",))
    rows = [Row(entry, [{"images": 5.0, "seconds": 1.0}])]
    Finished(tmp_path, {"threads": 2}, resume=False).write("raw", rows)
    assert Finished(tmp_path, {"threads": 2}, resume=True).read("raw") == rows
    assert Finished(tmp_path, {"threads": 2}, resume=True).read("scan") is None
    assert Finished(tmp_path, {"threads": 3}, resume=True).read("raw") is None
    assert Finished(tmp_path, {"threads": 2}, resume=False).read("raw") is None
    Finished(tmp_path, {"threads": 2}, resume=True).write("scan", [Row(entry, failed="it broke")])
    assert Finished(tmp_path, {"threads": 2}, resume=True).read("scan") is None


def test_a_rival_that_is_asked_for_and_not_installed_is_a_failure(photos: Path, tmp_path: Path) -> None:
    counts = ["--photos-count", "4", "--build-count", "4", "--raw-count", "4"]
    done = run([photos, "--build", tmp_path, "--only", "ffcv", "--lines", "raw", "--rounds", "1", *counts])
    assert done.returncode == 1
    assert "ffcv is NOT INSTALLED" in done.stderr
    assert "Not installed, so not measured: ffcv." in done.stdout


def test_an_unknown_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["rivals", str(tmp_path), "--lines", "trian"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert main() == 2
    assert "no line is called trian" in capsys.readouterr().err


def test_a_reader_that_cannot_start_is_reported(photos: Path, tmp_path: Path) -> None:
    environments = Environments(tmp_path)
    make_sources(photos, environments.sources, AMOUNTS)
    messages: list[str] = []
    contest = Contest(environments, Settings(1, 0.1, 1, AMOUNTS), messages.append)
    (row,) = contest.measure("train", [Entry("stoker", "nowhere", "Missing data", ("train",))])
    assert "is not a dataset" in row.failed
    assert row.turns == []
    assert any("Missing data FAILED" in text for text in messages)


def test_a_reader_that_breaks_in_its_turn_is_reported(tmp_path: Path) -> None:
    program = "import sys; print('{}', flush=True); input(); sys.exit('the shard is gone')"
    with RivalProgram([sys.executable, "-c", program], tmp_path / "log.txt", {}) as rival:
        rival.wait_until_ready()
        assert rival.peak_mb > 0
        with pytest.raises(ProgramFailed, match="the shard is gone"):
            rival.take_turn(0.1)


def test_sources_of_others_are_not_used(photos: Path, tmp_path: Path) -> None:
    make_sources(photos, tmp_path / "sources", AMOUNTS)
    make_sources(photos, tmp_path / "sources", AMOUNTS)
    with pytest.raises(SourceError, match="remove it, or name another"):
        make_sources(photos, tmp_path / "sources", Amounts(photos=25, build=30, raw=300))
    with pytest.raises(SourceError, match="remove it, or name another"):
        make_sources(tmp_path / "empty", tmp_path / "sources", AMOUNTS)
    with pytest.raises(SourceError, match="no JPEGs below"):
        make_sources(tmp_path / "empty", tmp_path / "others", AMOUNTS)


def test_sources_number_the_samples(photos: Path, tmp_path: Path) -> None:
    make_sources(photos, tmp_path / "sources", Amounts(photos=90, build=3, raw=7))
    listed = (tmp_path / "sources" / "photos.txt").read_text().splitlines()
    assert [Path(path).stem for path in listed] == [f"{number:07d}" for number in range(90)]
    assert {path.resolve() for path in map(Path, listed)} <= set(photos.resolve().rglob("*"))
    assert len(list((tmp_path / "sources" / "raw").rglob("*.png"))) == 7


def opened(path: Path) -> Image.Image:
    return Image.open(io.BytesIO(path.read_bytes()))


def test_other_formats_have_the_same_photographs(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (formats.WIDTH, formats.HEIGHT) == (4000, 3000)
    monkeypatch.setattr(formats, "WIDTH", 400)
    monkeypatch.setattr(formats, "HEIGHT", 300)
    lines = ("png", "webp", "progressive", "dense-progressive", "thumbnails")
    make_sources(photos, tmp_path, Amounts(photos=2, build=2, raw=2, format=2, large=1), lines)
    originals = [opened(path) for path in sorted(photos.rglob("*.JP*G"))[:2]]
    by_line = {line: [opened(Path(path)) for path in (tmp_path / f"{line}.txt").read_text().split()] for line in lines}
    assert [image.format for line in lines for image in by_line[line][:1]] == ["PNG", "WEBP", "JPEG", "JPEG", "PNG"]
    for original, png, progressive in zip(originals, by_line["png"], by_line["progressive"], strict=True):
        assert png.convert("RGB").tobytes() == original.convert("RGB").tobytes()
        assert (progressive.size, progressive.quantization[0]) == (original.size, original.quantization[0])
        assert progressive.info["progressive"]
    assert (by_line["dense-progressive"][0].size, by_line["dense-progressive"][0].info["progressive"]) == (
        (400, 300),
        1,
    )
    assert [image.size for image in by_line["thumbnails"]] == [(32, 32)] * 32
    assert not (tmp_path / "camera").exists()
