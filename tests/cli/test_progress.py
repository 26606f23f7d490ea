"""The progress of a long job: lines where there is no terminal, a bar where there is one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stoker import progress
from stoker.progress import ProgressDisplay, shown_progress
from terminals import at_terminal

if TYPE_CHECKING:
    import pytest

PROGRAM = """
import time
from stoker.cli.output import shown_progress
with shown_progress("building") as report:
    for done in range(1, 6):
        time.sleep(0.15)
        report(done=done, total=5, size_bytes=1000 * done, rejects=1)
"""


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_lines_have_rate_and_time_left(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    with shown_progress("building", "files", "damaged") as report:
        for step in range(1, 101):
            clock.now += 0.1
            report(done=500 + step, total=1000, size_bytes=2_000_000 * step, rejects=7)
    lines = capsys.readouterr().err.splitlines()
    assert 4 <= len(lines) <= 5  # in ten seconds
    assert lines[0].startswith("building: 521 of 1,000 (52 %), ")
    pattern = re.compile(r".*, (9\.\d|10|10\.\d) files/s, 20\.0 MB/s, 7 damaged, \d+(\.\d)? s left")
    assert [line for line in lines if pattern.fullmatch(line) is None] == []


def test_the_end_is_always_shown_and_a_text_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay() as display:
        display.show("unpacking \x1b[31ma.tar", 5, 5, "5 B of 5 B", lambda _: ["all of it"])
        display.say("a \x1b[2J note [bold]as it is[/bold]")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "unpacking \\x1b[31ma.tar: 5 B of 5 B (100 %), all of it"
    assert second == "a \\x1b[2J note [bold]as it is[/bold]"


def test_a_bar_on_a_terminal() -> None:
    code, shown = at_terminal("-c", PROGRAM)
    assert code == 0, shown
    text = shown.decode()
    assert "building" in text
    assert "5 of 5" in text
    assert "1 rejected" in text
    assert "images/s" in text


def test_nothing_is_shown_that_nobody_sees(capsys: pytest.CaptureFixture[str]) -> None:
    for settings in ({"is_shown": False}, {"has_lines": False}):
        with shown_progress("building", **settings) as report:
            report(done=5, total=5, size_bytes=0, rejects=0)
    assert capsys.readouterr() == ("", "")


def test_a_bar_in_a_notebook() -> None:
    import nbformat  # noqa: PLC0415
    from nbclient import NotebookClient  # noqa: PLC0415

    code = PROGRAM.replace("stoker.cli.output", "stoker.progress")
    slow = code.replace('"building"', '"building", has_lines=False, delay_seconds=60')
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (code, slow)])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown, hidden = (cell.outputs for cell in notebook.cells)
    assert [output.output_type for output in shown] == ["display_data"]  # updated, not added to
    page = shown[0].data["text/html"]
    rates = r"\S+ images/s, \S+ K?B/s"
    bar = rf"<progress value='5' max='5'></progress> <code>building: 5 of 5, {rates}, 1 rejected</code>"
    assert re.fullmatch(bar, page)
    assert shown[0].data["text/plain"] in page
    assert hidden == []
