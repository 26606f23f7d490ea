"""Whether bytes came through a store unchanged, where it tells an MD5.

The etag of an object that was written in one piece is the MD5 of its content on S3 and Google Cloud Storage, unless it
is encrypted with a customer's key or was composed of others. So an etag that looks like an MD5 and is not that of the
bytes means either wrong bytes or an etag of another kind. Asking again tells which: wrong bytes are hardly wrong four
times in the same way.
"""

from __future__ import annotations

import base64
import hashlib
import re
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from stoker.storage.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.storage.store import Blob, Data

_MD5 = re.compile(r'"?(?:([0-9a-f]{32})|([0-9A-Za-z+/]{22}==))"?')  # in hex, or as some servers have it in base64
_SAME_READS = 4
_MOST_SUSPECTS = 1024
_ENOUGH = 8


class ContentCheck:
    """Remembers what was suspicious about the objects of one store. Safe in any thread."""

    def __init__(self) -> None:
        self._suspects: OrderedDict[str, tuple[bytes, int]] = OrderedDict()  # what came how often
        self._others = 0  # etags that were found to be something else
        self._lock = threading.Lock()

    def check_read(self, key: str, blob: Blob) -> None:
        """Compare what was read with its etag.

        Raises:
            StoreError: They do not fit, and it was not read like this often enough; it is worth reading again.
        """
        found = self._digest_if_other(blob.data, blob.etag)
        if found is None:
            return
        with self._lock:
            before, times = self._suspects.pop(key, (found, 0))
            times = times + 1 if before == found else 1
            if times == _SAME_READS:
                self._others += 1
                return
            self._suspects[key] = (found, times)
            while len(self._suspects) > _MOST_SUSPECTS:
                self._suspects.popitem(last=False)
        raise StoreError(f"its bytes are not those of its etag {blob.etag}")

    def check_written(self, key: str, data: Data, etag: str | None, read: Callable[[], bytes]) -> None:
        """Compare what was written with the etag that came back, and where these differ, with what can be read.

        Raises:
            StoreError: The store holds other bytes; it is worth writing them again.
        """
        if self._digest_if_other(data, etag) is None:
            return
        if _md5(read()) != _md5(data):
            raise StoreError(f"{key} was written, but other bytes came back")
        with self._lock:
            self._others += 1

    def _digest_if_other(self, data: Data, etag: str | None) -> bytes | None:
        """Return the MD5 of ``data`` if the etag is another one."""
        said = _MD5.fullmatch(etag) if etag else None
        if said is None or self._others >= _ENOUGH:
            return None
        found = _md5(data)
        wanted = bytes.fromhex(said[1]) if said[1] else base64.b64decode(said[2])
        return None if found == wanted else found


def _md5(data: Data) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
