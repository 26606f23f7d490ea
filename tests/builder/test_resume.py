"""A build that was stopped anywhere resumes, and ends with the same bytes."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from builder.killing import interrupt, kill_until_built
from builder.trees import build, contents, settings_for, write_tree
from small_datasets import change_manifest
from stoker.errors import DestinationError
from stoker.format.journal import JournalFile, parse_settings, read_results
from stoker.recipe import Recipe, parse_resize
from written_files import write_files

if TYPE_CHECKING:
    from stoker.builder import BuildReport

HERE = Path(__file__).parent


def run(source: Path, destination: Path, **settings: Any) -> BuildReport:
    return build(settings_for(source, **{"shards": 4} | settings), destination)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "src", {"a": 10, "b": 6}, "b/text.JPEG")


PROGRAM = """
import sys
import numpy as np
import stoker
rng = np.random.default_rng(1)
records = ({"image": rng.integers(0, 256, (60, 80, 3), np.uint8), "label": number % 5} for number in range(240))
source = records if KIND == "stream" else [*records] if KIND == "sequence" else sys.argv[1].rpartition("/")[0] + "/src"
size = {"shard_size": "120KB"} if KIND == "stream" else {"shards": 24}
stoker.build(source, sys.argv[1], resize="short:64", threads=2, **size)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "sequence", "stream"])
def test_kills_do_not_change_a_byte(tmp_path: Path, kind: str) -> None:
    write_tree(tmp_path / "src", {"a": 300, "b": 300})
    program = f"KIND = {kind!r}\n{PROGRAM}"
    assert kill_until_built(program, tmp_path / "out") == 4
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "whole")], cwd=HERE, check=True, timeout=120)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def interrupted(source: Path, out: Path) -> int:
    return interrupt(lambda stop: build(settings_for(source, shards=4, threads=1), out, stop), out, 1)


def test_a_second_run_builds_only_what_is_missing(tmp_path: Path, source: Path) -> None:
    there = interrupted(source, tmp_path / "out")
    assert 1 <= there < 4
    report = run(source, tmp_path / "out", max_rejects=1)
    assert (report.resumed_shards, report.outcome) == (there, "built")
    assert report.items < 17
    assert report.manifest == run(source, tmp_path / "whole", max_rejects=1).manifest
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_finished_build_is_not_touched(tmp_path: Path, source: Path) -> None:
    first = run(source, tmp_path / "out", max_rejects=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    again = run(source, tmp_path / "out", threads=5)
    assert (again.outcome, again.manifest, again.rejects, again.items) == ("complete", first.manifest, first.rejects, 0)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 1}, "seed is 0, not 1"),
        ({"shards": 5}, 'shards is {"train": 4}, not {"train": 5}'),
        ({"recipe": Recipe(resize=parse_resize("short:20"))}, "recipe is "),
    ],
)
def test_other_settings_are_refused(
    tmp_path: Path, source: Path, change: dict[str, Any], message: str, finished: bool
) -> None:
    out = tmp_path / "out"
    if finished:
        run(source, out, max_rejects=1)
    else:
        interrupted(source, out)
    before = contents(out)
    with pytest.raises(DestinationError) as caught:
        run(source, out, **change)
    assert message in str(caught.value)
    what = "a finished dataset" if finished else "an unfinished build"
    assert f"holds {what} with other settings" in str(caught.value)
    assert contents(out) == before


def test_a_changed_source_is_other_settings(tmp_path: Path, source: Path) -> None:
    interrupted(source, tmp_path / "out")
    (source / "a/a_0.JPEG").write_bytes(b"changed")
    with pytest.raises(DestinationError, match="source is"):
        run(source, tmp_path / "out")


