"""``stoker completion``: the scripts are complete, and bash completes with its own."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from stoker.cli.completion import SHELLS
from stoker.cli.main import COMMANDS, main

if TYPE_CHECKING:
    from pathlib import Path

ASK = """
source {script}
complete -p stoker >&2 || exit 1
COMP_WORDS=(stoker {words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMPREPLY=()
_shtab_stoker stoker "${{COMP_WORDS[$COMP_CWORD]}}" "${{COMP_WORDS[$COMP_CWORD - 1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_commands_options_and_values(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    words = {*COMMANDS, "max-rejects", "imagenet-nvidia", "tf1-align-corners", "stanford-dogs"}
    assert {word for word in words if word not in script} == set()


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("pl", {"plan"}),
        ("build --sha", {"--shards", "--shard-size", "--shard-names"}),
        ("build a b --preset imagenet-", {"imagenet-nvidia"}),
        ("completion ''", set(SHELLS)),
        ("build ph", {"photos"}),
        ("show a --out sh", {"sheet.png"}),
    ],
)
def test_bash_completes(words: str, completed: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "photos").mkdir()
    (tmp_path / "sheet.png").touch()
    asked = [bash, "--norc", "-c", ASK.format(script=tmp_path / "script", words=words)]
    answer = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(answer.stdout.split()) == completed, answer.stderr
