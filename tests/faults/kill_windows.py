"""Run by a test under the shim: kills a command at every call that moves, removes or saves a file, before and after it.

What each kill leaves behind is looked at as a user would, with `stoker.open`, ``plan``, ``info`` and ``verify``: each
sees all that the command makes, or all that was there before it, or refuses. Then the same command finishes.

Prints a JSON object: of each case how many calls there are, and what became of them.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from hashlib import md5, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shim import KILL, KILL_AFTER, Fault, in_child, positions

from small_datasets import write_dataset
from sources.making import tar_bytes
from stoker import cli as commands
from stoker.cli.main import main as stoker
from stoker.download.catalogue import DATASETS
from stoker.errors import StokerError
from stoker.loader import open_splits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KINDS = "rename,link,unlink,rmdir,fsync"
REFUSED = "refused"
DOGS = "stanford-dogs"


def run(*words: object) -> str:
    """What a command prints; an error if it does not end well."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = stoker([str(word) for word in words])
    if status:
        raise StokerError(err.getvalue() or out.getvalue())
    return out.getvalue()


def looked_at(folder: Path) -> dict[str, Any]:
    """What each reader sees in a folder; of one that refuses it, why."""
    readers: dict[str, Callable[[], Any]] = {
        "open": lambda: {
            name: [len(dataset), [c.name for c in dataset.classes]] for name, dataset in open_splits(folder).items()
        },
        "plan": lambda: _some(run("plan", folder, "--json"), "items", "bytes", "classes", "splits"),
        "info": lambda: _info(_some(run("info", folder, "--json"), "dataset_id", "state", "splits", "classes")),
        "verify": lambda: _some(run("verify", folder, "--json"), "records", "size_bytes", "shards", "problems"),
    }
    seen = {}
    for name, read in readers.items():
        try:
            seen[name] = read()
        except (StokerError, OSError) as error:
            seen[name] = f"{REFUSED}: {error}".strip()
    return seen


def _info(document: dict[str, Any]) -> Any:
    return f"{REFUSED}: unfinished" if document["state"] == "unfinished" else document


def _some(text: str, *keys: str) -> dict[str, Any]:
    document = json.loads(text)
    return {key: document[key] for key in keys if key in document}