@pytest.mark.parametrize("damage", ["delete shard", "cut shard", "delete index"])
def test_a_shard_that_is_no_longer_whole_is_built_again(tmp_path: Path, source: Path, damage: str) -> None:
    out = tmp_path / "out"
    assert run(source, out).outcome == "withheld"
    shard = out / "train-00001-of-00004.tfrecord"
    if damage == "delete shard":
        shard.unlink()
    elif damage == "cut shard":
        os.truncate(shard, shard.stat().st_size - 1)
    else:
        Path(f"{shard}.idx").unlink()
    assert run(source, out, max_rejects=1).resumed_shards == 3
    run(source, tmp_path / "whole", max_rejects=1)
    assert contents(out) == contents(tmp_path / "whole")


def test_a_finished_dataset_with_a_missing_shard_is_not_called_complete(tmp_path: Path, source: Path) -> None:
    run(source, tmp_path / "out", max_rejects=1)
    (tmp_path / "out/train-00001-of-00004.tfrecord").unlink()
    with pytest.raises(DestinationError, match=r"train-00001-of-00004.tfrecord or its index is missing"):
        run(source, tmp_path / "out")


@pytest.mark.parametrize("name", ["labels.txt", "rejects.jsonl"])
def test_a_finished_dataset_with_a_changed_file_is_not_called_complete(tmp_path: Path, source: Path, name: str) -> None:
    expected = run(source, tmp_path / "out", max_rejects=1).manifest
    file = tmp_path / "out" / name
    content = file.read_bytes()
    problem = f"but {name} is missing or was changed .*, or overwrite the dataset"
    for change in (lambda: file.write_bytes(b"x" + content[1:]), file.unlink):
        change()
        with pytest.raises(DestinationError, match=problem):
            run(source, tmp_path / "out")
    file.write_bytes(content)
    assert run(source, tmp_path / "out").manifest == expected


def test_a_journal_that_ends_anywhere_is_good_up_to_its_last_line(tmp_path: Path, source: Path) -> None:
    run(source, tmp_path / "whole", max_rejects=1)
    expected = contents(tmp_path / "whole")
    assert run(source, tmp_path / "out").outcome == "withheld"
    journal = tmp_path / "out/build.journal"
    text = journal.read_bytes()
    lines = text.splitlines(keepends=True)
    assert len(lines) == 5
    for cut in [0, 1, len(lines[0]) - 1, len(lines[0]), len(lines[0]) + 7, len(text) - 1, len(text)]:
        journal.write_bytes(text[:cut])
        assert run(source, tmp_path / "out").resumed_shards == max(0, text[:cut].count(b"\n") - 1), cut
        assert run(source, tmp_path / "out").resumed_shards == 4, cut
    journal.write_bytes(text[: -len(lines[-1])] + b"\0" * 50 + b"\n")  # what a power cut can leave
    assert run(source, tmp_path / "out").resumed_shards == 3
    run(source, tmp_path / "out", max_rejects=1)
    assert contents(tmp_path / "out") == expected


def test_every_changed_bit_of_a_journal_is_found(tmp_path: Path, source: Path) -> None:
    run(source, tmp_path / "out")
    text = (tmp_path / "out/build.journal").read_bytes()
    head = text.index(b"\n") + 1
    settings = parse_settings(text[:head])
    assert isinstance(settings, dict)
    results = [result for result, _ in read_results(io.BytesIO(text[head:]), settings)]
    assert len(results) == 4
    for at in range(len(text)):
        whole = text[:at].count(b"\n") - 1  # lines of shards before this byte
        for bit in range(8):
            changed = text[:at] + bytes([text[at] ^ 1 << bit]) + text[at + 1 :]
            if whole < 0:
                assert isinstance(parse_settings(changed[:head]), str), at
            else:
                undamaged = [result for result, _ in read_results(io.BytesIO(changed[head:]), settings)]
                assert undamaged == results[:whole], at


