"""Files of this machine, and objects in buckets and HDFS, behind one class, `Location`.

Code above this package does not know which client speaks to which store, or whether a location is in a store.
"""

from __future__ import annotations

from stoker.storage.copies import (
    LocalCopy,
    SeekableBytes,
    append_to_scratch,
    error_about,
    is_scratch_full,
    message_about,
    reserve_scratch,
    scratch_file,
)
from stoker.storage.files import (
    TEMPORARY_MARK,
    attach_filename,
    check_directory,
    folder_at_once,
    is_path_error,
    lock_alone,
    make_directory,
    open_regular,
    sync_directory,
    temporary_name,
    write_all,
)
from stoker.storage.locations import (
    Child,
    FileInfo,
    LocalLocation,
    Location,
    LocationLike,
    Staging,
    StoreLocation,
    from_uri,
    glob_matches,
    is_absolute,
    is_web,
    join,
    location,
    read_at,
    split_bucket,
)
from stoker.storage.pools import check_stacks, new_pool, stop_waiting_when, stoppable_pool, stopping_when
from stoker.storage.retrying import RetryingStore
from stoker.storage.stores import Given, given, without_signature


def read_url(url: bytes) -> bytes:
    """Return what a web server sends for a URL; see `stoker.storage.web.read_url`."""
    from stoker.storage import web  # noqa: PLC0415 - takes a tenth of a second, and most programs do without

    return web.read_url(url)
