"""``stoker plan`` and ``stoker build``: exit codes, JSON, and messages when something goes wrong."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from builder.trees import picture, write_tree
from sources.making import tar_bytes
from stoker.builder import estimate
from stoker.cli.main import main
from stoker.loader import open_dataset
from terminals import at_terminal
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commands import Cli

COMMAND = [sys.executable, "-m", "stoker.cli.main"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "src", {"cat": 8, "dog": 4})


def test_build_says_what_it_did(cli: Cli, source: Path, tmp_path: Path) -> None:
    cli("build", source, tmp_path / "out", "--shards", 2)
    dataset_id = json.loads((tmp_path / "out/manifest.json").read_text())["dataset_id"]
    assert f"dataset {dataset_id} in {tmp_path / 'out'}\n" in cli.out
    assert "images/s" in cli.out
    assert "\x1b" not in cli.out + cli.err
    assert cli.err.startswith("building: 12 of 12 (100 %), ")
    assert "already complete" in cli("build", source, tmp_path / "out", "--shards", 2)
    assert dataset_id in cli.out


def test_build_as_json_prints_one_document(cli: Cli, source: Path, tmp_path: Path) -> None:
    (source / "cat/x.png.JPEG").write_bytes(picture(1).replace(b"\xff\xd8", b"", 1))
    cli("build", source, tmp_path / "out", "--json", "--max-rejects", 1, "--label-base", 0)
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    document = cli.json
    assert document["outcome"] == "built"
    assert document["dataset_id"] == manifest["dataset_id"]
    assert document["splits"]["train"] == {
        "records": 12, "bytes": manifest["splits"]["train"]["bytes"], "shards": 1, "rejects": 1,
    }  # fmt: skip
    assert [reject["key"] for reject in document["rejects"]] == ["cat/x.png.JPEG"]
    assert manifest["schema"]["label_base"] == 0


def test_rejects_withhold_the_manifest_until_accepted(cli: Cli, source: Path, tmp_path: Path) -> None:
    write_files(source, {f"cat/bad{number}.JPEG": b"no image here" for number in range(7)})
    out = tmp_path / "out"
    cli("build", source, out, code=3)
    assert "rejected cat/bad" in cli.out
    assert "... and 2 more; see" in cli.out
    assert "--max-rejects 7" in cli.out
    assert not (out / "manifest.json").exists()
    cli("build", source, out, "--max-rejects", 6, "--json", code=3)
    assert (cli.json["outcome"], cli.json["images"]) == ("withheld", 0)
    cli("build", source, out, "--max-rejects", 7, "--json")
    assert (cli.json["outcome"], cli.json["images"]) == ("built", 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{src}", "{out}", "--shards", "13"], "--shards is 13, but split 'train' has 12 items"),
        (["{src}", "{out}", "--shards", "0"], "--shards is 0; it must be between 1 and 99999"),
        (["{src}", "{out}", "--shards", "2", "--shard-size", "1MB"], "contradict"),
        (["{src}", "{out}", "--shard-size", "big"], "not a size: 'big'"),
        (["{src}", "{out}", "--encode", "jpeg:90", "--recipe", "restart"], "give --resize too"),
        (["{src}", "{out}", "--encode", "png", "--recipe", "keep"], "give one of them"),
        (["{src}", "{out}", "--encode", "webp"], "write jpeg:90, jpeg:90:444, jpeg:90:standard, png"),
        (["{src}", "{out}", "--filter", "box"], "give --resize too"),
        (["{src}", "{out}", "--resize", "half"], "--resize 'half' is not understood"),
        (["{src}", "{out}", "--resize", "short:9", "--recipe", "keep"], "contradict"),
        (["{src}", "{out}", "--split-fraction", "0.1"], "--split-fraction '0.1'"),
        (["{src}", "{out}", "--threads", "0"], "--threads is 0"),
        (["{src}", "{out}", "--frobnicate"], "no option --frobnicate"),
        (["{src}", "{src}"], "is the source itself"),
        (["{src}", "{src}/../full"], "holds something else (precious.txt)"),
        (["{src}/none", "{out}"], "none does not exist; give a folder of class folders"),
        (["{src}/../full", "{out}"], "holds no class folder"),
        (["{src}", "{out}", "--boxes", "{src}/none"], "give a folder of XML files"),
    ],
)
def test_usage_errors_write_nothing(cli: Cli, source: Path, tmp_path: Path, words: list[str], message: str) -> None:
    write_files(tmp_path, {"full/precious.txt": b""})
    filled = [word.format(src=source, out=tmp_path / "out") for word in words]
    assert message in cli("build", *filled, code=2)
    assert next(line for line in cli.err.splitlines() if message in line).startswith("stoker: error: ")
    cli("build", *filled, "--json", code=2)
    assert message in cli.json["error"]["message"]
    assert cli.json["error"].keys() == {"type", "message", "path", "record", "offset"}
    assert not (tmp_path / "out").exists()


def test_a_missing_list_of_names_is_a_failure_that_names_it(cli: Cli, source: Path, tmp_path: Path) -> None:
    cli("build", source, tmp_path / "out", "--class-names", tmp_path / "names", "--json", code=1)
    assert cli.json["error"]["path"] == str(tmp_path / "names")
    assert "No such file" in cli.err


def test_plan_prints_and_writes_nothing(cli: Cli, source: Path, tmp_path: Path) -> None:
    write_files(source, {"cat/odd.JPEG": b"\x89PNG\r\n\x1a\n", "cat/empty.JPEG": b"", "dog/notes.txt": b""})
    (source / "eel").mkdir()
    classes = tmp_path / "classes.txt"
    classes.write_text("cat\ndog\neel\n")
    before = sorted(tmp_path.rglob("*"))
    (source / "dog/right.JPEG").write_bytes(picture(9, "PNG"))
    cli("plan", source, code=2)
    assert (
        "without images in any split: eel; move their folders away (annotations in them are not read), or," in cli.err
    )
    cli("plan", source, "--split-fraction", "val=0.25", "--shards", 3, "--labels", classes, code=3)
    for message in (
        "3 classes of 0 to 10, 15 items",
        "12 jpeg, 2 png, 1 empty",
        "odd file: dog/right.JPEG is png",
        "rejected cat/odd.JPEG: ",
        "rejected cat/empty.JPEG: the file is empty",
        "ignored: 1 .txt",
        "warning: no images in class eel",
        "from 15 items converted",
        "2 of 15 will be rejected; the manifest would be withheld: build with --max-rejects 2 to accept them",
    ):
        assert message in cli.out
    assert "odd file: cat/empty.JPEG" not in cli.out
    (source / "dog/right.JPEG").unlink()
    cli("plan", source, "--resize", "short:20", "--json", "--max-rejects", 2, "--labels", classes)
    document = cli.json
    assert [reject["key"] for reject in document["rejects"]] == ["cat/empty.JPEG", "cat/odd.JPEG"]
    assert (document["expected_rejects"], document["withheld"]) == (2, False)
    assert document["splits"]["train"]["items"] == 14
    assert document["classes"][2] == {"name": "eel", "text": "", "items": 0}
    assert document["odd_files"] == [
        {"key": "cat/empty.JPEG", "content": "empty"},
        {"key": "cat/odd.JPEG", "content": "png"},
    ]
    assert document["estimate"]["bytes"] > 0
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("options", [[], ["--resize", "short:20"], ["--crop-objects"], ["--num-images", "3"]])
def test_plan_rejects_and_exits_as_build_does(cli: Cli, source: Path, tmp_path: Path, options: list[str]) -> None:
    whole = picture(3)
    odd = {"text.JPEG": b"no image", "cut.JPEG": whole[: len(whole) // 2], "long/lossless.JPEG": b"\xff\xd8\xff\xc3"}
    write_files(source / "cat", odd)
    (source / "dog/gone.JPEG").symlink_to("nowhere")
    (source / "eel").symlink_to("nowhere")
    cli("plan", source, *options, "--json", code=None)
    code, planned = cli.code, cli.json
    cli("build", source, tmp_path / "out", *options, "--json", code=code)
    assert sorted(planned["rejects"], key=str) == sorted(cli.json["rejects"], key=str)
    assert code == (3 if planned["rejects"] else 0)
    accept = ["--max-rejects", len(planned["rejects"])]
    cli("plan", source, *options, *accept)
    cli("build", source, tmp_path / "out", *options, *accept)


def test_plan_of_nothing_but_broken_files(cli: Cli, tmp_path: Path) -> None:
    write_files(tmp_path / "src", dict.fromkeys(("a/1.jpg", "b/2.jpg"), b"text"))
    cli("plan", tmp_path / "src", code=3)
    assert "2 of 2 will be rejected; the manifest would be withheld: no image can be stored" in cli.out
    cli("build", tmp_path / "src", tmp_path / "out", code=3)
    assert "manifest withheld because of 2 rejects; no image could be stored\n" in cli.out
    cli("build", tmp_path / "src", tmp_path / "out", "--max-rejects", 2)
    assert "warning: no image could be stored; the first is b/2.jpg: not an image but text" in cli.out


def test_plan_of_many_images_says_that_it_sampled(cli: Cli, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source / "cat/empty.JPEG").touch()
    monkeypatch.setattr(estimate, "SURVEY_LIMIT", 6)
    cli("plan", source, "--json", code=None)
    code, document = cli.code, cli.json
    assert document["files_looked_at"] == 6
    assert document["expected_rejects"] == round(len(document["rejects"]) * 13 / 6)
    assert code == (3 if document["rejects"] else 0)
    cli("plan", source, code=code)
    expected, rejects = document["expected_rejects"], len(document["rejects"])
    assert f"about {expected} of 13 would be rejected (from a sample of 6: {rejects})" in cli.out
    assert "will be rejected" not in cli.out


def test_images_without_any_class_can_be_planned(cli: Cli, tmp_path: Path) -> None:
    write_files(tmp_path, {"ILSVRC2012_img_test.tar": tar_bytes({"ILSVRC2012_test_00000001.JPEG": picture(1)})})
    assert "no classes, 1 item," in cli("plan", tmp_path / "ILSVRC2012_img_test.tar")


def test_names_that_are_not_utf8_can_be_printed(cli: Cli, source: Path, tmp_path: Path) -> None:
    Path(os.fsdecode(bytes(source) + b"/cat/caf\xe9\x1b[31m.JPEG")).write_bytes(b"")
    cli("plan", source, code=3)
    assert "rejected cat/caf\\udce9\\x1b[31m.JPEG: the file is empty" in cli.out
    cli("build", source, tmp_path / "out", code=3)
    assert "rejected cat/caf\\udce9\\x1b[31m.JPEG: the file is empty" in cli.out
    cli("build", source, tmp_path / "out", "--json", code=3)
    assert os.fsencode(cli.json["rejects"][0]["key"]) == b"cat/caf\xe9\x1b[31m.JPEG"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A full disk: a small tmpfs where this user may mount one, else a limit on the length of files."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    mounted = subprocess.run(words, capture_output=True, check=False)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if mounted.returncode != 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64_000, before[1]))
    yield folder
    if mounted.returncode == 0:
        subprocess.run(["umount", str(folder)], check=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_failure_that_can_be_resumed(cli: Cli, tmp_path: Path, small_disk: Path) -> None:
    images = {f"a/{number}.JPEG": picture(number, size=(600, 400)) for number in range(6)}
    assert sum(map(len, images.values())) > 64_000
    words = ("build", write_files(tmp_path / "src", images), small_disk / "out", "--shards", 1)
    if small_disk.is_mount():  # otherwise a limit on the length of files stands for the disk
        assert "are free; free some or build elsewhere, or add --yes" in cli(*words, code=2)
        assert not (small_disk / "out").exists()
    words = (*words, "--yes")
    cli(*words, code=1)
    assert "No space left" in cli.err or "File too large" in cli.err
    assert "run the same command again to resume" in cli.err
    assert sorted(path.name for path in (small_disk / "out").iterdir()) == ["build.journal"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], capture_output=True, check=False)
    cli(*words)


@pytest.mark.slow
def test_ctrl_c_ends_soon_and_the_build_goes_on_later(tmp_path: Path) -> None:
    images = dict.fromkeys((f"a/{number}.JPEG" for number in range(300)), picture(0, size=(800, 600)))
    words = [*COMMAND, "build", str(write_files(tmp_path / "src", images)), str(tmp_path / "out")]
    words += ["--shards", "50", "--resize", "short:300"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        while not list((tmp_path / "out").glob("*.tfrecord")):
            time.sleep(0.01)
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, err = process.communicate(timeout=30)
    assert time.monotonic() - started < 10  # about one item's time; the bound is for a machine that is very busy
    assert process.returncode == 130
    assert "run the same command again to resume" in err
    assert "Traceback" not in err
    assert not list((tmp_path / "out").glob("*.tmp-*"))
    assert not (tmp_path / "out/manifest.json").exists()
    assert main(words[3:]) == 0


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_an_image_that_is_encoded(tmp_path: Path) -> None:
    source = tmp_path / "src/a"
    source.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (2000, 2000, 3), np.uint8)
    started = time.monotonic()
    Image.fromarray(pixels).save(io.BytesIO(), "PNG", compress_level=4)
    seconds = time.monotonic() - started
    Image.fromarray(np.tile(pixels, (3, 3, 1))).save(source / "0.tiff")
    words = [*COMMAND, "build", str(tmp_path / "src"), str(tmp_path / "out"), "--threads", "1"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        while not (tmp_path / "out/build.journal").exists():
            time.sleep(0.01)
            assert process.poll() is None
        time.sleep(seconds)  # of nine times as many
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 1 + 3 * seconds
    assert process.returncode == 130
    assert "run the same command again to resume" in err
    assert not list((tmp_path / "out").glob("*.tmp-*"))


def test_a_closed_pipe_gives_no_traceback(source: Path) -> None:
    words = [*COMMAND, "plan", str(source), "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 1


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_only_on_a_terminal_and_not_with_no_color(source: Path, no_color: str, coloured: bool) -> None:
    code, shown = at_terminal(*COMMAND[1:], "plan", source, TERM="xterm-256color", NO_COLOR=no_color)
    assert code == 0
    assert b"12 items" in shown
    assert (b"\x1b[" in shown) == coloured


BY_LENGTH = "about 128.0 MB each; --shards or --shard-size changes that"
HALF = ["--split-fraction", "val=0.5", "--validation-shards", "2"]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ([], BY_LENGTH),
        (["--shard-size", "1MB"], "about 1.0 MB each; --shards or --shard-size changes that"),
        (["--shards", "3"], "3 of train, as --shards says"),
        (HALF, f"2 of validation, as --validation-shards says; {BY_LENGTH}"),
        ([*HALF, "--shards", "1"], "1 of train, as --shards says; 2 of validation, as --validation-shards says"),
        (["--preset", "tiny-imagenet"], "one for each class of train"),
        (["--preset", "imagenet"], f"{BY_LENGTH}; the preset has 1,024 from 102,400 images of train, 100 for each"),
    ],
)
def test_plan_and_build_explain_the_shards(source: Path, tmp_path: Path, cli: Cli, words: list[str], rule: str) -> None:
    for command in (["plan", source], ["build", source, tmp_path / "out"]):
        assert f"shards: {rule}\n" in cli(*command, *words)


def test_shards_of_a_source_that_is_all_validation(source: Path, cli: Cli) -> None:
    whole = source.with_name("whole")
    whole.mkdir()
    source.rename(whole / "validation")
    assert "shards: 2 of validation, as --validation-shards says\n" in cli("plan", whole, "--validation-shards", "2")
    cli("plan", whole, "--shards", "1", "--validation-shards", "4", code=2)
    problem = "--shards is 1 and --validation-shards is 4, but without a split 'train' both are of validation"
    assert f"{problem}; give one of them\n" in cli.err
    cli("plan", whole, "--validation-shards", "400", code=2)
    assert "--validation-shards is 400, but split 'validation' has 12 items; give 12 or less\n" in cli.err


@pytest.mark.parametrize(("preset", "title"), [("dlbs", "decoded from other kinds"), ("imagenet", "converted to JPEG")])
def test_what_is_not_kept_is_named_by_its_kind(source: Path, tmp_path: Path, cli: Cli, preset: str, title: str) -> None:
    (source / "cat/grey.png").write_bytes(picture(1, "PNG"))
    assert f"{title}: 1 png\n" in cli("build", source, tmp_path / "out", "--preset", preset)
    assert f"{title}: 1 png\n" in cli("info", tmp_path / "out")


def test_images_with_a_dataset_below_them_are_opened_and_built(source: Path, tmp_path: Path, cli: Cli) -> None:
    for folder in (source / "small", tmp_path / "apart"):
        cli("build", source, folder)
    cli("plan", source)
    assert len(open_dataset(source)) == 12


def test_one_of_a_kind_is_not_in_the_plural(tmp_path: Path, cli: Cli) -> None:
    source = write_tree(tmp_path / "source", {"a": 1})
    assert "1 class of 1, 1 item, " in cli("plan", source)
    write_files(source, {"a/bad.JPEG": b"", "loose.JPEG": b""})
    cli("build", source, tmp_path / "out", code=3)
    assert "because of 1 reject;" in cli.out
    assert "1 file in the root outside any class folder: not used" in cli.out
    write_tree(tmp_path / "two", {"a": 2, "b": 2})
    assert "2 classes of 2 each, 4 items, " in cli("plan", tmp_path / "two")
