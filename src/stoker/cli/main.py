"""``stoker COMMAND ...``.

A command is a module of this package, named in `COMMANDS`, with two functions: ``add_arguments(parser)`` declares its
arguments, and ``run(args)`` does the work and returns the exit code. Its ``DESCRIPTION`` and ``EXAMPLES`` are its help.
Only the module of the command that was typed is imported; the help of ``stoker`` alone needs none.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from stoker.cli import output
from stoker.cli.parser import CommandParser, UsageError
from stoker.config import alternatives, settings_as_options, stoker_version
from stoker.errors import ConfigError, DatasetNotFoundError, DestinationError, SourceError, StokerError, printable
from stoker.habits import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Reported = StokerError | OSError | MemoryError | RuntimeError

COMMAND_GROUPS = {
    "build a dataset": {
        "sample": "make a small tree of artificial photographs to try things on",
        "download": "download ImageNet, TinyImageNet or Stanford Dogs",
        "list": "write a list of files, which is a source of images too",
        "plan": "say what a build would do: classes, counts, bytes, minutes",
        "build": "turn images into TFRecord shards, an index and a manifest",
        "repack": "turn TFRecords into a dataset of another layout or size",
        "merge": "join datasets without decoding their images",
        "export": "write a dataset as image files, WebDataset or Parquet",
        "index": "write the index beside TFRecords of any origin",
    },
    "look at a dataset": {
        "info": "print what a dataset holds, or write a page with charts",
        "show": "draw random samples, or what the model sees of them",
        "audit": "find duplicates, leaks between splits, statistics, odd images",
        "verify": "check every checksum, every record and every image",
    },
    "read it fast": {
        "doctor": "find what slows reading down, and one remedy",
        "bench": "measure images per second of every way to read images",
        "cache": "list or empty the caches on this machine",
    },
    "set up the shell": {
        "completion": "print the script that completes commands and options",
    },
}
COMMANDS = {name: text for group in COMMAND_GROUPS.values() for name, text in group.items()}
"""What each command does, in the order of the help."""
_WITHOUT_JSON = ("list", "completion")

_USAGE_ERRORS = (ConfigError, DatasetNotFoundError, DestinationError, SourceError)
_NO_THREAD = "can't start new thread"
"""The text of Python's `RuntimeError` when the system refuses a thread, which nothing else identifies."""

_CORE_SETTING = "STOKER_KERNELS"
"""The environment variable that the compiled core names in its `ImportError` if the value is wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in ``arguments``, by default those of the process, and return the exit code."""
    _prepare_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    try:
        words = list(map(_without_query, words))
        if not words:
            make_parser(["--help"]).print_help()
            return output.EXIT_USAGE
        args = make_parser(words).parse_args(_without_help_command(words))
        output.set_verbosity(-1 if args.quiet else int(args.verbose))
        with _shown_warnings(), output.shown_log(), settings_as_options():
            code: int = args.run(args)
        sys.stdout.flush()  # here, where a closed pipe is still an error that is handled
        return code
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return output.EXIT_FAILED
    except (StokerError, OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != _NO_THREAD:
            raise
        return _report(error, words, as_json=as_json)
    except ImportError as error:
        if _CORE_SETTING not in str(error):
            raise
        return _report(ConfigError(str(error)), words, as_json=as_json)
    except KeyboardInterrupt as interrupt:
        print(printable("; ".join(["stoker: interrupted", *_notes(interrupt)])), file=sys.stderr)  # noqa: T201 - see _report
        if arguments is None and threading.active_count() > 1:  # Python would wait for them, seconds for a large image
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(output.EXIT_INTERRUPTED)
        return output.EXIT_INTERRUPTED


def _prepare_streams() -> None:
    """Make printing work if the caller has closed the output, as ``>&-`` does, and in any encoding."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")  # what a terminal of Latin-1 cannot show is no error


def _without_query(word: str) -> str:
    """Return a URL without its query, which may be a secret: requests have it, but nothing that is printed."""
    if "?" not in word or not word.lower().startswith(("http://", "https://")):
        return word
    from stoker.storage import location  # noqa: PLC0415 - takes time, and most words are no such URLs

    try:
        return str(location(word))
    except ConfigError:
        return word  # the command refuses it, and knows what it was for


def _without_help_command(words: Sequence[str]) -> list[str]:
    return [*words[1:2], "--help"] if words[:1] == ["help"] else list(words)


def _command(words: Sequence[str]) -> str | None:
    return next((word for word in _without_help_command(words) if not word.startswith("-")), None)


def make_parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser for these words: with the command that they name, or with all commands if they name none."""
    parser = CommandParser(
        prog="stoker",
        usage="stoker COMMAND [OPTIONS]",
        description="Images on disk to TFRecord shards to training batches.",
        epilog=_overview(),
        add_help=False,
    )
    options = parser.add_argument_group("options, before or after the command")
    options.add_argument("-h", "--help", action="help", help="show this help, or that of the command")
    options.add_argument("--version", action=_VersionAction, nargs=0, help="show the version")
    _add_verbosity(options, default=False)
    name = _command(words)
    if name is not None and name not in COMMANDS:
        known = did_you_mean(name, COMMANDS) or f"; there are {alternatives(list(COMMANDS)).replace(' or ', ' and ')}"
        raise UsageError(f"no command {name!r}{known}")
    if words[:1] == ["help"] and len(words) > 2:
        raise UsageError(f"one word too many: {words[2]!r}")
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="stoker", help=argparse.SUPPRESS
    )
    # Only the command that was typed is imported: the others take time.
    for word in COMMANDS if name is None and not {"-h", "--help", "--version"} & set(words) else [name] if name else []:
        module = importlib.import_module(f"stoker.cli.{word}")
        text, shown = module.DESCRIPTION, _examples(module.EXAMPLES)
        command = subparsers.add_parser(word, help=text, description=text, epilog=shown)
        module.add_arguments(command)
        group = command.add_argument_group("output")
        if word not in _WITHOUT_JSON:
            group.add_argument("--json", action="store_true", help="print one JSON document")
        # Without defaults: `stoker -q build` sets them before the command is read.
        _add_verbosity(group, default=argparse.SUPPRESS)
        command.set_defaults(run=module.run)
    return parser


