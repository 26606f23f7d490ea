"""Everything that can be said about a build before anything is written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.builder.estimate import Estimate, estimate, sample_records
from stoker.builder.plan import Plan, make_plan
from stoker.builder.run import open_source
from stoker.builder.shard import ItemConverter, request_threads
from stoker.errors import StorageError
from stoker.recipe import SNIFF_BYTES, sniff
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from stoker.builder.settings import BuildSettings
    from stoker.sources import Item, Source
    from stoker.types import Progress


# A look at the first bytes of the source files: which formats there are, and which files are not what they seem.


SURVEY_LIMIT = 20_000
"""Files that are looked at; of a larger tree, a seeded sample of this many."""

_CLAIMS = {
    b"jpg": "jpeg",
    b"jpeg": "jpeg",
    b"jpe": "jpeg",
    b"jfif": "jpeg",
    b"png": "png",
    b"gif": "gif",
    b"bmp": "bmp",
    b"webp": "webp",
    b"tif": "tiff",
    b"tiff": "tiff",
    b"jp2": "jpeg2000",
}
_UNREADABLE = "unreadable"
_NO_IMAGE = frozenset({"empty", "text", "unknown", "pdf", "heif", _UNREADABLE})


@dataclass(frozen=True, slots=True)
class OddFile:
    """A file that will be rejected, or whose content is another format than its name says."""

    key: str
    content: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What the first bytes say.

    Attributes:
        looked_at: Files that were opened: all, or a sample of `SURVEY_LIMIT`.
        formats: How many of them have which content, in the words of `stoker.recipe.convert`, or ``unreadable``.
        odd: Those that are odd, in the order of the tree.
    """

    looked_at: int
    formats: dict[str, int]
    odd: tuple[OddFile, ...]


def survey(tree: Source, threads: int) -> Survey:
    """Read the first bytes of every file, or of a sample."""
    total = len(tree.table)
    rows = np.arange(total)
    if total > SURVEY_LIMIT:
        rows = np.sort(_native.permute(0, SURVEY_LIMIT, total, 0, 0).astype(np.int64))
    items = [tree.table[row] for row in rows.tolist()]
    with stoppable_pool(request_threads(tree, threads), "stoker-survey") as pool:
        contents = list(pool.map(lambda item: _content(tree, item), items, chunksize=64))
    odd = [
        OddFile(item.key, content)
        for item, content in zip(items, contents, strict=True)
        if content in _NO_IMAGE or _claim(item.path) not in (None, content)
    ]
    return Survey(len(items), dict(Counter(contents).most_common()), tuple(odd))


def _content(tree: Source, item: Item) -> str:
    try:
        return sniff(tree.peek(item, SNIFF_BYTES))
    except StorageError:
        raise
    except OSError:
        return _UNREADABLE


def _claim(path: bytes) -> str | None:
    """Return the format that a file name promises, or None."""
    return _CLAIMS.get(path[path.rfind(b".") + 1 :].lower())


@dataclass(frozen=True, slots=True, eq=False)
class BuildForecast:
    """What a build would do.

    Attributes:
        settings: Its settings.
        plan: Splits, shards and items.
        class_counts: Items of each class, over all splits.
        survey: What the files hold, by their first bytes.
        estimate: Bytes and seconds.
    """

    settings: BuildSettings
    plan: Plan
    class_counts: tuple[int, ...]
    survey: Survey
    estimate: Estimate


def forecast(settings: BuildSettings, progress: Progress | None = None) -> BuildForecast:
    """Look at the source, convert a small sample of it, and write nothing.

    Args:
        settings: What would be built.
        progress: Told how far the listing is, where that takes long.

    Raises:
        ConfigError: The settings do not fit the source.
        SourceError: The source cannot be listed.
    """
    tree = open_source(settings.source, progress)
    converter = ItemConverter(tree, settings.recipe, settings.schema)
    size, _ = sample_records(tree, converter, settings.threads)
    plan = make_plan(tree, settings, size)
    return BuildForecast(
        settings,
        plan,
        tuple(np.bincount(tree.table.labels + 1, minlength=len(tree.classes) + 1)[1:].tolist()),
        survey(tree, settings.threads),
        estimate(plan, converter, settings.threads),
    )
