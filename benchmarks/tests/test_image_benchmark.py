"""The benchmark of the decoder alone: every kind of files, both forms, and libraries that are not there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks import image
from benchmarks.rivals import formats
from reference import pictures

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.JPEG").write_bytes(pictures.jpeg(60, 40, number))
    (folder / "notes.txt").write_text("not an image")
    return folder


@pytest.mark.parametrize("forms", ["memory", pytest.param("0,1", marks=pytest.mark.needs("torch"))])
def test_every_kind_is_measured(
    photos: Path, tmp_path: Path, forms: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert formats.WIDTH * formats.HEIGHT == 12_000_000
    monkeypatch.setattr(formats, "WIDTH", 400)
    monkeypatch.setattr(formats, "HEIGHT", 300)
    kinds = "baseline,progressive,grey" + (",camera" if forms == "memory" else "")
    words = [str(photos), "--only", kinds, "--forms", forms, "--libraries", "Pillow,imagecodecs"]
    assert image.main([*words, "--rounds", "1", "--seconds", "0", "--json", str(tmp_path / "found.json")]) == 0
    report = json.loads((tmp_path / "found.json").read_text())
    output = capsys.readouterr().out
    assert {(row["kind"], row["form"]) for row in report["rows"]} == {
        (kind, form if form == "memory" else f"DataLoader, {form} workers")
        for kind in kinds.split(",")
        for form in forms.split(",")
    }
    for row in report["rows"]:
        assert row["difference"] == 0
        assert row["milliseconds"] > 0 or "1 workers" in row["form"]  # whose clock has steps of 10 ms
        assert f"| {row['kind']} | {row['form']} | {row['library']} | " in output
    assert report["settings"]["stoker"] == "decode='exact'"
    for name, why in report["missing"].items():
        assert f"{name} is left out: {why}" in output


def test_the_ratio_is_of_neighbours_in_time() -> None:
    clock = iter(range(1000))
    times = image.in_turns([lambda: 1, lambda: 2], lambda: float(next(clock)), rounds=3, seconds=0)
    assert times == [[1.0] * 3, [0.5] * 3]


def test_pixels_that_differ_are_noticed() -> None:
    off = image.Library("off", "", lambda data: image.image.decode(data) // 2)
    assert image.largest_difference(off, [pictures.jpeg(60, 40)]) > 50


def test_what_is_unknown_is_refused(photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        ([str(photos), "--only", "gif"], "there is no kind 'gif'"),
        ([str(photos), "--libraries", "nvjpeg"], "there is no library 'nvjpeg'"),
        ([str(photos / "none")], "has no JPEGs"),
    ):
        with pytest.raises(SystemExit):
            image.main(words)
        assert message in capsys.readouterr().err
