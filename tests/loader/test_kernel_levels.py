"""The environment variable STOKER_KERNELS: every level gives the same bytes, and another word is refused."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loader.shards import image, write_shards
from programs import run_python

if TYPE_CHECKING:
    import subprocess

PROGRAM = Path(__file__).with_name("kernel_hashes.py")
LEVELS = ["portable", "neon"] if platform.machine() in ("arm64", "aarch64") else ["portable", "sse42", "avx2", "avx512"]
ASKED = "from stoker import _native; print(_native.kernel_level())"


def run(level: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run_python(*words, env={**os.environ, "STOKER_KERNELS": level})


BEST = LEVELS.index(run("", "-c", ASKED).stdout.strip())


@pytest.mark.slow
def test_every_level_gives_the_same_bytes(tmp_path: Path) -> None:
    jpegs = [tmp_path / f"{i}.jpg" for i in range(6)]  # one of each kind
    for i, path in enumerate(jpegs):
        path.write_bytes(image(i))
    (tmp_path / "shards").mkdir()
    write_shards(tmp_path / "shards", 24, 2)
    hashes = {}
    for level in LEVELS[: BEST + 1]:
        done = run(level, str(PROGRAM), str(tmp_path / "shards"), *map(str, jpegs))
        assert done.returncode == 0, done.stderr
        hashes[level] = done.stdout.splitlines()
    assert len(hashes["portable"]) > 60
    assert all(lines == hashes["portable"] for lines in hashes.values())


def test_the_level_is_the_one_that_is_named() -> None:
    for level in LEVELS[: BEST + 1]:
        assert run(level, "-c", ASKED).stdout == f"{level}\n"


@pytest.mark.parametrize("word", ["avx5", "AVX2", "1", "caf\udcc3", *LEVELS[BEST + 1 :]])
@pytest.mark.slow
def test_another_word_is_refused_with_those_that_are_possible(word: str) -> None:
    *others, last = LEVELS[: BEST + 1]
    shown = word.replace("\udcc3", "?")
    sentence = (
        f"the environment variable STOKER_KERNELS is '{shown}'; on this machine it may be "
        + (f"{', '.join(others)} or " if others else "")
        + last
    )
    done = run(word, "-c", "import stoker; stoker.Loader")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ImportError: {sentence}"
    done = run(word, "-m", "stoker.cli.main", "info", "dataset")
    assert (done.returncode, done.stderr) == (2, f"stoker: error: {sentence}\n")
