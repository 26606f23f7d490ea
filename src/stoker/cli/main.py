"""``stoker COMMAND ...``.

A command is a module of this package with two functions: ``add_parser(subparsers)`` adds its parser, and
``run(args)`` does the work and returns the exit code. The name of the module is the name of the command.

====  =========================================================================================
code  meaning
====  =========================================================================================
0     done
1     failed
2     usage: a setting, the source or the destination is not usable as given
3     finished, but with more rejects than ``--max-rejects``
4     ``verify`` found damage
130   interrupted
====  =========================================================================================
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import stoker.cli
from stoker.cli.exit_codes import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from stoker.cli.output import print_error, print_json
from stoker.errors import ConfigError, DatasetNotFoundError, DestinationError, SourceError, StokerError

if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE_ERRORS = (ConfigError, DatasetNotFoundError, DestinationError, SourceError)


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
    except (StokerError, OSError) as error:
        return _report(error, as_json=as_json)
    except KeyboardInterrupt as interrupt:
        print("; ".join(["stoker: interrupted", *_notes(interrupt)]), file=sys.stderr)  # noqa: T201 - see _report
        return EXIT_INTERRUPTED


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = _Parser(prog="stoker", description="Images on disk to TFRecord shards to training batches.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    names = [found.name for found in pkgutil.iter_modules(stoker.cli.__path__)]
    # Importing what one command needs is enough to run it; only the help text needs all of them.
    for name in [name for name in names if name in words[:1]] or names:
        module = importlib.import_module(f"stoker.cli.{name}")
        if hasattr(module, "add_parser"):
            command = module.add_parser(subparsers)
            command.set_defaults(run=module.run)
    return parser


def _report(error: StokerError | OSError, *, as_json: bool) -> int:
    message = str(error) if isinstance(error, StokerError) else _system_message(error)
    message = "; ".join([message, *_notes(error)])
    print_error(message)
    if as_json:
        print_json({"error": _error_fields(error, message)})
    return EXIT_USAGE if isinstance(error, _USAGE_ERRORS) else EXIT_FAILED


def _notes(error: BaseException) -> list[str]:
    """Return what the code that was interrupted wants to add, such as how to go on."""
    return getattr(error, "__notes__", [])


def _system_message(error: OSError) -> str:
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
    return f"{where}{error.strerror or error}"


def _error_fields(error: StokerError | OSError, message: str) -> dict[str, Any]:
    filename = error.filename if isinstance(error, OSError) and isinstance(error.filename, (str, bytes)) else None
    return {
        "type": type(error).__name__,
        "message": message,
        "path": getattr(error, "path", None) or (os.fsdecode(filename) if filename is not None else None),
        "record": getattr(error, "record", None),
        "offset": getattr(error, "offset", None),
    }


if __name__ == "__main__":
    sys.exit(main())
