"""``stoker build --ask``: the questions of NVIDIA's ``generate_tfrecord_protos.sh``, and its environment variables.

A variable that is set answers its question. What the original got wrong is right here: the answer to the question
about resizing is heeded, and Enter means the Yes that it offers.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from stoker.cli.person import typed
from stoker.errors import ConfigError

if TYPE_CHECKING:
    import argparse

_SIDE, _QUALITY = 352, 90
_MOST_DIGITS = 9


def ask_settings(args: argparse.Namespace) -> None:
    """Fill in what the command line leaves open: source, destination, preset, size and quality.

    Asked in this order: ``DATA_DIR`` (or ``IMAGENET_DATA_DIR``), ``PROTO_OUT_DIR``, ``RESIZE_IMAGES``, ``NEW_HEIGHT``,
    ``NEW_WIDTH``, ``JPEG_Q``.

    Raises:
        ConfigError: An answer is not one, or there is nobody to ask.
    """
    args.source = args.source or _answer("DATA_DIR", "IMAGENET_DATA_DIR", question="ImageNet data dir")
    args.destination = args.destination or _answer("PROTO_OUT_DIR", question="TFRecord output dir")
    args.preset = args.preset or "imagenet-nvidia"
    if args.resize is not None or args.recipe == "keep" or args.img_size is not None:
        return
    if not _yes(_answer("RESIZE_IMAGES", question="Resize images to one size", default="Y")):
        args.resize = "off"
        return
    height = _number("NEW_HEIGHT", "Height of the images", _SIDE)
    width = _number("NEW_WIDTH", "Width of the images", _SIDE)
    args.resize = f"exact:{width}x{height}"
    if args.encode is None and args.quality is None:
        args.quality = _number("JPEG_Q", "JPEG quality, 1 to 100", _QUALITY)


def _answer(*variables: str, question: str, default: str | None = None) -> str:
    for variable in variables:
        if value := os.environ.get(variable):
            return value
    if not sys.stdin.isatty():
        message = f"--ask has nobody to ask for {question!r}: standard input is no terminal"
        raise ConfigError(f"{message}; set the environment variable {variables[0]}, or give it on the command line")
    while True:
        answer = typed(f"{question}{f' [{default}]' if default else ''}: ")
        if answer is None:
            message = f"{question!r} was not answered"
            raise ConfigError(f"{message}; set the environment variable {variables[0]}, or give it on the command line")
        if chosen := answer or default:
            return chosen


def _yes(answer: str) -> bool:
    if answer.lower() in ("y", "yes", "true", "1"):
        return True
    if answer.lower() in ("n", "no", "false", "0"):
        return False
    raise ConfigError(f"{answer!r} is neither yes nor no; answer RESIZE_IMAGES with Y or n")


def _number(variable: str, question: str, default: int) -> int:
    answer = _answer(variable, question=question, default=str(default))
    if not answer.isascii() or not answer.isdigit() or len(answer) > _MOST_DIGITS:
        raise ConfigError(f"{variable} is {answer[:40]!r}; it must be a whole number")
    return int(answer)
