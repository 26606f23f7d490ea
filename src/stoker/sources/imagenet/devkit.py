"""``meta.mat`` of the ILSVRC 2012 development kit: its own numbers of the classes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import ConfigError, SourceError
from stoker.sources.tar_format import ForwardBytes, open_stream, read_member, tar_members

if TYPE_CHECKING:
    from stoker.storage import Location


MAX_META_BYTES = 2**26
"""Longest ``meta.mat`` that is read."""

_TIMEOUT_SECONDS = 60.0
"""Of a reader that takes half a second."""


def meta_of_devkit(path: Location) -> bytes:
    """Return the ``meta.mat`` that lies in a devkit, which is a tar and may be compressed.

    Raises:
        SourceError: There is none in it, or the tar is damaged.
        OSError: It cannot be read.
    """
    with open_stream(path) as stream:
        source = ForwardBytes(stream, str(path))
        for member in tar_members(source):
            if member.isreg() and member.name.rpartition("/")[2] == "meta.mat":
                return read_member(source, member, MAX_META_BYTES)
    raise SourceError(f"{path} holds no meta.mat, so it is not the devkit of ILSVRC 2012", path=str(path))


def read_meta(data: bytes, where: str) -> list[tuple[bytes, int, bytes]]:
    """Return the name, the number (from 1) and the text of each class.

    Inner nodes of the hierarchy, which have children, are not classes.

    Args:
        data: A ``meta.mat``.
        where: File it comes from.

    Raises:
        ConfigError: SciPy is not installed.
        SourceError: It is not such a file.
    """
    if importlib.util.find_spec("scipy") is None:
        message = f"reading {where} needs SciPy: install stoker[devkit], or give map_clsloc.txt"
        raise ConfigError(message)
    if len(data) > MAX_META_BYTES:
        raise SourceError(f"{where} is larger than {MAX_META_BYTES} bytes, too large for a meta.mat", path=where)
    try:
        return [(name.encode(), number, text.encode()) for name, number, text in _run_reader(data)]
    except (subprocess.SubprocessError, ValueError) as error:
        raise SourceError(f"{where} is not the meta.mat of ILSVRC 2012: {_reason(error)}", path=where) from error


def _run_reader(data: bytes) -> list[tuple[str, int, str]]:
    """Read a ``meta.mat`` in another process, which it may crash or fill.

    Raises:
        SubprocessError: That failed, or did not end.
        ValueError: It holds something that is not a text.
    """
    reader = [sys.executable, "-P", str(Path(__file__).with_name("meta_reader.py"))]  # imports nothing of Stoker
    few_threads = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # each takes memory, which the reader limits
    done = subprocess.run(  # noqa: S603 - our own module under our own interpreter
        reader, input=data, capture_output=True, check=True, timeout=_TIMEOUT_SECONDS, env=few_threads
    )
    found: list[tuple[str, int, str]] = json.loads(done.stdout)
    return found


def _reason(error: Exception) -> str:
    """Return the last line that the reader wrote, or that it crashed."""
    if not isinstance(error, subprocess.CalledProcessError):
        return str(error)
    lines = error.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines and error.returncode > 0 else "it crashes the program that reads it"