def test_a_build_with_a_damaged_journal_is_refused_or_ends_with_the_same_bytes(tmp_path: Path, source: Path) -> None:
    run(source, tmp_path / "whole", max_rejects=1)
    expected = contents(tmp_path / "whole")
    run(source, tmp_path / "out")
    journal = tmp_path / "out/build.journal"
    text, head = journal.read_bytes(), journal.read_bytes().index(b"\n")
    for at in [text.index(b'"seed": 0') + 8, *range(5, len(text), 71)]:
        shutil.copytree(tmp_path / "out", tmp_path / "again")
        changed = text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
        (tmp_path / "again/build.journal").write_bytes(changed)
        for seed in {0, 1} if at < head else {0}:  # also the one that the damaged line may name
            if at < head:
                with pytest.raises(DestinationError, match=r"build\.journal .*; delete .* or build somewhere else"):
                    run(source, tmp_path / "again", max_rejects=1, seed=seed)
            else:
                assert run(source, tmp_path / "again", max_rejects=1).resumed_shards < 4
                assert contents(tmp_path / "again") == expected
        shutil.rmtree(tmp_path / "again")


@pytest.mark.parametrize("damage", [b'{"shard": "a", "records": 1e999}', b"[" * 200_000, b"[1]"])
def test_a_line_that_no_build_wrote_is_not_a_shard(tmp_path: Path, damage: bytes) -> None:
    with JournalFile(tmp_path) as journal:
        journal.begin({"seed": 1})
    with (tmp_path / "build.journal").open("ab") as file:
        file.write(damage + b"\n")
    with JournalFile(tmp_path) as journal:
        assert (journal.settings, journal.results) == ({"seed": 1}, [])


def test_a_journal_of_something_else_is_refused(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for text, message in (
        (b"diary\n", "is not a Stoker journal"),
        (b'{"format": "stoker-journal", "version": 9}\n', "version 9"),
        (b'{"format": "stoker-journal", "version": 2, "settings": {}}\n', "version 2, but this .* only version 3"),
        (b"[" * 200_000 + b"\n", "is not a Stoker journal"),
    ):
        (out / "build.journal").write_bytes(text)
        with pytest.raises(DestinationError, match=message):
            run(source, out)
        assert contents(out) == {"build.journal": text}


def test_two_builds_at_once_are_refused(tmp_path: Path, source: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with JournalFile(out), pytest.raises(DestinationError, match="another build is writing"):
        run(source, out)
    assert run(source, out, max_rejects=1).outcome == "built"


def test_what_dead_builds_left_is_swept(tmp_path: Path, source: Path) -> None:
    interrupted(source, tmp_path / "out")
    stray = tmp_path / "out/train-00003-of-00004.tfrecord.tmp-1-aa"
    stray.write_bytes(b"half")
    run(source, tmp_path / "out", max_rejects=1)
    assert not stray.exists()
    assert not (tmp_path / "out/build.journal").exists()


@pytest.mark.parametrize("entry", ["photo.jpg", "folder/x", "labels.txt"])
def test_a_directory_with_something_else_is_refused_and_not_touched(tmp_path: Path, source: Path, entry: str) -> None:
    out = write_files(tmp_path / "out", {entry: b"precious"})
    with pytest.raises(DestinationError, match=rf"holds something else \({entry.split('/', maxsplit=1)[0]}\)"):
        run(source, out)
    assert [path.name for path in out.iterdir()] == [entry.split("/", maxsplit=1)[0]]
    with pytest.raises(DestinationError, match="is a file"):
        run(source, source / "../src/../out" / entry)
    with pytest.raises(DestinationError, match=rf"cannot be made: {re.escape(str(out / entry))} is not a directory"):
        run(source, out / entry / "new/dataset")


def test_a_device_or_a_link_to_nothing_is_no_destination(tmp_path: Path, source: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    for path in (Path("/dev/null"), tmp_path / "link"):
        with pytest.raises(DestinationError, match=f"^{path} is not a directory; give a directory"):
            run(source, path)


def test_a_manifest_of_a_newer_version_is_refused(tmp_path: Path, source: Path) -> None:
    run(source, tmp_path / "out", max_rejects=1)
    change_manifest(tmp_path / "out", version=3)
    with pytest.raises(DestinationError, match=r"format version 3, this one reads up to 2\): install Stoker >= "):
        run(source, tmp_path / "out")
