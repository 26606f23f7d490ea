"""Google Cloud Storage: read through obstore, written through gcsfs.

Two clients, because the one that reads ten times faster writes with the XML interface, which no server that runs
without the cloud understands, so that writing with it could not be tested; see docs/decisions/storage-clients.md.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, TypeVar

from stoker.storage.rust_objects import ONCE, READING, ObjectsBackend, missing
from stoker.storage.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.storage.store import Data, Entry

_T = TypeVar("_T")
_WHOLE_BYTES = 2**24  # a multiple of 256 KiB, as parts must be
SECONDS_OF_A_REQUEST = 60.0
"""The most that a request may take, which is at most `_WHOLE_BYTES` long; without a limit a stalled one never ends."""


class GcsBackend(ObjectsBackend):
    """A bucket of Google Cloud Storage.

    Credentials are Google's application default ones. ``STORAGE_EMULATOR_HOST`` leads to another server, without any.

    Args:
        name: ``gs://BUCKET``.

    Raises:
        ConfigError: obstore or gcsfs is not installed.
    """

    def __init__(self, name: str) -> None:
        try:
            from obstore.store import GCSStore  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise missing("gcs", error) from error
        bucket = name.partition("://")[2]
        emulator = _emulator()
        settings: dict[str, Any] = {"retry_config": ONCE, "client_options": READING}
        if emulator:
            settings["client_options"] = READING | {"allow_http": True}
            settings["service_account_key"] = _no_account(emulator)
        reading = GCSStore(bucket, **settings)
        super().__init__(name, reading, reading)
        self._bucket = bucket
        self._files = _writer(emulator)

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:
        """Yield every object below ``prefix`` in the order of their keys, from after ``after`` on."""
        # Servers that stand in for Google's begin from the start.
        return (entry for entry in super().entries(prefix, after) if after is None or entry.key > after)

    def put(self, key: str, data: Data) -> str | None:
        """Write an object; one that breaks off leaves nothing."""
        # It sends what is long in parts that it does not copy.
        content = bytes(data) if len(data) < _WHOLE_BYTES else memoryview(data)
        _asked(lambda: self._files.pipe_file(f"{self._bucket}/{key}", content, chunksize=_WHOLE_BYTES))
        return None  # gcsfs has compared the MD5 already

    def create(self, key: str, data: Data) -> None:
        """Write an object that is not there."""
        _asked(lambda: self._files.pipe_file(f"{self._bucket}/{key}", bytes(data), mode="create"))

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error."""
        with contextlib.suppress(FileNotFoundError):
            _asked(lambda: self._files.rm_file(f"{self._bucket}/{key}"))


def _emulator() -> str:
    """Return the URL of the server that takes the place of Google's, if there is one."""
    host = os.environ.get("STORAGE_EMULATOR_HOST", "").rstrip("/")
    return host if "://" in host or not host else f"http://{host}"


def _no_account(url: str) -> str:
    fields = ("client_email", "private_key", "private_key_id")
    return json.dumps({"gcs_base_url": url, "disable_oauth": True} | dict.fromkeys(fields, ""))


def _writer(emulator: str) -> Any:
    # Without it gcsfs asks Google, for up to a minute, of what kind each bucket is.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    try:
        from aiohttp import ClientTimeout  # noqa: PLC0415 - comes with gcsfs
        from gcsfs import GCSFileSystem  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise missing("gcs", error) from error
    about: dict[str, Any] = {"endpoint_url": emulator, "token": "anon"} if emulator else {}

    class Once(GCSFileSystem):  # type: ignore[misc]
        """Tries once: one layer retries, and it is not this one."""

        _request = getattr(GCSFileSystem._request, "__wrapped__", GCSFileSystem._request)

    about["requests_timeout"] = ClientTimeout(total=SECONDS_OF_A_REQUEST, sock_connect=5)
    return Once(consistency="md5", skip_instance_cache=True, use_listings_cache=False, **about)


def _asked(request: Callable[[], _T]) -> _T:
    """Make a request, and translate what went wrong."""
    try:
        return request()
    except (FileNotFoundError, FileExistsError, PermissionError):
        raise
    except Exception as error:
        status = getattr(error, "code", None) or getattr(error, "status", None)
        if status == 412:
            raise FileExistsError(str(error)) from error
        if status in (401, 403) or str(error).startswith("Forbidden: "):
            raise PermissionError(13, str(error)) from error
        lasting = isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
        raise StoreError(_said(error), retry=not lasting, busy=status in (429, 503)) from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]