def files_below(folder: Path) -> dict[str, str]:
    """A digest of each file, at any depth."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".tmp-" not in str(path))
    return {path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest() for path in paths}


@dataclass(frozen=True)
class Case:
    """A command.

    Attributes:
        name: What it is called.
        words: How it is called in a folder.
        prepare: Makes a folder ready.
        read: What is read, in the folder.
        out: What it writes, in the folder.
        readers: Who must not see a part. ``info`` tells what a manifest says, also where shards are missing.
    """

    name: str
    words: Callable[[Path], list[object]]
    prepare: Callable[[Path], None]
    read: str = "out"
    out: str = "out"
    readers: tuple[str, ...] = ("open", "plan", "info", "verify")


def two_splits(folder: Path) -> None:
    write_dataset(folder / "dataset", {"train": [3, 3], "validation": [2]})


def two_datasets(folder: Path) -> None:
    two_splits(folder)
    write_dataset(folder / "other", {"train": [2], "validation": [1]})


def images(folder: Path) -> None:
    run("sample", folder / "photos", "--classes", 2, "--images", 2, "--validation", 1)


def built(folder: Path) -> None:
    images(folder)
    run("build", folder / "photos", folder / "out", "--shards", 1)


def export(to: str) -> Callable[[Path], list[object]]:
    return lambda folder: ["export", folder / "dataset", folder / "out", "--to", to, "--shard-size", 4000]


CASES = [
    *(Case(f"export {to}", export(to), two_splits) for to in ("folder", "webdataset", "parquet")),
    Case("merge", lambda at: ["merge", at / "dataset", at / "other", at / "out"], two_datasets),
    Case("merge --link", lambda at: ["merge", at / "dataset", at / "other", at / "out", "--link"], two_datasets),
    Case("repack", lambda at: ["repack", at / "dataset", at / "out", "--shards", 2], two_splits),
    Case("sample", lambda at: ["sample", at / "out", "--classes", 2, "--images", 2, "--validation", 1], lambda _: None),
    Case(
        "download",
        lambda at: ["download", DOGS, at / "out", "--url", os.environ["FILES_URL"]],
        lambda _: None,
        read="out/Images",
    ),
    Case(
        "build --overwrite",
        lambda at: ["build", at / "photos", at / "out", "--shards", 2, "--overwrite", "--yes"],
        built,
        readers=("open", "plan", "verify"),
    ),
]


@contextlib.contextmanager
def small_downloads(folder: Path) -> Iterator[None]:
    """A server of a dataset that has the name of one in the catalogue, and few bytes."""
    dogs = {
        "lists.tar": {"train_list.mat": b"x"},
        "annotation.tar": {"Annotation/n02-dog/n02_1": b"<annotation></annotation>"},
        "images.tar": {"Images/n02-dog/n02_1.jpg": b"a" * 100, "Images/n03-cat/n03_2.jpg": b"b" * 200},
    }
    files = []
    for file in DATASETS[DOGS].files:
        data = tar_bytes(dogs[file.name])
        (folder / file.name).write_bytes(data)
        files.append(replace(file, checksum=f"md5:{md5(data).hexdigest()}", size_bytes=len(data)))
    DATASETS[DOGS] = replace(DATASETS[DOGS], files=tuple(files))
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        os.environ["FILES_URL"] = f"http://127.0.0.1:{server.stdout.readline().split(' port ')[1].split()[0]}/"
        try:
            yield
        finally:
            server.terminate()


def told(value: Any, folder: Path) -> str:
    """What a reader saw, without the path of the folder."""
    return json.dumps(value, sort_keys=True).replace(str(folder), "FOLDER")


def play(case: Case, work: Path, most: int) -> dict[str, int]:
    """Kill a command at so many of its calls, from the first to the last; all of them before and after if ``most`` is.

    Raises:
        AssertionError: A reader saw a part of what there will be, or the same command does not finish.
    """
    stage = Path(tempfile.mkdtemp(dir=work))
    prepared = in_child(lambda: case.prepare(stage), None)
    assert not prepared.error, prepared.trace

    def fresh() -> Path:
        folder = Path(tempfile.mkdtemp(dir=work)) / "folder"
        shutil.copytree(stage, folder)
        return folder

    folder = fresh()
    fault = Fault(str(folder), KINDS, 0, KILL)
    views = [told(look(folder / case.read), folder)]
    count = positions(lambda: run(*case.words(folder)), fault)
    views.append(told(look(folder / case.read), folder))
    finished = files_below(folder / case.out)
    assert count > 1, case.name
    whole = [json.loads(view) for view in views]
    tried = min(most, count)
    chosen = sorted({1 + (count - 1) * number // max(1, tried - 1) for number in range(tried)})
    both = [(position, how) for position in chosen for how in (KILL, KILL_AFTER)]
    seen: Counter[str] = Counter()
    for position, how in both if most >= count else both[::2][::2] + both[1::2][1::2]:
        folder = fresh()
        died = in_child(
            lambda folder=folder: run(*case.words(folder)), replace(fault, path=str(folder), how=how), position
        )
        where = f"{case.name}, {'before' if how == KILL else 'after'} call {position} of {count}: {died}"
        assert died.status == -signal.SIGKILL, where
        for reader, view in json.loads(told(look(folder / case.read), folder)).items():
            if reader not in case.readers:
                continue
            refuses = str(view).startswith(REFUSED)
            assert refuses or view in [state[reader] for state in whole], f"{where}: {reader} saw a part: {view}"
            seen["refused" if refuses else "as before or whole"] += 1
        again = in_child(lambda folder=folder: run(*case.words(folder)), None)
        is_whole = files_below(folder / case.out) == finished
        assert is_whole, f"{where}\nand again: {again}\n{again.trace}"
        assert not again.error or "new or empty folder" in again.message, f"{where}\nand again: {again}"
        assert [path.name for path in folder.glob(".*")] == [], where
        shutil.rmtree(folder.parent)
    return {"calls": count, **seen}


def look(folder: Path) -> dict[str, Any]:
    """As `looked_at`, in a process of its own."""
    outcome = in_child(lambda: looked_at(folder), None)
    assert not outcome.error, outcome.trace
    return dict(outcome.value)


def warm_up() -> None:
    """Import here what each of the children would import for itself."""
    for module in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{module.name}")
    for name in ("PIL.JpegImagePlugin", "PIL.PngImagePlugin", "pyarrow.parquet", "stoker.sources"):
        importlib.import_module(name)


def main() -> None:
    """Play the cases that are named, all when none is."""
    work, most, *names = sys.argv[1:]
    warm_up()
    outcomes: dict[str, Any] = {}
    (Path(work) / "server").mkdir()
    with small_downloads(Path(work) / "server"):
        for case in CASES:
            if not names or case.name in names:
                try:
                    outcomes[case.name] = play(case, Path(work), int(most))
                except AssertionError as error:
                    outcomes[case.name] = {"wrong": str(error)}
    json.dump(outcomes, sys.stdout)


main()
