"""``stoker COMMAND ...``.

A command is a module of this package, named in `COMMANDS`, with two functions: ``add_parser(subparsers)`` adds its
parser, and ``run(args)`` does the work and returns the exit code. The name of the module is the name of the command.

====  =========================================================================================
code  meaning
====  =========================================================================================
0     done
1     failed
2     usage: a setting, the source or the destination is not usable as given
3     finished, but with more rejects than ``--max-rejects``
4     ``verify`` or ``index`` found damage
130   interrupted
====  =========================================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from stoker.cli.output import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, print_error, print_json
from stoker.errors import ConfigError, DatasetNotFoundError, DestinationError, SourceError, StokerError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    Reported = StokerError | OSError | MemoryError | RuntimeError

COMMANDS = (
    "bench",
    "build",
    "cache",
    "doctor",
    "download",
    "index",
    "info",
    "list",
    "plan",
    "repack",
    "sample",
    "show",
    "verify",
)
_USAGE_ERRORS = (ConfigError, DatasetNotFoundError, DestinationError, SourceError)
_NO_THREAD = "can't start new thread"
"""What a `RuntimeError` of Python's says when the system has no thread for it; there is no other sign."""


class _Parser(argparse.ArgumentParser):
    """Reports wrong arguments the way every other error is reported."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        raise ConfigError(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Words after ``stoker``; those of the process when None.

    Returns:
        The exit code.
    """
    _fill_closed_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    try:
        args = _parser(words).parse_args(words)
        code: int = args.run(args)
        sys.stdout.flush()  # here, where a closed pipe is still an error that is handled
        return code
    except BrokenPipeError:
        # The reader of our output has gone, as `| head` does. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except (StokerError, OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != _NO_THREAD:
            raise
        return _report(error, as_json=as_json)
    except KeyboardInterrupt as interrupt:
        print(printable("; ".join(["stoker: interrupted", *_notes(interrupt)])), file=sys.stderr)  # noqa: T201 - see _report
        return EXIT_INTERRUPTED


def _fill_closed_streams() -> None:
    """Give what a command prints somewhere to go where the caller has closed its output, as ``>&-`` does."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="stoker", description="Images on disk to TFRecord shards to training batches.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # Importing what one command needs is enough to run it; only the help text needs all of them.
    for name in [name for name in COMMANDS if name in words[:1]] or COMMANDS:
        module = importlib.import_module(f"stoker.cli.{name}")
        command = module.add_parser(subparsers)
        command.set_defaults(run=module.run)
    return parser


def _report(error: Reported, *, as_json: bool) -> int:
    message = "; ".join([_message(error), *_notes(error)])
    print_error(message)
    if as_json:
        with contextlib.suppress(OSError):  # it may be the very output that has failed
            print_json({"error": _error_fields(error, message)})
    return EXIT_USAGE if isinstance(error, _USAGE_ERRORS) else EXIT_FAILED


def _notes(error: BaseException) -> list[str]:
    """Return what the code that was interrupted wants to add, such as how to go on."""
    return getattr(error, "__notes__", [])


def _message(error: Reported) -> str:
    if isinstance(error, StokerError):
        return str(error)
    if isinstance(error, MemoryError):
        said = f": {error}" if str(error) else ""
        return f"there is not enough memory{said}; allow more, or use fewer threads"
    if isinstance(error, RuntimeError):
        return "the system starts no more threads; allow more threads or memory (ulimit -u, ulimit -v), or use fewer"
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    return f"{where}{error.strerror or error}"


def _error_fields(error: Reported, message: str) -> dict[str, Any]:
    ours = error if isinstance(error, StokerError) else None
    filename = error.filename if isinstance(error, OSError) and isinstance(error.filename, (str, bytes)) else None
    return {
        "type": type(error).__name__,
        "message": message,
        "path": (ours and ours.path) or (os.fsdecode(filename) if filename is not None else None),
        "record": ours and ours.record,
        "offset": ours and ours.offset,
    }


if __name__ == "__main__":
    sys.exit(main())
