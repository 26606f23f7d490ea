"""The words of the command line for a recipe."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast, get_args

from stoker.errors import ConfigError
from stoker.recipe.recipe import JpegEncode, RawEncode, Resize, ResizeMode, Subsampling

if TYPE_CHECKING:
    from stoker.types import TensorOrder

_SUBSAMPLINGS: dict[str, Subsampling] = {"420": "4:2:0", "444": "4:4:4"}


def parse_resize(text: str) -> Resize | None:
    """Return the resize that a text stands for; None for ``off``.

    Args:
        text: ``short:256``, ``long:512``, ``max:512``, ``exact:300x200`` (width x height), ``square:300`` or ``off``.

    Raises:
        ConfigError: ``text`` is none of these.
    """
    if text == "off":
        return None
    found = re.fullmatch(r"([a-z]+):([0-9]{1,6})(?:x([0-9]{1,6}))?", text, re.ASCII)
    if found is None or found[1] not in get_args(ResizeMode) or (found[1] == "exact") != (found[3] is not None):
        message = "write short:256, long:512, max:512, exact:300x300, square:300 or off"
        raise ConfigError(f"--resize {text!r} is not understood; {message}")
    return Resize(cast("ResizeMode", found[1]), int(found[2]), int(found[3] or found[2]))


def parse_encode(text: str) -> JpegEncode | RawEncode:
    """Return the encoding that ``jpeg:90``, ``jpeg:90:420``, ``jpeg:90:444``, ``raw`` or ``raw:CHW`` stands for.

    Raises:
        ConfigError: ``text`` is none of these.
    """
    if found := re.fullmatch(r"raw(?::(HWC|CHW))?", text, re.ASCII):
        return RawEncode(cast("TensorOrder", found[1] or "HWC"))
    found = re.fullmatch(r"jpeg:([0-9]{1,3})(?::(420|444))?", text, re.ASCII)
    if found is None:
        raise ConfigError(f"--encode {text!r} is not understood; write jpeg:90, jpeg:90:444, raw or raw:CHW")
    return JpegEncode(int(found[1]), _SUBSAMPLINGS[found[2] or "420"])
