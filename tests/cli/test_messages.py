"""What messages never hold: temporary names, addresses of objects or of metadata services, files that nobody typed."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builder.trees import write_tree
from stoker.cli.main import main
from stoker.storage import location
from stoker.storage.objects import _failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commands import Cli


def error_of(cli: Cli, words: Sequence[str], code: int = 2) -> str:
    return next(line for line in cli(*words, code=code).splitlines() if line.startswith("stoker: error: "))[15:]


@pytest.mark.parametrize(
    ("transforms", "message"),
    [
        (
            "trian",
            "there is no transform 'trian'; did you mean train? Give train, eval, jitter, objects, or for example",
        ),
        ("CentreCrop(3)", "there is no transform 'CentreCrop'; did you mean CenterCrop? Give train"),
        ("Resize", "Resize takes size, hflip, filter, color_jitter; give train"),
        ("Resize(8, hflop=1)", "Resize takes size, hflip, filter, color_jitter; give train"),
        ("Resize(a.b)", "a.b is not a number or a text; give train"),
        ("train,,eval", "it is not written as Python; give train"),
        ("3", "3 is not a transform; give train"),
    ],
)
def test_transforms_that_cannot_be_read(transforms: str, message: str, dataset: Path, cli: Cli) -> None:
    error = error_of(cli, ["show", str(dataset), "--out", "x.png", "--transforms", transforms])
    assert error.startswith(f"--transforms is {transforms!r}: {message}")


@pytest.mark.parametrize(
    "words",
    [
        ("show", "{data}", "--out", "{there}/no/x.png"),
        pytest.param(("info", "{data}", "--html", "{there}/no/x.png"), marks=pytest.mark.needs("jinja2")),
        pytest.param(("bench", "{data}", "--html", "{there}/no/x.png"), marks=pytest.mark.needs("jinja2")),
        ("list", "{data}/*", "--out", "{there}/no/x.png"),
    ],
)
def test_a_file_that_has_no_folder(words: tuple[str, ...], dataset: Path, tmp_path: Path, cli: Cli) -> None:
    error = error_of(cli, [word.format(data=dataset, there=tmp_path) for word in words])
    assert error == f"{words[2]} is '{tmp_path}/no/x.png', and there is no folder '{tmp_path}/no'; make it first"


def test_a_file_that_cannot_be_written_is_called_by_its_own_name(tmp_path: Path) -> None:
    for file in (location(tmp_path / "no/file"), location(tmp_path / "no/deeper/file")):
        with pytest.raises(FileNotFoundError) as caught:
            file.write_atomically(b"content")
        assert caught.value.filename == str(file)


def test_a_directory_that_cannot_be_read_is_named(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = write_tree(tmp_path / "source", {"a": 1}), tmp_path / "out"
    out.mkdir()
    denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(out / "build.journal"))
    exists, opened = Path.exists, os.open

    def is_there(self: Path) -> bool:
        if self.name == "build.journal":
            raise denied
        return exists(self)

    def open_it(path: str | os.PathLike[str], *rest: int) -> int:
        if os.fspath(path) == str(out / "build.journal"):
            raise denied
        return opened(path, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "exists", is_there)
        assert error_of(cli, ["verify", str(out)], 1) == f"{out}: Permission denied"
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_it)
        assert error_of(cli, ["build", str(source), str(out)], 1) == f"{out}: Permission denied"


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("PUT http://169.254.169.254/latest/api/token: status code: 403", "set AWS_ACCESS_KEY_ID and"),
        ("GET http://169.254.169.254/latest/meta-data/iam: error sending request", "set AWS_ACCESS_KEY_ID and"),
        ("GET http://metadata/computeMetadata/v1/token?...: error sending request", "run 'gcloud auth"),
    ],
)
def test_missing_credentials_are_named(text: str, remedy: str) -> None:
    error = _failure(text)
    assert str(error).startswith(f"there are no credentials; {remedy}")
    assert "169" not in str(error)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("info {data} --source photos", "--source has no effect without --html"),
        ("info {data} --records 5", "--records has no effect on {data}, which is described without reading records"),
        ("list * --seed 1", "--seed has no effect without --shuffle"),
        ("plan {photos} --resize short:8 --check decode", "--check has no effect where every image is decoded anyway"),
        ("plan {photos} --decode fast", "--decode fast has no effect without --resize"),
        ("plan {photos} --filter box", "--filter has no effect without --resize"),
        ("plan {photos} --shard-size 1MB --shard-names per-class", "--shard-size has no effect"),
        ("show {data} --out x.png --epochs 0", "--epochs has no effect without --transforms"),
        ("show {data} --out x.png --per-row 2 --transforms eval", "--per-row has no effect with --transforms"),
        (
            "build {photos} out --master local --spark-conf a=b",
            "--master and --spark-conf have no effect without --engine spark",
        ),
        (
            "repack {data} out --label-base 0 --from-label-base 0",
            "--from-label-base) has no effect on {data}: its manifest.json says",
        ),
        ("download tiny-imagenet out --devkit", "--devkit is for imagenet"),
    ],
)
def test_an_option_without_effect_is_refused(words: str, message: str, dataset: Path, photos: Path, cli: Cli) -> None:
    folders = {"data": str(dataset), "photos": str(photos)}
    assert message.format(**folders) in error_of(cli, [word.format(**folders) for word in words.split()])


def test_names_that_the_terminal_lacks_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(tmp_path / "photos", {"train/猫": 1, "train/été": 1})
    printed = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", printed)
    assert main(["info", str(tmp_path / "photos")]) == 0
    text = printed.buffer.getvalue()  # type: ignore[attr-defined]
    assert b"\\u732b" in text
    assert "été".encode("latin-1") in text
