"""The words of the command line for a recipe."""

from __future__ import annotations

import re
from typing import cast, get_args

from stoker.errors import ConfigError
from stoker.recipe.recipe import Encode, Resize, ResizeMode, Subsampling

_SUBSAMPLINGS: dict[str, Subsampling] = {"420": "4:2:0", "444": "4:4:4"}


def parse_resize(text: str) -> Resize:
    """Return the resize that ``short:256``, ``long:512``, ``max:512``, ``exact:300x300`` or ``square:300`` stands for.

    Raises:
        ConfigError: ``text`` is none of these.
    """
    found = re.fullmatch(r"([a-z]+):([0-9]{1,6})(?:x([0-9]{1,6}))?", text, re.ASCII)
    if found is None or found[1] not in get_args(ResizeMode) or (found[1] == "exact") != (found[3] is not None):
        message = "write short:256, long:512, max:512, exact:300x300 or square:300"
        raise ConfigError(f"--resize {text!r} is not understood; {message}")
    return Resize(cast("ResizeMode", found[1]), int(found[2]), int(found[3] or found[2]))


def parse_encode(text: str) -> Encode:
    """Return the encoding that ``jpeg:90``, ``jpeg:90:420`` or ``jpeg:90:444`` stands for.

    Raises:
        ConfigError: ``text`` is none of these.
    """
    found = re.fullmatch(r"jpeg:([0-9]{1,3})(?::(420|444))?", text, re.ASCII)
    if found is None:
        raise ConfigError(f"--encode {text!r} is not understood; write jpeg:90, jpeg:90:420 or jpeg:90:444")
    return Encode(int(found[1]), _SUBSAMPLINGS[found[2] or "420"])
