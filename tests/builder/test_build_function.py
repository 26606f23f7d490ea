"""``stoker.build``: the command as a function of Python."""

from __future__ import annotations

import ast
import inspect
import multiprocessing
import re
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import stoker
from builder.killing import interrupt
from builder.trees import contents, picture, write_tree
from page_checks import checked
from stoker.builder import BuildOptions
from stoker.cli.main import main, make_parser
from stoker.config import settings_as_options
from stoker.declare import declared
from stoker.errors import (
    ConfigError,
    DestinationError,
    LabelWarning,
    SourceError,
    SourceWarning,
    TooManyRejectsError,
)
from terminals import at_terminal
from written_files import write_files

OF_THE_COMMAND = {"help", "json", "quiet", "verbose", "ask"}
"""Options that say how the command prints and asks."""
OF_SPARK = {"master", "spark_conf"}
"""Those that make the session that `stoker.spark.engine` is given."""
SHORT = {"img_size", "quality"}
"""Short forms of ``--resize square:N`` and ``--encode jpeg:Q``: Python has one name for each setting."""
DECLARED = {setting.name for setting in declared(BuildOptions)}
OF_PYTHON = {"progress", "split", "fields"}
"""Arguments that a command has no use for: records are of a program."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "src", {"train/cat": 12, "train/dog": 9, "validation/cat": 4, "validation/dog": 3})


def build(source: Path, destination: Path, **settings: Any) -> stoker.BuildReport:
    return stoker.build(source, destination, progress=False, **settings)


def test_it_has_the_settings_of_the_command() -> None:
    command = make_parser(["build"])
    parser = command._subparsers._group_actions[0].choices["build"]  # type: ignore[union-attr,index]
    options = {action.dest: action for action in parser._actions if action.option_strings and action.dest not in SHORT}
    options["allow_huge"] = options.pop("yes")
    parameters = inspect.signature(stoker.build).parameters
    settings = {name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY}
    assert options.keys() - OF_THE_COMMAND - OF_SPARK == settings - OF_PYTHON
    assert settings - OF_PYTHON - {"engine", "overwrite", "part", "finish"} == DECLARED
    defaults = {"engine": ("local", None)}
    for name in settings - OF_PYTHON - {"engine"}:
        assert (options[name].default, parameters[name].default) == defaults.get(name, (parameters[name].default,) * 2)
    for name, option in options.items():
        if option.choices and name in settings - {"engine"}:
            with pytest.raises(ConfigError, match=rf"^{name} (is )?'?5"):
                stoker.build("photos", "dataset", **{name: 5 if name == "label_base" else "5"})


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ([], {}),
        (["--shards", "3", "--seed", "7", "--threads", "1"], {"shards": 3, "seed": 7, "threads": 2}),
        (["--shard-size", "4KB", "--compression", "gzip"], {"shard_size": 4000, "compression": "gzip"}),
        (
            ["--resize", "short:20", "--encode", "jpeg:80:444", "--filter", "box"],
            {"resize": "short:20", "encode": "jpeg:80:444", "filter": "box"},
        ),
        (["--img-size", "24", "--quality", "70"], {"resize": "square:24", "encode": "jpeg:70"}),
        (["--preset", "tfds", "--num-images", "9"], {"preset": "tfds", "num_images": 9}),
        (["--preset", "imagenet", "--label-base", "0"], {"preset": "imagenet", "label_base": 0}),
        (["--recipe", "restart", "--check", "entropy"], {"recipe": "restart", "check": "entropy"}),
    ],
)
def test_the_command_does_the_same(words: list[str], settings: dict[str, Any], source: Path, tmp_path: Path) -> None:
    assert main(["build", str(source), str(tmp_path / "command"), *words, "-q"]) == 0
    assert build(source, tmp_path / "function", **settings).outcome == "built"
    assert contents(tmp_path / "function") == contents(tmp_path / "command")
    assert build(source, tmp_path / "command", **settings).outcome == "complete"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shards": 0}, "shards is 0; it must be between 1 and 99999"),
        ({"shards": "4"}, "shards is '4'; it must be a whole number from 1 to 99999"),
        ({"shards": 99}, "shards is 99, but split 'train' has 21 items; give 21 or less"),
        ({"shards": 2, "shard_size": "1MB"}, "shards and shard_size contradict each other; give one of them"),
        ({"resize": "half"}, "resize 'half' is not understood; write short:256, long:512"),
        ({"resize": 256}, "resize is 256; it must be a text such as 'short:256'"),
        ({"split_fraction": 0.1}, "split_fraction is 0.1; it must be a text such as 'validation=0.1'"),
        ({"labels": ["a", "b"]}, r"labels is \['a', 'b'\]; it must be the path or the URL of a file"),
        ({"max_pixels": 0}, "max_pixels is 0; it must be 1 or more"),
        ({"num_images": 0}, "num_images is 0; it must be 1 or more"),
        ({"num_images": -1}, "num_images is -1; it must be 1 or more"),
        ({"filter": "box"}, "filter has no effect without resize; give resize too, or omit it"),
        (
            {"split_fraction": "train=1"},
            "split_fraction 'train=1' is not understood; write validation=0.1 or test=0.1, with a fraction",
        ),
        ({"threads": 0}, "threads is 0; it must be between 1 and 1024"),
        ({"progress": True}, "progress is True; give a function or False, or omit it"),
        ({"engine": "spark"}, r"engine is 'spark'; give stoker.spark.engine\(session\), or omit it"),
    ],
)
def test_messages_name_arguments(settings: dict[str, Any], message: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{message}") as caught:
        stoker.build(source, tmp_path / "out", **{"progress": False} | settings)
    assert "--" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_paths_and_quoted_values_are_not_rewritten(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"my--photos/--shards/x"):
        stoker.build(tmp_path / "my--photos" / "--shards" / "x", tmp_path / "out", progress=False)
    for value in ("--yes", "it's --yes", 'a "b" --yes'):
        with pytest.raises(ConfigError, match=f"^resize {re.escape(repr(value))} is not understood"):
            stoker.build(tmp_path, tmp_path / "out", resize=value, progress=False)
    folder = tmp_path / "photos --yes" / "and --shards"
    with pytest.raises(SourceError, match=f"^{re.escape(str(folder))} does not exist"):
        stoker.build(folder, tmp_path / "out", progress=False)
    folder.mkdir(parents=True)
    (folder / "--seed 1.txt").touch()
    with pytest.raises(DestinationError, match=re.escape(f"{folder} holds something else (--seed 1.txt)")):
        stoker.build([], folder, progress=False)


def test_messages_name_options_where_the_command_line_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^shards is 0"):
        stoker.build(tmp_path, tmp_path / "out", shards=0)
    with settings_as_options(), pytest.raises(ConfigError, match=r"^--shards is 0"):
        BuildOptions(shards=0)


def test_messages_take_the_names_of_settings_from_one_function() -> None:
    names = "|".join(name.replace("_", "-") for name in (*DECLARED, "yes", "overwrite", "engine", "part", "finish"))
    package = Path(stoker.__file__).parent
    literals = []
    folders = [package / name for name in ("builder", "sources", "recipe", "format")]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        text = path.read_text()
        if not re.search(rf"--({names})", text):
            continue
        tree = ast.parse(text)
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        literals += [
            (path.name, node.value)
            for node in texts
            if id(node) not in documented
            and re.search(rf"(?<![\w-])--({names})(?![\w-])", node.value)
            and not re.fullmatch(rf"--({names})", node.value)  # where it is declared
        ]
    # Lists of rejects have this one, and are the same for the command and for the function.
    assert literals == [("recipe.py", "; raise --max-pixels")]


def test_a_consent_is_named_as_an_argument(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.builder.estimate.LARGE_BYTES", 1000)
    with pytest.raises(ConfigError, match=r"; add allow_huge=True to build it anyway$"):
        build(source, tmp_path / "out")
    assert build(source, tmp_path / "out", allow_huge=True).outcome == "built"


def test_rejects_beyond_the_limit_are_an_error_until_they_are_accepted(source: Path, tmp_path: Path) -> None:
    for number in range(3):
        (source / f"train/cat/bad{number}.JPEG").write_bytes(b"no image")
    out = tmp_path / "out"
    with pytest.raises(TooManyRejectsError) as caught:
        build(source, out, max_rejects=2)
    report = caught.value.report
    assert (report.outcome, sorted(reject.key for reject in report.rejects)) == (
        "withheld", [f"train/cat/bad{number}.JPEG" for number in range(3)],
    )  # fmt: skip
    assert re.match(r"3 images could not be stored, and max_rejects is 2: \S+/out has no manifest", str(caught.value))
    assert "call again with max_rejects=3 to accept them" in str(caught.value)
    assert not (out / "manifest.json").exists()
    accepted = build(source, out, max_rejects=3)
    assert (accepted.outcome, accepted.items, len(accepted.rejects)) == ("built", 0, 3)
    assert build(source, out).outcome == "complete"  # as the command: what is finished is accepted


def test_a_build_that_stores_nothing_says_why(tmp_path: Path) -> None:
    given, problem = [{"image": b"no image"}] * 3, "has no manifest, because no image could be stored; the first is rec"
    with pytest.raises(TooManyRejectsError, match=problem):
        build(given, tmp_path / "out")
    with pytest.warns(SourceWarning, match=r"out is empty: no image could be stored; the first is record") as caught:
        report = build(given, tmp_path / "out", max_rejects=3)
    assert (report.outcome, caught[0].filename) == ("built", __file__)


def test_an_interrupt_leaves_no_thread_and_a_build_to_resume(source: Path, tmp_path: Path) -> None:
    out, threads = tmp_path / "out", threading.active_count()
    there = interrupt(lambda stop: stoker.build(source, out, shards=5, threads=1, progress=stop), out, 1)
    end = time.monotonic() + 30  # one converts an image to its end, and is not waited for
    while threading.active_count() > threads and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() == threads
    assert build(source, out, shards=5).resumed_shards == there
    build(source, tmp_path / "whole", shards=5)
    assert contents(out) == contents(tmp_path / "whole")


def test_a_function_hears_of_the_progress(source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    heard: list[dict[str, int]] = []
    report = stoker.build(source, tmp_path / "out", progress=lambda **news: heard.append(news))
    assert heard[-1] == {"done": 28, "total": 28, "size_bytes": report.size_bytes, "rejects": 0}
    assert build(source, tmp_path / "other").outcome == "built"
    stoker.build(source, tmp_path / "third")  # neither a terminal nor a notebook
    assert capfd.readouterr() == ("", "")


PROGRAM = """
import sys, time, stoker, stoker.progress
stoker.progress._QUICK_SECONDS = float(sys.argv[3])
stoker.build(sys.argv[1], sys.argv[2])
"""


@pytest.mark.parametrize(("quick", "shows"), [("0", True), ("60", False)])
def test_a_terminal_has_a_bar_when_it_takes_longer(source: Path, tmp_path: Path, quick: str, shows: bool) -> None:
    code, shown = at_terminal("-c", PROGRAM, source, tmp_path / "out", quick)
    assert code == 0, shown
    assert (b"28 of 28" in shown, b"building" in shown) == (shows, shows), shown


def test_a_notebook_shows_bar_and_report(source: Path, tmp_path: Path) -> None:
    import nbformat  # noqa: PLC0415
    from nbclient import NotebookClient  # noqa: PLC0415

    setup = "import stoker, stoker.progress\nstoker.progress._QUICK_SECONDS = 0"
    cells = [setup, f"stoker.build({str(source)!r}, {str(tmp_path / 'out')!r})"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = notebook.cells[1].outputs
    assert {output.output_type for output in outputs} == {"display_data", "execute_result"}  # nothing on stderr
    assert "building: 28 of 28" in outputs[-2].data["text/html"]
    assert "built: dataset " in checked(outputs[-1].data["text/html"]).text


def in_child(source: str, destination: str, queue: Any) -> None:
    queue.put(stoker.build(source, destination, threads=2).manifest.dataset_id)


def test_a_spawned_process_can_call_it(source: Path, tmp_path: Path) -> None:
    spawning = multiprocessing.get_context("spawn")
    queue = spawning.Queue()
    child = spawning.Process(target=in_child, args=(str(source), str(tmp_path / "out"), queue))
    child.start()
    dataset_id = queue.get(timeout=120)
    child.join()
    assert child.exitcode == 0
    assert dataset_id == build(source, tmp_path / "whole").manifest.dataset_id


def test_a_report_shows_itself(source: Path, tmp_path: Path) -> None:
    (source / "train/cat/<b>bad.JPEG").write_bytes(b"no image")
    report = build(source, tmp_path / "out", shards=2, max_rejects=1, preset="imagenet")
    dataset, size = report.manifest.dataset_id, r"[0-9.]+ KB"
    assert re.fullmatch(
        rf"<stoker.BuildReport built: dataset {dataset}; train: 21 records in 2 shards, {size}; "
        rf"validation: 7 records in 1 shard, {size}; 2 classes, labels start at 1 \(preset imagenet\); "
        r"1 reject, the first train/cat/<b>bad.JPEG; 29 images in [0-9.]+ s>",
        repr(report),
    )
    assert "1 reject, the first train/cat/<b>bad.JPEG" in checked(report._repr_html_()).text


def test_parts(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source / "train/cat/bad.JPEG").write_bytes(b"no image")
    build(source, tmp_path / "whole", shards=4, max_rejects=1)
    out = tmp_path / "out"
    counted: list[int] = []
    first = stoker.build(source, out, shards=4, part="1/3", progress=lambda **now: counted.append(now["total"]))
    assert isinstance(first, stoker.PartReport)
    assert (first.part.number, first.part.count, first.missing_shards, first.dataset) == (1, 3, 3, None)
    assert set(counted) == {first.items}
    facts = r"part 1 of 3: 2 of 5 shards; 3 shards of other parts missing; (1 reject, .*; )?[0-9]+ images in [0-9.]+ s"
    assert re.fullmatch(rf"<stoker.PartReport {facts}>", repr(first))
    assert "part 1 of 3: 2 of 5 shards" in checked(first._repr_html_()).text
    with pytest.raises(DestinationError, match=r"3 of 5 shards are missing in .*; run those parts again"):
        build(source, out, shards=4, finish=True)
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
    monkeypatch.setenv("STOKER_PARTS", "3")
    assert isinstance(build(source, out, shards=4, part="auto"), stoker.PartReport)
    with pytest.raises(TooManyRejectsError, match="call again with max_rejects=1 to accept them") as caught:
        build(source, out, shards=4, part="2/3")
    assert [reject.key for reject in caught.value.report.rejects] == ["train/cat/bad.JPEG"]
    report = build(source, out, shards=4, finish=True, max_rejects=1)
    assert (report.outcome, report.resumed_shards) == ("built", 0)
    assert contents(out) == contents(tmp_path / "whole")
    assert build(source, out, shards=4, part="2/3", max_rejects=1).outcome == "complete"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"part": "3/3"}, "part 3/3: there is no part 3; 3 parts are numbered 0 to 2"),
        ({"part": "first"}, "part first is not understood; write 3/64 for number 3 of 64 parts"),
        ({"part": 3}, "part is 3; it must be a text such as 3/64, or auto"),
        ({"part": "0/3", "finish": True}, "part and finish=True contradict each other; give one of them"),
        ({"part": "0/3", "overwrite": True}, "part and overwrite=True contradict each other; give one of them"),
        ({"finish": True, "engine": print}, "finish=True and engine contradict each other; give one of them"),
    ],
)
def test_parts_that_are_refused(settings: dict[str, Any], message: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        build(source, tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="part has no effect where the source is records; omit it"):
        stoker.build([{"image": picture(1)}], tmp_path / "out", part="0/3")


def test_what_the_listing_says_is_a_warning_where_it_was_called(tmp_path: Path) -> None:
    write_files(tmp_path / "src", {"n01440764/a.jpg": picture(0), "n01443537/a.jpg": picture(1)})
    with pytest.warns(LabelWarning, match="for its numbers give labels='imagenet'") as caught:
        stoker.build(tmp_path / "src", tmp_path / "out", progress=False)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(tmp_path / "src", tmp_path / "numbered", labels="imagenet", max_rejects=0)
