"""What every command does with what it is given: its words, answers at a terminal, values that are not valid."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stoker
import stoker.cli
from builder.trees import write_tree
from programs import run_python
from stoker.cli.main import COMMANDS, main, make_parser
from stoker.cli.output import EXIT_CODES
from stoker.errors import SourceError
from stoker.format import read_manifest
from terminals import at_terminal

if TYPE_CHECKING:
    from commands import Cli


def test_every_command_is_known_by_its_name(cli: Cli) -> None:
    modules = Path(stoker.cli.__file__).parent.glob("*.py")
    assert sorted(path.stem for path in modules if "def add_arguments(" in path.read_text("utf-8")) == sorted(COMMANDS)
    for wrong in ("output", "main", "frobnicate"):
        assert "bench" in cli(wrong, code=2), wrong  # what there is instead


@pytest.mark.parametrize(
    ("name", "of_the_command", "of_python"),
    [("merge", set(), set()), ("export", {"image_key", "label_key", "records_label_base"}, {"keys"})],
)
def test_a_function_has_the_options_of_its_command(name: str, of_the_command: set[str], of_python: set[str]) -> None:
    parser = make_parser([name])._subparsers._group_actions[0].choices[name]  # type: ignore[union-attr,index]
    apart = {"help", "json", "quiet", "verbose"} | of_the_command
    options = {action.dest: action.default for action in parser._actions if action.dest not in apart}
    parameters = inspect.signature(getattr(stoker, name)).parameters
    assert parameters.keys() == options.keys() | of_python | {"progress"}
    assert [*parameters][-1] == "progress"
    assert all(parameters[option].default in (options[option], inspect.Parameter.empty) for option in options)


@pytest.mark.parametrize(
    ("words", "message", "see"),
    [
        ("bulid a b", "no command 'bulid'; did you mean build?", "stoker"),
        ("help build plan", "one word too many: 'plan'", "build"),
        ("help bulid", "no command 'bulid'; did you mean build?", "stoker"),
        ("build a b --shard 4", "--shard is ambiguous: it could be --shards, --shard-size or --shard-names", "build"),
        ("build a b --shrads 4", "no option --shrads; did you mean --shards?", "build"),
        ("build a b --zzz", "no option --zzz", "build"),
        ("build a b --valid_pct 0.2", "no option --valid_pct; use --split-fraction validation=0.2", "build"),
        ("build a b --split-fraction .2", "--split-fraction '.2' is not understood; write validation=.2", "build"),
        ("build a b -z", "no option -z", "build"),
        ("build a b c", "one word too many: 'c'", "build"),
        (
            "plan a --preset imagnet",
            "--preset is 'imagnet'; it must be imagenet, imagenet-nvidia, dlbs, tiny-imagenet, dogs-onehot or tfds;",
            "plan",
        ),
        ("plan a --label_base 2", "--label-base is 2; it must be 0 or 1", "plan"),
        ("plan a --shards few", "--shards is 'few'; it must be a whole number", "plan"),
        ("doctor a --seconds long", "--seconds is 'long'; it must be a number", "doctor"),
        ("plan a --shards", "--shards needs a value: --shards N", "plan"),
        ("verify", "stoker verify needs DATASET", "verify"),
        ("list", "stoker list needs GLOB", "list"),
        ("-q", "stoker needs COMMAND", "stoker"),
        ("-V", "no option -V", "stoker"),
        ("plan -z", "no option -z", "plan"),
        ("plan a --json=3", "--json takes no value, but '3' is given", "plan"),
        ("plan a -q3", "-q takes no value, but '3' is given", "plan"),
        ("-q show a", "stoker show needs --out", "show"),
        ("download cifar d", "DATASET is 'cifar'; it must be ", "download"),
        ("build a", "a build needs a source and a destination", "build"),
        ("plan a --filter box", "--filter has no effect without --resize", "plan"),
    ],
)
def test_wrong_use_prints_what_is_wrong_and_where_the_help_is(words: str, message: str, see: str, cli: Cli) -> None:
    error, hint = cli(*words.split(), code=2).splitlines()
    assert error.startswith(f"stoker: error: {message}")
    assert hint == f"see stoker{'' if see == 'stoker' else ' ' + see} --help"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["build", "", "out"], "SOURCE"),
        (["build", "photos", ""], "DESTINATION"),
        (["index", "a", ""], "FILES"),
        (["build", "photos", "out", "--labels="], "--labels"),
    ],
)
def test_a_variable_that_is_not_set_is_not_the_current_directory(words: list[str], name: str, cli: Cli) -> None:
    assert f"stoker: error: {name} is empty; " in cli(*words, code=2)


def test_options_may_be_shortened_and_written_with_underscores(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", {"a": 3})
    words = ["build", str(source), str(tmp_path / "out"), "--num_images=2", "--num_sh", "2", "--label_base", "0"]
    assert main(words) == 0
    manifest = read_manifest(tmp_path / "out")
    assert (manifest.limit, len(manifest.splits["train"].shards), manifest.schema.label_base) == (2, 2, 0)


def test_a_value_is_not_taken_for_an_option(cli: Cli) -> None:
    assert "--shrads does not exist" in cli("plan", "--", "--shrads", code=2)
    assert "--shrads a does not exist" in cli("plan", "--shrads a", code=2)


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
        return capsys.readouterr().out

    assert printed("--version") == f"stoker {stoker.__version__}\n"
    assert printed("help") == printed("--help") == printed("-h")
    assert printed("help", "build") == printed("build", "--help")
    assert main([]) == 2
    assert capsys.readouterr().out == printed("--help")
    shown = printed("--help")
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert all(f"  {code} " in shown and text in shown for code, text in EXIT_CODES.items())


def test_the_package_runs_as_a_module() -> None:
    assert run_python("-m", "stoker", "--version").stdout == f"stoker {stoker.__version__}\n"


def test_quiet_prints_the_result_alone_and_verbose_everything(tmp_path: Path, cli: Cli) -> None:
    source = write_tree(tmp_path / "source", {"a": 3}, *(f"a/bad{number}.JPEG" for number in range(7)))
    cli("-q", "build", source, tmp_path / "out", code=3)
    assert cli.err == ""
    assert [line.split()[0] for line in cli.out.splitlines()] == [*["rejected"] * 5, "...", "manifest"]
    cli("build", source, tmp_path / "out", "--verbose", code=3)
    assert sum(line.startswith("rejected") for line in cli.out.splitlines()) == 7
    cli("-v", "build", source, tmp_path / "detailed", code=3)
    assert "recipe keep, preset none, labels from 0, seed 0, " in cli.out
    cli("build", source, tmp_path / "other", code=3)  # neither is kept for the next command
    assert "... and 2 more" in cli.out
    assert "building: " in cli.err


def test_what_python_warns_of_is_reported(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    def warn(*_: object) -> None:
        warnings.warn("2 images\x1b[31m have no label", UserWarning, stacklevel=1)
        raise SourceError("and that is all")

    monkeypatch.setattr("stoker.cli.verify.verify_dataset", warn)
    cli("verify", "a", code=2)
    lines = ["stoker: warning: 2 images\\x1b[31m have no label", "stoker: error: and that is all"]
    assert cli.err.splitlines() == lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f"build a b --shard-size {'9' * 400}", "is out of range"),
        ("bench a --seconds nan", "--seconds is nan; it must be between 0.1 and 3600"),
        ("bench a --batch-size 0", "--batch-size is 0; it must be between 1 and"),
        ("doctor a --batch-size 0", "--batch-size is 0; it must be between 1 and"),
        ("build a b --max-rejects -1", "--max-rejects is -1; it must be 0 or more"),
        ("build a b --split-fraction val=2", "--split-fraction 'val=2' is not understood"),
        ("build a b --encode raw", "the layout imagenet stores JPEG files, not raw"),
        ("bench a --seconds inf", "--seconds is inf"),
        ("doctor a --seconds nan", "--seconds is nan"),
    ],
)
def test_an_invalid_number_is_an_error_in_our_words(words: str, message: str, cli: Cli) -> None:
    assert message in cli(*words.split(), code=2)


def test_options_may_stand_between_source_and_destination(tmp_path: Path, cli: Cli) -> None:
    source = write_tree(tmp_path / "source", {"a": 2})
    cli("build", source, "--shards", "1", tmp_path / "out")
    cli("verify", tmp_path / "out")
    assert "needs a source and a destination" in cli("build", source, "--shards", "1", code=2)
    assert "no directory to download to" in cli("download", "tiny-imagenet", "--json", code=2)


def test_the_end_of_input_is_not_an_answer(tmp_path: Path) -> None:
    answers = {b"ImageNet data dir: ": b"\x04"}
    code, shown = at_terminal("-m", "stoker.cli.main", "build", "--ask", answers=answers, folder=tmp_path)
    assert code == 2, shown.decode()
    assert b"'ImageNet data dir' was not answered; set the environment variable DATA_DIR" in shown
    assert b"Traceback" not in shown


def test_a_number_of_too_many_digits_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    for name, value in {"DATA_DIR": str(tmp_path), "PROTO_OUT_DIR": "out", "RESIZE_IMAGES": "Y"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NEW_HEIGHT", "9" * 5000)
    assert "must be a whole number" in cli("build", "--ask", code=2)