def _add_verbosity(group: argparse._ArgumentGroup, *, default: bool | str) -> None:
    add = group.add_argument
    add("-q", "--quiet", action="store_true", default=default, help="print warnings, errors and the result alone")
    text = "print more: settings, whole lists, retries of stores"
    add("-v", "--verbose", action="store_true", default=default, help=text)


class _VersionAction(argparse.Action):
    """Prints the version, which is looked up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        sys.stdout.write(f"stoker {stoker_version()}\n")
        parser.exit()


def _overview() -> str:
    lines = []
    for title, group in COMMAND_GROUPS.items():
        lines += [f"{title}:", *(f"  {name:11} {text}" for name, text in group.items()), ""]
    lines += ["exit codes:", *(f"  {code:<11} {text}" for code, text in output.EXIT_CODES.items()), ""]
    shown = (
        "stoker sample photos                      # artificial photographs",
        "stoker build photos dataset               # run again to resume",
        "stoker info dataset",
        "stoker help build                         # the same as stoker build --help",
    )
    return "\n".join([*lines, _examples(shown)])


def _examples(lines: Sequence[str]) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])


def _report(error: Reported, words: Sequence[str], *, as_json: bool) -> int:
    message = "; ".join([_message(error), *_notes(error)])
    output.error(message)
    if isinstance(error, UsageError):
        name = _command(words)
        print(f"see stoker {name} --help" if name in COMMANDS else "see stoker --help", file=sys.stderr)  # noqa: T201
    if as_json:
        with contextlib.suppress(OSError):  # writing to the output may be what has failed
            output.document({"error": _error_fields(error, message)})
    return output.EXIT_USAGE if isinstance(error, _USAGE_ERRORS) else output.EXIT_FAILED


@contextlib.contextmanager
def _shown_warnings() -> Iterator[None]:
    def show(message: Warning | str, *_: object) -> None:
        output.warning(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _notes(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


def _message(error: Reported) -> str:
    if isinstance(error, StokerError):
        return str(error)
    if isinstance(error, MemoryError):
        detail = f": {error}" if str(error) else ""
        return f"not enough memory{detail}; allow more, or use fewer threads"
    if isinstance(error, RuntimeError):
        return (
            "the system refuses to start more threads; allow more, or more memory (ulimit -u, ulimit -v), or use fewer"
        )
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    return f"{where}{error.strerror or error}"


def _error_fields(error: Reported, message: str) -> dict[str, Any]:
    ours = error if isinstance(error, StokerError) else None
    filename = error.filename if isinstance(error, OSError) and isinstance(error.filename, (str, bytes)) else None
    return {
        "type": "ConfigError" if isinstance(error, UsageError) else type(error).__name__,
        "message": message,
        "path": (ours and ours.path) or (os.fsdecode(filename) if filename is not None else None),
        "record": ours and ours.record,
        "offset": ours and ours.offset,
    }


if __name__ == "__main__":
    sys.exit(main())
