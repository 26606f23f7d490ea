"""The quick benchmark stores ratios where there are none, and fails where a line is clearly below what is stored."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from benchmarks import quick

FAR = {"median": 1e9, "low": 1e9, "high": 1e9}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    monkeypatch.setattr(quick, "TENSORS", 64)
    return [str(tmp_path), "--store", str(tmp_path / "made" / "ratios.json"), "--rounds", "2", "--seconds", "0.03"]


def run(words: list[str]) -> int:
    with warnings.catch_warnings():
        return quick.main(words)


def stored(words: list[str]) -> dict[str, dict[str, dict[str, float]]]:
    ratios: dict[str, dict[str, dict[str, float]]] = json.loads(Path(words[2]).read_text(encoding="utf-8"))
    return ratios


def multiply(words: list[str], factor: float) -> dict[str, dict[str, dict[str, float]]]:
    ratios = {
        key: {line: {name: factor * value for name, value in ratio.items()} for line, ratio in lines.items()}
        for key, lines in stored(words).items()
    }
    Path(words[2]).write_text(json.dumps({**ratios, "another machine": {"scan": FAR}}), encoding="utf-8")
    return stored(words)


def test_a_median_has_an_interval() -> None:
    pairs = [(float(number), 2.0) for number in range(1, 28)]
    assert quick.ratio_of(pairs) == quick.Ratio(7.0, 4.5, 9.5)
    assert quick.ratio_of([(3.0, 2.0)]) == quick.Ratio(1.5, 1.5, 1.5)
    assert quick.ratio_of([(1.0, 1.0), (3.0, 1.0)]) == quick.Ratio(2.0, 1.0, 3.0)


def test_what_is_not_clearly_below_holds() -> None:
    ratio = quick.Ratio(0.9, 0.8, 0.98)
    assert ratio.holds(quick.Ratio(0.9, 0.8, 0.98))
    assert ratio.holds(quick.Ratio(2.0, 1.01, 3.0))
    assert not ratio.holds(quick.Ratio(2.0, 1.02, 3.0))


def test_lines_are_stored_and_compared(short: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*short, "--only", "scan"]) == 0
    assert "| new |" in capsys.readouterr().out
    [(key, lines)] = stored(short).items()
    assert str(short[0]) in key
    assert list(lines) == ["scan"]

    low = multiply(short, 1e-3)
    assert run([*short, "--only", "raw,scan"]) == 0
    output = capsys.readouterr().out
    assert output.count("| ok |") == output.count("| new |") == 1
    assert stored(short)[key]["scan"] == low[key]["scan"]
    assert sorted(stored(short)[key]) == ["raw, 64 x 64", "scan"]

    multiply(short, 1e6)
    assert run([*short, "--only", "scan"]) == 1
    output = capsys.readouterr().out
    assert "| SLOWER |" in output
    assert "Slower than stored by more than 3%: scan." in output

    assert run([*short, "--only", "scan", "--save"]) == 0
    assert stored(short)[key]["scan"]["median"] < 1e2
    assert stored(short)["another machine"] == {"scan": FAR}


def test_an_unknown_line_is_refused(short: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run([*short, "--only", "trian"])
    assert "there is no line 'trian'; the lines are train, eval, raw, scan, build" in capsys.readouterr().err
