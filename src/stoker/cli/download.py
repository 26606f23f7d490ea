"""``stoker download``: fetch the files of a public dataset, with resume and verification."""

from __future__ import annotations

import getpass
import os
import shlex
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stoker.cli import output
from stoker.cli.parser import UsageError
from stoker.config import format_seconds, format_size
from stoker.download import DATASETS, DEVKIT, Account, download, parse_base
from stoker.errors import ConfigError
from stoker.progress import ProgressDisplay

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from stoker.download import AccountNames, DownloadReport, RemoteDataset, Stage

DESCRIPTION = "Download a public dataset. Run the same command again to resume, and to check what is there."
EXAMPLES = ("stoker download tiny-imagenet data", "stoker download imagenet data")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset", choices=list(DATASETS), help="one of %(choices)s")
    # Not nargs="?", which would miss the argument behind an option.
    text = "where to put it (imagenet: IMAGENET_OUT_DIR when omitted)"
    parser.add_argument("directory", help=text).required = False
    add = parser.add_argument_group("what is downloaded").add_argument
    text = "a mirror that has the files, for example https://mirror.example/imagenet/"
    add("--url", metavar="BASE", help=text)
    text = "imagenet: only the development kit (3 MB), which has the classes of the validation images"
    add("--devkit", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    """Download, report, and return 0."""
    dataset = DATASETS[args.dataset]
    if args.devkit and dataset.name != "imagenet":
        raise UsageError(f"--devkit is for imagenet; {dataset.name} has none")
    base_url, account = (None, None) if args.url is None else parse_base(args.url)
    names = dataset.account
    username = key = ""
    if names is not None:
        username, key = (os.environ.get(name, "").strip() for name in (names.username, names.key))
    if account is None and username and key:
        account = Account(username, key)
    directory = Path(args.directory or _directory(dataset))
    with ProgressDisplay(is_shown=not output.is_quiet()) as display:
        watcher = _Watcher(display)
        report = download(
            replace(dataset, files=(DEVKIT,)) if args.devkit else dataset,
            directory,
            watcher,
            base_url=base_url,
            account=account,
            ask=None if names is None else partial(_ask, names, username, key, display.pause),
        )
    if args.json:
        output.document(_document(report, dataset, directory, watcher.notes))
    else:
        _print(report, dataset, directory)
    return 0


class _Watcher:
    """Shows the progress of each file, and prints notes, which it keeps for ``--json``."""

    def __init__(self, display: ProgressDisplay) -> None:
        self._display = display
        self.notes: list[str] = []

    def advanced(self, *, name: str, stage: Stage, done: int, total: int | None) -> None:
        count = format_size(done) + ("" if total is None else f" of {format_size(total)}")
        self._display.show(f"{stage} {name}", done, total, count, _byte_rate)

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._display.say(text)


def _directory(dataset: RemoteDataset) -> str:
    variable = "" if dataset.account is None else dataset.account.directory
    if os.environ.get(variable):
        return os.environ[variable]
    if variable and sys.stdin.isatty():
        return _answer("directory to download to: ", "the directory")
    also = f", or set {variable}" if variable else ""
    raise UsageError(f"no directory to download to; write 'stoker download {dataset.name} DIR'{also}")


def _ask(names: AccountNames, username: str, key: str, pause: Callable[[], None]) -> Account:
    """Ask the user at the terminal for the user name and key that the environment lacks."""
    if not sys.stdin.isatty():
        remedy = f"set {names.username} and {names.key}, or run this in a terminal"
        raise ConfigError(f"the server requires an account (see {names.register}): {remedy}")
    pause()
    sys.stderr.write(f"the server requires an account; {names.register} tells how to get one\n")
    username = username or _answer("user name: ", "the user name")
    return Account(username, key or _access_key())


def _answer(question: str, what: str) -> str:
    answer = output.typed(question)
    if not answer:
        raise ConfigError(f"{what} was not given")
    return answer


def _access_key() -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)  # or it would go on, and show what is typed
            return getpass.getpass("access key (not shown): ", stream=sys.stderr).strip()
    except (EOFError, getpass.GetPassWarning):
        raise ConfigError("the access key cannot be asked for without showing it; set it in the environment") from None


def _next_commands(report: DownloadReport, dataset: RemoteDataset, directory: Path) -> list[str]:
    """Return the commands to run next; the two that build are alternatives."""
    if not all((directory / file.saved_as).exists() for file in dataset.files):
        return [shlex.join(["stoker", "download", dataset.name, str(directory)])]
    source = report.source if report.source.name not in ("", "..") else report.source.resolve()
    build = ["stoker", "build", str(source), f"{source}-shards"]
    return [
        shlex.join(words) for words in (["stoker", "plan", str(source)], build, [*build, "--preset", dataset.preset])
    ]


def _document(report: DownloadReport, dataset: RemoteDataset, directory: Path, notes: list[str]) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "directory": directory,
        "source": report.source,
        "seconds": round(report.seconds, 3),
        "fetched_bytes": report.fetched_bytes,
        "files": report.files,
        "notes": notes,
        "next": _next_commands(report, dataset, directory),
    }


def _byte_rate(speed: float) -> list[str]:
    return [f"{format_size(speed)}/s"] if speed else []


def _print(report: DownloadReport, dataset: RemoteDataset, directory: Path) -> None:
    rows = [
        (file.path, file.outcome, format_size(file.size_bytes), file.checksum.partition(":")[0].upper() + " right")
        for file in report.files
    ]
    output.table(["file", "outcome", ">bytes", "checked"], rows)
    for file in report.files:
        if file.folder is not None:
            output.line(f"unpacked: {file.folder}; {file.path.name} can be removed, or kept to check the folder again")
        for path in file.moved_aside:
            output.line(f"damaged, and not needed any more: {path}")
    if report.fetched_bytes:
        rate = f"{format_size(report.fetched_bytes / max(report.seconds, 1e-3))}/s"
        output.line(f"{format_size(report.fetched_bytes)} fetched in {format_seconds(report.seconds)}: {rate}")
    for start, command in zip(("next: ", "      ", "or:   "), _next_commands(report, dataset, directory), strict=False):
        output.detail(start + command)
