"""Items that a build leaves out because their images are there already: files of the same bytes.

Which of them stay depends on the order of the listing alone, so that the build has the same bytes whatever makes it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stoker.builder.convert import ITEM_ERRORS, is_item_error, request_threads
from stoker.config import option
from stoker.errors import ConfigError
from stoker.format import ItemReject
from stoker.sources import SPLITS, image_digest
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from stoker.builder.settings import DropDuplicates
    from stoker.sources import Source
    from stoker.types import Progress

_PROGRESS_ITEMS = 256


def duplicates_to_drop(
    tree: Source, how: DropDuplicates | None, threads: int, progress: Progress | None
) -> dict[int, ItemReject]:
    """Return the items to leave out, by their rows, each with the reason; every image is read once.

    Of equal files in a split the first stays. With ``across-splits``, of those in several the one in test, or else in
    validation: what is measured on stays, and what is trained on goes.

    Raises:
        ConfigError: The images are on web servers, which may send others the next time.
    """
    if how is None:
        return {}
    if tree.latency == "web":
        message = f"{option('drop_duplicates')} would download every image of {tree.root} twice"
        raise ConfigError(f"{message}; build without it, and then from the dataset")
    ordered = [name for name in reversed(SPLITS) if name in tree.splits]
    dropped: dict[int, ItemReject] = {}
    stays: dict[bytes, int] = {}
    done = 0
    for split in ordered:
        if how == "within":
            stays = {}
        rows = tree.splits[split]
        with stoppable_pool(request_threads(tree, threads), "stoker-digest", only_reads=True) as pool:
            for first in range(0, len(rows), _PROGRESS_ITEMS):
                some = rows[first : first + _PROGRESS_ITEMS].tolist()
                for row, known in zip(some, pool.map(partial(_digest, tree, split), some), strict=True):
                    if known is None:  # the build says what is wrong with it
                        continue
                    other = stays.setdefault(known, row)
                    if other != row:
                        item = tree.table[row]
                        reason = f"its file is equal to {tree.table[other].key}, which is in the dataset"
                        dropped[row] = ItemReject(item.key, item.label, reason)
                done += len(some)
                if progress is not None:
                    progress(done=done, total=len(tree.table), size_bytes=0, rejects=len(dropped))
    return dropped


def _digest(tree: Source, split: str, row: int) -> bytes | None:
    try:
        return image_digest(tree.load(tree.table[row], split).data)
    except ITEM_ERRORS as error:
        if isinstance(error, OSError) and not is_item_error(error, tree.root):
            raise
        return None
