"""Equal files that a build leaves out, found before it is planned.

Which of them stays depends only on the order of the listing, so the build has the same bytes with any engine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stoker.builder.convert import ITEM_ERRORS, is_item_error, request_threads
from stoker.config import option
from stoker.errors import ConfigError
from stoker.format import ItemReject
from stoker.progress import Tally
from stoker.sources import image_digest
from stoker.splits import SPLITS
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from stoker.builder.settings import DropDuplicates
    from stoker.sources import Source
    from stoker.types import Progress


_DIGESTS_AT_ONCE = 256


def duplicates_to_drop(
    source: Source, how: DropDuplicates | None, threads: int, progress: Progress | None
) -> dict[int, ItemReject]:
    """Return the items to leave out, by their rows, each with the reason; every image is read once.

    Of equal files in a split, the first one stays. With ``across-splits``, of equal files in several splits the one in
    test stays, or else the one in validation: evaluation data stay, and training data go.

    Raises:
        ConfigError: The images are on web servers, which may send others the next time.
    """
    if how is None:
        return {}
    if source.latency == "web":
        message = f"{option('drop_duplicates')} would download every image of {source.root} twice"
        raise ConfigError(f"{message}; build without it, and then from the dataset")
    ordered = [name for name in reversed(SPLITS) if name in source.splits]
    dropped: dict[int, ItemReject] = {}
    stays: dict[bytes, int] = {}
    tally = Tally(len(source.table), progress)
    for split in ordered:
        if how == "within":
            stays = {}
        rows = source.splits[split]
        with stoppable_pool(request_threads(source, threads), "stoker-digest", only_reads=True) as pool:
            for first in range(0, len(rows), _DIGESTS_AT_ONCE):
                chunk = rows[first : first + _DIGESTS_AT_ONCE].tolist()
                for row, known in zip(chunk, pool.map(partial(_digest, source, split), chunk), strict=True):
                    # An item without a digest cannot be read; the build rejects it.
                    other = row if known is None else stays.setdefault(known, row)
                    if other != row:
                        item = source.table[row]
                        reason = f"its file is equal to {source.table[other].key}, which is in the dataset"
                        dropped[row] = ItemReject(item.key, item.label, reason)
                    tally.advanced(1, 0, other != row)
    return dropped


def _digest(source: Source, split: str, row: int) -> bytes | None:
    try:
        return image_digest(source.load(source.table[row], split).data)
    except ITEM_ERRORS as error:
        if isinstance(error, OSError) and not is_item_error(error, source.root):
            raise
        return None
