"""What is not in a dataset: how often for which reason, and what it looks like where that can still be seen."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from PIL.JpegImagePlugin import JpegImageFile

from stoker.config import available_cpus
from stoker.errors import ImageError, ImageTooLargeError, SourceError, StokerError
from stoker.feed.thumbnails import data_uri, fit
from stoker.inspection.sampling import Thumbnail
from stoker.recipe import decode_with_pillow, sniff
from stoker.recipe.quiet import QuietPillow
from stoker.records.rejects import read_rejects
from stoker.storage import RemotePath, location, stoppable_pool
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PIL import Image

    from stoker.inspection.sampling import Measured
    from stoker.storage import Location

    Find = Callable[[str], Location]

_THUMBNAIL = 280
_END_OF_IMAGE = b"\xff\xd9"
_MAX_FILE_BYTES = 2**28
_MAX_PIXELS = 2**27
_QUOTED = re.compile(r"'[^']*'")
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")


@dataclass(frozen=True, slots=True)
class Rejects:
    """What is not in a dataset, or cannot be read.

    Attributes:
        total: How many.
        of: Items that were looked at: those of the source, or the samples that were drawn.
        reasons: Why, numbers in the sentence replaced by ``N``, and how often; the most frequent first.
        gallery: Some of them.
    """

    total: int = 0
    of: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    gallery: tuple[Thumbnail, ...] = ()


def recorded_rejects(directory: str, items: int, most: int, source: str | None) -> Rejects:
    """Return the rejects of a build.

    Args:
        directory: The dataset.
        items: How many items its source had.
        most: How many to show.
        source: Where to look for their files, and nowhere beside it, whatever their names say; None: nowhere.

    Raises:
        ManifestError: ``rejects.jsonl`` is damaged.
        OSError: It cannot be read.
    """
    find = None if source is None else partial(_below, location(source))
    return _rejects(read_rejects(directory), items, most, find)


def unreadable_rejects(directory: str, measured: Measured, most: int) -> Rejects:
    """Return those of the samples that were looked at which cannot be read; files are shown, records are named."""
    found = [one for one in measured.seen if one.problem]
    rejects = [Reject(one.source.removeprefix(f"{directory}/"), one.split, one.problem) for one in found]
    find = partial(_named, location(directory)) if found and found[0].is_file else None
    return _rejects(rejects, len(measured.seen), most, find)


def _named(root: Location, key: str) -> Location:
    return root / key


def _below(root: Location, key: str) -> Location:
    """Find a file by a name that anybody may have written.

    Raises:
        SourceError: It lies elsewhere, also by way of a symbolic link.
    """
    name, place = PurePosixPath(key), root / key
    is_below = not name.is_absolute() and ".." not in name.parts
    if is_below and not isinstance(place, RemotePath):
        is_below = PurePosixPath(os.path.realpath(place)).is_relative_to(os.path.realpath(str(root)))
    if not is_below:
        raise SourceError("lies outside of the source")
    return place


def _rejects(found: Sequence[Reject], of: int, most: int, find: Find | None) -> Rejects:
    reasons = Counter(_kind(one) for one in found)
    with stoppable_pool(available_cpus(), "stoker-rejects") as pool:
        gallery = tuple(pool.map(partial(_shown, find=find), _varied(found, most)))
    return Rejects(len(found), of, tuple(reasons.most_common()), gallery)


def _kind(reject: Reject) -> str:
    """Return the reason without what differs from file to file: its name, numbers, and what is quoted of it."""
    return _NUMBER.sub("N", _QUOTED.sub("'...'", reject.reason.replace(reject.key, "the file")))


def _varied(found: Sequence[Reject], most: int) -> list[Reject]:
    """Return some of the rejects, of every reason about as many, in the order in which they are listed."""
    groups: dict[str, list[int]] = {}
    for place, one in enumerate(found):
        groups.setdefault(_kind(one), []).append(place)
    turns = sorted((turn, place) for places in groups.values() for turn, place in enumerate(places))
    return [found[place] for place in sorted(place for _, place in turns[:most])]


def _shown(reject: Reject, find: Find | None) -> Thumbnail:
    nothing = partial(Thumbnail, "", 0, 0, reject.key, (reject.reason,))
    if find is None:
        return nothing()
    try:
        place = find(reject.key)
        if not place.is_file():
            return nothing(problem="no longer there")
        if place.stat().st_size > _MAX_FILE_BYTES:
            return nothing(problem="too large to show")
        picture = partial_picture(place.read_bytes())
    except (StokerError, OSError, ValueError) as error:
        return nothing(problem=str(error))
    return Thumbnail(data_uri(picture), *picture.size, reject.key, (reject.reason,))


def partial_picture(data: bytes) -> Image.Image:
    """Return what can be seen of a file that was rejected; of a JPEG that is cut short, the part that is there.

    Raises:
        ImageError: Nothing of it can be decoded.
    """
    kind = sniff(data)
    if kind in ("empty", "text", "unknown", "pdf", "heif"):
        raise ImageError({"empty": "an empty file", "text": "a text file"}.get(kind, f"no picture: {kind}"))
    if kind != "jpeg":
        pixels, _ = decode_with_pillow(data, kind, _check_pixels)
        return fit(pixels, _THUMBNAIL, _THUMBNAIL)
    try:
        with QuietPillow(), JpegImageFile(io.BytesIO(data + _END_OF_IMAGE)) as image:
            _check_pixels(*image.size)
            image.draft("RGB", (2 * _THUMBNAIL, 2 * _THUMBNAIL))
            made = image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise ImageError(f"cannot be decoded: {error}") from error
    made.thumbnail((_THUMBNAIL, _THUMBNAIL))
    return made


def _check_pixels(width: int, height: int) -> None:
    if width * height > _MAX_PIXELS:
        raise ImageTooLargeError(f"{width} x {height} pixels are too many to show")
