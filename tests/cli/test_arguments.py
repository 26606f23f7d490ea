"""What every command does with what it is given: its words, answers at a terminal, numbers that are none."""

from __future__ import annotations

import os
import pty
import sys
from pathlib import Path

import pytest

import stoker.cli
from builder.trees import write_tree
from stoker.cli.main import COMMANDS, main


def test_every_command_is_known_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    modules = Path(stoker.cli.__file__).parent.glob("*.py")
    assert sorted(path.stem for path in modules if "def add_parser(" in path.read_text("utf-8")) == sorted(COMMANDS)
    for wrong in ("output", "main", "frobnicate"):
        assert main([wrong]) == 2
        assert "bench" in capsys.readouterr().err, wrong  # what there is instead


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"build a b --shard-size {'9' * 400}", "is out of range"),
        ("bench a --seconds nan", "seconds is nan; it must be between 0.1 and 3600"),
        ("bench a --seconds inf", "seconds is inf"),
        ("doctor a --seconds nan", "seconds is nan"),
    ],
)
def test_an_invalid_number_is_an_error_in_our_words(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert message in capsys.readouterr().err


def test_options_may_stand_between_source_and_destination(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_tree(tmp_path / "source", {"a": 2})
    assert main(["build", str(source), "--shards", "1", str(tmp_path / "out")]) == 0
    assert main(["verify", str(tmp_path / "out")]) == 0
    assert main(["build", str(source), "--shards", "1"]) == 2
    assert "needs a source and a destination" in capsys.readouterr().err
    assert main(["download", "tiny-imagenet", "--json"]) == 2
    assert "no directory to download to" in capsys.readouterr().err


def test_the_end_of_input_is_not_an_answer(tmp_path: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        words = [sys.executable, "-m", "stoker.cli.main", "build", "--ask"]
        os.execv(words[0], words)
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
            if shown.endswith(b"ImageNet data dir: "):
                os.write(terminal, b"\x04")
    except OSError:  # the terminal is gone with the process
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2, shown.decode()
    assert b"'ImageNet data dir' was not answered; set the environment variable DATA_DIR" in shown
    assert b"Traceback" not in shown


def test_a_number_of_too_many_digits_is_not_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"DATA_DIR": str(tmp_path), "PROTO_OUT_DIR": "out", "RESIZE_IMAGES": "Y"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NEW_HEIGHT", "9" * 5000)
    assert main(["build", "--ask"]) == 2
    assert "must be a whole number" in capsys.readouterr().err
