"""Where bytes lie: paths of this machine, and objects in buckets and HDFS under one interface.

Nothing above this room knows which client speaks to which store. Local files go past it: they are read with positioned
reads and written with a rename.
"""

from __future__ import annotations

from stoker.storage.copies import LocalCopy, local_copy
from stoker.storage.location import Location, RemotePath, is_remote, location, matches
from stoker.storage.patient import PatientStore
from stoker.storage.pool import check_stacks, stoppable_pool
from stoker.storage.scratch import is_scratch_full
from stoker.storage.small_files import is_named, open_regular, parse_json, read_small, regular_descriptor
from stoker.storage.store import Children, Entry
from stoker.storage.stores import stop_waiting_when

__all__ = [
    "Children",
    "Entry",
    "LocalCopy",
    "Location",
    "PatientStore",
    "RemotePath",
    "check_stacks",
    "is_named",
    "is_remote",
    "is_scratch_full",
    "local_copy",
    "location",
    "matches",
    "open_regular",
    "parse_json",
    "read_small",
    "regular_descriptor",
    "stop_waiting_when",
    "stoppable_pool",
]
