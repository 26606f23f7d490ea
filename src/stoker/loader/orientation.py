"""One warning where images have an EXIF orientation, which loaders do not apply."""

from __future__ import annotations

import shlex
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

from stoker.errors import SourceWarning, StokerError
from stoker.loader.mixes import parts_of
from stoker.recipe import is_turned

if TYPE_CHECKING:
    from stoker.loader.dataset import Dataset
    from stoker.loader.mixes import Mix

_LOOKED_AT, _MOST_BYTES = 32, 16 << 20
_known: set[tuple[str, str]] = set()


def warn_of_orientation(dataset: Dataset | Mix) -> None:
    """Look at a few images of each local split, once in a process, and warn if some are meant to be seen turned."""
    for part in parts_of(dataset):
        if (part.path, part.split) in _known or part.remote is not None or part.schema.image_encoding == "raw":
            continue
        _known.add((part.path, part.split))
        indices, turned = [*range(0, len(part), -(-len(part) // _LOOKED_AT))], 0
        if not part.shards:
            sizes = part.sample_bytes
            indices = [index for index in indices if sizes[index] <= _MOST_BYTES]
        for index in indices:
            with suppress(StokerError, OSError):  # reported where the sample is used
                encoded = part[index].encoded if part.shards else part.records.read(int(part.numbers[index]))
                turned += is_turned(encoded)
        if turned:
            command = f"stoker {'repack' if part.shards else 'build'} {shlex.quote(part.path)} NEW --exif apply"
            message = f"{turned} of {len(indices)} images looked at in {part.path} have an EXIF orientation"
            message = f"{message}, which is not applied (docs/explanation/pixels.md); to turn the pixels: {command}"
            warnings.warn(message, SourceWarning, stacklevel=3)
